// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The open groups of best-fit decreasing with one integer resource.

#include <omnibal/pack/detail/collect_groups.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The open bins of best-fit decreasing: the groups with room. Sizes arrive in descending order.
///
/// A group is active if it has room for the current size. When the size decreases, a group that
/// becomes active has less room than all groups that were active before. The active groups are
/// therefore a stack with the least room on top, and the top is the best fit. The other groups are
/// in buckets by the leading bits of their room. The bucket of the current size is a heap if a
/// bucket covers several rooms.
///
/// Among groups with equal room, the best fit is the group that has had this room for the shortest
/// time. A run is one entry for groups that are consecutive in this order and in their indices.
template <class Rooms>
class sorted_open_bins {
 public:
  using room_type = typename Rooms::room_type;

  /// The rooms must outlive this object.
  sorted_open_bins(Rooms& rooms, room_type capacity, std::size_t sample_count) : rooms_(rooms) {
    std::uint64_t const max_buckets = std::max<std::uint64_t>(4096, sample_count);
    while ((std::uint64_t{capacity} >> shift_) >= max_buckets) ++shift_;
    bucket_ = bucket_of(capacity);
    heads_.assign(bucket_ + 1, none);
    if (shift_ != 0) ages_.resize(sample_count);
  }

  /// Returns true if no group is active.
  [[nodiscard]] bool empty() const { return top_ == none; }

  /// Returns the room of the best fit. Precondition: not empty.
  [[nodiscard]] room_type best_room() const { return rooms_.room(top_); }

  /// Removes the best fit and up to `most - 1` groups that follow it with equal room. Precondition:
  /// not empty.
  group_run take(std::size_t most) {
    group_run const run{top_, rooms_.last(top_)};
    std::uint32_t const next = rooms_.next(top_);
    if (run.size() <= most) {
      top_ = next;
      return run;
    }
    group_run const rest{run[most], run.last};
    rooms_.set(rest, rooms_.room(run.first));
    rooms_.next(rest.first) = next;
    top_ = rest.first;
    return {run.first, run[most - 1]};
  }

  /// Activates the groups with room for `size`, which is at most the size of the previous call.
  void fall_to(room_type size) {
    std::size_t const target = bucket_of(size);
    for (;;) {
      while (!heap_.empty() && rooms_.room(heap_.front()) >= size) {
        std::pop_heap(heap_.begin(), heap_.end(), heap_order());
        push_active(heap_.back());
        heap_.pop_back();
      }
      if (bucket_ == target) return;
      open_bucket(--bucket_);
    }
  }

  /// Adds groups, the best fit first, with less room than the active groups at the current `size`.
  void push(group_run run, room_type room, room_type size) {
    rooms_.set(run, room);
    if (room >= size) {
      push_active(run.first);
      return;
    }
    if (shift_ != 0) ages_[run.first] = next_age_++;
    std::size_t const bucket = bucket_of(room);
    if (shift_ != 0 && bucket == bucket_) {
      heap_.push_back(run.first);
      std::push_heap(heap_.begin(), heap_.end(), heap_order());
    } else {
      rooms_.next(run.first) = std::exchange(heads_[bucket], run.first);
    }
  }

 private:
  // Runs are named by their first group.
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::size_t bucket_of(room_type room) const {
    return static_cast<std::size_t>(std::uint64_t{room} >> shift_);
  }

  /// Returns the order of the heap: the most room on top, and among equal rooms the oldest run,
  /// because the stack reverses the order.
  [[nodiscard]] auto heap_order() const {
    return [this](std::uint32_t left, std::uint32_t right) {
      room_type const left_room = rooms_.room(left);
      room_type const right_room = rooms_.room(right);
      return left_room < right_room || (left_room == right_room && ages_[left] > ages_[right]);
    };
  }

  void push_active(std::uint32_t run) { rooms_.next(run) = std::exchange(top_, run); }

  void open_bucket(std::size_t bucket) {
    std::uint32_t const head = std::exchange(heads_[bucket], none);
    if (head == none) return;
    if (shift_ == 0) {
      // All rooms are equal, and the list has the youngest run first, as the stack requires.
      std::uint32_t last = head;
      while (rooms_.next(last) != none) last = rooms_.next(last);
      rooms_.next(last) = std::exchange(top_, head);
      return;
    }
    for (std::uint32_t run = head; run != none; run = rooms_.next(run)) heap_.push_back(run);
    std::make_heap(heap_.begin(), heap_.end(), heap_order());
  }

  Rooms& rooms_;
  unsigned shift_ = 0;
  std::size_t bucket_ = 0;
  std::uint32_t top_ = none;
  std::uint32_t next_age_ = 0;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> ages_;
  std::vector<std::uint32_t> heap_;
};

}  // namespace omnibal::inline v0::detail
