// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bundles that ranks of equal speed run, and the times of these bundles.
///
/// The input is the lanes of the ranks and the levels of bundles. The output is the lane of each
/// bundle, and levels that are times instead of loads. Ranks without different speeds are one lane,
/// and their times are the loads.

#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/balance/schedule_steps/step_grid.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/remaining_indices.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Converts loads to times: loads over speeds, in a unit for which the largest time is just small
/// enough for a level. Equal times are equal numbers.
template <std::size_t R>
class time_scale {
 public:
  /// Creates the scale for loads up to `largest`. The lanes must outlive this object.
  time_scale(rank_lanes const& lanes, load_levels<R> const& largest, std::uint64_t ranks)
      : lanes_(lanes) {
    if (lanes.is_single()) return;
    for (std::size_t r = 0; r != R; ++r) {
      auto const speed = static_cast<std::uint64_t>(lanes.slowest().speed);
      uint128 longest = static_cast<uint128>(largest[r]) *
                        static_cast<std::uint64_t>(lanes.fastest().speed) / speed;
      int bits = 0;
      for (; longest != 0; longest >>= 1) ++bits;
      shift_[r] = level_bits(ranks) - bits;
    }
  }

  /// Returns the times of a load on a lane, in each kind.
  [[nodiscard]] load_levels<R> operator()(load_levels<R> const& load, std::size_t lane) const {
    if (lanes_.is_single()) return load;
    load_levels<R> result;
    auto const speed = static_cast<std::uint64_t>(lanes_[lane].speed);
    for (std::size_t r = 0; r != R; ++r) {
      uint128 const product =
          static_cast<uint128>(load[r]) * static_cast<std::uint64_t>(lanes_.fastest().speed);
      result[r] = static_cast<load_level>(shift_[r] < 0 ? (product >> -shift_[r]) / speed
                                                        : (product << shift_[r]) / speed);
    }
    return result;
  }

 private:
  rank_lanes const& lanes_;
  std::array<int, R> shift_{};
};

/// Returns the largest level of each kind.
template <std::size_t R>
[[nodiscard]] load_levels<R> largest_levels(std::span<load_levels<R> const> levels) {
  load_levels<R> result{};
  for (auto const& level : levels) {
    for (std::size_t r = 0; r != R; ++r) result[r] = std::max(result[r], level[r]);
  }
  return result;
}

/// Returns a size of each bundle: its level, or with several kinds the largest share of a level in
/// the largest level of its kind.
template <std::size_t R>
[[nodiscard]] std::vector<std::uint64_t> bundle_sizes(std::span<load_levels<R> const> levels) {
  auto const largest = largest_levels(levels);
  std::vector<std::uint64_t> result;
  result.reserve(levels.size());
  for (auto const& level : levels) {
    std::uint64_t size = R == 1 ? level[0] : 0;
    for (std::size_t r = 0; R != 1 && r != R; ++r) {
      size = std::max<std::uint64_t>(size, share_of_level(level[r], largest[r]));
    }
    result.push_back(size);
  }
  return result;
}

/// Assigns bundles to lanes in two ways, and keeps the better way: with it, the sum over all steps
/// of the longest time is smaller if the bundles of each lane are sorted. Complexity: a sort, and a
/// binary search for each lane of each step.
class lane_dealer {
 public:
  lane_dealer(std::span<std::uint64_t const> sizes, step_grid const& grid, rank_lanes const& lanes)
      : sizes_(sizes),
        grid_(grid),
        lanes_(lanes),
        order_(order_descending(sizes.size(), [&](std::size_t b) { return sizes[b]; })),
        smallest_(sizes.size()),
        lane_at_(sizes.size()) {}

  /// Returns the lane of each bundle.
  [[nodiscard]] std::vector<std::uint32_t> lane_of() && {
    deal_in_order();
    auto const in_order = lane_at_;
    double const time = time_of_steps();
    deal_in_steps();
    if (time_of_steps() >= time) lane_at_ = in_order;
    std::vector<std::uint32_t> result(sizes_.size());
    for (std::size_t i = 0; i != order_.size(); ++i) result[order_[i]] = lane_at_[i];
    return result;
  }

 private:
  /// Assigns the largest bundles to the fastest lane, the next ones to the next lane, and so on.
  void deal_in_order() {
    for (std::uint32_t lane = 0; lane != lanes_.size(); ++lane) {
      auto const first = lane_at_.begin() +
                         static_cast<std::ptrdiff_t>(std::size_t{grid_.steps} * lanes_[lane].first);
      std::fill_n(first, std::size_t{grid_.steps} * lanes_[lane].ranks, lane);
    }
  }

