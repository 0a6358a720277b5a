// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "fleet.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::epoch_sampler;
using omnibal::epoch_sampler_options;
using omnibal::remainder_policy;
using omnibal::sampler_state;
using omnibal::shard;
using test::fleet;
using test::fleet_step;
using test::run_counts;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};

fleet<epoch_sampler> make_fleet(std::uint64_t samples, std::size_t ranks,
                                epoch_sampler_options const& options) {
  return {ranks, [&](shard const& place) { return epoch_sampler(samples, place, options); }};
}

fleet<epoch_sampler> resumed_fleet(std::uint64_t samples, std::size_t ranks,
                                   epoch_sampler_options const& options,
                                   sampler_state const& state) {
  return {ranks, [&](shard const& place) { return epoch_sampler(samples, place, options, state); }};
}

std::vector<std::uint64_t> order_of(std::uint64_t samples, std::uint64_t seed,
                                    std::uint64_t epoch) {
  omnibal::rng::permutation const order(samples, omnibal::epoch_seed(seed, epoch));
  std::vector<std::uint64_t> result;
  for (std::uint64_t i = 0; i != samples; ++i) result.push_back(order(i));
  return result;
}

std::vector<std::uint64_t> order_prefix(std::uint64_t samples, std::uint64_t seed,
                                        std::uint64_t epoch, std::size_t length) {
  std::vector<std::uint64_t> result = order_of(samples, seed, epoch);
  result.resize(length);
  return result;
}

/// The samples of a step in the order of the epoch: the ranks take them in turn.
std::vector<std::uint64_t> in_order(fleet_step const& step) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i != step.front().new_ones.size(); ++i) {
    for (auto const& of_rank : step) {
      if (i < of_rank.new_ones.size()) result.push_back(of_rank.new_ones[i]);
    }
  }
  return result;
}

void append(std::vector<std::uint64_t>& to, std::vector<std::uint64_t> const& values) {
  to.insert(to.end(), values.begin(), values.end());
}

}  // namespace

TEST_CASE("ranks take the samples of a permutation in turn") {
  epoch_sampler_options const options{.seed = 5, .epoch = 2, .batch = 2};
  auto const order = order_of(14, 5, 2);
  epoch_sampler sampler(14, {.ranks = 3, .rank = 1}, options);
  CHECK(sampler.step_count() == 3);
  CHECK(test::to_vector(sampler.next()) == std::vector<std::uint64_t>{order[1], order[4]});
  CHECK(test::to_vector(sampler.next()) == std::vector<std::uint64_t>{order[7], order[10]});
  CHECK_FALSE(sampler.done());
  CHECK(test::to_vector(sampler.next()) == std::vector<std::uint64_t>{order[13]});
  CHECK(sampler.done());
  CHECK(sampler.epoch() == 2);
  CHECK(sampler.next()[0] == order_of(14, 5, 3)[1]);
  CHECK(sampler.epoch() == 3);
  CHECK(sampler.step() == 1);
}

