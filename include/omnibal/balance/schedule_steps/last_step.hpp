// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The last step, which has too few groups to be a full step.
///
/// The input is the group of each run in random order, which `draw_runs` returns, and the levels of
/// the groups. The output is the choice of runs for the last step, and `last_step`, in which these
/// groups are assigned to ranks.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>
#include <omnibal/balance/schedule_steps/step_load.hpp>
#include <omnibal/balance/schedule_steps/timed_bundles.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The groups of each rank in the last step. If all steps are full, there are no ranks.
template <std::size_t R>
struct last_step {
  /// The groups of each rank, by rank. Ranks beyond the end of this list have no groups.
  grouping groups;
  /// The levels of these groups, rank by rank.
  std::vector<load_levels<R>> levels;
  /// The number of ranks whose groups are not repetitions. These ranks are the first ones.
  std::size_t ranks_without_repetition = 0;
  waiting_times<R> waiting{};
};

/// Returns the last step with the groups of each rank, and computes its idle time.
template <std::size_t R>
[[nodiscard]] last_step<R> measured_last_step(grouping groups, std::vector<load_levels<R>> levels,
                                              std::size_t ranks_without_repetition,
                                              rank_lanes const& lanes, std::size_t ranks) {
  std::vector<load_levels<R>> sums(groups.size(), load_levels<R>{});
  for (std::size_t rank = 0; rank != groups.size(); ++rank) {
    for (std::uint32_t i = groups.view().offset(rank); i != groups.view().offset(rank + 1); ++i) {
      add_levels(sums[rank], levels[i]);
    }
  }
  step_load<R> load;
  time_scale<R> const scale(lanes, largest_levels(std::span<load_levels<R> const>(sums)), ranks);
  for (std::size_t lane = 0; lane != lanes.size(); ++lane) {
    for (std::uint32_t k = 0; k != lanes[lane].ranks; ++k) {
      std::uint32_t const rank = lanes.rank_at(lanes[lane].first + k);
      if (rank < sums.size()) load.add(scale(sums[rank], lane));
    }
  }
  return {std::move(groups), std::move(levels), ranks_without_repetition, load.waiting(ranks)};
}

/// Returns the position of the last step in the runs by ascending size, if each rank has one group.
/// A short last step begins at the smallest groups. A last step with repetitions begins at a random
/// position, so that it repeats groups similar to its own. Precondition: there is a full step.
[[nodiscard]] inline std::uint32_t first_of_last_step(schedule_shape const& shape,
                                                      schedule_rng const& draws) {
  if (shape.repeated == 0) return 0;
  auto const middle = static_cast<std::uint32_t>(
      static_cast<uint128>(draws.of_last_step()) * (shape.runs - shape.carried) >> 64);
  std::uint32_t const first = middle < shape.ranks / 2 ? 0 : middle - shape.ranks / 2;
  return std::min(first, shape.runs - shape.ranks);
}

/// Returns `count` runs that are neighbors in ascending order of size, from position `first` of
/// this order on. Carried runs come last in this order, because they must be in full steps.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> neighbors_by_size(group_levels<R> const& levels,
                                                           std::span<std::uint32_t const> runs,
                                                           std::uint32_t carried,
                                                           std::uint32_t first, std::size_t count) {
  constexpr std::uint32_t size_of_carried = ~std::uint32_t{0};
  std::vector<std::uint64_t> keys(runs.size());
  for (std::uint32_t run = 0; run != runs.size(); ++run) {
    std::uint32_t const size = levels.size_of(runs[run]);
    keys[run] = std::uint64_t{run < carried ? size_of_carried : size} << 32 | run;
  }
  // Only the keys of the last step are sorted.
  auto const begin = keys.begin() + static_cast<std::ptrdiff_t>(first);
  auto const end = begin + static_cast<std::ptrdiff_t>(count);
  std::nth_element(keys.begin(), begin, keys.end());
  std::nth_element(begin, end - 1, keys.end());
  std::sort(begin, end);
  std::vector<std::uint32_t> result(count);
  for (std::size_t k = 0; k != count; ++k) {
    result[k] = static_cast<std::uint32_t>(keys[first + k]);
  }
  return result;
}

/// Returns the first `count` runs that are not carried, and then the first carried runs if there
/// are fewer.
[[nodiscard]] inline std::vector<std::uint32_t> first_uncarried(schedule_shape const& shape,
                                                                std::size_t count) {
  std::vector<std::uint32_t> result(count);
  for (std::uint32_t k = 0; k != count; ++k) {
    result[k] = static_cast<std::uint32_t>((std::uint64_t{shape.carried} + k) % shape.runs);
  }
  return result;
}

