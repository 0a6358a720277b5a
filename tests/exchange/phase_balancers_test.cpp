// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "rank_checks.hpp"
#include "samples.hpp"
#include "watchdog.hpp"

#include <omnibal/balance/balance_set_cost.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/set_costs.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/thread_communicator.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/orchestrate.hpp>
#include <omnibal/exchange/plan_exchange.hpp>
#include <omnibal/exchange/under_cap.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::padded_attention;
using omnibal::padded_batch;
using omnibal::resources;
using omnibal::under_cap;
using omnibal::under_caps;
using numbers = std::vector<std::int64_t>;

numbers lengths_of(std::uint64_t seed, std::size_t count) {
  test::random_amounts random(seed);
  numbers result(count);
  for (auto& length : result) length = 1 + random.heavy_tail(3000);
  return result;
}

/// The largest cost of what a rank gets.
template <class Set>
std::int64_t largest_set(omnibal::exchange_plan const& plan, numbers const& lengths,
                         Set const& empty) {
  std::int64_t largest = 0;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    Set set = empty;
    for (std::uint32_t const sample : plan.arrivals(rank)) set.add(lengths[sample]);
    largest = std::max(largest, set.value());
  }
  return largest;
}

std::int64_t largest_sum(omnibal::exchange_plan const& plan, numbers const& lengths) {
  std::int64_t largest = 0;
  for (std::size_t rank = 0; rank != plan.ranks(); ++rank) {
    std::int64_t sum = 0;
    for (std::uint32_t const sample : plan.arrivals(rank)) sum += lengths[sample];
    largest = std::max(largest, sum);
  }
  return largest;
}

static_assert(!omnibal::plan_balancer<under_cap<1>, numbers>);
static_assert(omnibal::plan_balancer<under_cap<1>, std::vector<resources<2>>>);
static_assert(!omnibal::plan_balancer<under_cap<1>, std::vector<resources<3>>>);
static_assert(omnibal::plan_balancer<under_caps<1>, std::vector<resources<2>>>);
static_assert(!omnibal::plan_balancer<under_caps<1>, std::vector<resources<3>>>);
static_assert(omnibal::plan_balancer<padded_batch<>, numbers>);
static_assert(!omnibal::plan_balancer<padded_batch<>, std::vector<resources<2>>>);
// Caps of numbers that are mapped to others would be other caps.
static_assert(omnibal::detail::amount_balancer<under_cap<1>, resources<2, std::int32_t>>);
static_assert(!omnibal::detail::amount_balancer<under_cap<1>, resources<2, double>>);
static_assert(omnibal::detail::amount_balancer<padded_batch<>, double>);

}  // namespace

TEST_CASE("a padded phase has the least largest cost, where others pad too much") {
  std::size_t const ranks = 8;
  std::vector<std::uint32_t> offsets;
  for (std::uint32_t r = 0; r <= ranks; ++r) offsets.push_back(16 * r);
  for (std::uint64_t seed = 0; seed != 5; ++seed) {
    numbers const lengths = lengths_of(seed, offsets.back());
    auto const check = [&](auto const& empty) {
      auto const best = omnibal::balance_set_cost(lengths, ranks, empty);
      auto const plan = omnibal::make_plan(offsets, lengths, lengths, {}, empty);
      auto const additive = omnibal::make_plan(offsets, lengths, lengths, {}, omnibal::lpt);
      std::int64_t least = 0;
      for (auto const part : best) {
        auto set = empty;
        for (std::uint32_t const sample : part) set.add(lengths[sample]);
        least = std::max(least, set.value());
      }
      CHECK(largest_set(plan, lengths, empty) == least);
      CHECK(2 * least < largest_set(additive, lengths, empty));
    };
    check(padded_batch{});
    check(padded_attention{});
    check(padded_attention{std::identity{}, {.linear = 800, .quadratic = 1}});
  }
}

TEST_CASE("padded attention counts what is linear in the padded tokens") {
  padded_attention encoder{std::identity{}, {.linear = 10, .quadratic = 2}};
  for (std::int64_t const length : {3, 7, 5}) encoder.add(length);
  CHECK(encoder.value() == 3 * (10 * 7 + 2 * 7 * 7));
  CHECK(test::error_text<std::invalid_argument>([] {
          padded_attention{std::identity{}, {.linear = -1, .quadratic = 1}};
        }) == "omnibal::padded_attention: weights[0] is -1, must be finite and not negative");
}

