// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Assignment of groups to steps and ranks, even in a step and random between steps.

#include <omnibal/balance/schedule_steps/bundles.hpp>
#include <omnibal/balance/schedule_steps/sorted_cells.hpp>
#include <omnibal/balance/schedule_steps/step_mixer.hpp>
#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

struct schedule_steps_fn {
  /// Assigns groups to steps and ranks such that all ranks have nearly the same load in a step.
  /// Loads are even in every resource, and different groups share a step in every epoch. Each step
  /// has one group for each rank. `loads` contains the load of each group, a weight or resources,
  /// such as the result of `group_loads`.
  ///
  /// All groups are one cell at first. Each round cuts the cells in whose steps ranks wait for more
  /// than half as long as in the worst cell. Rounds end when the dist ratio is within
  /// `options.max_dist_ratio` in every resource. Each step contains random groups of one cell.
  /// Every epoch cuts at other places: the `step_overlap` of two epochs is at most about the number
  /// of cells. The steps are in random order. `gpu::schedule_steps` returns the same schedule on a
  /// device.
  ///
  /// With several `options.groups_per_rank` only the sums of these groups are even. Bundles of
  /// random groups exchange groups until each is near the mean in every resource. Bundles are then
  /// scheduled as groups are, in somewhat finer cells. Finally, pairs of steps split their bundles
  /// again as far as `max_dist_ratio` allows, and their totals become more similar: see
  /// `step_spread`. With few groups of few distinct loads no bundle is at the mean, and steps of
  /// equal sums vary. The groups of a rank have no order. With `options.even_positions` the
  /// function makes steps of one group for each rank. Each step then joins one such step for each
  /// group of a rank, and their totals complement each other.
  ///
  /// Every group runs once, and carried groups run once more, possibly on another rank of the same
  /// step. `options.remainder` determines the treatment of the last groups if they do not fill a
  /// step. A short last step has the
  /// smallest groups; a last step that repeats groups repeats groups with similar loads. With
  /// several groups per rank the last step has random groups. If each rank has at least two groups,
  /// the ranks with one more have lighter groups. `max_dist_ratio` may be out of reach in a
  /// resource (a giant group, few steps, idle ranks). The goal is then the smallest waiting time
  /// from sorting by this resource, plus a quarter of `max_dist_ratio`. Several resources together
  /// may miss even this goal; cells are then cut until the rounds are used up or all cells are
  /// single steps.
  ///
  /// Complexity: linear for the sorts, for each doubling of the number of cells and for the rounds
  /// of several groups per rank. Memory: at most 24 + 14R bytes per group, 10R more with several
  /// per rank. Determinism: portable for integers. Errors: `std::invalid_argument` if there are no
  /// ranks or no groups per rank, if a load is negative, not finite or above 2^63 - 1, if
  /// `max_dist_ratio` is negative or not finite, or if a carried group does not exist.
  /// `std::length_error` if groups, carried groups and the groups of a step exceed 2^32 - 1.
  /// Sources: Yao et al., OmniBal, ICML 2025 (dist ratio); Bentley, 1975 (the cells of a k-d tree).
  template <sample_range Loads>
    requires demand_function<std::identity, sample_reference<Loads>>
  [[nodiscard]] steps operator()(Loads const& loads, std::size_t ranks,
                                 schedule_steps_options const& options = {}) const {
    constexpr std::size_t kinds = detail::cost_kinds<Loads, std::identity>;
    std::size_t const groups = std::ranges::size(loads);
    detail::check_schedule(name, groups, ranks, options);
    std::uint32_t const of_rank = options.groups_per_rank;
    detail::schedule_rng const draws(options.seed, options.epoch);
    auto const shape = detail::shape_of_schedule(groups, options.carried.size(), ranks,
                                                 options.remainder, of_rank);
    auto pool = detail::draw_pool(detail::measure_levels(name, loads, ranks * of_rank), shape,
                                  draws, options.carried, of_rank);
    pool.shape.ranks = static_cast<std::uint32_t>(ranks);
    bool const mixes = of_rank != 1 && !options.even_positions;
    auto const deviation =
        mixes ? detail::deviations<kinds>(pool.levels) : std::array<double, kinds>{};
    if (options.even_positions) {
      pool.shape.steps *= of_rank;
    } else if (of_rank != 1) {
      detail::join_groups(pool, of_rank);
    }
    detail::sorted_cells<kinds> cells(pool);
    auto const goals = cells.goals(options.max_dist_ratio, of_rank);
    auto const cut_to = mixes ? cells.stricter(goals) : goals;
    for (std::uint32_t round = 0; round != options.rounds; ++round) {
      if (!cells.cut_round(cut_to, draws, round)) break;
    }
    if (of_rank == 1) return deal_steps(pool, cells.steps(), draws, of_rank);
    std::vector<std::uint32_t> items(cells.steps().begin(), cells.steps().end());
    if (options.even_positions) {
      detail::join_steps(pool, items, of_rank, draws);
    } else if (pool.shape.steps > 1) {
      detail::step_mixer<kinds>(pool, items, deviation, of_rank, goals).mix(draws.bundles());
    }
    return deal_steps(pool, items, draws, of_rank);
  }

 private:
  static constexpr std::string_view name = "schedule_steps";

  template <std::size_t R>
  [[nodiscard]] static steps deal_steps(detail::schedule_pool<R> const& pool,
                                        std::span<std::uint32_t const> items,
                                        detail::schedule_rng const& draws, std::size_t of_rank) {
    detail::schedule_shape const& shape = pool.shape;
    auto const items_of = [&](std::uint32_t step) {
      return items.subspan(std::size_t{step} * shape.ranks, shape.ranks);
    };
    auto const order = draws.steps(shape.steps);
    std::vector<std::uint32_t> sequence(shape.steps);
    for (std::uint32_t p = 0; p != shape.steps; ++p) {
      sequence[p] = static_cast<std::uint32_t>(order(p));
    }
    if (pool.carried != 0) {
      std::stable_partition(sequence.begin(), sequence.end(), [&](std::uint32_t step) {
        auto const of_step = items_of(step);
        return *std::min_element(of_step.begin(), of_step.end()) < pool.carried;
      });
    }
    steps result(shape.ranks);
    result.reserve(shape.steps + 1, pool.groups.size() + pool.last.item_count());
    for (std::uint32_t const step : sequence) {
      for (std::uint32_t const item : items_of(step)) {
        for (std::size_t k = 0; k != of_rank; ++k) result.push(pool.groups[item * of_rank + k]);
        result.close();
      }
    }
    for (std::size_t cell = 0; cell != pool.last.size(); ++cell) {
      for (std::uint32_t const group : pool.last[cell]) result.push(group);
      if (cell < pool.last_own) {
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
            detail::throw_invalid(
                name, "group " + detail::to_text(group) + " runs more often than it should");
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
    detail::throw_invalid(name, "there is no group " + detail::to_text(group) + ", but " +
                                    detail::to_text(groups) + " groups");
  }
};

/// Returns the groups that an epoch leaves to the next one; see `unscheduled_groups_fn`.
inline constexpr unscheduled_groups_fn unscheduled_groups{};

}  // namespace omnibal::inline v0
