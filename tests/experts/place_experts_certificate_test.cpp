// SPDX-License-Identifier: Apache-2.0
#include "certificate.hpp"
#include "expert_faults.hpp"

#include <omnibal/experts/place_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

/// Numbers of instances in which the search found the optimum.
struct optima {
  std::size_t fresh = 0;
  std::size_t budget = 0;
  std::size_t all = 0;
};

template <class Weight>
std::string fault_of(omnibal::rng::engine& random, optima& met) {
  struct shape {
    std::size_t experts, slots, ranks;
  };
  constexpr shape shapes[]{{3, 2, 2}, {3, 2, 3}, {4, 2, 3}, {4, 3, 2}, {5, 3, 2},
                           {5, 2, 3}, {4, 2, 4}, {4, 3, 3}, {5, 3, 3}};
  shape const s = shapes[omnibal::rng::below(random, std::size(shapes))];
  test::weight_source<Weight> const source(random, 1 << 26);
  std::vector<Weight> loads;
  for (std::size_t e = 0; e != s.experts; ++e) loads.push_back(source());
  omnibal::place_experts_options options;
  options.max_gap = 0;
  auto const fresh = omnibal::place_experts(loads, s.slots, s.ranks, options);
  if (auto const fault = test::placement_faults(loads, fresh); !fault.empty()) return fault;
  double const least = test::least_heaviest_rank(loads, s.slots, s.ranks);
  double const margin = 1e-12 * least;
  if (fresh.largest_loads[0] < least - margin) return "lighter than the optimum";
  if (fresh.lower_bounds[0] > least + margin) return "bound above the optimum";
  if (fresh.largest_loads[0] <= least + margin) ++met.fresh;

  std::vector<Weight> later;
  for (std::size_t e = 0; e != s.experts; ++e) later.push_back(source());
  auto const old = fresh.experts;
  std::size_t const budget = omnibal::rng::below(random, 4);
  options.old = old;
  options.max_moved = budget;
  auto const next = omnibal::place_experts(later, s.slots, s.ranks, options);
  if (auto const fault = test::placement_faults(later, next, 1, 1, old); !fault.empty()) {
    return fault;
  }
  if (next.moved[0] > budget) return "more moved copies than the budget";
  double const limited = test::least_heaviest_rank(later, s.slots, s.ranks, old, budget);
  if (next.largest_loads[0] < limited - 1e-12 * limited) return "lighter than with any moves";
  if (next.lower_bounds[0] > limited * (1 + 1e-12)) return "bound above the optimum of the budget";
  if (next.largest_loads[0] <= limited + 1e-12 * limited) ++met.budget;
  ++met.all;
  return "";
}

}  // namespace

// No placement of a small instance is lighter than the best of all counts and pairings, no bound is
// above it, and the search finds it nearly always without a budget.
TEMPLATE_TEST_CASE("place_experts: brute force over all placements", "", std::int64_t, double) {
  optima met;
  test::certify<TestType>("place_experts", [&](omnibal::rng::engine& random) {
    return fault_of<TestType>(random, met);
  });
  std::printf("optimum found: %.4f without a budget, %.4f with one\n",
              static_cast<double>(met.fresh) / static_cast<double>(met.all),
              static_cast<double>(met.budget) / static_cast<double>(met.all));
  CHECK(met.fresh * 100 >= met.all * 95);
  CHECK(met.budget * 100 >= met.all * 50);
}
