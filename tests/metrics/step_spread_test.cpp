// SPDX-License-Identifier: Apache-2.0
#include "dealt_steps.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::make_steps;
using omnibal::resources;
using omnibal::step_spread;
using omnibal::steps;
using test::dealt_at_random;

using numbers = std::vector<std::int64_t>;

/// The loads of each step that counts.
std::vector<std::vector<double>> loads_of_steps(steps const& schedule, numbers const& loads) {
  std::vector<std::vector<double>> result;
  std::size_t most = 0;
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    std::vector<double> of_step;
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      if (schedule.is_repeat(step, rank)) continue;
      for (auto const group : schedule(step, rank)) {
        of_step.push_back(static_cast<double>(loads[group]));
      }
    }
    most = std::max(most, of_step.size());
    result.push_back(of_step);
  }
  if (!result.empty() && result.back().size() < most) result.pop_back();
  return result;
}

double mean_of(std::vector<double> const& values) {
  double sum = 0;
  for (double const value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The mean over all orders of what `measure` says of the steps, which keep their sizes.
template <class Measure>
double mean_over_orders(std::vector<std::vector<double>> of_steps, Measure const& measure) {
  std::vector<double> all;
  for (auto const& one : of_steps) all.insert(all.end(), one.begin(), one.end());
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i != order.size(); ++i) order[i] = i;
  double sum = 0;
  double count = 0;
  do {
    std::size_t next = 0;
    for (auto& one : of_steps) {
      for (double& value : one) value = all[order[next++]];
    }
    sum += measure(of_steps);
    ++count;
  } while (std::next_permutation(order.begin(), order.end()));
  return sum / count;
}

/// The squares of the deviations of the totals of steps.
double squares_of_steps(std::vector<std::vector<double>> const& of_steps) {
  std::vector<double> all;
  for (auto const& one : of_steps) all.insert(all.end(), one.begin(), one.end());
  double result = 0;
  for (auto const& one : of_steps) {
    double deviation = 0;
    for (double const value : one) deviation += value - mean_of(all);
    result += deviation * deviation;
  }
  return result;
}

/// The squares of the deviations of groups from the mean of their step.
double squares_within(std::vector<std::vector<double>> const& of_steps) {
  double result = 0;
  for (auto const& one : of_steps) {
    for (double const value : one) result += std::pow(value - mean_of(one), 2);
  }
  return result;
}

}  // namespace

TEST_CASE("steps of alike groups vary by the root of their number more than random ones") {
  // Two values, in random order with the variances 2 v 2 / 3 of totals and v 4 / 3 of groups.
  numbers const loads{1, 1, 3, 3};
  auto const alike = step_spread(make_steps({{0}, {1}, {2}, {3}}, 2), loads);
  CHECK(alike.totals == Approx(std::sqrt(3.0)));
  CHECK(alike.within == 0.0);
  CHECK(alike.variation == Approx(0.5));
  auto const mixed = step_spread(make_steps({{0}, {2}, {1}, {3}}, 2), loads);
  CHECK(mixed.totals == 0.0);
  CHECK(mixed.within == Approx(1.5));
  CHECK(mixed.variation == 0.0);
  // Ranks and micro-batches do not matter.
  CHECK(step_spread(make_steps({{0, 2}, {1, 3}}, 1), loads).totals == 0.0);
}

TEST_CASE("the mix is that over all orders") {
  std::vector<std::vector<std::vector<std::uint32_t>>> const cells{
      {{0, 1}, {2}, {3, 4}, {5}},
      {{3}, {2, 1}, {0}, {4, 5}},
      {{0, 1, 2, 3}, {4, 5}, {6, 7}, {}},
      {{5, 1}, {}, {0}, {}, {2, 3, 4}, {}},
  };
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    omnibal::rng::engine random(seed);
    for (auto const& of_cells : cells) {
      steps const schedule = make_steps(of_cells, 2);
      numbers loads;
      for (int i = 0; i != 8; ++i) {
        loads.push_back(static_cast<std::int64_t>(omnibal::rng::below(random, 50)));
      }
      auto const of_steps = loads_of_steps(schedule, loads);
      auto const mix = step_spread(schedule, loads);
      INFO(seed);
      CHECK(mix.within * mean_over_orders(of_steps, squares_within) ==
            Approx(squares_within(of_steps)).margin(1e-9));
      if (of_steps.size() < 2) continue;
      CHECK(mix.totals * mix.totals * mean_over_orders(of_steps, squares_of_steps) ==
            Approx(squares_of_steps(of_steps)).margin(1e-9));
    }
  }
}

TEST_CASE("random order mixes by one, also with several groups in a cell") {
  omnibal::rng::engine random(3);
  std::vector<resources<2>> loads;
  for (int i = 0; i != 4001; ++i) {
    auto const tokens = static_cast<std::int64_t>(omnibal::rng::below(random, 4096));
    loads.push_back({tokens % 7 == 0 ? 40 : 0, tokens});
  }
  for (std::size_t const ranks : {2u, 8u, 64u}) {
    resources<2, double> totals{};
    resources<2, double> within{};
    for (std::uint64_t seed = 0; seed != 40; ++seed) {
      auto const mix = step_spread(dealt_at_random(loads.size(), ranks, seed), loads);
      for (std::size_t r = 0; r != 2; ++r) {
        totals[r] += mix.totals[r] * mix.totals[r] / 40;
        within[r] += mix.within[r] / 40;
      }
    }
    for (std::size_t r = 0; r != 2; ++r) {
      CHECK(totals[r] == Approx(1.0).margin(0.1));
      CHECK(within[r] == Approx(1.0).margin(0.02));
    }
  }
}

