// SPDX-License-Identifier: Apache-2.0
// Schedules of ranks with different speeds.
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/step_sampler.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::remainder_policy;
using omnibal::schedule_steps;
using omnibal::steps;

using options_type = omnibal::schedule_steps_options;
using numbers = std::vector<std::int64_t>;

constexpr remainder_policy policies[] = {remainder_policy::short_step, remainder_policy::repeat,
                                         remainder_policy::carry};

std::vector<double> repeated(std::vector<double> const& mix, std::size_t ranks) {
  std::vector<double> result;
  for (std::size_t rank = 0; rank != ranks; ++rank) result.push_back(mix[rank % mix.size()]);
  return result;
}

numbers random_loads(std::size_t count, std::int64_t least, std::int64_t most,
                     std::uint64_t seed = 1) {
  test::random_amounts random(seed);
  numbers loads(count);
  for (std::int64_t& load : loads) load = random.between(least, most);
  return loads;
}

/// What is wrong with a schedule; empty where nothing is. Every run is in one cell, cells are full
/// but in the last step, and the ranks without a group are the last ones.
std::string fault_of(steps const& schedule, std::size_t groups, std::size_t ranks,
                     options_type const& options) {
  std::size_t const of_rank = options.groups_per_rank;
  std::size_t const runs = groups + options.carried.size();
  std::size_t const full = runs / (ranks * of_rank);
  bool const is_carried = options.remainder == remainder_policy::carry;
  bool const has_last = runs % (ranks * of_rank) != 0 && !is_carried;
  if (schedule.ranks() != ranks || schedule.size() != full + (has_last ? 1 : 0)) return "steps";
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    std::size_t idle = 0;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      std::size_t const count = schedule(step, rank).size();
      bool const repeats = schedule.is_repeat(step, rank);
      if (step < full ? count != of_rank || repeats : count > of_rank) return "a cell's groups";
      if (repeats && count != of_rank) return "a repetition";
      idle += count == 0 ? 1u : 0u;
      if (idle != 0 && count != 0) return "an idle rank before another";
    }
    if (idle != 0 && options.remainder == remainder_policy::repeat) return "an idle rank";
  }
  auto const left = omnibal::unscheduled_groups(schedule, groups, options.carried);
  return left.size() == (is_carried ? runs % (ranks * of_rank) : 0) ? "" : "missing groups";
}

/// The time of a step: the largest load over speed.
template <class Loads>
double time_of(steps const& schedule, std::size_t step, Loads const& loads,
               std::vector<double> const& speeds) {
  double longest = 0;
  for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
    double load = 0;
    for (std::uint32_t const group : schedule(step, rank)) {
      load += static_cast<double>(loads[group]);
    }
    longest = std::max(longest, load / speeds[rank]);
  }
  return longest;
}

/// The time of the first `full` steps, as a multiple of their loads over the sum of the speeds.
double time_over_bound(steps const& schedule, std::size_t full, numbers const& loads,
                       std::vector<double> const& speeds) {
  double time = 0;
  double sum = 0;
  for (std::size_t step = 0; step != full; ++step) {
    time += time_of(schedule, step, loads, speeds);
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      for (std::uint32_t const group : schedule(step, rank)) {
        sum += static_cast<double>(loads[group]);
      }
    }
  }
  return time / (sum / std::accumulate(speeds.begin(), speeds.end(), 0.0));
}

