// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The goals of the rounds of cuts.
///
/// The input is the option `max_dist_ratio`, the idle time of the last step, and the smallest idle
/// time of full steps, which `sorted_cells` measures. The output is the idle time that all full
/// steps may have together, in each kind.

#include <omnibal/balance/schedule_steps/last_step.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Returns the allowed idle time of full steps from `max_dist_ratio`. If this time is out of reach,
/// or nearly so, the goal is the idle time `min_waiting` of sorted bundles plus a quarter of
/// `max_dist_ratio`. Cuts reduce the mixture of bundles. The last step therefore uses at most half
/// of the allowed idle time if ranks have several groups.
template <std::size_t R>
[[nodiscard]] waiting_times<R> waiting_goals(double max_dist_ratio, schedule_shape const& shape,
                                             step_grid const& grid, last_step<R> const& last,
                                             waiting_times<R> const& min_waiting) {
  double const share = std::min(max_dist_ratio, 1.0) * static_cast<double>(whole_step);
  std::int64_t const allowed =
      static_cast<std::int64_t>(share) * (grid.steps + (shape.leftover != 0 ? 1 : 0));
  std::int64_t const max_of_last = shape.groups_per_rank == 1 ? whole_step : allowed / 2;
  waiting_times<R> result;
  for (std::size_t r = 0; r != R; ++r) {
    std::int64_t const rest = allowed - std::min(last.waiting[r], max_of_last);
    result[r] = std::max(rest, min_waiting[r] + allowed / 4);
  }
  return result;
}

/// Returns goals a third of the way from `goals` to the idle time of sorted bundles.
template <std::size_t R>
[[nodiscard]] waiting_times<R> stricter_goals(waiting_times<R> const& goals,
                                              waiting_times<R> const& min_waiting) {
  waiting_times<R> result;
  for (std::size_t r = 0; r != R; ++r) result[r] = goals[r] - (goals[r] - min_waiting[r]) / 3;
  return result;
}

}  // namespace omnibal::inline v0::detail
