// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "fleet.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/step_sampler.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::remainder_policy;
using omnibal::sampler_state;
using omnibal::schedule_steps_options;
using omnibal::shard;
using omnibal::step_sampler;
using omnibal::steps;
using test::fleet;
using test::fleet_step;
using test::run_counts;
using loads_type = std::vector<omnibal::resources<2>>;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};

loads_type random_loads(std::size_t count) {
  test::random_amounts random(count);
  return test::make_samples<2>(count, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.between(0, 9) : random.between(100, 4096);
  });
}

fleet<step_sampler<omnibal::resources<2>>> make_fleet(loads_type const& loads, std::size_t ranks,
                                                      schedule_steps_options const& options) {
  return {ranks, [&](shard const& place) { return step_sampler(loads, place, options); }};
}

fleet<step_sampler<omnibal::resources<2>>> resumed_fleet(loads_type const& loads, std::size_t ranks,
                                                         schedule_steps_options const& options,
                                                         sampler_state const& state) {
  return {ranks, [&](shard const& place) { return step_sampler(loads, place, options, state); }};
}

/// The ranks that have a new group in a step.
std::size_t busy(fleet_step const& step) {
  return static_cast<std::size_t>(std::count_if(
      step.begin(), step.end(), [](auto const& of_rank) { return !of_rank.new_ones.empty(); }));
}

/// A scheduler of the user's: groups as they come.
struct in_turn {
  template <class Load>
  steps operator()(std::span<Load const> loads, std::size_t ranks,
                   schedule_steps_options const&) const {
    std::vector<std::uint32_t> groups(loads.size());
    std::iota(groups.begin(), groups.end(), std::uint32_t{0});
    return omnibal::make_steps(groups, ranks);
  }
};

}  // namespace

TEST_CASE("a sampler walks the steps of its epoch") {
  auto const loads = random_loads(53);
  for (remainder_policy const policy : {remainder_policy::short_step, remainder_policy::repeat}) {
    schedule_steps_options options{.seed = 6, .epoch = 3, .remainder = policy};
    auto all = make_fleet(loads, 8, options);
    for (int epoch = 0; epoch != 2; ++epoch) {
      steps const schedule = omnibal::schedule_steps(loads, 8, options);
      for (std::size_t step = 0; step != schedule.size(); ++step) {
        fleet_step const taken = all.next();
        CHECK(all.epoch() == options.epoch);
        CHECK(all.first().step_count() == schedule.size());
        for (std::size_t rank = 0; rank != 8; ++rank) {
          bool const is_repeat = schedule.is_repeat(step, rank);
          std::vector<std::uint64_t> const groups(schedule(step, rank).begin(),
                                                  schedule(step, rank).end());
          CHECK((is_repeat ? taken[rank].repeated : taken[rank].new_ones) == groups);
          CHECK((is_repeat ? taken[rank].new_ones : taken[rank].repeated).empty());
        }
      }
      CHECK(all.done());
      ++options.epoch;
    }
  }
}

TEST_CASE("an epoch runs every group once, over all ranks and steps") {
  for (remainder_policy const policy : policies) {
    for (std::size_t const groups : {1u, 2u, 7u, 24u, 25u}) {
      for (std::size_t const ranks : {1u, 2u, 3u, 8u, 30u}) {
        INFO(static_cast<int>(policy) << ", " << groups << " groups, " << ranks << " ranks");
        auto all = make_fleet(random_loads(groups), ranks, {.seed = 1, .remainder = policy});
        run_counts counts(groups);
        for (std::size_t epoch = 0; epoch != 6; ++epoch) {
          do {
            fleet_step const step = all.next();
            counts.add(step);
            REQUIRE(busy(step) > 0);
            bool const may_be_short =
                all.done() && (policy != remainder_policy::carry || groups < ranks);
            if (!may_be_short) REQUIRE(busy(step) == ranks);
          } while (!all.done());
          REQUIRE(all.epoch() == epoch);
          std::size_t const left = all.first().left_over();
          REQUIRE(left < std::min(groups, ranks));
          if (policy != remainder_policy::carry) REQUIRE(left == 0);
          REQUIRE(counts.sum() + left == groups * (epoch + 1));
          for (std::size_t g = 0; g != groups; ++g) {
            REQUIRE(counts[g] + 1 >= epoch + 1);
            REQUIRE(counts[g] <= epoch + 1);
          }
        }
      }
    }
  }
}

