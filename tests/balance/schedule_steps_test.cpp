// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "list_order.hpp"
#include "parts.hpp"
#include "samples.hpp"
#include "schedules.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::remainder_policy;
using omnibal::schedule_steps;
using omnibal::step_overlap;
using omnibal::steps;
using omnibal::unscheduled_groups;

using numbers = std::vector<std::int64_t>;
template <std::size_t R>
using load_vectors = std::vector<omnibal::resources<R>>;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

using options_type = omnibal::schedule_steps_options;

std::string schedule_fault(steps const& schedule, std::size_t groups, std::size_t ranks,
                           options_type const& options = {}) {
  return test::schedule_fault(schedule, groups, ranks,
                              {.remainder = options.remainder, .carried = options.carried});
}

/// Two resources that do not depend on each other, one with few values, one with many.
load_vectors<2> independent_loads(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  load_vectors<2> loads(count);
  for (auto& load : loads) load = {random.between(16, 18), random.between(5000, 6000)};
  return loads;
}

/// How many overlaps of consecutive epochs a mean is taken of.
constexpr std::uint64_t epochs = 8;

/// The mean overlap of consecutive epochs.
template <class Loads>
double mean_overlap(Loads const& loads, std::size_t ranks, double tolerance) {
  double sum = 0;
  for (std::uint64_t epoch = 0; epoch != epochs; ++epoch) {
    sum += step_overlap(
        schedule_steps(loads, ranks, {.epoch = epoch, .max_dist_ratio = tolerance}),
        schedule_steps(loads, ranks, {.epoch = epoch + 1, .max_dist_ratio = tolerance}));
  }
  return sum / static_cast<double>(epochs);
}

