// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Assignment of groups to steps and ranks: the ranks of a step have similar loads, and each step
/// is a random sample of the groups.

#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/schedule_steps/joined_bundles.hpp>
#include <omnibal/balance/schedule_steps/last_step.hpp>
#include <omnibal/balance/schedule_steps/load_deviations.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_pool.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>
#include <omnibal/balance/schedule_steps/sorted_cells.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/step_mixer.hpp>
#include <omnibal/balance/schedule_steps/timed_bundles.hpp>
#include <omnibal/balance/schedule_steps/waiting_goals.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <ranges>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct schedule_steps_fn {
  /// Assigns groups to steps and ranks such that all ranks have nearly the same load in a step.
  /// Loads are even in every resource, and different groups share a step in every epoch. Each step
  /// has one group for each rank. `loads` contains the load of each group, a weight or resources,
  /// such as the result of `group_loads`.
  ///
  /// At first, all groups form one cell. Each round divides some cells by load into a low and a
  /// high cell: the cells whose idle time is at least half of the largest idle time of a cell. The
  /// rounds end when the dist ratio is at most `options.max_dist_ratio` in every resource. Each
  /// step contains random groups of one cell. Every epoch cuts at other places, so that the
  /// `step_overlap` of two epochs is at most about the number of cells. The steps are in random
  /// order.
  ///
  /// With several `options.groups_per_rank`, only the sums over the groups of a rank are even.
  /// Bundles of random groups exchange groups until the load of each bundle is near the mean in
  /// every resource. Bundles are then scheduled as groups are, in somewhat finer cells. Finally,
  /// pairs of steps split their bundles again as far as `max_dist_ratio` allows, so that the totals
  /// of steps become more similar: see `step_spread`. With few groups of few distinct loads, no
  /// bundle has the mean load, and the totals of steps vary. The groups of a rank have no order.
  /// With `options.even_positions`, the function first schedules steps with one group for each
  /// rank. It then joins `groups_per_rank` of these steps, whose totals complement each other, into
  /// one step.
  ///
  /// With `options.speeds`, a load over the speed of its rank takes the place of a load, and a step
  /// lasts as long as its slowest rank. Larger groups go to faster ranks: either all groups in the
  /// order of their loads, or step by step if the steps are then shorter. Cells are cut as above,
  /// and each low cell has the lightest groups of each speed. A rank therefore gets only groups
  /// that suit its speed. With several groups per rank, bundles have loads in proportion to the
  /// speeds, and pairs of steps do not split their bundles again. With one group per rank, times
  /// are only as even as the loads of groups differ. Speeds are rounded as in `lpt`.
  ///
  /// Every group runs once, and carried groups run once more, possibly on another rank of the same
  /// step. `options.remainder` determines the treatment of the last groups if they do not fill a
  /// step. A short last step has the smallest groups; a last step that repeats groups repeats
  /// groups with similar loads. With several groups per rank the last step has random groups. If
  /// each rank has at least two groups, the ranks with one more have lighter groups.
  /// `max_dist_ratio` may be out of reach in a resource (a giant group, few steps, idle ranks). The
  /// goal is then the idle time of steps whose groups are sorted by this resource, plus a quarter
  /// of `max_dist_ratio`. Several resources together may miss even this goal; cells are then cut
  /// until the rounds are used up or all cells are single steps.
  ///
  /// Complexity: the sorts, each doubling of the number of cells and each round of exchanges
  /// between bundles cost linear time. With different speeds, there are two more rounds of
  /// exchanges for each group of a rank. Memory: at most 24 + 14R bytes per group, 10R more with
  /// several groups per rank, 40 + 8R more with different speeds. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if there are no ranks or no groups per rank, if a
  /// load is negative, not finite or above 2^63 - 1, or if `max_dist_ratio` is negative or not
  /// finite. It is also thrown if there is not one speed for each rank, if a speed is not positive,
  /// not finite or below 2^-31 of the largest, or if a carried group does not exist. Further
  /// errors: `std::length_error` if groups, carried groups and the groups of a step exceed
  /// 2^32 - 1. Sources: Yao et al., OmniBal, ICML 2025 (dist ratio); Bentley, 1975 (the cells of a
  /// k-d tree).
  template <sample_range Loads>
    requires demand_function<std::identity, sample_reference<Loads>>
  [[nodiscard]] steps operator()(Loads const& loads, std::size_t ranks,
                                 schedule_steps_options const& options = {}) const {
    detail::check_schedule(name, std::ranges::size(loads), ranks, options);
    auto const shape = detail::shape_of_schedule(std::ranges::size(loads), options.carried.size(),
                                                 ranks, options.remainder, options.groups_per_rank);
    detail::part_speeds const speeds(name, options.speeds, ranks, "ranks");
    detail::rank_lanes const lanes(speeds);
    detail::schedule_rng const draws(options.seed, options.epoch);
    auto drawn = detail::draw_pool(detail::measure_levels(name, loads, shape.groups_per_step()),
                                   options.carried, shape, lanes, draws);
    if (shape.groups_per_rank == 1) return schedule_groups(drawn, shape, lanes, draws, options);
    if (options.even_positions) return schedule_positions(drawn, shape, lanes, draws, options);
    return schedule_bundles(std::move(drawn), shape, lanes, draws, options);
  }

 private:
  static constexpr std::string_view name = "schedule_steps";

  /// Cuts the bundles of full steps into cells within the limit on idle time, and returns the
  /// bundles in the order of steps.
  template <std::size_t R>
  [[nodiscard]] static std::vector<std::uint32_t> cut_cells(detail::schedule_pool<R> const& drawn,
                                                            detail::step_grid const& grid,
                                                            detail::schedule_shape const& shape,
                                                            detail::rank_lanes const& lanes,
                                                            detail::schedule_rng const& draws,
                                                            schedule_steps_options const& options) {
    detail::timed_bundles<R> const timed(drawn.bundles.levels, grid, lanes);
    detail::sorted_cells<R> cells(timed, grid, lanes);
    auto const goals =
        detail::waiting_goals(options.max_dist_ratio, shape, grid, drawn.last, cells.min_waiting());
    cells.cut(goals, draws, options.rounds);
    return std::move(cells).order();
  }

  /// Schedules one group for each rank.
  template <std::size_t R>
  [[nodiscard]] static steps schedule_groups(detail::schedule_pool<R> const& drawn,
                                             detail::schedule_shape const& shape,
                                             detail::rank_lanes const& lanes,
                                             detail::schedule_rng const& draws,
                                             schedule_steps_options const& options) {
    detail::step_grid const grid{shape.steps, shape.ranks};
    auto const order = cut_cells(drawn, grid, shape, lanes, draws, options);
    return to_steps<R>(drawn.bundles, order, grid, drawn.last, draws);
  }

  /// Schedules several groups for each rank so that the loads at each position are even. First
  /// schedules steps with one group for each rank, then joins `groups_per_rank` of these steps into
  /// one step.
  template <std::size_t R>
  [[nodiscard]] static steps schedule_positions(detail::schedule_pool<R> const& drawn,
                                                detail::schedule_shape const& shape,
                                                detail::rank_lanes const& lanes,
                                                detail::schedule_rng const& draws,
                                                schedule_steps_options const& options) {
    detail::step_grid const positions{shape.steps * shape.groups_per_rank, shape.ranks};
    auto const of_positions = cut_cells(drawn, positions, shape, lanes, draws, options);
    auto const joined = detail::join_positions<R>(drawn.bundles, of_positions, positions,
                                                  shape.groups_per_rank, draws);
    // The joined bundles are in the order of steps.
    std::vector<std::uint32_t> order(joined.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    return to_steps<R>(joined, order, detail::step_grid{shape.steps, shape.ranks}, drawn.last,
                       draws);
  }

  /// Schedules several groups for each rank such that their sums are even: bundles of groups are
  /// scheduled, and exchanged between steps if all ranks have the same speed.
  template <std::size_t R>
  [[nodiscard]] static steps schedule_bundles(detail::schedule_pool<R> drawn,
                                              detail::schedule_shape const& shape,
                                              detail::rank_lanes const& lanes,
                                              detail::schedule_rng const& draws,
                                              schedule_steps_options const& options) {
    auto const deviation = detail::deviations<R>(drawn.bundles.levels);
    auto const joined = detail::join_groups(std::move(drawn), shape, lanes);
    detail::step_grid const grid{shape.steps, shape.ranks};
    if (grid.steps < 2 || !lanes.is_single()) {
      auto const order = cut_cells(joined, grid, shape, lanes, draws, options);
      return to_steps<R>(joined.bundles, order, grid, joined.last, draws);
    }
    detail::timed_bundles<R> const timed(joined.bundles.levels, grid, lanes);
    detail::sorted_cells<R> cells(timed, grid, lanes);
    auto const goals = detail::waiting_goals(options.max_dist_ratio, shape, grid, joined.last,
                                             cells.min_waiting());
    // The mixer uses the idle time between the stricter goals and the goals.
    cells.cut(detail::stricter_goals<R>(goals, cells.min_waiting()), draws, options.rounds);
    auto const mixed = detail::step_mixer<R>(joined.bundles.levels, grid, std::move(cells).order(),
                                             deviation, shape.groups_per_rank, goals)
                           .mix(draws.of_mixer());
    return to_steps<R>(joined.bundles, mixed, grid, joined.last, draws);
  }

  /// Returns the full steps in random order, with carried groups first, and then the last step.
  /// `order` assigns the bundles to the full steps.
  template <std::size_t R>
  [[nodiscard]] static steps to_steps(detail::bundle_list<R> const& bundles,
                                      std::span<std::uint32_t const> order,
                                      detail::step_grid const& grid,
                                      detail::last_step<R> const& last,
                                      detail::schedule_rng const& draws) {
    auto const random_order = draws.steps(grid.steps);
    std::vector<std::uint32_t> sequence(grid.steps);
    for (std::uint32_t p = 0; p != grid.steps; ++p) {
      sequence[p] = static_cast<std::uint32_t>(random_order(p));
    }
    if (bundles.early != 0) {
      std::stable_partition(sequence.begin(), sequence.end(), [&](std::uint32_t step) {
        auto const of_step = grid.of_step(order, step);
        return *std::min_element(of_step.begin(), of_step.end()) < bundles.early;
      });
    }
    steps result(grid.ranks);
    result.reserve(grid.steps + 1, bundles.groups.size() + last.groups.item_count());
    for (std::uint32_t const step : sequence) {
      for (std::uint32_t const bundle : grid.of_step(order, step)) {
        for (std::uint32_t const group : bundles.groups_of(bundle)) result.push(group);
        result.close();
      }
    }
    for (std::size_t rank = 0; rank != last.groups.size(); ++rank) {
      for (std::uint32_t const group : last.groups[rank]) result.push(group);
      if (rank < last.ranks_without_repetition) {
        result.close();
      } else {
        result.close_repeat();
      }
    }
    result.finish();
    return result;
  }
};