TEST_CASE("an epoch has every sample once, over all ranks and steps") {
  for (remainder_policy const policy : policies) {
    for (std::uint64_t const samples : {1u, 2u, 7u, 24u, 25u}) {
      for (std::size_t const ranks : {1u, 2u, 3u, 8u, 30u}) {
        for (std::size_t const batch : {1u, 2u, 5u}) {
          INFO(static_cast<int>(policy)
               << ", " << samples << " samples, " << ranks << " ranks, batch " << batch);
          epoch_sampler_options const options{.seed = 1, .batch = batch, .remainder = policy};
          auto all = make_fleet(samples, ranks, options);
          run_counts counts(samples);
          std::vector<std::uint64_t> stream;
          std::vector<std::uint64_t> expected;
          for (std::uint64_t epoch = 0; epoch != 5; ++epoch) {
            append(expected, order_of(samples, 1, epoch));
            do {
              fleet_step const step = all.next();
              counts.add(step);
              append(stream, in_order(step));
              std::size_t largest = 0;
              std::size_t least = batch;
              for (auto const& of_rank : step) {
                std::size_t const size = of_rank.new_ones.size() + of_rank.repeated.size();
                largest = std::max(largest, size);
                least = std::min(least, size);
              }
              REQUIRE(largest > 0);
              REQUIRE(largest <= least + 1);
              if (!all.done() || policy == remainder_policy::repeat) REQUIRE(least == batch);
            } while (!all.done());
            REQUIRE(all.epoch() == epoch);
            std::uint64_t const left = all.first().left_over();
            if (policy == remainder_policy::carry) {
              REQUIRE(left < std::min<std::uint64_t>(samples, ranks * batch));
            } else {
              REQUIRE(left == 0);
            }
            REQUIRE(counts.sum() + left == samples * (epoch + 1));
            REQUIRE(std::equal(stream.begin(), stream.end(), expected.begin(),
                               expected.end() - static_cast<std::ptrdiff_t>(left)));
          }
        }
      }
    }
  }
}

TEST_CASE("carrying gives full steps only") {
  epoch_sampler_options const options{.seed = 3, .batch = 3, .remainder = remainder_policy::carry};
  auto all = make_fleet(25, 2, options);
  for (int step = 0; step != 100; ++step) {
    for (auto const& of_rank : all.next()) REQUIRE(of_rank.new_ones.size() == 3);
  }
}

TEST_CASE("what fills the last step are the first samples of the epoch, marked") {
  epoch_sampler_options const options{.batch = 2, .remainder = remainder_policy::repeat};
  auto const order = order_of(5, 0, 0);
  auto all = make_fleet(5, 3, options);
  CHECK(all.next() == fleet_step{{{order[0], order[3]}, {}},
                                 {{order[1], order[4]}, {}},
                                 {{order[2]}, {order[0]}}});
  auto many = make_fleet(2, 5, options);
  auto const two = order_of(2, 0, 0);
  CHECK(many.next() == fleet_step{{{two[0]}, {two[1]}},
                                  {{two[1]}, {two[0]}},
                                  {{}, {two[0], two[1]}},
                                  {{}, {two[1], two[0]}},
                                  {{}, {two[0], two[1]}}});
  CHECK(many.done());
}

TEST_CASE("a sampler resumes exactly at every step") {
  for (remainder_policy const policy : policies) {
    for (std::size_t const ranks : {1u, 3u, 4u}) {
      epoch_sampler_options const options{.seed = 9, .batch = 2, .remainder = policy};
      auto all = make_fleet(29, ranks, options);
      for (int step = 0; step != 40; ++step) {
        sampler_state const state = all.state();
        auto resumed = resumed_fleet(29, ranks, options, state);
        REQUIRE(resumed.state() == state);
        fleet_step const expected = all.next();
        REQUIRE(resumed.next() == expected);
        REQUIRE(resumed.state() == all.state());
      }
    }
  }
}

TEST_CASE("another number of ranks or batch goes on where the others stopped") {
  for (remainder_policy const policy : policies) {
    for (std::size_t const ranks : {1u, 3u, 8u}) {
      for (std::size_t const batch : {1u, 3u}) {
        epoch_sampler_options const before{.seed = 4, .batch = 2, .remainder = policy};
        epoch_sampler_options after = before;
        after.batch = batch;
        auto all = make_fleet(31, 2, before);
        std::vector<std::uint64_t> consumed;
        while (all.epoch() < 3) {
          if (all.state().segments[0].step_count == 0) consumed.clear();
          auto resumed = resumed_fleet(31, ranks, after, all.state());
          std::vector<std::uint64_t> stream = consumed;
          run_counts counts(31);
          do {
            fleet_step const step = resumed.next();
            append(stream, in_order(step));
            counts.add(step);
          } while (!resumed.done());
          INFO(ranks << " ranks, batch " << batch << ", epoch " << all.epoch());
          // The last samples of the epoch before, then this one's, but for what is left over; where
          // the epoch had ended the next one has run.
          std::vector<std::uint64_t> expected = order_of(31, 4, resumed.epoch());
          std::size_t const carried = resumed.state().carried;
          auto const previous = order_of(31, 4, resumed.epoch() - 1);
          if (resumed.epoch() == all.epoch()) {
            expected.insert(expected.begin(), previous.end() - static_cast<std::ptrdiff_t>(carried),
                            previous.end());
            expected.resize(expected.size() - resumed.first().left_over());
            REQUIRE(stream == expected);
          }
          if (all.done()) consumed.clear();
          append(consumed, in_order(all.next()));
        }
      }
    }
  }
}

