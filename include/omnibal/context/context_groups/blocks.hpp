// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups on blocks: each starts at a multiple of its number of ranks.

#include <omnibal/context/context_groups/instance.hpp>

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
class block_rooms {
 public:
  void reset(std::uint32_t ranks, std::uint32_t ranks_per_node) {
    ranks_per_node_ = ranks_per_node;
    free_.assign(1, {0, ranks});
  }

  [[nodiscard]] bool empty() const { return free_.empty(); }

  /// True if there is a free block of that size.
  [[nodiscard]] bool has(std::uint32_t ranks) const {
    return std::any_of(free_.begin(), free_.end(),
                       [&](rank_interval const& room) { return first_block(room, ranks) != none; });
  }

  /// The first rank of a new group. Precondition: `has(ranks)`.
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

  /// The first multiple of `ranks` in an interval that starts a free block of `ranks` ranks. Unless
  /// the block consists of whole nodes, it is inside one node.
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

/// The outcome of a search for blocks.
enum class block_search { found, none, gave_up };

/// Finds blocks for the groups of one micro-step: depth-first, largest groups first, each at any
/// free block of its size.
class block_placer {
 public:
  /// Sets `first_rank` of the groups if there are such blocks. Visits at most `max_nodes` blocks.
  block_search operator()(context_instance const& instance, std::vector<filled_group>& groups,
                          std::uint32_t micro_step) {
    instance_ = &instance;
    members_.clear();
    for (std::uint32_t g = 0; g != groups.size(); ++g) {
      if (groups[g].micro_step == micro_step) members_.push_back(g);
    }
    std::stable_sort(members_.begin(), members_.end(),
                     [&](std::uint32_t left, std::uint32_t right) {
                       return groups[left].degree > groups[right].degree;
                     });
    firsts_.assign(members_.size(), 0);
    nodes_left_ = max_nodes;
    if (!place(groups, 0)) return nodes_left_ == 0 ? block_search::gave_up : block_search::none;
    for (std::size_t k = 0; k != members_.size(); ++k) groups[members_[k]].first_rank = firsts_[k];
    return block_search::found;
  }

 private:
  static constexpr std::uint32_t max_nodes = 20'000;

  [[nodiscard]] std::uint32_t ranks_of(std::vector<filled_group> const& groups,
                                       std::size_t k) const {
    return instance_->degrees[groups[members_[k]].degree].ranks;
  }

  bool place(std::vector<filled_group> const& groups, std::size_t k) {
    if (k == members_.size()) return true;
    std::uint32_t const ranks = ranks_of(groups, k);
    std::uint32_t const per_node = instance_->ranks_per_node;
    // Groups of one size are interchangeable, so that each starts behind the previous one.
    bool const is_alike = k != 0 && ranks_of(groups, k - 1) == ranks;
    std::uint64_t first = is_alike ? std::uint64_t{firsts_[k - 1]} + ranks : 0;
    for (; first + ranks <= instance_->ranks; first += ranks) {
      if (nodes_left_ == 0) return false;
      --nodes_left_;
      if (ranks < per_node && first % per_node + ranks > per_node) continue;
      bool const is_free = [&] {
        for (std::size_t other = 0; other != k; ++other) {
          bool const is_apart = firsts_[other] >= first + ranks ||
                                std::uint64_t{firsts_[other]} + ranks_of(groups, other) <= first;
          if (!is_apart) return false;
        }
        return true;
      }();
      if (!is_free) continue;
      firsts_[k] = static_cast<std::uint32_t>(first);
      if (place(groups, k + 1)) return true;
    }
    return false;
  }

  context_instance const* instance_ = nullptr;
  /// The groups of the micro-step, and the first rank of each.
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> firsts_;
  std::uint32_t nodes_left_ = 0;
};

}  // namespace omnibal::inline v0::detail