TEST_CASE("a cap on tokens holds where it can, and is an error that says why where it cannot") {
  std::vector<std::uint32_t> const offsets{0, 6, 6, 9};
  numbers const tokens{60, 40, 50, 50, 30, 70, 20, 40, 40};
  numbers const bytes(9, 1);
  std::vector<resources<2>> work;
  for (std::int64_t const count : tokens) work.emplace_back(count * count, count);
  auto const plan_of = [&](std::int64_t cap) {
    return omnibal::make_plan(offsets, work, bytes, {}, under_cap{cap});
  };
  // The sum is 400, of which 134 are a third.
  CHECK(largest_sum(plan_of(140), tokens) <= 140);
  CHECK(largest_sum(plan_of(1000), tokens) <= 200);
  auto const plan = omnibal::make_plan(offsets, work, bytes, {}, under_cap{resources{140}});
  CHECK(largest_sum(plan, tokens) <= 140);
  // Any rank can receive each part, so the ranks of speeds are not known.
  std::vector<double> const speeds{1, 2, 1};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::make_plan(offsets, work, bytes, {},
                                               under_cap{resources{140}, {.speeds = speeds}}));
        }) ==
        "omnibal::under_cap: options.speeds has different speeds, but any rank can receive each "
        "part; use under_caps with speeds instead");
  auto const text = [&](std::int64_t cap) {
    return test::error_text<omnibal::capacity_error>([&] { static_cast<void>(plan_of(cap)); });
  };
  CHECK(text(69) == "omnibal::under_cap: sample 5 of rank 0 needs 70 of capacity[0], which is 69");
  CHECK(test::error_text<omnibal::capacity_error>([&] {
          static_cast<void>(omnibal::make_plan(std::vector<std::uint32_t>{0, 3, 3, 9}, work, bytes,
                                               {}, under_cap{resources{69}}));
        }) == "omnibal::under_cap: sample 2 of rank 2 needs 70 of capacity[0], which is 69");
  // With a cap for each rank, part r is for rank r; the speeds are those of the plan or of the
  // balancer.
  std::vector<resources<1>> const caps{{100}, {300}, {80}};
  auto const loads_of = [&](omnibal::exchange_plan const& of) {
    numbers loads;
    for (std::size_t rank = 0; rank != 3; ++rank) {
      loads.push_back(0);
      for (std::uint32_t const sample : of.arrivals(rank)) loads.back() += tokens[sample];
    }
    return loads;
  };
  for (auto const& loads :
       {loads_of(omnibal::make_plan(offsets, work, bytes, {}, under_caps{caps})),
        loads_of(omnibal::make_plan(offsets, work, bytes, {.speeds = speeds}, under_caps{caps})),
        loads_of(
            omnibal::make_plan(offsets, work, bytes, {}, under_caps{caps, {.speeds = speeds}}))}) {
    for (std::size_t rank = 0; rank != 3; ++rank) CHECK(loads[rank] <= caps[rank][0]);
  }
  auto const by_speed = omnibal::make_plan(offsets, work, bytes, {.speeds = speeds},
                                           under_caps{std::vector<resources<1>>(3, {300})});
  CHECK(by_speed ==
        omnibal::make_plan(offsets, work, bytes, {},
                           under_caps{std::vector<resources<1>>(3, {300}), {.speeds = speeds}}));
  numbers const at_speed = loads_of(by_speed);
  CHECK(at_speed[1] > std::max(at_speed[0], at_speed[2]));
  auto const caps_text = [&](std::vector<resources<1>> const& given) {
    return test::error_text<omnibal::capacity_error>([&] {
      static_cast<void>(omnibal::make_plan(offsets, work, bytes, {}, under_caps{given}));
    });
  };
  CHECK(caps_text({{69}, {60}, {69}}) ==
        "omnibal::under_caps: sample 5 of rank 0 needs 70, which fits no rank");
  CHECK(caps_text({{100}, {150}, {140}}) ==
        "omnibal::under_caps: the samples do not fit into so many parts as there are ranks, which "
        "are 3; they take 4");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::make_plan(offsets, work, bytes, {},
                                               under_caps{std::vector<resources<1>>{{300}}}));
        }) == "omnibal::balance_under_capacity: capacity has 1 values for 3 parts");
  std::string const start =
      "omnibal::under_cap: the samples do not fit into so many parts as there are ranks, which are "
      "3";
  CHECK(text(120) == start + "; they take 4");
  CHECK(text(133).find(start) == 0);
}

