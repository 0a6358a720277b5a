// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The free ranks of a micro-step by node, if speeds are equal and no search for blocks is needed.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The free ranks by node, under the *rule of two ends*: groups of whole nodes come from the front
/// of the untouched nodes. Each other group touches a node from the back or fills the free ranks of
/// a touched node. Untouched nodes therefore stay together. Among the touched nodes with enough
/// free ranks, a group uses a node with the fewest: best fit.
class free_node_pool {
 public:
  void reset(std::uint32_t ranks, std::uint32_t ranks_per_node) {
    ranks_per_node_ = ranks_per_node;
    first_untouched_ = 0;
    last_untouched_ = ranks / ranks_per_node;
    touched_.resize(ranks_per_node);
    for (auto& nodes : touched_) nodes.clear();
    largest_touched_ = 0;
  }

  /// Returns the largest group for which there are ranks.
  [[nodiscard]] std::uint32_t max_ranks() const {
    std::uint32_t const untouched = (last_untouched_ - first_untouched_) * ranks_per_node_;
    return std::max(untouched, largest_touched_);
  }

  /// Returns the first rank of a new group. Precondition: the group has at most `max_ranks()`
  /// ranks, and is within a node or consists of whole nodes.
  std::uint32_t take(std::uint32_t ranks) {
    if (ranks >= ranks_per_node_) {
      std::uint32_t const first = first_untouched_ * ranks_per_node_;
      first_untouched_ += ranks / ranks_per_node_;
      return first;
    }
    std::uint32_t room = ranks;
    while (room <= largest_touched_ && touched_[room].empty()) ++room;
    std::uint32_t node = 0;
    if (room <= largest_touched_) {
      node = touched_[room].back();
      touched_[room].pop_back();
    } else {
      room = ranks_per_node_;
      node = --last_untouched_;
    }
    std::uint32_t const rest = room - ranks;
    if (rest != 0) {
      touched_[rest].push_back(node);
      largest_touched_ = std::max(largest_touched_, rest);
    }
    while (largest_touched_ != 0 && touched_[largest_touched_].empty()) --largest_touched_;
    return node * ranks_per_node_ + ranks_per_node_ - room;
  }

 private:
  std::uint32_t ranks_per_node_ = 1;
  std::uint32_t first_untouched_ = 0;
  std::uint32_t last_untouched_ = 0;
  /// The nodes that have a group already, by their number of free ranks.
  std::vector<std::vector<std::uint32_t>> touched_;
  std::uint32_t largest_touched_ = 0;
};

}  // namespace omnibal::inline v0::detail