/// Returns the runs of the last step, as indices into `runs`, which lists the group of each run in
/// random order. The repeated runs come last. With one group per rank, the runs are consecutive in
/// ascending order of size. With several, they are the first runs that are not carried: a random
/// sample.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint32_t> choose_last_runs(group_levels<R> const& levels,
                                                          std::span<std::uint32_t const> runs,
                                                          schedule_shape const& shape,
                                                          schedule_rng const& draws) {
  std::size_t const count = std::size_t{shape.leftover} + shape.repeated;
  if (shape.leftover == 0) return std::vector<std::uint32_t>(count);
  if (shape.steps == 0) {
    std::vector<std::uint32_t> result(count);
    for (std::uint32_t k = 0; k != count; ++k) result[k] = k % shape.leftover;
    return result;
  }
  if (shape.groups_per_rank != 1) return first_uncarried(shape, count);
  return neighbors_by_size(levels, runs, shape.carried, first_of_last_step(shape, draws), count);
}

/// Assigns groups to ranks in rows of one group for each rank. Every second row is reversed if it
/// is complete. If ranks have several groups, the groups are in descending order.
inline void deal_in_rows(std::span<std::uint32_t const> groups, std::size_t ranks,
                         grouping& result) {
  for (std::size_t rank = 0; rank != ranks; ++rank) {
    for (std::size_t row = 0, first = 0; first + rank < groups.size(); ++row, first += ranks) {
      bool const is_reversed = row % 2 == 1 && first + ranks <= groups.size();
      result.push(groups[first + (is_reversed ? ranks - 1 - rank : rank)]);
    }
    result.close();
  }
}

/// Assigns groups to ranks of different speed, longest first; the numbers of groups of two ranks
/// differ by at most one.
template <std::size_t R>
void place_by_speed(group_levels<R> const& levels, std::span<std::uint32_t const> groups,
                    part_speeds const& speeds, grouping& result) {
  if (groups.empty()) return;
  integer_costs<R> costs(groups.size());
  for (std::size_t i = 0; i != groups.size(); ++i) {
    load_levels<R> const& level = levels.of_group[groups[i]];
    for (std::size_t r = 0; r != R; ++r) {
      costs[i][r] =
          static_cast<std::int64_t>(R == 1 ? level[r] : share_of_level(level[r], levels.max[r]));
    }
  }
  count_limits room("schedule_steps", count_policy::at_most_one_apart, groups.size(),
                    speeds.size());
  auto const part_of = speeds.are_equal() ? place_longest_first(costs, std::move(room))
                                          : place_longest_first(costs, std::move(room), speeds);
  grouping const parts = collect_parts(part_of, speeds.size());
  for (auto const part : parts) {
    for (std::uint32_t const i : part) result.push(groups[i]);
    result.close();
  }
}

/// Assigns the groups of the last step to ranks; the repeated groups are at the end of `groups`. If
/// ranks have several groups, `deal_in_rows` assigns the groups from the largest to the smallest.
/// Ranks that repeat groups get the repeated groups in their order. Ranks of different speed get
/// groups by `place_by_speed`.
template <std::size_t R>
[[nodiscard]] last_step<R> assign_last_step(group_levels<R> const& levels,
                                            std::vector<std::uint32_t> groups,
                                            schedule_shape const& shape, rank_lanes const& lanes) {
  std::size_t const per_rank = shape.groups_per_rank;
  std::size_t const leftover = shape.leftover;
  std::size_t const ranks = shape.repeated != 0 ? (leftover + per_rank - 1) / per_rank
                                                : std::min<std::size_t>(leftover, shape.ranks);
  auto const own = std::span(groups).first(leftover);
  auto const repeated = std::span(groups).subspan(leftover);
  grouping of_ranks;
  if (lanes.is_single()) {
    if (per_rank != 1) {
      std::stable_sort(own.begin(), own.end(), [&](std::uint32_t left, std::uint32_t right) {
        return levels.size_of(left) > levels.size_of(right);
      });
    }
    deal_in_rows(own, ranks, of_ranks);
    for (std::size_t i = 0; i != repeated.size(); ++i) {
      of_ranks.push(repeated[i]);
      if ((i + 1) % per_rank == 0) of_ranks.close();
    }
  } else {
    place_by_speed(levels, own, lanes.speeds_of(0, ranks), of_ranks);
    place_by_speed(levels, repeated, lanes.speeds_of(ranks, repeated.size() / per_rank), of_ranks);
  }
  std::vector<load_levels<R>> of_groups;
  of_groups.reserve(groups.size());
  for (std::uint32_t const group : of_ranks.items()) of_groups.push_back(levels.of_group[group]);
  return measured_last_step(std::move(of_ranks), std::move(of_groups), ranks, lanes, shape.ranks);
}

}  // namespace omnibal::inline v0::detail
