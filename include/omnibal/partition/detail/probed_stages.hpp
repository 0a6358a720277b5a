#pragma once

/// \file
/// What probes of a chain have found out about its stages.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The layers [first, last) as a stage that is as long as a limit allows.
template <class T>
struct walked_stage {
  std::uint32_t first;
  std::uint32_t last;
  T load;
  T overflow;  ///< the load with one layer more, or the largest value where there is none

  /// Whether a stage from there on under that limit is this one.
  [[nodiscard]] bool is_that_of(std::uint32_t begin, T limit) const {
    return begin == first && load <= limit && limit < overflow;
  }
};

/// Limits that are probed together, in ascending order.
template <class T>
struct probe_limits {
  static constexpr std::size_t most = 4;

  std::array<T, most> values{};
  std::size_t count = 0;

  /// Adds a limit that is in [low, high) and above the last one; others change nothing.
  void add(T limit, T low, T high) {
    if (!(low <= limit && limit < high) || count == most) return;
    if (count != 0 && limit <= values[count - 1]) return;
    values[count++] = limit;
  }
};

/// Where a stage ends at each of the limits.
using joint_ends = std::array<std::uint32_t, probe_limits<double>::most>;

/// The stages of three probes, and the ends of one at several limits. A stage at a limit between
/// two others ends between theirs, and is theirs where it begins with one of them and the limit
/// leaves that as it is.
template <class T>
struct probed_stages {
  std::vector<walked_stage<T>> low;   ///< at the largest limit that was too small
  std::vector<walked_stage<T>> high;  ///< at the smallest limit that sufficed
  std::vector<walked_stage<T>> now;
  std::vector<joint_ends> joint;

  void reset(std::size_t stages, std::size_t layers) {
    constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();
    low.assign(stages + 1, {nowhere, 0, T{}, T{}});
    high.assign(stages + 1, {nowhere, static_cast<std::uint32_t>(layers), T{}, T{}});
    now.resize(stages + 1);
    joint.resize(stages + 1);
  }
};

}  // namespace omnibal::inline v0::detail