template <std::size_t R>
void check_that_every_group_runs_once() {
  for (std::size_t const count : {1u, 7u, 60u, 211u}) {
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : {1u, 2u, 7u, 60u, 64u, 300u}) {
        for (remainder_policy const policy : policies) {
          for (double const tolerance : {0.0, 0.005, 0.1, 1.0, 1e300}) {
            options_type const options{
                .seed = count, .epoch = ranks, .max_dist_ratio = tolerance, .remainder = policy};
            INFO(set.name << ", " << count << " groups, " << ranks << " ranks, policy "
                          << static_cast<int>(policy) << ", tolerance " << tolerance);
            auto const schedule = schedule_steps(set.samples, ranks, options);
            REQUIRE(schedule_fault(schedule, set.samples.size(), ranks, options) == "");
            REQUIRE(schedule_steps(set.samples, ranks, options) == schedule);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("every group runs once, whatever the loads", "[slow]") {
  check_that_every_group_runs_once<1>();
  check_that_every_group_runs_once<2>();
  check_that_every_group_runs_once<3>();
}

TEST_CASE("one resource is as even as asked for, or nearly as even as when it is sorted") {
  for (auto const& set : test::cost_sets<1>(3, 230)) {
    for (std::size_t const ranks : {2u, 8u, 23u}) {
      double const sorted =
          test::worst_dist_ratio(test::sorted_steps(set.samples, ranks, 0), set.samples);
      for (double const tolerance : {0.0, 0.001, 0.005, 0.03, 0.2}) {
        INFO(set.name << ", " << ranks << " ranks, tolerance " << tolerance);
        auto const schedule = schedule_steps(set.samples, ranks, {.max_dist_ratio = tolerance});
        CHECK(test::worst_dist_ratio(schedule, set.samples) <=
              std::max(tolerance, sorted + tolerance / 4) + 1e-8);
      }
    }
  }
}

TEST_CASE("few groups with similar loads are nearly as even as they can be") {
  test::random_amounts random(11);
  for (int round = 0; round != 20; ++round) {
    load_vectors<1> loads(round % 2 == 0 ? 6 : 7);
    for (auto& load : loads) load[0] = random.between(1000, 1100);
    for (std::size_t const ranks : {2u, 3u}) {
      auto const schedule = schedule_steps(loads, ranks, {.max_dist_ratio = 0});
      double const least = test::min_dist_ratio(loads, ranks);
      CHECK(test::worst_dist_ratio(schedule, loads) >= least - 1e-12);
      CHECK(test::worst_dist_ratio(schedule, loads) <= least * 1.05);
    }
  }
}

TEST_CASE("several resources are even at once") {
  auto const loads = independent_loads(20'003, 1);
  for (std::size_t const ranks : {2u, 8u, 64u}) {
    for (double const tolerance : {0.006, 0.02}) {
      INFO(ranks << " ranks, tolerance " << tolerance);
      auto const schedule = schedule_steps(loads, ranks, {.max_dist_ratio = tolerance});
      double const of_last_step = 1.0 / static_cast<double>(schedule.size());
      CHECK(test::worst_dist_ratio(schedule, loads) < std::max(tolerance, of_last_step) + 1e-8);
    }
  }
}

TEST_CASE("packed groups are within 0.005 in both resources, and meet others in every epoch") {
  // Questions about 1 to 5 images, and samples whose images and text do not depend on each other.
  for (bool const is_mixture : {false, true}) {
    test::random_amounts random(17);
    load_vectors<2> samples(60'000);
    for (auto& sample : samples) {
      std::int64_t const images = is_mixture ? random.between(0, 5) : random.between(1, 5);
      std::int64_t const text =
          is_mixture ? random.between(128, 2176) : 40 + random.heavy_tail(400);
      sample = {images, is_mixture ? text : 256 * images + text};
    }
    auto const packed = omnibal::best_fit_decreasing(
        samples, std::identity{}, omnibal::resources{18, is_mixture ? 8192 : 6016});
    auto const loads = omnibal::group_loads(packed.groups, samples, std::identity{});
    for (std::uint64_t epoch = 0; epoch != 3; ++epoch) {
      auto const schedule = schedule_steps(loads, 8, {.epoch = epoch});
      CHECK(test::worst_dist_ratio(schedule, loads) <= 0.005);
    }
    CHECK(mean_overlap(loads, 8, 0.005) < (is_mixture ? 7.0 : 11.0));
    CHECK(test::worst_dist_ratio(schedule_steps(loads, 8, {.max_dist_ratio = 1}), loads) > 0.02);
  }
}

TEST_CASE("the tolerance moves along a curve from even steps to random ones") {
  auto const loads = independent_loads(16'000, 2);
  double even = -1;
  double overlap = 1e9;
  for (double const tolerance : {0.001, 0.003, 0.01, 0.03, 1.0}) {
    INFO(tolerance);
    double const waiting =
        test::worst_dist_ratio(schedule_steps(loads, 8, {.max_dist_ratio = tolerance}), loads);
    double const met = mean_overlap(loads, 8, tolerance);
    CHECK(waiting <= tolerance);
    CHECK(waiting > even);
    CHECK(met < overlap * 0.8);
    even = waiting;
    overlap = met;
  }
  CHECK(overlap == Approx(1.0).margin(0.1));
}

TEST_CASE("groups with equal loads are dealt at random") {
  load_vectors<2> const equal(4000, {18, 6000});
  CHECK(mean_overlap(equal, 8, 0) == Approx(1.0).margin(0.2));
  CHECK(test::worst_dist_ratio(schedule_steps(equal, 8, {.max_dist_ratio = 0}), equal) == 0);
  // Two sizes take two cells, wherever the one ends.
  load_vectors<2> two_sizes = equal;
  for (std::size_t i = 0; i != 1200; ++i) two_sizes[i] = {3, 6000};
  CHECK(test::worst_dist_ratio(schedule_steps(two_sizes, 8, {.max_dist_ratio = 0.001}),
                               two_sizes) == 0);
  CHECK(mean_overlap(two_sizes, 8, 0.001) == Approx(2.0).margin(0.3));
}

TEST_CASE("a giant does not make the other steps less random") {
  load_vectors<1> loads(2000);
  test::random_amounts random(5);
  for (auto& load : loads) load[0] = random.between(900, 1100);
  loads[77][0] = std::int64_t{1} << 40;
  auto const schedule = schedule_steps(loads, 8, {.max_dist_ratio = 0.002});
  double const of_its_step = 7.0 / 8 / 250;
  CHECK(test::worst_dist_ratio(schedule, loads) > of_its_step);
  CHECK(test::worst_dist_ratio(schedule, loads) < of_its_step + 0.0012);
  CHECK(mean_overlap(loads, 8, 0.002) < 80);
  CHECK(mean_overlap(loads, 8, 0.05) < 2.4);
}

TEST_CASE("another epoch and another seed give another schedule") {
  auto const loads = independent_loads(999, 3);
  test::list_set<test::list_set<std::vector<std::uint32_t>>> seen;
  for (std::uint64_t seed = 0; seed != 5; ++seed) {
    for (std::uint64_t epoch = 0; epoch != 5; ++epoch) {
      auto const schedule = schedule_steps(loads, 4, {.seed = seed, .epoch = epoch});
      CHECK(seen.insert(test::step_sets(schedule)).second);
    }
  }
}

TEST_CASE("no rank gets the large groups, and no time of the epoch") {
  test::random_amounts random(8);
  load_vectors<1> loads(16'000);
  for (auto& load : loads) load[0] = 100 + random.heavy_tail(4000);
  double total = 0;
  double first_half = 0;
  for (std::uint64_t epoch = 0; epoch != 20; ++epoch) {
    auto const schedule = schedule_steps(loads, 8, {.epoch = epoch, .max_dist_ratio = 0.001});
    std::vector<double> of_ranks(8);
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != 8; ++rank) {
        auto const load = static_cast<double>(loads[schedule(step, rank)[0]][0]);
        of_ranks[rank] += load;
        if (step < schedule.size() / 2) first_half += load;
      }
    }
    double const sum = std::accumulate(of_ranks.begin(), of_ranks.end(), 0.0);
    for (double const load : of_ranks) CHECK(load == Approx(sum / 8).epsilon(0.001));
    total += sum;
  }
  CHECK(first_half == Approx(total / 2).epsilon(0.03));
}

TEST_CASE("the loads may come in any unit and any range") {
  auto const loads = independent_loads(1003, 4);
  auto const schedule = schedule_steps(loads, 8);
  load_vectors<2> in_units = loads;
  for (auto& load : in_units) load = {load[0] << 30, load[1] << 10};
  CHECK(schedule_steps(in_units, 8) == schedule);
  std::deque<omnibal::resources<2, double>> floating;
  for (auto const& load : loads) {
    floating.push_back({static_cast<double>(load[0]) * 0x1p-70, static_cast<double>(load[1])});
  }
  CHECK(schedule_steps(floating, 8) == schedule);

  numbers tokens;
  load_vectors<1> one_kind;
  for (auto const& load : loads) {
    tokens.push_back(load[1]);
    one_kind.push_back({load[1]});
  }
  CHECK(schedule_steps(tokens, 8) == schedule_steps(one_kind, 8));
  numbers scaled = tokens;
  for (auto& amount : scaled) amount <<= 40;
  CHECK(schedule_steps(scaled, 64) == schedule_steps(tokens, 64));
}

TEST_CASE("the largest loads are scheduled as small ones are") {
  numbers const huge{largest / 2, largest / 4, largest / 8, largest / 16, 3, 0};
  for (std::size_t const ranks : {2u, 3u, 1u << 20}) {
    auto const schedule = schedule_steps(huge, ranks, {.max_dist_ratio = 0});
    CHECK(schedule_fault(schedule, huge.size(), ranks) == "");
  }
  CHECK(test::step_sets(schedule_steps(huge, 2, {.max_dist_ratio = 0})) ==
        test::list_set<std::vector<std::uint32_t>>{{0, 1}, {2, 3}, {4, 5}});
}

TEST_CASE("the short step has small loads and the repeated groups are like those they repeat") {
  auto const loads = independent_loads(2005, 6);
  auto const mean_of_last = [&](steps const& schedule) {
    double sum = 0;
    double count = 0;
    for (std::size_t rank = 0; rank != 8; ++rank) {
      for (std::uint32_t const group : schedule(schedule.size() - 1, rank)) {
        sum += static_cast<double>(loads[group][0]);
        ++count;
      }
    }
    return sum / count;
  };
  double in_short_steps = 0;
  for (std::uint64_t epoch = 0; epoch != 10; ++epoch) {
    in_short_steps += mean_of_last(schedule_steps(loads, 8, {.epoch = epoch})) / 10;
    options_type const repeating{.epoch = epoch, .remainder = remainder_policy::repeat};
    CHECK(test::worst_dist_ratio(schedule_steps(loads, 8, repeating), loads) <= 0.005);
  }
  CHECK(in_short_steps < 16.3);
}

TEST_CASE("a group is repeated as likely as any other") {
  // One tenth of the groups is small.
  load_vectors<1> loads(203, {1000});
  for (std::size_t i = 0; i != 20; ++i) loads[i][0] = 10;
  std::size_t small_ones = 0;
  constexpr std::uint64_t tries = 400;
  for (std::uint64_t epoch = 0; epoch != tries; ++epoch) {
    auto const schedule =
        schedule_steps(loads, 8, {.epoch = epoch, .remainder = remainder_policy::repeat});
    small_ones += schedule(schedule.size() - 1, 7)[0] < 20 ? 1u : 0u;
  }
  CHECK(small_ones > tries / 20);
  CHECK(small_ones < tries / 5);
}

TEST_CASE("what an epoch leaves out runs first in the next one") {
  auto const loads = independent_loads(205, 7);
  std::vector<std::size_t> runs(loads.size(), 0);
  std::vector<std::uint32_t> carried;
  std::size_t const ranks_of_epochs[] = {8, 8, 64, 7, 300, 300, 2, 16, 1, 8};
  std::uint64_t epoch = 0;
  for (std::size_t const ranks : ranks_of_epochs) {
    INFO("epoch " << epoch << " on " << ranks << " ranks");
    options_type const options{
        .epoch = epoch++, .remainder = remainder_policy::carry, .carried = carried};
    auto const schedule = schedule_steps(loads, ranks, options);
    REQUIRE(schedule_fault(schedule, loads.size(), ranks, options) == "");
    for (std::uint32_t const group : schedule.cells().items()) ++runs[group];

    std::multiset<std::uint32_t> waiting(carried.begin(), carried.end());
    std::size_t const first_steps = std::min(carried.size(), schedule.size());
    for (std::size_t cell = 0; cell != first_steps * ranks; ++cell) {
      if (auto const found = waiting.find(schedule.cells()[cell][0]); found != waiting.end()) {
        waiting.erase(found);
      }
    }
    auto next = unscheduled_groups(schedule, loads.size(), carried);
    CHECK(next.size() < ranks);
    CHECK(waiting.size() <= (schedule.empty() ? carried.size() : 0));
    carried = next;
  }
  std::size_t total = carried.size();
  for (std::uint32_t const group : carried) ++runs[group];
  for (std::size_t const count : runs) CHECK(count == epoch);
  for (std::size_t const count : runs) total += count;
  CHECK(total == epoch * loads.size() + carried.size());
}

TEST_CASE("what epochs without a full step leave out runs as soon as ranks are few enough") {
  numbers const loads(5, 3);
  std::vector<std::uint32_t> carried;
  for (std::uint64_t epoch = 0; epoch != 3; ++epoch) {
    options_type const options{
        .epoch = epoch, .remainder = remainder_policy::carry, .carried = carried};
    carried = unscheduled_groups(schedule_steps(loads, 64, options), loads.size(), carried);
  }
  REQUIRE(carried.size() == 15);
  options_type const options{.epoch = 3, .carried = carried};
  CHECK(schedule_fault(schedule_steps(loads, 2, options), 5, 2, options) == "");
}

TEST_CASE("different groups are left out in different epochs") {
  numbers const loads(103, 5);
  std::set<std::uint32_t> seen;
  for (std::uint64_t epoch = 0; epoch != 60; ++epoch) {
    auto const schedule =
        schedule_steps(loads, 8, {.epoch = epoch, .remainder = remainder_policy::carry});
    for (std::uint32_t const group : unscheduled_groups(schedule, loads.size())) seen.insert(group);
  }
  CHECK(seen.size() > 90);
}

TEST_CASE("carried groups run once more under every policy") {
  auto const loads = independent_loads(60, 9);
  std::vector<std::uint32_t> const carried{3, 3, 17, 59};
  for (remainder_policy const policy : policies) {
    options_type const options{.remainder = policy, .carried = carried};
    CHECK(schedule_fault(schedule_steps(loads, 7, options), 60, 7, options) == "");
  }
}

TEST_CASE("what cannot be scheduled is refused") {
  numbers const loads{3, 4, 5};
  auto const text = [&](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  std::string const self = "omnibal::schedule_steps: ";
  CHECK(text([&] { (void)schedule_steps(loads, 0); }) == self + "ranks is 0, must be positive");
  CHECK(text([&] { (void)schedule_steps(loads, 2, {.max_dist_ratio = -0.5}); }) ==
        self + "options.max_dist_ratio is -0.5, must be finite and not negative");
  CHECK(text([&] { (void)schedule_steps(loads, 2, {.max_dist_ratio = std::nan("")}); }) ==
        self + "options.max_dist_ratio is nan, must be finite and not negative");
  CHECK(text([&] {
          (void)schedule_steps(numbers{1, -2}, 2);
        }) == self + "loads[1] is -2, must be finite and not negative");
  CHECK(text([&] {
          (void)schedule_steps(std::vector<omnibal::resources<2, double>>{{1.0, std::nan("")}}, 2);
        }) == self + "loads[0] is nan, must be finite and not negative");
  std::vector<std::uint32_t> const carried{2, 3};
  CHECK(text([&] { (void)schedule_steps(loads, 2, {.carried = carried}); }) ==
        self + "options.carried[1] is 3, but there are 3 groups");
  CHECK(test::error_text<std::length_error>([&] {
          (void)schedule_steps(loads, std::size_t{1} << 32);
        }) == self + "ranks is 4294967296, must be at most 4294967295");
}

static_assert(std::invocable<omnibal::schedule_steps_fn, numbers, std::size_t>);
static_assert(
    std::invocable<omnibal::schedule_steps_fn, std::vector<float>, std::size_t, options_type>);
static_assert(std::invocable<omnibal::schedule_steps_fn, load_vectors<3>, std::size_t>);
static_assert(!std::invocable<omnibal::schedule_steps_fn, numbers>);
static_assert(!std::invocable<omnibal::schedule_steps_fn, std::list<int>, std::size_t>);
static_assert(!std::invocable<omnibal::schedule_steps_fn, std::vector<std::string>, std::size_t>);
static_assert(!std::invocable<omnibal::schedule_steps_fn, std::vector<bool>, std::size_t>);

TEST_CASE("what is left out is listed, and repetitions are no runs") {
  steps schedule(2);
  for (std::uint32_t const group : {4u, 1u, 1u}) {
    schedule.push(group);
    schedule.close();
  }
  schedule.push(0);
  schedule.close_repeat();
  std::vector<std::uint32_t> const twice{1, 2};
  CHECK(unscheduled_groups(schedule, 5, twice) == std::vector<std::uint32_t>{0, 2, 2, 3});
  CHECK(unscheduled_groups(steps(3), 2) == std::vector<std::uint32_t>{0, 1});
  CHECK(unscheduled_groups(steps(3), 0).empty());
  CHECK(test::error_text<std::invalid_argument>([&] { (void)unscheduled_groups(schedule, 5); }) ==
        "omnibal::unscheduled_groups: group 1 runs more often than it should");
  CHECK(test::error_text<std::invalid_argument>([&] { (void)unscheduled_groups(schedule, 4); }) ==
        "omnibal::unscheduled_groups: there is no group 4, but 4 groups");
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)unscheduled_groups(steps(3), 2, twice);
        }) == "omnibal::unscheduled_groups: there is no group 2, but 2 groups");
}
