// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ranks of equal speed and kind.

#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the speeds of `count` parts: part k has the speed of part `part_at(k)` of `speeds`.
template <class PartAt>
[[nodiscard]] part_speeds selected_speeds(part_speeds const& speeds, std::size_t count,
                                          PartAt const& part_at) {
  std::vector<double> result;
  result.reserve(count);
  for (std::size_t k = 0; k != count; ++k) {
    result.push_back(static_cast<double>(speeds[part_at(k)]));
  }
  return {"part_speeds", result, count};
}

/// Ranks of equal speed and kind. They are neighbors in the order of the lanes, from `first` on.
struct rank_lane {
  std::int64_t speed;
  std::uint32_t first;
  std::uint32_t ranks;
};

/// The lanes of all ranks, from the fastest on.
class rank_lanes {
 public:
  /// Creates the lanes. `speeds` must outlive this object.
  explicit rank_lanes(part_speeds const& speeds)
      : rank_lanes(speeds, [](std::uint32_t) { return std::uint32_t{0}; }) {}

  /// Creates the lanes of ranks of several kinds. `kind_of(rank)` returns a number that is equal
  /// for ranks of one kind. `speeds` must outlive this object.
  template <class KindOf>
  rank_lanes(part_speeds const& speeds, KindOf const& kind_of)
      : speeds_(speeds), ranks_(fastest_first(speeds)) {
    std::stable_sort(ranks_.begin(), ranks_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return speeds[a] != speeds[b] ? speeds[a] > speeds[b] : kind_of(a) < kind_of(b);
    });
    for (std::uint32_t place = 0; place != ranks_.size(); ++place) {
      std::uint32_t const rank = ranks_[place];
      bool const is_new = place == 0 || speeds[ranks_[place - 1]] != speeds[rank] ||
                          kind_of(ranks_[place - 1]) != kind_of(rank);
      if (is_new) lanes_.push_back({speeds[rank], place, 0});
      ++lanes_.back().ranks;
    }
  }

  [[nodiscard]] bool is_single() const { return lanes_.size() == 1; }
  [[nodiscard]] std::size_t size() const { return lanes_.size(); }
  [[nodiscard]] std::span<rank_lane const> all() const { return lanes_; }
  [[nodiscard]] rank_lane const& operator[](std::size_t lane) const { return lanes_[lane]; }
  [[nodiscard]] rank_lane const& fastest() const { return lanes_.front(); }
  [[nodiscard]] rank_lane const& slowest() const { return lanes_.back(); }
  /// Returns the rank at a place in the order of descending speed.
  [[nodiscard]] std::uint32_t rank_at(std::size_t place) const { return ranks_[place]; }
  /// Returns the speeds of the ranks [first, first + count), in the order of their numbers.
  [[nodiscard]] part_speeds speeds_of(std::size_t first, std::size_t count) const {
    return selected_speeds(speeds_, count, [=](std::size_t k) { return first + k; });
  }

 private:
  part_speeds const& speeds_;
  /// The ranks by descending speed.
  std::vector<std::uint32_t> ranks_;
  std::vector<rank_lane> lanes_;
};

}  // namespace omnibal::inline v0::detail
