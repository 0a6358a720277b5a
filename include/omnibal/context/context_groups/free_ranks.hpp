// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranks of a micro-step that are in no group yet, for every rule of placement.

#include <omnibal/context/context_groups/free_block_pool.hpp>
#include <omnibal/context/context_groups/free_node_pool.hpp>
#include <omnibal/context/context_groups/free_window_pool.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// The free ranks of a micro-step, in the pool that the instance requires: windows if speeds or
/// capacities differ, blocks if a search must find blocks, and otherwise nodes. The memory is
/// reused between micro-steps.
class free_ranks {
 public:
  /// Forgets an earlier instance, and keeps the new one, which must outlive this use.
  void prepare(context_instance const& instance) {
    instance_ = &instance;
    windows_.prepare(instance);
  }

  /// Frees all ranks. Precondition: `prepare` was called.
  void reset() {
    if (!instance_->has_equal_ranks()) {
      windows_.reset(*instance_);
    } else if (instance_->must_find_blocks) {
      blocks_.reset(instance_->ranks, instance_->ranks_per_node);
    } else {
      nodes_.reset(instance_->ranks, instance_->ranks_per_node);
    }
  }

  [[nodiscard]] bool empty() const {
    if (!instance_->has_equal_ranks()) return windows_.empty();
    return instance_->must_find_blocks ? blocks_.empty() : nodes_.max_ranks() == 0;
  }

  /// Returns true if there are ranks for a group of a degree. Precondition: all ranks have the same
  /// speed and the same capacity.
  [[nodiscard]] bool has(std::uint32_t degree_index) const {
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    return instance_->must_find_blocks ? blocks_.has(ranks) : ranks <= nodes_.max_ranks();
  }

  /// Returns the ranks of the next group of a degree that requires `bytes` on each rank; nullptr if
  /// there are none. Precondition: speeds or capacities differ.
  [[nodiscard]] rank_window const* find_window(std::uint32_t degree_index, std::int64_t bytes) {
    return windows_.find(degree_index, bytes);
  }

  /// Removes the ranks of a new group from the free ranks, and returns them. Precondition: there
  /// are such ranks.
  [[nodiscard]] rank_window take(std::uint32_t degree_index, std::int64_t bytes) {
    if (!instance_->has_equal_ranks()) {
      rank_window const window = *windows_.find(degree_index, bytes);
      windows_.take(window, degree_index);
      return window;
    }
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    std::uint32_t const first_rank =
        instance_->must_find_blocks ? blocks_.take(ranks) : nodes_.take(ranks);
    return {.slowness = 1, .capacity = instance_->capacity, .first_rank = first_rank};
  }

 private:
  context_instance const* instance_ = nullptr;
  free_node_pool nodes_;
  free_block_pool blocks_;
  free_window_pool windows_;
};

}  // namespace omnibal::inline v0::detail