template <std::size_t R>
void check_that_every_group_runs_once() {
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 3}, {0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66}, {1.0, 0x1p-30}};
  for (std::size_t const count : {1u, 7u, 61u, 150u}) {
    for (auto const& set : test::cost_sets<R>(count, count)) {
      for (std::size_t const ranks : {2u, 7u, 60u}) {
        for (auto const& mix : mixes) {
          for (remainder_policy const policy : policies) {
            for (std::uint32_t const of_rank : {1u, 2u, 5u}) {
              options_type options{.seed = count,
                                   .epoch = ranks,
                                   .max_dist_ratio = ranks == 7 ? 0.1 : 0.0,
                                   .remainder = policy,
                                   .groups_per_rank = of_rank,
                                   .even_positions = ranks == 2,
                                   .speeds = repeated(mix, ranks)};
              if (set.samples.size() > 9) options.carried = {3, 8};
              INFO(set.name << ", " << count << " groups, " << ranks << " ranks, policy "
                            << static_cast<int>(policy) << ", " << of_rank << " per rank, "
                            << mix.size() << " speeds");
              auto const schedule = schedule_steps(set.samples, ranks, options);
              REQUIRE(fault_of(schedule, set.samples.size(), ranks, options) == "");
            }
          }
        }
      }
    }
  }
}

}  // namespace

// Speeds select other cells, lanes and last steps; none of them may lose or repeat a group.
TEST_CASE("every group runs once with different speeds, whatever the loads", "[slow]") {
  check_that_every_group_runs_once<1>();
  check_that_every_group_runs_once<2>();
}

// Speeds that do not differ must change nothing.
TEST_CASE("schedule_steps with equal speeds is schedule_steps") {
  for (auto const& set : test::cost_sets<2>(5, 130)) {
    for (std::uint32_t const of_rank : {1u, 3u}) {
      for (remainder_policy const policy : policies) {
        options_type options{.remainder = policy, .groups_per_rank = of_rank};
        auto const expected = schedule_steps(set.samples, 8, options);
        for (auto const& speeds : {std::vector<double>{0.3}, std::vector<double>(8, 0.3)}) {
          options.speeds = speeds;
          REQUIRE(schedule_steps(set.samples, 8, options) == expected);
        }
      }
    }
  }
}

// The best of all schedules bounds the total time from below, and small schedules must be near it.
TEST_CASE("few groups on different ranks are nearly as fast as they can be") {
  std::size_t least_found = 0;
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    std::size_t const ranks = 2 + seed % 2;
    auto const loads = random_loads(6, seed % 3 == 0 ? 900 : 100, 1000, seed);
    auto const speeds = repeated(
        seed % 4 < 2 ? std::vector<double>{2, 1} : std::vector<double>{1, 1.5, 1.25}, ranks);
    auto const total = [&](steps const& schedule) {
      double result = 0;
      for (std::size_t k = 0; k != schedule.size(); ++k) {
        result += time_of(schedule, k, loads, speeds);
      }
      return result;
    };
    std::vector<std::uint32_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    double least = std::numeric_limits<double>::infinity();
    do {
      least = std::min(least, total(omnibal::make_steps(order, ranks)));
    } while (std::next_permutation(order.begin(), order.end()));
    double const found =
        total(schedule_steps(loads, ranks, {.max_dist_ratio = 0, .speeds = speeds}));
    INFO("seed " << seed);
    REQUIRE(found >= least * (1 - 1e-12));
    REQUIRE(found <= least * 1.17);
    least_found += found <= least * (1 + 1e-12) ? 1u : 0u;
  }
  CHECK(least_found >= 45);
}

// Many groups per rank can be divided in any proportion.
TEST_CASE("64 groups per rank are within 1e-4 of the bound for mixes of speeds") {
  auto const loads = random_loads(16 * 64 * 4, 20'000, 120'000);
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 1, 1, 1, 1, 1, 0.8}, {0.9, 0.77, 1.3, 1.2, 1.41, 0.93, 1.1, 1.08}};
  for (auto const& mix : mixes) {
    auto const speeds = repeated(mix, 16);
    options_type options{.max_dist_ratio = 0, .groups_per_rank = 64, .speeds = speeds};
    CHECK(time_over_bound(schedule_steps(loads, 16, options), 4, loads, speeds) <= 1.0001);
    options.speeds.clear();
    CHECK(time_over_bound(schedule_steps(loads, 16, options), 4, loads, speeds) > 1.1);
  }
}