TEST_CASE("every group runs again in each epoch, but for those that were carried") {
  std::size_t const groups = 11;
  auto all = make_fleet(random_loads(groups), 4, {.remainder = remainder_policy::carry});
  std::set<std::size_t> carried;
  for (int epoch = 0; epoch != 20; ++epoch) {
    run_counts counts(groups);
    do {
      counts.add(all.next());
    } while (!all.done());
    std::set<std::size_t> left_over;
    for (std::size_t g = 0; g != groups; ++g) {
      std::size_t const due = carried.contains(g) ? 2 : 1;
      REQUIRE((counts[g] == due || counts[g] + 1 == due));
      if (counts[g] != due) left_over.insert(g);
    }
    REQUIRE(left_over.size() == all.first().left_over());
    carried = left_over;
  }
}

TEST_CASE("a step sampler resumes exactly at every step") {
  auto const loads = random_loads(26);
  for (remainder_policy const policy : policies) {
    for (std::size_t const ranks : {1u, 3u, 4u}) {
      schedule_steps_options const options{.seed = 9, .remainder = policy};
      auto all = make_fleet(loads, ranks, options);
      for (int step = 0; step != 60; ++step) {
        sampler_state const state = all.state();
        auto resumed = resumed_fleet(loads, ranks, options, state);
        REQUIRE(resumed.state() == state);
        fleet_step const expected = all.next();
        REQUIRE(resumed.next() == expected);
        REQUIRE(resumed.state() == all.state());
      }
    }
  }
}

TEST_CASE("with other ranks every group still runs once") {
  std::size_t const groups = 29;
  auto const loads = random_loads(groups);
  for (remainder_policy const policy : {remainder_policy::short_step, remainder_policy::repeat}) {
    for (std::size_t const ranks : {1u, 3u, 4u, 9u, 40u}) {
      schedule_steps_options const options{.seed = 4, .epoch = 5, .remainder = policy};
      auto all = make_fleet(loads, 4, options);
      run_counts before(groups);
      for (;;) {
        auto resumed = resumed_fleet(loads, ranks, options, all.state());
        run_counts counts = before;
        finish_epoch(resumed, counts);
        REQUIRE(counts.all_are(1));
        REQUIRE(resumed.epoch() == 5);
        counts.add(resumed.next());
        finish_epoch(resumed, counts);
        REQUIRE(counts.all_are(2));
        REQUIRE(resumed.epoch() == 6);
        if (all.done()) break;
        before.add(all.next());
      }
    }
  }
}

TEST_CASE("ranks that change at any step lose no carried group") {
  std::size_t const groups = 23;
  auto const loads = random_loads(groups);
  schedule_steps_options const options{.seed = 11, .remainder = remainder_policy::carry};
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    test::random_amounts random(seed);
    auto all = make_fleet(loads, 4, options);
    run_counts counts(groups);
    std::uint64_t changed_epoch = 0;
    int changes = 0;
    while (all.epoch() < 6) {
      if (all.done()) {
        std::size_t const left = all.first().left_over();
        REQUIRE(counts.sum() + left == groups * (all.epoch() + 1));
        for (std::size_t g = 0; g != groups; ++g) REQUIRE(counts[g] <= all.epoch() + 1);
      }
      if (random.between(0, 2) == 0 && (changes < 8 || changed_epoch != all.epoch())) {
        changes = changed_epoch == all.epoch() ? changes + 1 : 1;
        changed_epoch = all.epoch();
        auto const ranks = static_cast<std::size_t>(random.between(1, 12));
        all = resumed_fleet(loads, ranks, options, all.state());
      }
      counts.add(all.next());
    }
  }
}

TEST_CASE("a chain of ranks is resumed exactly at every step") {
  auto const loads = random_loads(47);
  for (remainder_policy const policy : policies) {
    schedule_steps_options const options{.seed = 2, .remainder = policy};
    auto all = make_fleet(loads, 1, options);
    run_counts counts(47);
    for (std::size_t change = 0; change != omnibal::max_rank_changes; ++change) {
      CHECK(all.first().rank_changes_left() == omnibal::max_rank_changes - change);
      counts.add(all.next());
      all = resumed_fleet(loads, change + 2, options, all.state());
    }
    CHECK(all.first().rank_changes_left() == 0);
    while (!all.done()) {
      sampler_state const state = all.state();
      counts.add(all.next());
      auto resumed = resumed_fleet(loads, 9, options, state);
      static_cast<void>(resumed.next());
      REQUIRE(resumed.state() == all.state());
      if (all.done()) break;
      REQUIRE(resumed.next() == resumed_fleet(loads, 9, options, all.state()).next());
      if (all.state().segments[8].ranks == 0) continue;
      CHECK(test::error_text<std::invalid_argument>(
                [&] { resumed_fleet(loads, 3, options, all.state()); }) ==
            "omnibal::step_sampler: the ranks changed 9 times in epoch 0, a state holds at most 8 "
            "changes: continue with 9 ranks, other ranks can start the next epoch");
    }
    CHECK(counts.sum() + all.first().left_over() == 47);
    all = resumed_fleet(loads, 1, {.seed = 2, .remainder = policy}, all.state());
  }
}

