#pragma once

/// \file
/// Packs in levels of length.

#include <omnibal/grouping.hpp>
#include <omnibal/hierarchy/packing_level.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// A level and which groups are its packs: `group_count` of them from `first_group` on.
struct packed_level {
  packing_level setting{};
  std::uint32_t first_group = 0;
  std::uint32_t group_count = 0;
  /// Samples of shorter levels in these groups.
  std::uint32_t filled_in = 0;

  [[nodiscard]] friend bool operator==(packed_level const&, packed_level const&) = default;
};

/// Groups under the length of their level. Every input index is in exactly one group or in
/// `oversized`.
struct level_packing {
  /// The shortest level first.
  std::vector<packed_level> levels;
  /// Those of all levels, in the order of the levels.
  grouping groups;
  /// Samples longer than the last level, ascending.
  std::vector<std::uint32_t> oversized;

  /// The index of the level of a group. Precondition: `group < groups.size()`.
  [[nodiscard]] std::size_t level_of(std::uint32_t group) const {
    auto const next = std::upper_bound(
        levels.begin(), levels.end(), group,
        [](std::uint32_t g, packed_level const& level) { return g < level.first_group; });
    return static_cast<std::size_t>(next - levels.begin()) - 1;
  }

  [[nodiscard]] friend bool operator==(level_packing const&, level_packing const&) = default;
};

}  // namespace omnibal::inline v0