/// Assigns groups to steps and ranks such that all ranks have nearly the same load in a step; see
/// `schedule_steps_fn`.
inline constexpr schedule_steps_fn schedule_steps{};

struct unscheduled_groups_fn {
  /// Returns the groups that a schedule of `groups` groups and the `carried` groups has not run,
  /// ascending. The result lists a group twice if it should have run twice and did not run at all.
  /// Repetitions do not count as runs. With `remainder_policy::carry`, the result has fewer groups
  /// than there are ranks. The next epoch accepts these groups as
  /// `schedule_steps_options::carried`. Over all epochs every group then runs the same number of
  /// times, except that groups left out by the last epoch run once less.
  ///
  /// Complexity: linear. Memory: 4 bytes per group and the result. Determinism: portable. Errors:
  /// `std::invalid_argument` if a group does not exist or runs more often than it should.
  [[nodiscard]] std::vector<std::uint32_t> operator()(
      steps const& schedule, std::size_t groups,
      std::span<std::uint32_t const> carried = {}) const {
    std::vector<std::uint32_t> runs(groups, 1);
    for (std::uint32_t const group : carried) ++runs[checked(group, groups)];
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        if (schedule.is_repeat(step, rank)) continue;
        for (std::uint32_t const group : schedule(step, rank)) {
          if (runs[checked(group, groups)] == 0) {
            detail::throw_invalid(name, "group ", group, " runs more often than it should");
          }
          --runs[group];
        }
      }
    }
    std::vector<std::uint32_t> result;
    for (std::size_t group = 0; group != groups; ++group) {
      result.insert(result.end(), runs[group], static_cast<std::uint32_t>(group));
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "unscheduled_groups";

  [[nodiscard]] static std::uint32_t checked(std::uint32_t group, std::size_t groups) {
    if (group < groups) return group;
    detail::throw_invalid(name, "there is no group ", group, ", but ", groups, " groups");
  }
};

/// Returns the groups that an epoch leaves to the next epoch; see `unscheduled_groups_fn`.
inline constexpr unscheduled_groups_fn unscheduled_groups{};

}  // namespace omnibal::inline v0
