// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The rounds in which parts of different speed receive sorted samples.

#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The rounds in which parts of different speed receive samples. In its round r, a part of speed s
/// receives one sample, at the time (2r + 1) / s. Parts of equal speed share their rounds.
class speed_rounds {
 public:
  explicit speed_rounds(part_speeds const& speeds) : parts_(fastest_first(speeds)) {
    for (std::uint32_t first = 0; first != parts_.size();) {
      std::int64_t const speed = speeds[parts_[first]];
      std::uint32_t last = first;
      while (last != parts_.size() && speeds[parts_[last]] == speed) ++last;
      next_.push_back({{1, speed}, first, last});
      first = last;
    }
    std::make_heap(next_.begin(), next_.end());
  }

  /// Returns the part of each of `count` samples, in the order of their times.
  [[nodiscard]] std::vector<std::uint32_t> parts_of(std::size_t count) {
    std::vector<std::uint32_t> part_of;
    part_of.reserve(count);
    while (part_of.size() != count) {
      std::pop_heap(next_.begin(), next_.end());
      round& now = next_.back();
      std::size_t const size = std::min<std::size_t>(now.last - now.first, count - part_of.size());
      for (std::uint32_t k = 0; k != size; ++k) {
        part_of.push_back(parts_[now.is_back() ? now.last - 1 - k : now.first + k]);
      }
      now.time.load += 2;
      std::push_heap(next_.begin(), next_.end());
    }
    return part_of;
  }

 private:
  /// A round of the parts `parts_[first]` to `parts_[last - 1]`.
  struct round {
    part_time time;
    std::uint32_t first;
    std::uint32_t last;

    [[nodiscard]] bool is_back() const { return time.load % 4 == 3; }

    /// Returns whether round `a` is later than round `b`. At equal times, rounds in forward order
    /// come first.
    [[nodiscard]] friend bool operator<(round const& a, round const& b) {
      if (a.time < b.time || b.time < a.time) return b.time < a.time;
      if (a.is_back() != b.is_back()) return a.is_back();
      return a.is_back() ? a.first < b.first : b.first < a.first;
    }
  };

  /// The parts from the fastest to the slowest, and by number if speeds are equal.
  std::vector<std::uint32_t> parts_;
  std::vector<round> next_;
};

}  // namespace omnibal::inline v0::detail
