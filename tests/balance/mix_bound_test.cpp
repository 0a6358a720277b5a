// SPDX-License-Identifier: Apache-2.0
// The bound of the benchmarks on how alike the totals of steps can be, against schedules.

#include "mix_bound.hpp"

#include "samples.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/step_spread.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using load_list = std::vector<omnibal::resources<2>>;

/// A few of them are far lighter than the others.
load_list random_loads(std::size_t count, test::random_amounts& random) {
  load_list loads(count);
  for (auto& load : loads) {
    bool const is_light = random.between(0, 7) == 0;
    load = {random.between(is_light ? 0 : 5, is_light ? 3 : 9), random.between(6, 9)};
  }
  return loads;
}

/// Both over all steps, which are full.
struct mix_and_bound {
  double mix;
  double bound;
};

mix_and_bound measure(omnibal::steps const& schedule, load_list const& loads,
                      std::size_t groups_per_rank) {
  auto const mix = omnibal::step_spread(schedule, loads).totals;
  auto const waiting = omnibal::dist_ratio(schedule, loads);
  return {std::max(mix[0], mix[1]), bench::min_mix(loads, schedule.ranks(), groups_per_rank,
                                                   std::max(waiting[0], waiting[1]))};
}

}  // namespace

TEST_CASE("min_mix is above no schedule, and far above zero for some", "[slow]") {
  test::random_amounts random(5);
  double largest = 0;
  for (std::uint64_t instance = 0; instance != 40; ++instance) {
    auto const ranks = static_cast<std::size_t>(random.between(2, 4));
    auto const groups_per_rank = static_cast<std::uint32_t>(random.between(1, 3));
    auto const steps = static_cast<std::size_t>(random.between(4, 24));
    load_list const loads = random_loads(steps * ranks * groups_per_rank, random);
    for (double const tolerance : {0.0, 0.02, 1.0}) {
      auto const schedule = omnibal::schedule_steps(
          loads, ranks,
          {.epoch = instance, .max_dist_ratio = tolerance, .groups_per_rank = groups_per_rank});
      auto const [mix, bound] = measure(schedule, loads, groups_per_rank);
      CAPTURE(instance, tolerance, ranks, groups_per_rank);
      CHECK(bound <= mix * (1 + 1e-9));
      largest = std::max(largest, bound);
    }
  }
  CHECK(largest > 0.5);
}