namespace {

struct multimodal {
  std::int64_t text;
  numbers images;
  numbers sounds;
};

std::vector<multimodal> drawn(std::size_t rank) {
  test::random_amounts random(rank);
  std::vector<multimodal> result(5 + 3 * rank);
  for (auto& one : result) {
    one.text = 1 + random.heavy_tail(2000);
    one.images.resize(static_cast<std::size_t>(random.between(0, 4)));
    one.sounds.resize(static_cast<std::size_t>(random.between(0, 2)));
    for (auto& size : one.images) size = 1 + random.heavy_tail(500);
    for (auto& size : one.sounds) size = 1 + random.heavy_tail(900);
  }
  return result;
}

std::int64_t as_is(std::int64_t size) { return size; }
double seconds(std::int64_t size) { return 0.25 * static_cast<double>(size); }
resources<2> squares(std::int64_t size) { return {size * size, size}; }
resources<2> squares_and_tokens(multimodal const& one) { return {one.text * one.text, one.text}; }

/// The samples of all ranks, phase by phase.
struct all_drawn {
  std::vector<std::uint32_t> offsets{0};
  numbers text;
  std::vector<resources<2>> work;
  std::vector<std::uint32_t> image_counts;
  std::vector<std::uint32_t> sound_counts;
  numbers images;
  numbers sounds;
  /// The integers to which seconds are mapped.
  numbers shares;

  explicit all_drawn(std::size_t ranks) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      for (multimodal const& one : drawn(rank)) add(one);
      offsets.push_back(static_cast<std::uint32_t>(text.size()));
    }
    auto const longest = static_cast<double>(*std::max_element(sounds.begin(), sounds.end()));
    for (std::int64_t const size : sounds) {
      double const share = static_cast<double>(size) / longest * 2147483648.0;
      shares.push_back(static_cast<std::int64_t>(share));
    }
  }

 private:
  void add(multimodal const& one) {
    text.push_back(one.text);
    work.push_back(squares_and_tokens(one));
    image_counts.push_back(static_cast<std::uint32_t>(one.images.size()));
    sound_counts.push_back(static_cast<std::uint32_t>(one.sounds.size()));
    images.insert(images.end(), one.images.begin(), one.images.end());
    sounds.insert(sounds.end(), one.sounds.begin(), one.sounds.end());
  }
};

/// What is said of the first sample that has more than one token.
std::string above_one(all_drawn const& all) {
  std::size_t first = 0;
  while (all.text[first] == 1) ++first;
  std::size_t rank = 0;
  while (all.offsets[rank + 1] <= first) ++rank;
  return "omnibal::orchestrate, language model: omnibal::under_cap: sample " +
         std::to_string(first - all.offsets[rank]) + " of rank " + std::to_string(rank) +
         " needs " + std::to_string(all.text[first]) + " of capacity[0], which is 1";
}

}  // namespace

TEST_CASE("each phase has costs and a balancer of its own, on one rank and on threads") {
  test::watchdog const limit;
  for (std::size_t const ranks : {1u, 2u, 4u, 7u}) {
    all_drawn const all(ranks);
    std::int64_t const sum = std::accumulate(all.text.begin(), all.text.end(), std::int64_t{0});
    std::int64_t const cap = sum / static_cast<std::int64_t>(ranks) +
                             *std::max_element(all.text.begin(), all.text.end());
    auto const same = omnibal::make_orchestration(
        all.offsets, omnibal::language_phase{all.work, all.text, under_cap{cap}},
        std::tuple{omnibal::encoder_phase{all.image_counts, all.images, all.images, all.images,
                                          omnibal::lpt},
                   omnibal::encoder_phase{all.sound_counts, all.shares, all.sounds, all.sounds,
                                          padded_batch{}}});
    CHECK(largest_sum(same.samples, all.text) <= cap);

    omnibal::thread_communicator::run(ranks, [&](omnibal::thread_communicator& comm) {
      auto const local = drawn(comm.rank());
      omnibal::encoder_phase const vision{&multimodal::images, as_is, as_is, as_is, omnibal::lpt};
      omnibal::encoder_phase const audio{&multimodal::sounds, seconds, as_is, as_is,
                                         padded_batch{}};
      auto const plans_under = [&](std::int64_t most) {
        omnibal::language_phase const language{squares_and_tokens, &multimodal::text,
                                               under_cap{most}};
        return omnibal::orchestrate(comm, local, language, std::tuple{vision, audio});
      };
      test::require(plans_under(cap).digest() == same.digest(), "the plans of a simulation");

      // A cap that cannot be kept is the same error everywhere, and the next call succeeds.
      auto const text =
          test::error_text<omnibal::capacity_error>([&] { static_cast<void>(plans_under(1)); });
      test::require(text == above_one(all), text);
      omnibal::encoder_phase const capped{&multimodal::images, squares, as_is, as_is, under_cap{1}};
      auto const of_encoder = test::error_text<omnibal::capacity_error>([&] {
        omnibal::language_phase const language{squares_and_tokens, &multimodal::text};
        static_cast<void>(omnibal::orchestrate(comm, local, language, std::tuple{vision, capped}));
      });
      test::require(of_encoder.starts_with("omnibal::orchestrate, encoder 1: omnibal::under_cap: "),
                    of_encoder);
      auto const plan = omnibal::plan_exchange(comm, local, squares_and_tokens, &multimodal::text,
                                               {}, under_cap{cap});
      test::require(plan.ranks() == ranks, "the communicator goes on");
    });
  }
}