TEST_CASE("even steps of one group per rank vary as the groups do") {
  omnibal::rng::engine random(5);
  numbers loads;
  for (int i = 0; i != 4000; ++i) {
    loads.push_back(static_cast<std::int64_t>(1000 + omnibal::rng::below(random, 4000)));
  }
  auto const mix = step_spread(omnibal::schedule_steps(loads, 16), loads);
  CHECK(mix.totals == Approx(4.0).margin(0.1));
  CHECK(mix.within < 0.01);
}

TEST_CASE("a functor measures what is not balanced") {
  steps const schedule = make_steps({{0}, {1}, {2}, {3}}, 2);
  auto const odd =
      step_spread(schedule, [](std::uint32_t group) { return group % 2 == 1 ? 1 : 0; });
  CHECK(odd.totals == 0.0);
  auto const late =
      step_spread(schedule, [](std::uint32_t group) { return group < 2 ? 0.0 : 0.5; });
  CHECK(late.totals == Approx(std::sqrt(3.0)));
  auto const both = step_spread(schedule, [](std::uint32_t group) {
    return resources<2, double>{group % 2 == 1 ? 1.0 : 0.0, group < 2 ? 0.0 : 0.5};
  });
  CHECK(both.totals[0] == odd.totals);
  CHECK(both.totals[1] == late.totals);
}

TEST_CASE("repetitions and a last step that is not full do not count") {
  numbers const loads{1, 2, 4, 9, 100};
  auto const full = step_spread(make_steps({{0}, {1}, {2}, {3}}, 2), loads);
  auto const same = [&](steps const& schedule) {
    auto const mix = step_spread(schedule, loads);
    return mix.totals == full.totals && mix.within == full.within &&
           mix.variation == full.variation;
  };
  CHECK(same(make_steps({{0}, {1}, {2}, {3}, {4}, {}}, 2)));
  steps filled = make_steps({{0}, {1}, {2}, {3}}, 2);
  filled.push(4);
  filled.close();
  filled.push(0);
  filled.close_repeat();
  CHECK(same(filled));
  CHECK_FALSE(same(make_steps({{4}, {}, {0}, {1}, {2}, {3}}, 2)));
}

TEST_CASE("where nothing varies the mix is one") {
  auto const is_one = [](auto const& mix) {
    return mix.totals == 1.0 && mix.within == 1.0 && mix.variation == 0.0;
  };
  steps const schedule = make_steps({{0}, {1}, {2}, {3}, {4}, {5}}, 2);
  CHECK(is_one(step_spread(schedule, numbers{0, 0, 0, 0, 0, 0})));
  CHECK(is_one(step_spread(schedule, numbers{7, 7, 7, 7, 7, 7})));
  CHECK(is_one(step_spread(schedule, [](std::uint32_t) { return 0.1; })));
  CHECK(is_one(step_spread(steps(3), numbers{})));
  CHECK(is_one(step_spread(steps(3), numbers{1, 2})));
  // One step, and one group in each.
  CHECK(step_spread(make_steps({{0}, {1}}, 2), numbers{1, 2}).totals == 1.0);
  CHECK(step_spread(make_steps({{0}, {1}}, 1), numbers{1, 2}).within == 1.0);
  CHECK(step_spread(make_steps({{0}, {1}}, 1), numbers{1, 2}).totals == Approx(1.0));
}

TEST_CASE("the mix rejects what is no load") {
  steps const schedule = make_steps({{0}, {1}}, 2);
  CHECK_THROWS_WITH(step_spread(schedule, numbers{1}),
                    "omnibal::step_spread: the schedule names group 1 of 1");
  CHECK_THROWS_WITH(step_spread(schedule, numbers{1, -1}),
                    "omnibal::step_spread: loads[1] is -1, must be finite and not negative");
  CHECK_THROWS_AS(
      step_spread(schedule, [](std::uint32_t) { return std::numeric_limits<double>::quiet_NaN(); }),
      std::invalid_argument);
  CHECK_THROWS_AS(step_spread(schedule, [](std::uint32_t) { return -0.5; }), std::invalid_argument);
  // Also in a last step that does not count.
  CHECK_THROWS_WITH(step_spread(make_steps({{0}, {1}, {2}, {}}, 2), numbers{1, 2, -3}),
                    "omnibal::step_spread: loads[2] is -3, must be finite and not negative");
}

TEST_CASE("step_spread of very large and very small loads is that of ordinary ones") {
  std::vector<double> const ordinary{1, 2, 3, 1, 5, 1, 2, 4};
  steps schedule(2);
  for (std::uint32_t group = 0; group != 8; ++group) {
    schedule.push(group);
    schedule.close();
  }
  schedule.finish();
  auto const expected = step_spread(schedule, ordinary);
  // Powers of two keep all digits.
  for (int const exponent : {1021, 1000, 532, 201, 200, -200, -201, -565, -1000, -1074}) {
    std::vector<double> loads;
    for (double const load : ordinary) loads.push_back(std::ldexp(load, exponent));
    auto const mix = step_spread(schedule, loads);
    INFO("2^" << exponent);
    CHECK(mix.totals == expected.totals);
    CHECK(mix.within == expected.within);
    CHECK(mix.variation == expected.variation);
  }
  // The sum of the loads is infinite, the loads are not.
  std::vector<double> largest(8, std::numeric_limits<double>::max());
  largest[0] = 0;
  auto const mix = step_spread(schedule, largest);
  auto const like = step_spread(schedule, std::vector<double>{0, 1, 1, 1, 1, 1, 1, 1});
  CHECK(mix.totals == Approx(like.totals));
  CHECK(mix.within == Approx(like.within));
  CHECK(mix.variation == Approx(like.variation));
}
