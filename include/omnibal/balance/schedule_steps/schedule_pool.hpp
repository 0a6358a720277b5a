// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The pool of a schedule: the bundles of full steps, and the last step.
///
/// The input is the levels of all groups, the carried groups, the lanes and the random numbers. The
/// output is the groups in random order, as bundles of one group. `joined_bundles.hpp` joins these
/// bundles to larger ones.

#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/schedule_steps/last_step.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bundles of groups. A rank runs one bundle in each full step. A bundle has one group, or
/// `groups_per_rank` groups that were joined.
template <std::size_t R>
struct bundle_list {
  std::size_t groups_per_bundle = 1;
  /// The numbers of the groups, bundle by bundle.
  std::vector<std::uint32_t> groups;
  /// The load of each bundle: the sum over its groups.
  std::vector<load_levels<R>> levels;
  /// The number of early bundles, which come first. A step with an early bundle runs before all
  /// steps without early bundles, because it has carried groups.
  std::size_t early = 0;

  /// Returns the number of bundles.
  [[nodiscard]] std::size_t size() const { return levels.size(); }
  [[nodiscard]] std::span<std::uint32_t const> groups_of(std::uint32_t bundle) const {
    return std::span(groups).subspan(bundle * groups_per_bundle, groups_per_bundle);
  }
};

/// The bundles of full steps, and the last step.
template <std::size_t R>
struct schedule_pool {
  bundle_list<R> bundles;
  last_step<R> last;
};

/// Returns the group of each run, in random order, with the carried runs first.
[[nodiscard]] inline std::vector<std::uint32_t> draw_runs(std::size_t groups,
                                                          std::span<std::uint32_t const> carried,
                                                          schedule_shape const& shape,
                                                          schedule_rng const& draws) {
  auto const order_of_carried = draws.groups(carried.size());
  auto const order_of_groups = draws.groups(groups);
  std::vector<std::uint32_t> result(shape.runs);
  for (std::uint32_t run = 0; run != shape.runs; ++run) {
    result[run] = run < shape.carried
                      ? carried[static_cast<std::size_t>(order_of_carried(run))]
                      : static_cast<std::uint32_t>(order_of_groups(run - shape.carried));
  }
  return result;
}

/// Draws the order of the groups and divides them between the last step and bundles of one group.
/// The last step is a random sample if ranks have several groups.
template <std::size_t R>
[[nodiscard]] schedule_pool<R> draw_pool(group_levels<R> const& levels,
                                         std::span<std::uint32_t const> carried,
                                         schedule_shape const& shape, rank_lanes const& lanes,
                                         schedule_rng const& draws) {
  auto const runs = draw_runs(levels.of_group.size(), carried, shape, draws);
  auto const last_runs = choose_last_runs(levels, runs, shape, draws);
  std::vector<std::uint8_t> is_last(shape.runs, 0);
  for (std::uint32_t const run : std::span(last_runs).first(shape.leftover)) is_last[run] = 1;
  std::vector<std::uint32_t> last_groups;
  last_groups.reserve(last_runs.size());
  for (std::uint32_t const run : last_runs) last_groups.push_back(runs[run]);

  bundle_list<R> bundles;
  bundles.groups.reserve(shape.full_runs());
  bundles.levels.reserve(shape.full_runs());
  for (std::uint32_t run = 0; run != shape.runs; ++run) {
    if (is_last[run] != 0) continue;
    if (run < shape.carried) ++bundles.early;
    bundles.groups.push_back(runs[run]);
    bundles.levels.push_back(levels.of_group[runs[run]]);
  }
  return {std::move(bundles), assign_last_step(levels, std::move(last_groups), shape, lanes)};
}

}  // namespace omnibal::inline v0::detail
