// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranks of a micro-step that are in no group yet, for every rule of placement.

#include <omnibal/context/context_groups/free_block_pool.hpp>
#include <omnibal/context/context_groups/free_node_pool.hpp>
#include <omnibal/context/context_groups/free_window_pool.hpp>
#include <omnibal/context/context_groups/instance.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// The free ranks of a micro-step, in the pool that the instance requires: windows if speeds
/// differ, blocks if a search must find blocks, and otherwise nodes. The memory is reused between
/// micro-steps.
class free_ranks {
 public:
  /// Forgets an earlier instance, and keeps the new one, which must outlive this use.
  void prepare(context_instance const& instance) {
    instance_ = &instance;
    windows_.prepare(instance);
  }

  /// Frees all ranks. Precondition: `prepare` was called.
  void reset() {
    if (!instance_->has_equal_speeds()) {
      windows_.reset(*instance_);
    } else if (instance_->must_find_blocks) {
      blocks_.reset(instance_->ranks, instance_->ranks_per_node);
    } else {
      nodes_.reset(instance_->ranks, instance_->ranks_per_node);
    }
  }

  [[nodiscard]] bool empty() const {
    if (!instance_->has_equal_speeds()) return windows_.empty();
    return instance_->must_find_blocks ? blocks_.empty() : nodes_.max_ranks() == 0;
  }

  /// Returns true if there are ranks for a group of a degree.
  [[nodiscard]] bool has(std::uint32_t degree_index) {
    if (!instance_->has_equal_speeds()) return windows_.has(degree_index);
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    return instance_->must_find_blocks ? blocks_.has(ranks) : ranks <= nodes_.max_ranks();
  }

  /// Returns the slowness of the next group of a degree. Precondition: `has(degree_index)` was true
  /// after the last change.
  [[nodiscard]] double slowness_of_next(std::uint32_t degree_index) const {
    return instance_->has_equal_speeds() ? 1 : windows_.first(degree_index).slowness;
  }

  /// Removes the ranks of a new group from the free ranks, and returns the first of them.
  /// Precondition: `has(degree_index)` was true after the last change.
  [[nodiscard]] std::uint32_t take(std::uint32_t degree_index) {
    if (!instance_->has_equal_speeds()) return windows_.take(degree_index);
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    return instance_->must_find_blocks ? blocks_.take(ranks) : nodes_.take(ranks);
  }

 private:
  context_instance const* instance_ = nullptr;
  free_node_pool nodes_;
  free_block_pool blocks_;
  free_window_pool windows_;
};

}  // namespace omnibal::inline v0::detail
