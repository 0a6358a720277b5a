// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bundles of groups whose loads complement each other.

#include <omnibal/balance/schedule_steps/sorted_cells.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/schedule_rules.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bundles with the same number of groups and a load near the mean in all kinds: random groups that
/// are exchanged.
///
/// Each round sorts bundles by one kind, the kinds in turn. The bundle with the smallest load and
/// the bundle with the largest exchange the groups that bring both nearest to the mean; then the
/// next two bundles, and so on. The short bundles of `short_sizes` follow these bundles and become
/// similar. They exchange groups as if each also had the difference of their mean from the mean of
/// full bundles.
template <std::size_t R>
class load_bundles {
 public:
  load_bundles(std::span<std::array<load_level, R> const> levels, std::size_t size,
               std::size_t rounds, std::span<std::uint32_t const> short_sizes = {})
      : groups_(levels.size()) {
    std::size_t const in_short =
        std::accumulate(short_sizes.begin(), short_sizes.end(), std::size_t{0});
    count_ = (levels.size() - in_short) / size;
    first_.reserve(count_ + short_sizes.size() + 1);
    for (std::size_t k = 0; k != count_ + 1; ++k) {
      first_.push_back(static_cast<std::uint32_t>(k * size));
    }
    for (std::uint32_t const own : short_sizes) first_.push_back(first_.back() + own);
    measure(levels);
    loads_.resize(first_.size() - 1);
    for (std::size_t bundle = 0; bundle != loads_.size(); ++bundle) {
      if (bundle >= count_) loads_[bundle].fill(lacking(size, in_short, short_sizes.size()));
      for (std::uint32_t i = first_[bundle]; i != first_[bundle + 1]; ++i) {
        for (std::size_t r = 0; r != R; ++r) loads_[bundle][r] += groups_[i].load[r];
      }
    }
    for (std::size_t round = 0; round != rounds; ++round) exchange(round);
  }

  /// Returns the number of full bundles.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// Returns the number of the group at a place of a bundle.
  [[nodiscard]] std::uint32_t group(std::size_t bundle, std::size_t place) const {
    return groups_[first_[bundle] + place].number;
  }

 private:
  /// The number of groups of the other bundle with which each group may be exchanged in a round.
  static constexpr std::size_t partners = 4;
  /// The mean load of a group, and the load of giants, in units for which products of sums fit.
  static constexpr double share_of_mean = 0x1p14;
  static constexpr double largest_share = 0x1p24;

  struct measured_group {
    std::uint32_t number;
    std::array<std::int32_t, R> load;
  };
  using load_type = std::array<std::int64_t, R>;

  void measure(std::span<std::array<load_level, R> const> levels) {
    for (std::uint32_t i = 0; i != groups_.size(); ++i) groups_[i].number = i;
    for (std::size_t r = 0; r != R; ++r) {
      uint128 sum = 0;
      for (auto const& level : levels) sum += level[r];
      double const scale = share_of_mean * static_cast<double>(levels.size()) /
                           std::max(1.0, static_cast<double>(sum));
      for (std::size_t i = 0; i != levels.size(); ++i) {
        double const share = std::min(static_cast<double>(levels[i][r]) * scale, largest_share);
        groups_[i].load[r] = static_cast<std::int32_t>(share);
      }
    }
  }

  /// Returns the average difference of `bundles` short bundles of `groups` groups from a full
  /// bundle.
  [[nodiscard]] static std::int64_t lacking(std::size_t size, std::size_t groups,
                                            std::size_t bundles) {
    auto const mean = static_cast<std::size_t>(share_of_mean);
    return static_cast<std::int64_t>(mean * size - mean * groups / bundles);
  }

  void exchange(std::size_t round) {
    // The order has a resolution of 2^-10 of the mean group, for a counting sort. The bundles that
    // differ most are still exchanged.
    std::size_t const count = loads_.size();
    auto const order = order_descending(count, [&](std::size_t k) {
      return static_cast<std::uint64_t>(loads_[k][round % R]) >> 4;
    });
    for (std::size_t k = 0; k != count / 2; ++k) {
      exchange(order[k], order[count - 1 - k], round);
    }
  }

