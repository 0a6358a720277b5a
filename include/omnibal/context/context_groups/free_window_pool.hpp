// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The free ranks of a micro-step as windows of neighboring ranks, if ranks have different speeds
/// or capacities.

#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The free ranks of a micro-step. A new group gets the fastest free ranks of its size whose
/// capacity holds its first sample, so that the longest samples, which come first, are on the
/// fastest ranks.
class free_window_pool {
 public:
  /// Forgets all windows of an earlier instance.
  void prepare(context_instance const& instance) {
    windows_.resize(instance.degrees.size());
    for (auto& windows : windows_) windows.clear();
    capacities_ = instance.capacities;
    std::sort(capacities_.begin(), capacities_.end());
    capacities_.erase(std::unique(capacities_.begin(), capacities_.end()), capacities_.end());
  }

  /// Frees all ranks. Precondition: `prepare` was called for the instance, which outlives this use.
  void reset(context_instance const& instance) {
    instance_ = &instance;
    next_.assign(instance.degrees.size() * capacities_.size(), 0);
    is_free_.assign(instance.ranks, true);
    free_ranks_ = instance.ranks;
  }

  [[nodiscard]] bool empty() const { return free_ranks_ == 0; }

  /// Returns the fastest free ranks for a group of a degree whose capacity is at least `bytes`;
  /// nullptr if there are none. Complexity: linear in the ranks for all calls of a micro-step, a
  /// degree and a capacity together if groups are on blocks. Otherwise it is linear in the ranks
  /// times the degree.
  [[nodiscard]] rank_window const* find(std::uint32_t degree_index, std::int64_t bytes) {
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    auto& windows = windows_[degree_index];
    if (windows.empty()) {
      list_windows(*instance_, ranks, windows);
      std::sort(windows.begin(), windows.end());
    }
    auto const capacity = std::lower_bound(capacities_.begin(), capacities_.end(), bytes);
    if (capacity == capacities_.end()) return nullptr;
    auto const row = static_cast<std::size_t>(capacity - capacities_.begin());
    // Ranks do not become free again within a micro-step.
    std::size_t& next = next_[row * windows_.size() + degree_index];
    while (next != windows.size() &&
           (windows[next].capacity < *capacity || !is_free(windows[next].first_rank, ranks))) {
      ++next;
    }
    return next == windows.size() ? nullptr : &windows[next];
  }

  /// Removes the ranks of a window of a degree, which are free, from the free ranks.
  void take(rank_window const& window, std::uint32_t degree_index) {
    std::uint32_t const ranks = instance_->degrees[degree_index].ranks;
    std::fill_n(is_free_.begin() + window.first_rank, ranks, false);
    free_ranks_ -= ranks;
  }

 private:
  [[nodiscard]] bool is_free(std::uint32_t first_rank, std::uint32_t ranks) const {
    auto const first = is_free_.begin() + first_rank;
    return std::find(first, first + ranks, false) == first + ranks;
  }

  context_instance const* instance_ = nullptr;
  /// The windows of each degree, by degree index, from the fastest to the slowest; empty before the
  /// first use of a degree.
  std::vector<std::vector<rank_window>> windows_;
  /// The capacities of the ranks, ascending and each only once.
  std::vector<std::int64_t> capacities_;
  /// For each of these capacities, a row with the first window of each degree that may be free and
  /// has at least this capacity, by degree index. All windows before it have less capacity or
  /// contain a rank that is not free.
  std::vector<std::size_t> next_;
  std::vector<bool> is_free_;
  std::uint32_t free_ranks_ = 0;
};

}  // namespace omnibal::inline v0::detail