TEST_CASE("the rest of an epoch is scheduled for the present ranks as if it were all") {
  auto const loads = random_loads(50);
  schedule_steps_options const options{.seed = 3, .epoch = 1};
  auto all = make_fleet(loads, 2, options);
  run_counts counts(50);
  for (int step = 0; step != 4; ++step) counts.add(all.next());
  loads_type rest_loads;
  std::vector<std::uint64_t> rest;
  for (std::size_t g = 0; g != 50; ++g) {
    if (counts[g] != 0) continue;
    rest.push_back(g);
    rest_loads.push_back(loads[g]);
  }
  REQUIRE(rest.size() == 42);
  steps const schedule = omnibal::schedule_steps(rest_loads, 6, options);
  auto resumed = resumed_fleet(loads, 6, options, all.state());
  CHECK(resumed.first().step_count() == 4 + schedule.size());
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    fleet_step const taken = resumed.next();
    for (std::size_t rank = 0; rank != 6; ++rank) {
      std::vector<std::uint64_t> groups;
      for (std::uint32_t const place : schedule(step, rank)) groups.push_back(rest[place]);
      CHECK(taken[rank].new_ones == groups);
    }
  }
}

TEST_CASE("any step of a schedule can be had") {
  auto const loads = random_loads(30);
  schedule_steps_options const options{.remainder = remainder_policy::repeat};
  step_sampler sampler(loads, {.ranks = 4, .rank = 3}, options);
  static_cast<void>(sampler.next());
  step_sampler resumed(loads, {.ranks = 3, .rank = 2}, options, sampler.state());
  std::uint64_t const count = resumed.step_count();
  CHECK(count == 10);
  CHECK(resumed.is_repeat(count - 1));
  for (std::uint64_t step = 1; step != count; ++step) {
    auto const expected = test::to_vector(resumed(step));
    CHECK(test::to_vector(resumed.next()) == expected);
  }
  auto const no_step = [&](std::uint64_t step) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(resumed(step)); });
  };
  CHECK(no_step(0) == "omnibal::step_sampler: step is 0, must be in [1, 10)");
  CHECK(no_step(10) == "omnibal::step_sampler: step is 10, must be in [1, 10)");
  CHECK_THROWS_AS(resumed.is_repeat(0), std::invalid_argument);
  CHECK_THROWS_AS(resumed.is_repeat(11), std::invalid_argument);
}

TEST_CASE("a step that next gave is known as a repeat, also the last of an epoch") {
  auto const loads = random_loads(9);
  schedule_steps_options const options{.remainder = remainder_policy::repeat};
  for (std::uint32_t rank = 0; rank != 4; ++rank) {
    step_sampler sampler(loads, {.ranks = 4, .rank = rank}, options);
    CHECK_FALSE(sampler.is_repeat());
    for (int epoch = 0; epoch != 2; ++epoch) {
      for (std::uint64_t step = 0; step != 3; ++step) {
        bool const coming = sampler.is_repeat(sampler.step());
        static_cast<void>(sampler.next());
        CHECK(sampler.is_repeat() == coming);
        CHECK(sampler.is_repeat() == sampler.is_repeat(step));
        CHECK((step == 2 || !sampler.is_repeat()));
      }
      CHECK(sampler.done());
      CHECK_FALSE(sampler.is_repeat(sampler.step()));
    }
    // The step that ran last, also after a restart with as many ranks; with others none has run.
    CHECK(step_sampler(loads, {.ranks = 4, .rank = rank}, options, sampler.state()).is_repeat() ==
          sampler.is_repeat());
    CHECK_FALSE(
        step_sampler(loads, {.ranks = 5, .rank = rank}, options, sampler.state()).is_repeat());
  }
}