TEST_CASE("other kinds of costs of a phase on one rank are refused on all") {
  test::watchdog const limit;
  omnibal::thread_communicator::run(3, [&](omnibal::thread_communicator& comm) {
    auto const local = drawn(comm.rank());
    auto const refuses = [&](auto const& cost) {
      auto const phases = [&](auto const& of_sounds) {
        omnibal::encoder_phase const audio{&multimodal::sounds, of_sounds, as_is, as_is};
        static_cast<void>(omnibal::orchestrate(
            comm, local, omnibal::language_phase{&multimodal::text, &multimodal::text},
            std::tuple{audio}));
      };
      auto const found = test::error_of<std::invalid_argument, omnibal::communication_error>([&] {
        if (comm.rank() == 1) {
          phases(cost);
        } else {
          phases(as_is);
        }
      });
      return found == test::seen::own;
    };
    test::require(refuses(seconds), "numbers that float on one rank");
    test::require(refuses([](std::int64_t size) { return resources<2>(size, size); }),
                  "two kinds on one rank");
  });
}

TEST_CASE("a cost that cannot be is an error that names rank, phase and value on all ranks") {
  test::watchdog const limit;
  omnibal::thread_communicator::run(3, [&](omnibal::thread_communicator& comm) {
    std::vector<multimodal> const local{{5, {1, 2}, {}}, {6, {3}, {4}}};
    auto const text_of = [&](auto const& of_text, auto const& of_images, auto const& of_sounds) {
      try {
        static_cast<void>(omnibal::orchestrate(
            comm, local, omnibal::language_phase{of_text, &multimodal::text},
            std::tuple{omnibal::encoder_phase{&multimodal::images, of_images, as_is, as_is},
                       omnibal::encoder_phase{&multimodal::sounds, of_sounds, as_is, as_is}}));
      } catch (std::exception const& error) {
        return std::string(error.what());
      }
      return std::string("no error");
    };
    bool const is_bad = comm.rank() == 1;
    auto const says = [&](std::string const& text, std::string const& wanted) {
      std::string const before = is_bad ? "" : "omnibal::orchestrate: rank 1 has failed: ";
      test::require(text == before + wanted, text);
    };
    auto const text = [](multimodal const& one) { return one.text; };
    says(
        text_of([&](multimodal const& one) { return is_bad ? -one.text : one.text; }, as_is, as_is),
        "omnibal::orchestrate, language model: cost[0] is -5, must be finite and not negative");
    says(text_of(
             text, [&](std::int64_t size) { return is_bad && size == 3 ? -7 : size; }, as_is),
         "omnibal::orchestrate, encoder 0: cost[2] is -7, must be finite and not negative");
    double const none = std::numeric_limits<double>::quiet_NaN();
    says(text_of(text, as_is, [&](std::int64_t size) { return is_bad ? none : seconds(size); }),
         "omnibal::orchestrate, encoder 1: cost[0] is nan, must be finite and not negative");
    says(text_of(text, as_is,
                 [&](std::int64_t size) {
                   if (is_bad) throw std::domain_error("no cost of " + std::to_string(size));
                   return size;
                 }),
         "no cost of 4");
    test::require(text_of(text, as_is, as_is) == "no error", "the communicator goes on");
  });
}
