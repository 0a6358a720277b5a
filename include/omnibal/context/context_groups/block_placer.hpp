// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search for blocks for the groups of a given micro-step.

#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// The outcome of a search for blocks.
enum class block_search { found, none, gave_up };

/// Finds blocks for the groups of one micro-step: depth-first, largest groups first, each at any
/// free block of its size. `context_exact` creates a placer for each micro-step of a schedule
/// without blocks.
class block_placer {
 public:
  /// The maximum number of groups of all micro-steps together.
  static constexpr std::size_t max_groups = 12;

  block_placer(context_instance const& instance, std::span<filled_group> groups)
      : instance_(instance), groups_(groups) {}

  /// Sets `first_rank` of the groups of a micro-step if it finds blocks for all of them. Visits at
  /// most `max_nodes` blocks.
  block_search run(std::uint32_t micro_step) {
    for (std::uint32_t g = 0; g != groups_.size(); ++g) {
      if (groups_[g].micro_step == micro_step) members_[count_++] = g;
    }
    std::stable_sort(members_, members_ + count_, [&](std::uint32_t left, std::uint32_t right) {
      return groups_[left].degree_index > groups_[right].degree_index;
    });
    if (!place_from(0)) return nodes_left_ == 0 ? block_search::gave_up : block_search::none;
    for (std::size_t k = 0; k != count_; ++k) groups_[members_[k]].first_rank = firsts_[k];
    return block_search::found;
  }

 private:
  /// The maximum number of blocks that a search visits.
  static constexpr std::uint32_t max_nodes = 20'000;

  [[nodiscard]] std::uint32_t ranks_of(std::size_t k) const {
    return instance_.degrees[groups_[members_[k]].degree_index].ranks;
  }

  /// Finds blocks for the k-th group and all later groups.
  bool place_from(std::size_t k) {
    if (k == count_) return true;
    std::uint32_t const ranks = ranks_of(k);
    std::uint32_t const per_node = instance_.ranks_per_node;
    // Groups of one size are interchangeable, so that each group starts behind the previous group.
    bool const is_alike = k != 0 && ranks_of(k - 1) == ranks;
    std::uint64_t first = is_alike ? std::uint64_t{firsts_[k - 1]} + ranks : 0;
    for (; first + ranks <= instance_.ranks; first += ranks) {
      if (nodes_left_ == 0) return false;
      --nodes_left_;
      if (ranks < per_node && first % per_node + ranks > per_node) continue;
      bool const is_free = [&] {
        for (std::size_t other = 0; other != k; ++other) {
          bool const is_apart = firsts_[other] >= first + ranks ||
                                std::uint64_t{firsts_[other]} + ranks_of(other) <= first;
          if (!is_apart) return false;
        }
        return true;
      }();
      if (!is_free) continue;
      firsts_[k] = static_cast<std::uint32_t>(first);
      if (place_from(k + 1)) return true;
    }
    return false;
  }

  context_instance const& instance_;
  std::span<filled_group> groups_;
  /// The groups of the micro-step, and the first rank of each.
  std::uint32_t members_[max_groups] = {};
  std::uint32_t firsts_[max_groups] = {};
  std::size_t count_ = 0;
  std::uint32_t nodes_left_ = max_nodes;
};

}  // namespace omnibal::inline v0::detail
