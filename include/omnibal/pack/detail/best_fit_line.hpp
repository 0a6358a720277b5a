#pragma once

/// \file
/// Best-fit decreasing for one integer resource.

#include <omnibal/pack/detail/assignment.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The groups with room, for sizes that only fall. `Room` is an unsigned integer.
///
/// A group is active while the current size fits it. The rooms of all active groups are at least the
/// current size and those of the others are below it, so a group that becomes active as the size falls
/// has less room than all that are active already: the active groups are a stack with the least room
/// on top, and the best fit is its top. The others wait in buckets by the leading bits of their room;
/// the bucket through which the size is falling is a heap where it holds more than one value.
///
/// Of groups with equal room, the one that has had it for the shortest time is the best fit.
template <class Room>
class falling_size_rooms {
 public:
  struct group {
    Room room;
    std::uint32_t next;
  };

 private:
  /// Heap order: the most room on top, of equal rooms the oldest, because the stack reverses it.
  [[nodiscard]] auto precedes() const {
    return [this](std::uint32_t left, std::uint32_t right) {
      Room const left_room = groups_[left].room;
      Room const right_room = groups_[right].room;
      return left_room < right_room || (left_room == right_room && ages_[left] > ages_[right]);
    };
  }

 public:
  falling_size_rooms(Room capacity, std::size_t sample_count) : capacity_(capacity) {
    groups_.reserve(sample_count);
    std::uint64_t const most_buckets = std::max<std::uint64_t>(4096, sample_count);
    while ((std::uint64_t{capacity} >> shift_) >= most_buckets) ++shift_;
    bucket_ = bucket_of(capacity);
    heads_.assign(bucket_ + 1, none);
    if (shift_ != 0) ages_.resize(sample_count);
  }

  [[nodiscard]] bool empty() const { return top_ == none; }

  /// Removes and returns the best fit. Precondition: not empty.
  std::uint32_t pop() { return std::exchange(top_, groups_[top_].next); }

  [[nodiscard]] Room room(std::uint32_t index) const { return groups_[index].room; }

  /// Adds group `index`, the next one, with all room, and returns it; it is neither active nor waiting.
  std::uint32_t open(std::uint32_t index) {
    groups_.push_back({capacity_, none});
    return index;
  }

  /// Makes the groups active that fit `size`, which is at most the size of the call before.
  void fall_to(Room size) {
    std::size_t const target = bucket_of(size);
    for (;;) {
      while (!heap_.empty() && groups_[heap_.front()].room >= size) {
        std::pop_heap(heap_.begin(), heap_.end(), precedes());
        push_active(heap_.back());
        heap_.pop_back();
      }
      if (bucket_ == target) return;
      open_bucket(--bucket_);
    }
  }

  /// Adds a group with new room, less than that of all active groups. `size` is the current size.
  void push(std::uint32_t index, Room room, Room size) {
    groups_[index].room = room;
    if (room >= size) {
      push_active(index);
      return;
    }
    if (shift_ != 0) ages_[index] = next_age_++;
    std::size_t const bucket = bucket_of(room);
    if (shift_ != 0 && bucket == bucket_) {
      heap_.push_back(index);
      std::push_heap(heap_.begin(), heap_.end(), precedes());
    } else {
      groups_[index].next = std::exchange(heads_[bucket], index);
    }
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::size_t bucket_of(Room room) const {
    return static_cast<std::size_t>(std::uint64_t{room} >> shift_);
  }

  void push_active(std::uint32_t index) { groups_[index].next = std::exchange(top_, index); }

  void open_bucket(std::size_t bucket) {
    std::uint32_t const head = std::exchange(heads_[bucket], none);
    if (head == none) return;
    if (shift_ == 0) {
      // All rooms are equal, and the list has the youngest group first, as the stack needs it.
      std::uint32_t last = head;
      while (groups_[last].next != none) last = groups_[last].next;
      groups_[last].next = std::exchange(top_, head);
      return;
    }
    for (std::uint32_t index = head; index != none; index = groups_[index].next) {
      heap_.push_back(index);
    }
    std::make_heap(heap_.begin(), heap_.end(), precedes());
  }

  Room capacity_;
  unsigned shift_ = 0;
  std::size_t bucket_ = 0;
  std::uint32_t top_ = none;
  std::uint32_t next_age_ = 0;
  std::vector<std::uint32_t> heads_;
  std::vector<group> groups_;
  std::vector<std::uint32_t> ages_;
  std::vector<std::uint32_t> heap_;
};

/// Best-fit decreasing of `sample_count` samples in runs of equal size. `next_run()` gives the size and
/// the number of samples of the next run, sizes descending; `smallest` is the last of them.
///
/// Linear but for heaps of groups whose rooms agree in their leading bits.
template <class Room, class NextRun>
[[nodiscard]] group_assignment best_fit_line(std::size_t sample_count, Room capacity, Room smallest,
                                             NextRun next_run) {
  group_assignment result(sample_count);
  falling_size_rooms<Room> rooms(capacity, sample_count);
  for (std::size_t assigned = 0; assigned != sample_count;) {
    auto const [size, run] = next_run();
    assigned += run;
    rooms.fall_to(size);
    for (std::size_t left = run; left != 0;) {
      std::uint32_t const group = rooms.empty() ? rooms.open(result.open()) : rooms.pop();
      // Equal samples follow each other into a group for as long as they fit.
      Room room = rooms.room(group);
      std::size_t count = 0;
      do {
        room = static_cast<Room>(room - size);
        ++count;
      } while (room >= size && count != left);
      left -= count;
      result.assign(group, count);
      if (room >= smallest) rooms.push(group, room, size);
    }
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