TEST_CASE("any scheduler will do that loses nothing") {
  std::vector<int> const loads{4, 5, 6, 7, 8};
  step_sampler sampler(loads, {.ranks = 2, .rank = 1}, {}, in_turn{});
  CHECK(test::to_vector(sampler.next()) == std::vector<std::uint32_t>{1});
  step_sampler resumed(loads, {.ranks = 3, .rank = 2}, {}, sampler.state(), in_turn{});
  CHECK(test::to_vector(resumed.next()) == std::vector<std::uint32_t>{4});
  CHECK(resumed.done());

  auto const error_of = [&](auto const& schedule) {
    return test::error_text<std::invalid_argument>(
        [&] { step_sampler(loads, {.ranks = 2, .rank = 0}, {}, schedule); });
  };
  auto const cells = [](std::size_t ranks, std::vector<std::uint32_t> const& groups) {
    steps result(ranks);
    for (std::uint32_t const group : groups) {
      result.push(group);
      result.close();
    }
    return result;
  };
  CHECK(error_of([&](std::span<int const>, std::size_t, schedule_steps_options const&) {
          return cells(1, {0, 1, 2, 3, 4});
        }) == "omnibal::step_sampler: the scheduler gives steps of 1 ranks, not of 2");
  CHECK(error_of([&](std::span<int const>, std::size_t, schedule_steps_options const&) {
          return cells(2, {0, 1, 2, 3});
        }) == "omnibal::step_sampler: the scheduler has 4 of 5 groups");
  CHECK(error_of([&](std::span<int const>, std::size_t, schedule_steps_options const&) {
          return cells(2, {0, 1, 2, 3, 4});
        }) == "omnibal::step_sampler: the scheduler has 4 of 5 groups");
  CHECK(error_of([&](std::span<int const>, std::size_t, schedule_steps_options const&) {
          return cells(2, {0, 1, 2, 3, 4, 4});
        }) == "omnibal::step_sampler: the scheduler names 4 twice, of 5 groups");
  CHECK(error_of([&](std::span<int const>, std::size_t, schedule_steps_options const&) {
          return cells(2, {0, 1, 2, 3, 4, 5});
        }) == "omnibal::step_sampler: the scheduler names 5, there are 5 groups");
}

TEST_CASE("no groups are an epoch without steps") {
  for (remainder_policy const policy : policies) {
    step_sampler sampler(loads_type{}, {.ranks = 2, .rank = 0}, {.remainder = policy});
    CHECK(sampler.done());
    CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(sampler.next()); }) ==
          "omnibal::step_sampler::next: there are no groups");
    CHECK(step_sampler(loads_type{}, {.ranks = 3}, {.remainder = policy}, sampler.state()).done());
  }
}

TEST_CASE("bad arguments of a step sampler are errors") {
  std::vector<double> const loads{1, 2, 3};
  auto const of = [&](shard const& place, schedule_steps_options const& options) {
    return test::error_text<std::invalid_argument>([&] { step_sampler(loads, place, options); });
  };
  CHECK(of({.ranks = 0}, {}) == "omnibal::step_sampler: shard.ranks is 0, must be positive");
  CHECK(of({.ranks = 2, .rank = 2}, {}) ==
        "omnibal::step_sampler: shard.rank is 2, but there are 2 ranks");
  std::vector<std::uint32_t> const carried{1};
  CHECK(of({}, {.carried = carried}) ==
        "omnibal::step_sampler: options.carried has 1 groups, a sampler finds them itself");
  CHECK(of({}, {.max_dist_ratio = -1}) != "no error");
  std::vector<double> const bad{1, -2};
  CHECK_THROWS_AS(step_sampler(bad, shard{}), std::invalid_argument);
}

namespace {

struct opaque {};

static_assert(omnibal::step_scheduler<omnibal::schedule_steps_fn, omnibal::resources<2>>);
static_assert(omnibal::step_scheduler<omnibal::schedule_steps_fn, double>);
static_assert(omnibal::step_scheduler<in_turn, int>);
static_assert(!omnibal::step_scheduler<opaque, int>);
static_assert(!omnibal::step_scheduler<omnibal::schedule_steps_fn, opaque>);
static_assert(std::same_as<decltype(step_sampler(loads_type{}, shard{})),
                           step_sampler<omnibal::resources<2>, omnibal::schedule_steps_fn>>);

}  // namespace