  /// Exchanges two groups if this lowers the sum of squares of both loads.
  void exchange(std::size_t high, std::size_t low, std::size_t round) {
    load_type apart;
    for (std::size_t r = 0; r != R; ++r) {
      constexpr auto most = static_cast<std::int64_t>(16 * largest_share);
      apart[r] = std::clamp(loads_[low][r] - loads_[high][r], -most, most);
    }
    measured_group* const lows = &groups_[first_[low]];
    measured_group* const highs = &groups_[first_[high]];
    std::size_t const of_low = first_[low + 1] - first_[low];
    std::size_t const of_high = first_[high + 1] - first_[high];
    std::int64_t least = 0;
    measured_group* best_from = nullptr;
    measured_group* best_to = nullptr;
    std::size_t first = round % of_high;
    for (std::size_t i = 0; i != of_low; ++i) {
      for (std::size_t t = 0, k = first; t != std::min(of_high, partners); ++t) {
        // Half of the change of the sum of squares; low gains `more` and high loses it.
        std::int64_t change = 0;
        for (std::size_t r = 0; r != R; ++r) {
          std::int64_t const more = highs[k].load[r] - lows[i].load[r];
          change += more * (more + apart[r]);
        }
        if (change < least) {
          least = change;
          best_from = &lows[i];
          best_to = &highs[k];
        }
        k = k + 1 == of_high ? 0 : k + 1;
      }
      first = first + 1 == of_high ? 0 : first + 1;
    }
    if (best_from == nullptr) return;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const more = best_to->load[r] - best_from->load[r];
      loads_[low][r] += more;
      loads_[high][r] -= more;
    }
    std::swap(*best_from, *best_to);
  }

  std::size_t count_;
  /// The groups; the groups of bundle k begin at `first_[k]`.
  std::vector<measured_group> groups_;
  std::vector<std::uint32_t> first_;
  std::vector<load_type> loads_;
};

/// Builds the last step from cells of these sizes; `item_at(cell, place)` is in the pool.
template <std::size_t R, class ItemAt>
void take_last_step(schedule_pool<R>& pool, std::span<std::uint32_t const> sizes,
                    ItemAt const& item_at) {
  pool.last = {};
  step_load<R> load;
  for (std::size_t cell = 0; cell != sizes.size(); ++cell) {
    std::array<load_level, R> level{};
    for (std::size_t place = 0; place != sizes[cell]; ++place) {
      std::uint32_t const item = item_at(cell, place);
      pool.last.push(pool.groups[item]);
      for (std::size_t r = 0; r != R; ++r) level[r] += pool.levels[item][r];
    }
    pool.last.close();
    load.add(level);
  }
  pool.last_waiting = load.waiting(sizes.size());
}