// Bundles of very different wanted loads hold different groups, so pairs must change.
TEST_CASE("bundles of groups reach very different speeds") {
  auto const loads = random_loads(16 * 64 + 37, 20'000, 120'000);
  auto const speeds = repeated({0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66, 1.08}, 16);
  auto const schedule =
      schedule_steps(loads, 16, {.max_dist_ratio = 0, .groups_per_rank = 16, .speeds = speeds});
  CHECK(time_over_bound(schedule, 4, loads, speeds) <= 1.1);
}

// Small loads over speeds must not lose their fractions, and equal times must be equal levels.
TEST_CASE("times of small loads are exact") {
  std::vector<double> const speeds{2, 3};
  omnibal::detail::part_speeds const whole("f", speeds, speeds.size());
  omnibal::detail::rank_lanes const lanes(whole);
  omnibal::detail::time_scale<1> const time(lanes, {10}, 2);
  CHECK(time({3}, 0)[0] == time({2}, 1)[0]);
  CHECK(time({7}, 0)[0] > time({4}, 1)[0]);
  CHECK(time({8}, 0)[0] > time({5}, 1)[0]);
  CHECK(time({10}, 1)[0] < std::uint64_t{1} << omnibal::detail::level_bits(2));
}

// Targets that no bundle can reach would keep other bundles from their own.
TEST_CASE("bundles want loads in proportion to the speeds as far as the smallest groups allow") {
  std::vector<double> const speeds{4, 2, 1};
  omnibal::detail::part_speeds const whole("f", speeds, speeds.size());
  omnibal::detail::rank_lanes const lanes(whole);
  auto const close = [](std::vector<double> const& a, std::vector<double> const& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](double x, double y) { return std::abs(x - y) < 1e-12; });
  };
  CHECK(close(omnibal::detail::wanted_loads({1, 3, 10}, lanes), {12.0 / 7, 6.0 / 7, 3.0 / 7}));
  // The slowest rank has at least 3 of 14, and the others share 11 as 2 : 1.
  CHECK(close(omnibal::detail::wanted_loads({3, 3, 8}, lanes),
              {22.0 / 3 * 3 / 14, 11.0 / 3 * 3 / 14, 3.0 * 3 / 14}));
  CHECK(close(omnibal::detail::wanted_loads({0, 0, 0}, lanes), {0, 0, 0}));
}

// The loads of groups that are 4 : 1 at most cannot follow speeds of 4 : 1 far enough.
TEST_CASE("the slowest ranks share the smallest groups if all are too large for them") {
  auto const loads = random_loads(8 * 16 * 8, 50'000, 100'000);
  std::vector<double> const speeds{8, 8, 8, 8, 1, 1, 8, 8};
  auto const schedule =
      schedule_steps(loads, 8, {.max_dist_ratio = 0, .groups_per_rank = 16, .speeds = speeds});
  auto sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  double least = 0;
  for (std::size_t k = 0; k != sorted.size() / 4; ++k) least += static_cast<double>(sorted[k]);
  // Two ranks of speed 1 run a quarter of the groups in 8 steps.
  double time = 0;
  for (std::size_t k = 0; k != 8; ++k) time += time_of(schedule, k, loads, speeds);
  CHECK(time >= least / 2);
  CHECK(time <= least / 2 * 1.03);
}

