// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The multiple-choice knapsack problem for one limit on transient bytes.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/recompute/select_recompute/transient_limits.hpp>

#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// A multiple-choice knapsack problem: select one point of each front within a budget of bytes so
/// that the gain is largest.
struct knapsack_problem {
  pareto_fronts fronts{};
  /// The largest sum of the bytes of the points.
  std::int64_t budget = 0;
  /// The sum of the times of the first points. A solution has this time minus its gain.
  std::int64_t time = 0;
  /// True if the points with the least time of all layers fit into the budget together.
  bool fits_least_time = false;
};

/// Writes the problem with the choices that a limit admits, with the layers in the order `order`.
/// Precondition: the admitted choices with the fewest bytes fit.
template <class Time>
void write_problem(choice_table<Time> const& table, std::span<std::uint32_t const> order,
                   transient_limit const& limit, knapsack_problem& problem) {
  problem.fronts.clear();
  problem.budget = limit.kept_bytes;
  problem.time = 0;
  int128 last_bytes = 0;
  for (std::uint32_t const layer : order) {
    numbered_choice<Time> const* first = nullptr;
    std::int64_t first_time = 0;
    std::int64_t last_time = 0;
    front_point point{};
    for (auto const& way : table[layer]) {
      if (way.transient_bytes > limit.transient_bytes) continue;
      std::int64_t const time = table.to_whole(way.time);
      if (first == nullptr) {
        first = &way;
        first_time = time;
      } else if (time >= last_time) {
        continue;
      }
      last_time = time;
      point = {way.bytes - first->bytes, first_time - time, way.index};
      problem.fronts.push(point);
    }
    problem.fronts.close();
    problem.budget -= first->bytes;
    problem.time += first_time;
    last_bytes += point.bytes;
  }
  problem.fits_least_time = last_bytes <= problem.budget;
  problem.fronts.drop_above(problem.budget);
}

}  // namespace omnibal::inline v0::detail