TEST_CASE("ranks may change any number of times in an epoch") {
  epoch_sampler_options const options{.seed = 2};
  auto all = make_fleet(1000, 1, options);
  run_counts counts(1000);
  std::vector<std::uint64_t> stream;
  for (std::size_t change = 0; change != 40; ++change) {
    fleet_step const step = all.next();
    counts.add(step);
    append(stream, in_order(step));
    REQUIRE(all.first().step() == change + 1);
    sampler_state const state = all.state();
    all = resumed_fleet(1000, change + 2, options, state);
    // Without a step in between a change is none.
    REQUIRE(all.state() == state);
  }
  CHECK(stream == order_prefix(1000, 2, 0, stream.size()));
  finish_epoch(all, counts);
  CHECK(counts.all_are(1));
  // The epoch has ended, and so any ranks may start the next one.
  all = resumed_fleet(1000, 10, options, all.state());
  CHECK(all.done());
  counts.add(all.next());
  CHECK(all.epoch() == 1);
  CHECK(all.first().step() == 1);
  finish_epoch(all, counts);
  CHECK(counts.all_are(2));
}

TEST_CASE("the oldest of many changes are one rank with the same steps and samples") {
  epoch_sampler_options const options{.seed = 2, .order = omnibal::sample_order::given};
  auto all = make_fleet(1000, 1, options);
  for (std::size_t ranks = 2; ranks != 10; ++ranks) {
    static_cast<void>(all.next());
    all = resumed_fleet(1000, ranks, options, all.state());
  }
  static_cast<void>(all.next());
  CHECK(all.state().segments[0] == omnibal::sampler_segment{1, 1, 1});
  CHECK(all.state().segments[8] == omnibal::sampler_segment{9, 1, 1});
  // 1, 2 and 3 samples in three steps are 2 in each.
  all = resumed_fleet(1000, 50, options, all.state());
  static_cast<void>(all.next());
  CHECK(all.state().segments[0] == omnibal::sampler_segment{1, 2, 3});
  CHECK(all.state().segments[1] == omnibal::sampler_segment{4, 1, 1});
  CHECK(all.state().segments[7] == omnibal::sampler_segment{50, 1, 1});
  CHECK(all.state().segments[8] == omnibal::sampler_segment{});
  // There is room for one more; then 6, 4 and 5 samples in five steps are 3 in each.
  all = resumed_fleet(1000, 51, options, all.state());
  static_cast<void>(all.next());
  all = resumed_fleet(1000, 52, options, all.state());
  static_cast<void>(all.next());
  CHECK(all.state().segments[0] == omnibal::sampler_segment{1, 3, 5});
  CHECK(all.first().step() == 12);
  CHECK(all.next()[0].new_ones == std::vector<std::uint64_t>{198});
}

