// SPDX-License-Identifier: Apache-2.0
#pragma once

// What schedules must satisfy, and the evenest ones by trying all.

#include "list_order.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace test {

/// What is wrong with a schedule of so many groups; empty where nothing is.
inline std::string schedule_fault(omnibal::steps const& schedule, std::size_t groups,
                                  std::size_t ranks,
                                  omnibal::schedule_steps_options const& options = {}) {
  using omnibal::remainder_policy;
  std::size_t const runs = groups + options.carried.size();
  std::size_t const extra = runs % ranks;
  std::size_t const full_steps = runs / ranks;
  bool const has_last = extra != 0 && options.remainder != remainder_policy::carry;
  if (schedule.ranks() != ranks) return "other ranks";
  if (schedule.size() != full_steps + (has_last ? 1 : 0)) {
    return "there are " + std::to_string(schedule.size()) + " steps";
  }
  std::vector<std::size_t> left(groups, 1);
  for (std::uint32_t const group : options.carried) ++left[group];
  std::set<std::uint32_t> last;
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      bool const is_extra = step == full_steps && rank >= extra;
      bool const repeats = is_extra && options.remainder == remainder_policy::repeat;
      auto const cell = schedule(step, rank);
      std::string const here = "step " + std::to_string(step) + ", rank " + std::to_string(rank);
      if (cell.size() != (is_extra && !repeats ? 0u : 1u)) return here + ": not one group";
      if (schedule.is_repeat(step, rank) != repeats) return here + ": wrongly marked";
      if (cell.empty()) continue;
      if (cell[0] >= groups) return here + ": no group";
      if (step == full_steps) last.insert(cell[0]);
      if (repeats) continue;
      if (left[cell[0]]-- == 0) return here + ": the group runs too often";
    }
  }
  if (has_last && options.remainder == remainder_policy::repeat && groups >= ranks &&
      options.carried.empty() && last.size() != ranks) {
    return "the last step has a group twice";
  }
  auto const missing = std::accumulate(left.begin(), left.end(), std::size_t{0});
  if (missing != (has_last ? 0 : extra)) return std::to_string(missing) + " runs are missing";
  return "";
}

/// The groups of each step without those that repeat, ascending.
inline list_set<std::vector<std::uint32_t>> step_sets(omnibal::steps const& schedule) {
  list_set<std::vector<std::uint32_t>> result;
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    std::vector<std::uint32_t> groups;
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      if (schedule.is_repeat(step, rank)) continue;
      for (std::uint32_t const group : schedule(step, rank)) groups.push_back(group);
    }
    std::sort(groups.begin(), groups.end());
    result.insert(groups);
  }
  return result;
}

/// The largest dist ratio of the resources.
template <class Loads>
double worst_dist_ratio(omnibal::steps const& schedule, Loads const& loads) {
  auto const ratios = omnibal::dist_ratio(schedule, loads);
  return *std::max_element(std::begin(ratios.amounts), std::end(ratios.amounts));
}

/// The groups in order of one resource, `ranks` largest ones in each step.
template <class Loads>
omnibal::steps sorted_steps(Loads const& loads, std::size_t ranks, std::size_t resource) {
  std::vector<std::uint32_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return loads[a][resource] > loads[b][resource];
  });
  return omnibal::make_steps(order, ranks);
}

/// The least dist ratio of the worst resource, by trying all orders of eight groups or fewer.
template <class Loads>
double min_dist_ratio(Loads const& loads, std::size_t ranks) {
  std::vector<std::uint32_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  double least = std::numeric_limits<double>::infinity();
  do {
    least = std::min(least, worst_dist_ratio(omnibal::make_steps(order, ranks), loads));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace test