/// Joins cells to bundles of `size` whose loads complement each other. Cell k has the `items` of
/// the pool from `k * width` on. The items of all cells of a bundle at the same place become one
/// item; items of bundles with carried groups come first. The groups of the new item begin at
/// `number * size`, and its level is their sum. The groups of the last step follow, `last_sizes` on
/// each rank.
template <std::size_t R>
void join_cells(schedule_pool<R>& pool, std::span<std::uint32_t const> items, std::size_t width,
                std::size_t size, std::span<std::uint32_t const> last_sizes = {}) {
  auto const totals = [&] {
    std::vector<std::array<load_level, R>> result(items.size() / width);
    for (std::size_t cell = 0; cell != result.size(); ++cell) {
      for (std::uint32_t const item : items.subspan(cell * width, width)) {
        for (std::size_t r = 0; r != R; ++r) result[cell][r] += pool.levels[item][r];
      }
    }
    return result;
  };
  // Steps need more rounds than groups, because they are fewer and further from the mean.
  load_bundles<R> const bundles(totals(), size, width == 1 ? 8 : 64, last_sizes);
  auto const item_at = [&](std::size_t bundle, std::size_t place, std::size_t k) {
    return items[bundles.group(bundle, place) * width + k];
  };
  if (!last_sizes.empty()) {
    take_last_step(pool, last_sizes, [&](std::size_t cell, std::size_t place) {
      return item_at(bundles.count() + cell, place, 0);
    });
  }
  std::vector<std::uint32_t> order(bundles.count());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  auto const behind = std::stable_partition(order.begin(), order.end(), [&](std::uint32_t bundle) {
    std::uint32_t first = ~std::uint32_t{0};
    for (std::size_t place = 0; place != size && pool.carried != 0; ++place) {
      for (std::size_t k = 0; k != width; ++k) first = std::min(first, item_at(bundle, place, k));
    }
    return first < pool.carried;
  });
  std::vector<std::uint32_t> groups;
  groups.reserve(pool.groups.size());
  std::vector<std::array<load_level, R>> levels(order.size() * width);
  for (std::size_t item = 0; item != levels.size(); ++item) {
    std::uint32_t const bundle = order[item / width];
    for (std::size_t place = 0, k = item % width; place != size; ++place) {
      std::uint32_t const from = item_at(bundle, place, k);
      groups.push_back(pool.groups[from]);
      for (std::size_t r = 0; r != R; ++r) levels[item][r] += pool.levels[from][r];
    }
  }
  pool.groups = std::move(groups);
  pool.levels = std::move(levels);
  pool.carried = static_cast<std::size_t>(behind - order.begin()) * width;
}

/// Joins groups to several for each rank. If each rank has at least two groups in a short last
/// step, the groups of that step are exchanged too. Ranks with one more group then have lighter
/// ones. Two groups are too heavy next to one.
template <std::size_t R>
void join_groups(schedule_pool<R>& pool, std::uint32_t groups_per_rank) {
  schedule_shape const& shape = pool.shape;
  std::vector<std::uint32_t> last_sizes;
  if (shape.steps != 0 && pool.carried == 0 && shape.repeated == 0 &&
      shape.extra >= 2 * shape.ranks) {
    for (auto const& cell : pool.last) {
      last_sizes.push_back(static_cast<std::uint32_t>(cell.size()));
    }
    auto const groups = pool.last.items();
    pool.groups.insert(pool.groups.end(), groups.begin(), groups.end());
    pool.levels.insert(pool.levels.end(), pool.last_levels.begin(), pool.last_levels.end());
  }
  std::vector<std::uint32_t> items(pool.groups.size());
  std::iota(items.begin(), items.end(), std::uint32_t{0});
  join_cells(pool, items, 1, groups_per_rank, last_sizes);
}

/// Joins steps to steps of several groups for each rank, whose bundles are the `items` afterwards.
template <std::size_t R>
void join_steps(schedule_pool<R>& pool, std::vector<std::uint32_t>& items,
                std::uint32_t groups_per_rank, schedule_rng const& draws) {
  std::uint32_t const ranks = pool.shape.ranks;
  // Steps of one cell are neighbors; a random order makes the bundles random at first.
  auto const order = draws.steps(pool.shape.steps);
  std::vector<std::uint32_t> drawn;
  drawn.reserve(items.size());
  for (std::uint32_t p = 0; p != pool.shape.steps; ++p) {
    auto const step = std::span(items).subspan(static_cast<std::size_t>(order(p)) * ranks, ranks);
    drawn.insert(drawn.end(), step.begin(), step.end());
  }
  join_cells(pool, drawn, ranks, groups_per_rank);
  pool.shape.steps /= groups_per_rank;
  items.resize(pool.levels.size());
  std::iota(items.begin(), items.end(), std::uint32_t{0});
}

}  // namespace omnibal::inline v0::detail
