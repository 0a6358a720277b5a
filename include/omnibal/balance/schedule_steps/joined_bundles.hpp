// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bundles of several groups for each rank.
///
/// The input is the bundles of one group that `draw_pool` returns, here called singles: a single is
/// an index into their list. The output is bundles of `groups_per_rank` singles, whose loads
/// complement each other. `join_groups` joins singles before bundles are cut into cells.
/// `join_positions` joins steps of singles after singles are cut into cells.

#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/schedule_steps/bundles.hpp>
#include <omnibal/balance/schedule_steps/last_step.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/schedule_pool.hpp>
#include <omnibal/balance/schedule_steps/schedule_rng.hpp>
#include <omnibal/balance/schedule_steps/schedule_shape.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/balance/schedule_steps/timed_bundles.hpp>
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

/// Returns the number of rounds in which bundles exchange single groups, or whole steps of groups.
/// Steps need more rounds, because there are fewer steps and their totals are further from the
/// mean.
[[nodiscard]] constexpr std::size_t exchange_rounds(std::size_t groups_exchanged_at_once) {
  return groups_exchanged_at_once == 1 ? 8 : 64;
}

/// Returns the load that the bundle of each rank should have, as a multiple of the mean load, from
/// the fastest rank on. Loads are in proportion to the speeds, unless the smallest singles are too
/// large for the slowest ranks. These ranks then share the smallest singles, and faster ranks share
/// the rest. `sizes` are the sizes of all singles.
[[nodiscard]] inline std::vector<double> wanted_loads(std::vector<std::uint64_t> sizes,
                                                      rank_lanes const& lanes) {
  std::sort(sizes.begin(), sizes.end());
  std::size_t const ranks = lanes.slowest().first + lanes.slowest().ranks;
  // The least load that the k slowest lanes can have, and the sum of their speeds, by k.
  std::vector<double> least{0};
  std::vector<double> speed{0};
  std::size_t taken = 0;
  double sum = 0;
  for (std::size_t lane = lanes.size(); lane-- != 0;) {
    std::size_t const end = sizes.size() / ranks * (ranks - lanes[lane].first);
    for (; taken != end; ++taken) sum += static_cast<double>(sizes[taken]);
    least.push_back(sum);
    speed.push_back(speed.back() + static_cast<double>(lanes[lane].speed) *
                                       static_cast<double>(lanes[lane].ranks));
  }
  std::vector<double> result(ranks, 0);
  for (std::size_t first = 0; sum > 0 && first != lanes.size();) {
    auto const time_up_to = [&](std::size_t last) {
      return (least[last] - least[first]) / (speed[last] - speed[first]);
    };
    std::size_t last = first + 1;
    for (std::size_t k = last + 1; k <= lanes.size(); ++k) {
      if (time_up_to(k) >= time_up_to(last)) last = k;
    }
    for (std::size_t k = first; k != last; ++k) {
      rank_lane const& lane = lanes[lanes.size() - 1 - k];
      std::fill_n(
          result.begin() + static_cast<std::ptrdiff_t>(lane.first), lane.ranks,
          time_up_to(last) * static_cast<double>(lane.speed) * static_cast<double>(ranks) / sum);
    }
    first = last;
  }
  return result;
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
/// have lighter groups. With fewer groups this is not possible, because two groups are too heavy
/// compared with one. If ranks have different speeds, bundles have loads in proportion to the
/// speeds, and the last step is not exchanged.
template <std::size_t R>
[[nodiscard]] schedule_pool<R> join_groups(schedule_pool<R> drawn, schedule_shape const& shape,
                                           rank_lanes const& lanes) {
  bool const is_last_exchanged = shape.steps != 0 && drawn.bundles.early == 0 &&
                                 shape.repeated == 0 && shape.leftover >= 2 * shape.ranks &&
                                 lanes.is_single();
  auto const singles = is_last_exchanged ? with_last(std::move(drawn.bundles), drawn.last)
                                         : std::move(drawn.bundles);
  std::vector<std::uint32_t> last_sizes;
  for (std::size_t rank = 0; is_last_exchanged && rank != drawn.last.groups.size(); ++rank) {
    last_sizes.push_back(static_cast<std::uint32_t>(drawn.last.groups[rank].size()));
  }
  auto const wanted = lanes.is_single() ? std::vector<double>{}
                                        : wanted_loads(bundle_sizes<R>(singles.levels), lanes);
  // Each exchange brings a bundle nearer to its wanted load by the difference of two groups.
  std::size_t const rounds =
      exchange_rounds(1) + (wanted.empty() ? 0 : 2 * std::size_t{shape.groups_per_rank});
  load_bundles<R> const exchanged(singles.levels, shape.groups_per_rank, search_budget(rounds),
                                  last_sizes, wanted);
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
                                                 shape.ranks, lanes, shape.ranks)};
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
