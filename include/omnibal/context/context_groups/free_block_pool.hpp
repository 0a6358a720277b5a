// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The free ranks of a micro-step as intervals, if groups must be on blocks. A group of d ranks is
/// on a block if its first rank is a multiple of d.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace omnibal::inline v0::detail {

/// A run of neighboring ranks.
struct rank_interval {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  [[nodiscard]] std::uint32_t ranks() const { return last - first; }
};

/// The free ranks of a micro-step whose groups are on blocks. A new group gets the first block of
/// the smallest free interval that contains a block of its size.
class free_block_pool {
 public:
  void reset(std::uint32_t ranks, std::uint32_t ranks_per_node) {
    ranks_per_node_ = ranks_per_node;
    free_.assign(1, {0, ranks});
  }

  [[nodiscard]] bool empty() const { return free_.empty(); }

  /// Returns true if there is a free block of that size.
  [[nodiscard]] bool has(std::uint32_t ranks) const {
    return std::any_of(free_.begin(), free_.end(),
                       [&](rank_interval const& room) { return first_block(room, ranks) != none; });
  }

  /// Returns the first rank of a new group. Precondition: `has(ranks)`.
  std::uint32_t take(std::uint32_t ranks) {
    std::size_t best = free_.size();
    for (std::size_t k = 0; k != free_.size(); ++k) {
      if (first_block(free_[k], ranks) == none) continue;
      if (best == free_.size() || free_[k].ranks() < free_[best].ranks()) best = k;
    }
    rank_interval const room = free_[best];
    auto const first = static_cast<std::uint32_t>(first_block(room, ranks));
    auto const place = free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(best));
    rank_interval const rest[] = {{room.first, first}, {first + ranks, room.last}};
    std::copy_if(std::begin(rest), std::end(rest), std::inserter(free_, place),
                 [](rank_interval const& part) { return part.first != part.last; });
    return first;
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  /// Returns the first multiple of `ranks` in an interval that starts a free block of `ranks`
  /// ranks. Unless the block consists of whole nodes, it is inside one node.
  [[nodiscard]] std::uint64_t first_block(rank_interval const& room, std::uint32_t ranks) const {
    std::uint64_t first = (std::uint64_t{room.first} + ranks - 1) / ranks * ranks;
    while (first + ranks <= room.last) {
      std::uint64_t const in_node = first % ranks_per_node_;
      if (ranks >= ranks_per_node_ || in_node + ranks <= ranks_per_node_) return first;
      first += ranks;
    }
    return none;
  }

  std::uint32_t ranks_per_node_ = 1;
  /// The free intervals, ascending.
  std::vector<rank_interval> free_;
};

}  // namespace omnibal::inline v0::detail