// One group per rank cannot be divided; the larger one of each pair must be on the faster rank.
TEST_CASE("fast ranks get large groups, in the last step too") {
  numbers const loads{40, 20, 41, 21, 42, 19, 30, 10, 15, 12};
  std::vector<double> const speeds{1, 2, 2, 1};
  auto const schedule = schedule_steps(loads, 4, {.max_dist_ratio = 0, .speeds = speeds});
  REQUIRE(schedule.size() == 3);
  for (std::size_t step = 0; step != 2; ++step) {
    for (std::size_t const slow : {0u, 3u}) {
      for (std::size_t const fast : {1u, 2u}) {
        CHECK(loads[schedule(step, slow)[0]] <= loads[schedule(step, fast)[0]]);
      }
    }
  }
  // The smallest groups are the short step, on the first two ranks.
  CHECK(loads[schedule(2, 0)[0]] == 10);
  CHECK(loads[schedule(2, 1)[0]] == 12);
  auto const repeating = schedule_steps(
      loads, 4, {.max_dist_ratio = 0, .remainder = remainder_policy::repeat, .speeds = speeds});
  CHECK(loads[repeating(2, 0)[0]] <= loads[repeating(2, 1)[0]]);
  CHECK(loads[repeating(2, 2)[0]] >= loads[repeating(2, 3)[0]]);
  CHECK(repeating.is_repeat(2, 2));
}

// Ranks with more speed must get more load in a short last step of several groups.
TEST_CASE("a short last step of several groups follows the speeds") {
  auto const loads = random_loads(8 * 8 + 8 * 7, 100, 1000);
  auto const speeds = repeated({1.5, 1.0}, 8);
  auto const schedule =
      schedule_steps(loads, 8, {.max_dist_ratio = 0, .groups_per_rank = 8, .speeds = speeds});
  REQUIRE(schedule.size() == 2);
  double sum = 0;
  for (std::size_t rank = 0; rank != 8; ++rank) {
    for (std::uint32_t const group : schedule(1, rank)) sum += static_cast<double>(loads[group]);
  }
  CHECK(time_of(schedule, 1, loads, speeds) <= 1.1 * sum / 10.0);
}

// Loads and speeds in other units are the same loads and speeds.
TEST_CASE("speeds and loads may have any unit") {
  auto loads = random_loads(300, 1, 1'000);
  auto const of = [&](std::vector<double> const& speeds, std::uint32_t of_rank) {
    return schedule_steps(loads, 6, {.groups_per_rank = of_rank, .speeds = speeds});
  };
  auto const one = of({3, 2, 2, 3, 1, 3}, 1);
  auto const several = of({3, 2, 2, 3, 1, 3}, 4);
  CHECK(of({1.5, 1, 1, 1.5, 0.5, 1.5}, 1) == one);
  CHECK(of({1.5, 1, 1, 1.5, 0.5, 1.5}, 4) == several);
  for (std::int64_t& load : loads) load <<= 30;
  CHECK(of({3, 2, 2, 3, 1, 3}, 1) == one);
  CHECK(of({3, 2, 2, 3, 1, 3}, 4) == several);
}

// Times of the largest loads on the slowest ranks exceed 64 bits before they are scaled.
TEST_CASE("the largest loads and ratios of speeds do not overflow") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  numbers loads = random_loads(40, 1, 100);
  for (std::int64_t& load : loads) load = most - load;
  loads[7] = 0;
  std::vector<double> const speeds{1.0, 0x1p-30, 1.0, 1.0};
  for (std::uint32_t const of_rank : {1u, 3u}) {
    options_type const options{.groups_per_rank = of_rank, .speeds = speeds};
    CHECK(fault_of(schedule_steps(loads, 4, options), loads.size(), 4, options) == "");
  }
}