TEST_CASE("changes of ranks and batches at any step leave the order over all ranks as it is") {
  test::random_amounts random(11);
  for (int round = 0; round != 400; ++round) {
    epoch_sampler_options options{.seed = static_cast<std::uint64_t>(round),
                                  .order = omnibal::sample_order{round % 2 == 0}};
    options.remainder = policies[round % 3];
    std::uint64_t const samples = static_cast<std::uint64_t>(random.between(1, 400));
    std::size_t ranks = 1;
    auto all = make_fleet(samples, ranks, options);
    std::vector<std::uint64_t> carried;
    for (int epoch = 0; epoch != 3; ++epoch) {
      // The batch of the last ranks decides what is left over, so read it at the end.
      std::vector<std::uint64_t> stream;
      std::uint64_t steps = 0;
      do {
        sampler_state const state = all.state();
        fleet_step const step = all.next();
        append(stream, in_order(step));
        REQUIRE(all.first().step() == ++steps);
        REQUIRE(resumed_fleet(samples, ranks, options, state).next() == step);
        REQUIRE(resumed_fleet(samples, ranks, options, all.state()).state() == all.state());
        if (all.done()) break;
        if (random.between(0, 2) == 0) continue;
        ranks = static_cast<std::size_t>(random.between(1, 5));
        options.batch = static_cast<std::size_t>(random.between(1, 3));
        all = resumed_fleet(samples, ranks, options, all.state());
      } while (!all.done());
      INFO("round " << round << ", " << samples << " samples");
      std::vector<std::uint64_t> expected = carried;
      bool const is_given = options.order == omnibal::sample_order::given;
      std::vector<std::uint64_t> order = order_of(samples, options.seed, all.epoch());
      if (is_given) std::iota(order.begin(), order.end(), std::uint64_t{0});
      append(expected, order);
      auto const left = static_cast<std::ptrdiff_t>(all.first().left_over());
      carried.assign(expected.end() - left, expected.end());
      expected.resize(expected.size() - carried.size());
      REQUIRE(stream == expected);
    }
  }
}

TEST_CASE("any step of the epoch can be had and gone to") {
  for (remainder_policy const policy : policies) {
    epoch_sampler_options const options{.seed = 8, .batch = 3, .remainder = policy};
    epoch_sampler sampler(50, {.ranks = 4, .rank = 2}, options);
    static_cast<void>(sampler.next());
    epoch_sampler resumed(50, {.ranks = 2, .rank = 1}, options, sampler.state());
    std::vector<std::vector<std::uint64_t>> walked;
    while (!resumed.done()) walked.push_back(test::to_vector(resumed.next()));
    REQUIRE(resumed.step_count() == walked.size() + 1);
    for (std::size_t step = walked.size(); step != 0; --step) {
      CHECK(test::to_vector(resumed(step)) == walked[step - 1]);
      resumed.seek(step);
      CHECK(resumed.step() == step);
      CHECK(test::to_vector(resumed.next()) == walked[step - 1]);
    }
    resumed.seek(resumed.step_count());
    CHECK(resumed.done());
    auto const no_step = [&](std::uint64_t step) {
      return test::error_text<std::invalid_argument>([&] { static_cast<void>(resumed(step)); });
    };
    CHECK(no_step(0) == "omnibal::epoch_sampler: step is 0, must be in [1, " +
                            std::to_string(resumed.step_count()) + ")");
    CHECK(no_step(resumed.step_count()) != "no error");
    CHECK(test::error_text<std::invalid_argument>([&] { resumed.seek(0); }) ==
          "omnibal::epoch_sampler::seek: step is 0, must be in [1, " +
              std::to_string(resumed.step_count() + 1) + ")");
    CHECK(test::error_text<std::invalid_argument>(
              [&] { resumed.seek(resumed.step_count() + 1); }) != "no error");
  }
}

TEST_CASE("samples come in given order on request") {
  epoch_sampler_options const options{.order = omnibal::sample_order::given,
                                      .remainder = remainder_policy::carry};
  epoch_sampler sampler(5, {.ranks = 3, .rank = 0}, options);
  std::vector<std::uint64_t> taken;
  for (int step = 0; step != 5; ++step) taken.push_back(sampler.next()[0]);
  CHECK(taken == std::vector<std::uint64_t>{0, 3, 1, 4, 2});
}

