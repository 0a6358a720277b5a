// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bundles of several groups for each rank.
///
/// The input is the bundles of one group that `draw_pool` returns, here called singles: a single is
/// an index into their list. The output is bundles of `groups_per_rank` singles, whose loads
/// complement each other. `join_groups` joins singles before bundles are cut into cells.
/// `join_positions` joins steps of singles after singles are cut into cells.

#include <omnibal/balance/schedule_steps/bundles.hpp>
#include <omnibal/balance/schedule_steps/last_step.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_pool.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the number of rounds in which bundles exchange groups, or steps of several groups. Steps
/// need more rounds, because they are fewer and further from the mean.
[[nodiscard]] constexpr std::size_t exchange_rounds(std::size_t groups_exchanged_at_once) {
  return groups_exchanged_at_once == 1 ? 8 : 64;
}

/// Joins singles to the bundles of a grid: `single_at(step, rank, k)` is the k-th single of the
/// bundle of a rank in a step. Steps with early singles come first, and all their bundles are
/// early.
template <std::size_t R, class SingleAt>
[[nodiscard]] bundle_list<R> join_singles(bundle_list<R> const& singles, step_grid const& grid,
                                          std::size_t groups_per_bundle,
                                          SingleAt const& single_at) {
  auto const is_early = [&](std::uint32_t step) {
    for (std::size_t k = 0; k != groups_per_bundle; ++k) {
      for (std::size_t rank = 0; rank != grid.ranks; ++rank) {
        if (single_at(step, rank, k) < singles.early) return true;
      }
    }
    return false;
  };
  std::vector<std::uint32_t> order(grid.steps);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  auto const first_late = singles.early == 0
                              ? order.begin()
                              : std::stable_partition(order.begin(), order.end(), is_early);

  bundle_list<R> result;
  result.groups_per_bundle = groups_per_bundle;
  result.groups.reserve(grid.size() * groups_per_bundle);
  result.levels.reserve(grid.size());
  result.early = static_cast<std::size_t>(first_late - order.begin()) * grid.ranks;
  for (std::uint32_t const step : order) {
    for (std::size_t rank = 0; rank != grid.ranks; ++rank) {
      load_levels<R>& sum = result.levels.emplace_back();
      for (std::size_t k = 0; k != groups_per_bundle; ++k) {
        std::uint32_t const single = single_at(step, rank, k);
        result.groups.push_back(singles.groups[single]);
        add_levels(sum, singles.levels[single]);
      }
    }
  }
  return result;
}

/// Returns the singles of full steps, followed by the groups of the last step.
template <std::size_t R>
[[nodiscard]] bundle_list<R> with_last(bundle_list<R> singles, last_step<R> const& last) {
  auto const groups = last.groups.items();
  singles.groups.insert(singles.groups.end(), groups.begin(), groups.end());
  singles.levels.insert(singles.levels.end(), last.levels.begin(), last.levels.end());
  return singles;
}

/// Joins the groups of full steps to bundles, in random order. If each rank has at least two groups
/// in a short last step, the groups of that step are exchanged too. Ranks with one more group then
/// have lighter ones. Two groups are too heavy next to one.
template <std::size_t R>
[[nodiscard]] schedule_pool<R> join_groups(schedule_pool<R> drawn, schedule_shape const& shape) {
  bool const is_last_exchanged = shape.steps != 0 && drawn.bundles.early == 0 &&
                                 shape.repeated == 0 && shape.leftover >= 2 * shape.ranks;
  auto const singles = is_last_exchanged ? with_last(std::move(drawn.bundles), drawn.last)
                                         : std::move(drawn.bundles);
  std::vector<std::uint32_t> last_sizes;
  for (std::size_t rank = 0; is_last_exchanged && rank != drawn.last.groups.size(); ++rank) {
    last_sizes.push_back(static_cast<std::uint32_t>(drawn.last.groups[rank].size()));
  }
  load_bundles<R> const exchanged(singles.levels, shape.groups_per_rank,
                                  search_budget(exchange_rounds(1)), last_sizes);
  // The bundles are not assigned to steps and ranks yet.
  step_grid const grid{static_cast<std::uint32_t>(exchanged.count()), 1};
  auto bundles = join_singles(
      singles, grid, shape.groups_per_rank,
      [&](std::size_t bundle, std::size_t, std::size_t k) { return exchanged.member(bundle, k); });
  if (!is_last_exchanged) return {std::move(bundles), std::move(drawn.last)};

  grouping last_groups;
  std::vector<load_levels<R>> last_levels;
  for (std::size_t rank = 0; rank != last_sizes.size(); ++rank) {
    for (std::size_t k = 0; k != last_sizes[rank]; ++k) {
      std::uint32_t const single = exchanged.member(exchanged.count() + rank, k);
      last_groups.push(singles.groups[single]);
      last_levels.push_back(singles.levels[single]);
    }
    last_groups.close();
  }
  return {std::move(bundles), measured_last_step(std::move(last_groups), std::move(last_levels),
                                                 shape.ranks, shape.ranks)};
}

/// Joins steps of singles, one for each rank, to steps of `groups_per_rank` groups for each rank.
/// `order` assigns singles to the steps of `positions`. The bundles of the result are in the order
/// of the steps.
template <std::size_t R>
[[nodiscard]] bundle_list<R> join_positions(bundle_list<R> const& singles,
                                            std::span<std::uint32_t const> order,
                                            step_grid const& positions,
                                            std::uint32_t groups_per_rank,
                                            schedule_rng const& draws) {
  // Steps of one cell are neighbors; a random order makes the bundles random at first.
  auto const random_order = draws.steps(positions.steps);
  std::vector<std::span<std::uint32_t const>> steps(positions.steps);
  std::vector<load_levels<R>> totals(positions.steps);
  for (std::size_t step = 0; step != steps.size(); ++step) {
    steps[step] = positions.of_step(order, static_cast<std::size_t>(random_order(step)));
    for (std::uint32_t const single : steps[step]) add_levels(totals[step], singles.levels[single]);
  }
  load_bundles<R> const exchanged(totals, groups_per_rank,
                                  search_budget(exchange_rounds(positions.ranks)));
  step_grid const grid{static_cast<std::uint32_t>(exchanged.count()), positions.ranks};
  return join_singles(singles, grid, groups_per_rank,
                      [&](std::size_t step, std::size_t rank, std::size_t k) {
                        return steps[exchanged.member(step, k)][rank];
                      });
}

}  // namespace omnibal::inline v0::detail
