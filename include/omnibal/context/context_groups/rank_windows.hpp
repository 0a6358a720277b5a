// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranks on which a group of a degree may be, from the fastest to the slowest.

#include <omnibal/context/context_groups/instance.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Neighboring ranks of a group: the first rank, and the slowness of the slowest rank.
struct rank_window {
  double slowness = 1;
  std::uint32_t first_rank = 0;

  /// Orders windows from the fastest to the slowest, and by rank if they are equally fast.
  [[nodiscard]] friend bool operator<(rank_window const& left, rank_window const& right) {
    if (left.slowness != right.slowness) return left.slowness < right.slowness;
    return left.first_rank < right.first_rank;
  }
};

/// Returns true if a group of `ranks` ranks may start at a rank. The group is inside a node or
/// consists of whole nodes.
[[nodiscard]] inline bool may_start_at(context_instance const& instance, std::uint32_t ranks,
                                       std::uint32_t first_rank) {
  if (instance.is_on_blocks() && first_rank % ranks != 0) return false;
  std::uint32_t const in_node = first_rank % instance.ranks_per_node;
  return ranks < instance.ranks_per_node ? in_node + ranks <= instance.ranks_per_node
                                         : in_node == 0;
}

/// Writes the windows of a degree in ascending order of ranks. Precondition: the degree is at most
/// the number of ranks, and speeds differ. Complexity: linear in the ranks.
inline void list_windows(context_instance const& instance, std::uint32_t ranks,
                         std::vector<rank_window>& windows) {
  auto const& slowness = instance.slowness;
  windows.clear();
  // Entries before the index `slowest` have left the window. The other entries are ranks of the
  // window, each slower than all later ranks.
  std::vector<std::uint32_t> slower;
  std::size_t slowest = 0;
  for (std::uint32_t last = 0; last != instance.ranks; ++last) {
    while (slower.size() > slowest && slowness[slower.back()] <= slowness[last]) slower.pop_back();
    slower.push_back(last);
    if (last + 1 < ranks) continue;
    std::uint32_t const first = last + 1 - ranks;
    if (slower[slowest] < first) ++slowest;
    if (!may_start_at(instance, ranks, first)) continue;
    windows.push_back({slowness[slower[slowest]], first});
  }
}

}  // namespace omnibal::inline v0::detail