  /// Assigns bundles step after step. The largest remaining bundles go to the fastest lane, and
  /// each other rank gets the largest bundle that takes no longer than the largest remaining bundle
  /// on the fastest lane. If there is no such bundle, the rank gets the smallest bundle.
  void deal_in_steps() {
    remaining_.reset(sizes_.size());
    for (std::uint32_t step = 0; step != grid_.steps; ++step) {
      std::uint64_t const largest = sizes_[order_[remaining_.first_from(0)]];
      for (std::uint32_t lane = 0; lane != lanes_.size(); ++lane) {
        auto const first = first_in_time(largest, lanes_[lane].speed);
        for (std::uint32_t k = 0; k != lanes_[lane].ranks; ++k) {
          std::uint32_t place = remaining_.first_from(first);
          if (place == order_.size()) place = smallest();
          lane_at_[place] = lane;
          remaining_.remove(place);
        }
      }
    }
  }

  /// Returns the first place whose bundle takes no longer at `speed` than a bundle of size
  /// `largest` on the fastest lane.
  [[nodiscard]] std::uint32_t first_in_time(std::uint64_t largest, std::int64_t speed) const {
    auto const fastest = static_cast<std::uint64_t>(lanes_.fastest().speed);
    uint128 const limit = static_cast<uint128>(largest) * static_cast<std::uint64_t>(speed);
    auto const found = std::partition_point(order_.begin(), order_.end(), [&](std::uint32_t b) {
      return static_cast<uint128>(sizes_[b]) * fastest > limit;
    });
    return static_cast<std::uint32_t>(found - order_.begin());
  }

  /// Returns the last remaining place.
  [[nodiscard]] std::uint32_t smallest() {
    do --smallest_;
    while (remaining_.first_from(static_cast<std::uint32_t>(smallest_)) != smallest_);
    return static_cast<std::uint32_t>(smallest_);
  }

  /// Returns the sum over all steps of the longest time, if the bundles of each lane are assigned
  /// to steps in descending order.
  [[nodiscard]] double time_of_steps() const {
    std::vector<double> longest(grid_.steps, 0);
    std::vector<std::uint32_t> count(lanes_.size(), 0);
    for (std::size_t i = 0; i != order_.size(); ++i) {
      rank_lane const& lane = lanes_[lane_at_[i]];
      double& time = longest[count[lane_at_[i]]++ / lane.ranks];
      time =
          std::max(time, static_cast<double>(sizes_[order_[i]]) / static_cast<double>(lane.speed));
    }
    return std::accumulate(longest.begin(), longest.end(), 0.0);
  }

  std::span<std::uint64_t const> sizes_;
  step_grid grid_;
  rank_lanes const& lanes_;
  /// The bundles from the largest to the smallest.
  std::vector<std::uint32_t> order_;
  remaining_indices remaining_;
  std::size_t smallest_;
  /// The lane of the bundle at each place of the order.
  std::vector<std::uint32_t> lane_at_;
};

/// The loads of bundles, with the lane and the times of each bundle.
template <std::size_t R>
class timed_bundles {
 public:
  /// Assigns bundles to lanes. The arguments must outlive this object.
  timed_bundles(std::span<load_levels<R> const> loads, step_grid const& grid,
                rank_lanes const& lanes)
      : loads_(loads) {
    if (lanes.is_single()) return;
    lane_of_ = lane_dealer(bundle_sizes(loads), grid, lanes).lane_of();
    time_scale<R> const scale(lanes, largest_levels(loads), grid.ranks);
    times_.reserve(loads.size());
    for (std::size_t b = 0; b != loads.size(); ++b) {
      times_.push_back(scale(loads[b], lane_of_[b]));
    }
  }

  /// Returns the times of the bundles as levels.
  [[nodiscard]] std::span<load_levels<R> const> times() const {
    return times_.empty() ? loads_ : std::span<load_levels<R> const>(times_);
  }
  /// Sorts bundles by lane; bundles of a lane keep their order.
  void sort_by_lane(std::vector<std::uint32_t>& order) const {
    if (lane_of_.empty()) return;
    std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      return lane_of_[a] < lane_of_[b];
    });
  }

 private:
  std::span<load_levels<R> const> loads_;
  std::vector<std::uint32_t> lane_of_;
  std::vector<load_levels<R>> times_;
};

}  // namespace omnibal::inline v0::detail
