// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranks on which a group of a degree may be, with their speed and their capacity.

#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace omnibal::inline v0::detail {

/// Neighboring ranks of a group: the slowness of the slowest rank, the smallest capacity of a rank,
/// and the first rank.
struct rank_window {
  double slowness = 1;
  std::int64_t capacity = 0;
  std::uint32_t first_rank = 0;

  /// Orders windows from the fastest to the slowest. Equally fast windows ascend in capacity, so
  /// that large capacities remain for the samples that require them, and then in rank.
  [[nodiscard]] friend bool operator<(rank_window const& left, rank_window const& right) {
    if (left.slowness != right.slowness) return left.slowness < right.slowness;
    if (left.capacity != right.capacity) return left.capacity < right.capacity;
    return left.first_rank < right.first_rank;
  }
};

/// Returns the largest capacity of several windows. Precondition: there is a window.
[[nodiscard]] inline std::int64_t max_capacity(std::vector<rank_window> const& windows) {
  return std::max_element(windows.begin(), windows.end(),
                          [](rank_window const& left, rank_window const& right) {
                            return left.capacity < right.capacity;
                          })
      ->capacity;
}

/// The sliding maximum of the values of ranks, or their minimum with another order: a monotone
/// queue. Each rank enters and leaves the queue once.
template <class Value, class Less>
class sliding_extreme {
 public:
  sliding_extreme(std::vector<Value> const& values, Less less) : values_(values), less_(less) {}

  /// Returns the last value in the order of `Less` from rank `first` to rank `last`. Precondition:
  /// `last` is one more in each call, from 0 on, and `first` never falls.
  [[nodiscard]] Value of(std::uint32_t first, std::uint32_t last) {
    while (queue_.size() > front_ && !less_(values_[last], values_[queue_.back()])) {
      queue_.pop_back();
    }
    queue_.push_back(last);
    if (queue_[front_] < first) ++front_;
    return values_[queue_[front_]];
  }

 private:
  std::vector<Value> const& values_;
  Less less_;
  /// Entries before the index `front_` have left the window. The other entries are ranks of the
  /// window, and each comes behind all later ranks in the order of `Less`.
  std::vector<std::uint32_t> queue_;
  std::size_t front_ = 0;
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
/// the number of ranks, and speeds or capacities differ. Complexity: linear in the ranks.
inline void list_windows(context_instance const& instance, std::uint32_t ranks,
                         std::vector<rank_window>& windows) {
  windows.clear();
  sliding_extreme slowest(instance.slowness, std::less<double>());
  sliding_extreme smallest(instance.capacities, std::greater<std::int64_t>());
  for (std::uint32_t last = 0; last != instance.ranks; ++last) {
    std::uint32_t const first = last + 1 < ranks ? 0 : last + 1 - ranks;
    double const slowness = slowest.of(first, last);
    std::int64_t const capacity = smallest.of(first, last);
    if (last + 1 < ranks || !may_start_at(instance, ranks, first)) continue;
    windows.push_back({slowness, capacity, first});
  }
}

}  // namespace omnibal::inline v0::detail