TEST_CASE("no samples are an epoch without steps") {
  for (remainder_policy const policy : policies) {
    epoch_sampler sampler(0, {.ranks = 2, .rank = 0}, {.remainder = policy});
    CHECK(sampler.done());
    CHECK(sampler.step_count() == 0);
    CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(sampler.next()); }) ==
          "omnibal::epoch_sampler::next: there are no samples");
  }
}

TEST_CASE("more samples than memory could hold are no burden") {
  std::uint64_t const samples = omnibal::max_samples;
  epoch_sampler_options const options{.seed = 7, .batch = 64};
  epoch_sampler sampler(samples, {.ranks = 1024, .rank = 1023}, options);
  sampler.seek(sampler.step_count() - 1);
  auto const last = sampler.next();
  CHECK(last.size() == 63);  // 2^63 - 1 is one less than a multiple of 65536
  CHECK(sampler.done());
  omnibal::rng::permutation const order(samples, omnibal::epoch_seed(7, 0));
  CHECK(last[62] == order(samples - 1024));
  epoch_sampler const resumed(samples, {.ranks = 1000, .rank = 0}, options, sampler.state());
  CHECK(resumed.done());
  CHECK(test::error_text<std::invalid_argument>([&] { epoch_sampler(samples + 1, {}); }) ==
        "omnibal::epoch_sampler: samples is 9223372036854775808, must be at most "
        "9223372036854775807");
}

TEST_CASE("epochs and seeds have different orders") {
  CHECK(order_of(100, 0, 0) != order_of(100, 0, 1));
  CHECK(order_of(100, 0, 0) != order_of(100, 1, 0));
  CHECK(omnibal::epoch_seed(1, 2) != omnibal::epoch_seed(2, 1));
}

TEST_CASE("bad shards and batches are errors") {
  auto const of = [](shard const& place, epoch_sampler_options const& options) {
    return test::error_text<std::invalid_argument>([&] { epoch_sampler(10, place, options); });
  };
  CHECK(of({.ranks = 0}, {}) == "omnibal::epoch_sampler: shard.ranks is 0, must be positive");
  CHECK(of({.ranks = 4, .rank = 4}, {}) ==
        "omnibal::epoch_sampler: shard.rank is 4, but there are 4 ranks");
  CHECK(of({.ranks = omnibal::max_ranks + 1}, {}) ==
        "omnibal::epoch_sampler: shard.ranks is 1048577, must be at most 1048576");
  CHECK(of({}, {.batch = 0}) == "omnibal::epoch_sampler: options.batch is 0, must be positive");
  CHECK(of({.ranks = omnibal::max_ranks}, {}) == "no error");
  auto const too_many = [](shard const& place, std::size_t batch) {
    return test::error_text<std::length_error>([&] { epoch_sampler(10, place, {.batch = batch}); });
  };
  CHECK(too_many({.ranks = 65536}, 65536) ==
        "omnibal::epoch_sampler: shard.ranks * options.batch is 4294967296, must be at most "
        "4294967295");
  CHECK(too_many({}, std::size_t{1} << 32) ==
        "omnibal::epoch_sampler: options.batch is 4294967296, must be at most 4294967295");
}

TEST_CASE("a batch is a random-access range") {
  static_assert(std::random_access_iterator<omnibal::sample_batch::iterator>);
  static_assert(std::ranges::random_access_range<omnibal::sample_batch const>);
  static_assert(std::ranges::sized_range<omnibal::sample_batch const>);
  epoch_sampler const sampler(20, {.ranks = 2, .rank = 0}, {.batch = 5});
  auto const batch = sampler(0);
  auto const first = batch.begin();
  CHECK(batch.end() - first == 5);
  CHECK(*(first + 3) == batch[3]);
  CHECK(*(3 + first) == first[3]);
  CHECK(*(batch.end() - 1) == batch[4]);
  auto moving = first;
  CHECK(*moving++ == batch[0]);
  CHECK(*++moving == batch[2]);
  CHECK(*moving-- == batch[2]);
  CHECK(*--moving == batch[0]);
  CHECK((moving += 4) > first);
  CHECK((moving -= 4) == first);
}