// A larger tolerance must mix more groups, as without speeds.
TEST_CASE("the tolerance moves from short steps to mixed ones with speeds too") {
  auto const loads = random_loads(16 * 200, 900, 1'000);
  auto const speeds = repeated({1.01, 1.0}, 16);
  auto const overlap = [&](double tolerance) {
    double sum = 0;
    for (std::uint64_t epoch = 0; epoch != 4; ++epoch) {
      auto const of = [&](std::uint64_t e) {
        return schedule_steps(loads, 16,
                              {.epoch = e, .max_dist_ratio = tolerance, .speeds = speeds});
      };
      sum += omnibal::step_overlap(of(epoch), of(epoch + 1));
    }
    return sum;
  };
  CHECK(overlap(0.0) > 4 * overlap(0.02));
  auto const time = [&](double tolerance) {
    return time_over_bound(
        schedule_steps(loads, 16, {.max_dist_ratio = tolerance, .speeds = speeds}), 200, loads,
        speeds);
  };
  CHECK(time(0.02) <= 1 / (1 - 0.0201));
  CHECK(time(0.02) > time(0.0));
}

// Groups of earlier epochs come first, whatever their lane is.
TEST_CASE("carried groups run in the first steps with speeds") {
  auto const loads = random_loads(90, 10, 1000);
  for (std::uint32_t const of_rank : {1u, 3u}) {
    options_type const options{
        .groups_per_rank = of_rank, .carried = {5, 60, 61}, .speeds = repeated({2, 1}, 4)};
    auto const schedule = schedule_steps(loads, 4, options);
    REQUIRE(fault_of(schedule, loads.size(), 4, options) == "");
    std::vector<std::size_t> first(loads.size(), schedule.size());
    for (std::size_t step = schedule.size(); step-- != 0;) {
      for (std::size_t rank = 0; rank != 4; ++rank) {
        for (std::uint32_t const group : schedule(step, rank)) first[group] = step;
      }
    }
    for (std::uint32_t const group : options.carried) CHECK(first[group] < 3);
  }
}

// The errors of speeds must name the function and the rank.
TEST_CASE("schedule_steps and its callers refuse wrong speeds by name") {
  auto const loads = random_loads(10, 20, 100);
  auto const text = [&](auto const& call) { return test::error_text<std::invalid_argument>(call); };
  CHECK(text([&] {
          (void)schedule_steps(loads, 3, {.speeds = {1, 2}});
        }) == "omnibal::schedule_steps: options.speeds has 2 values for 3 ranks");
  CHECK(text([&] {
          (void)schedule_steps(loads, 2, {.speeds = {1, -2}});
        }) == "omnibal::schedule_steps: options.speeds[1] is -2, must be positive and finite");
  CHECK(text([&] { (void)schedule_steps(loads, 2, {.speeds = {std::nan("")}}); }) ==
        "omnibal::schedule_steps: options.speeds[0] is nan, must be positive and finite");
  CHECK(text([&] {
          omnibal::step_sampler const made(loads, {.ranks = 2, .rank = 0}, {.speeds = {1, 2}});
        }) ==
        "omnibal::step_sampler: options.speeds has 2 values, but the ranks of a sampler may "
        "change; pass a scheduler that sets the speeds of its ranks instead");
  CHECK(text([&] {
          (void)omnibal::level_steps(omnibal::level_packing{}, loads, 2, {.speeds = {1, 2}});
        }) ==
        "omnibal::level_steps: options.speeds has 2 values, but several ranks may share a "
        "pack; call schedule_steps with a speed for each cell of a level instead");
}

// The text above tells users to pass a scheduler, so that must work.
TEST_CASE("a step sampler runs a scheduler that sets the speeds") {
  auto const loads = random_loads(40, 20, 100);
  std::vector<double> const speeds{1, 2};
  auto const scheduler = [&](std::span<std::int64_t const> own, std::size_t ranks,
                             options_type options) {
    options.speeds = speeds;
    return schedule_steps(own, ranks, options);
  };
  auto const expected = schedule_steps(loads, 2, {.speeds = speeds});
  for (std::uint32_t rank = 0; rank != 2; ++rank) {
    omnibal::step_sampler sampler(loads, {.ranks = 2, .rank = rank}, {}, scheduler);
    auto const first = sampler.next();
    CHECK(std::vector<std::uint32_t>(first.begin(), first.end()) ==
          std::vector<std::uint32_t>{expected(0, rank)[0]});
  }
}
