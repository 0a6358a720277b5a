// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The degrees that groups may have, and the facts that follow from their times.

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>
#include <omnibal/context/context_groups_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Adds a degree to an instance if its ranks allow the degree.
inline void add_degree(context_instance& instance, context_cost const& cost, std::uint32_t degree) {
  if (degree > instance.ranks) return;
  if (degree > instance.ranks_per_node && degree % instance.ranks_per_node != 0) return;
  if (degree > cost.degrees.size()) {
    throw_invalid(context_groups_name, "options.degrees has ", degree,
                  ", and cost.degrees has times up to degree ", cost.degrees.size());
  }
  instance.degrees.push_back({degree, cost.degrees[degree - 1]});
}

/// Subtracts the least fixed time of all degrees from their times.
inline void subtract_min_fixed(context_instance& instance) {
  instance.min_fixed_time = std::numeric_limits<double>::infinity();
  for (context_degree const& degree : instance.degrees) {
    instance.min_fixed_time = std::min(instance.min_fixed_time, degree.time.fixed);
  }
  for (context_degree& degree : instance.degrees) degree.time.fixed -= instance.min_fixed_time;
}

/// Returns true if a sample never requires fewer rank-seconds on more ranks.
[[nodiscard]] inline bool do_areas_ascend(std::vector<context_degree> const& degrees) {
  for (std::size_t d = 1; d < degrees.size(); ++d) {
    auto const ascends = [&](double degree_time::*part) {
      // Shares of the same work may differ by rounding.
      return degrees[d].ranks * (degrees[d].time.*part) >=
             (1 - context_rounding) * (degrees[d - 1].ranks * (degrees[d - 1].time.*part));
    };
    if (degrees[d].time.fixed < degrees[d - 1].time.fixed || !ascends(&degree_time::linear) ||
        !ascends(&degree_time::quadratic)) {
      return false;
    }
  }
  return true;
}

/// Finds the ends of the runs of degrees in which more ranks never require more time.
inline void find_falling_runs(context_instance& instance) {
  auto const is_faster = [](context_degree const& left, context_degree const& right) {
    return left.time.fixed <= right.time.fixed &&
           left.slowness * left.time.linear <= right.slowness * right.time.linear &&
           left.slowness * left.time.quadratic <= right.slowness * right.time.quadratic;
  };
  auto const& degrees = instance.degrees;
  instance.falling_run_ends.clear();
  for (std::uint32_t d = 1; d <= degrees.size(); ++d) {
    if (d == degrees.size() || !is_faster(degrees[d], degrees[d - 1])) {
      instance.falling_run_ends.push_back(d);
    }
  }
}

/// Returns true if each degree divides the next one, and each degree below the ranks of a node
/// divides that number.
[[nodiscard]] inline bool is_divisor_chain(std::vector<context_degree> const& degrees,
                                           std::uint32_t ranks_per_node) {
  for (std::size_t d = 0; d != degrees.size(); ++d) {
    std::uint32_t const own = degrees[d].ranks;
    if (own < ranks_per_node && ranks_per_node % own != 0) return false;
    if (d + 1 != degrees.size() && degrees[d + 1].ranks % own != 0) return false;
  }
  return true;
}

/// Sets the least slowness and the largest capacity of a group of each degree, of which different
/// windows may be the reason. Precondition: `is_chain` and `must_find_blocks` are set.
inline void set_limits_of_degrees(context_instance& instance) {
  std::vector<rank_window> windows;
  for (context_degree& degree : instance.degrees) {
    degree.capacity = instance.capacity;
    if (instance.has_equal_ranks()) continue;
    list_windows(instance, degree.ranks, windows);
    degree.slowness = std::min_element(windows.begin(), windows.end())->slowness;
    degree.capacity = max_capacity(windows);
  }
}

/// Writes the degrees that may be used, and the members that follow from them, to an instance with
/// known ranks, speeds and capacities. `listed` are the degrees that the caller allows, or none for
/// all degrees. Returns false if no degree may be used.
[[nodiscard]] inline bool select_degrees(context_instance& instance, context_cost const& cost,
                                         std::vector<std::uint32_t> const& listed,
                                         group_placement placement) {
  instance.degrees.clear();
  auto const last = std::min<std::size_t>(instance.ranks, cost.degrees.size());
  for (std::uint32_t degree = 1; listed.empty() && degree <= last; ++degree) {
    add_degree(instance, cost, degree);
  }
  for (std::uint32_t const degree : listed) add_degree(instance, cost, degree);
  if (instance.degrees.empty()) return false;
  subtract_min_fixed(instance);
  instance.areas_ascend = do_areas_ascend(instance.degrees);
  instance.is_chain = is_divisor_chain(instance.degrees, instance.ranks_per_node);
  instance.must_find_blocks = placement == group_placement::blocks && !instance.is_chain;
  set_limits_of_degrees(instance);
  find_falling_runs(instance);
  return true;
}

}  // namespace omnibal::inline v0::detail
