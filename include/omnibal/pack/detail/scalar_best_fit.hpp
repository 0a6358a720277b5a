// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing of measured samples with one integer resource.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/bounds/counted_bound.hpp>
#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/counted_values.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The runs of groups with equal room: the room, the last group and the successor of each run.
/// These are stored under the first group of the run, in memory of their own.
template <class Room>
class run_rooms {
 public:
  using room_type = Room;
  static constexpr std::size_t longest_run = std::numeric_limits<std::size_t>::max();

  explicit run_rooms(std::size_t max_groups) : runs_(max_groups) {}

  void set(group_run run, Room room) {
    runs_[run.first].room = room;
    runs_[run.first].last = run.last;
  }
  [[nodiscard]] Room room(std::uint32_t first) const { return runs_[first].room; }
  [[nodiscard]] std::uint32_t last(std::uint32_t first) const { return runs_[first].last; }
  [[nodiscard]] std::uint32_t& next(std::uint32_t first) { return runs_[first].next; }

 private:
  struct linked_run {
    Room room;
    std::uint32_t last;
    std::uint32_t next;
  };

  unset_array<linked_run> runs_;
};

/// The room and the successor of runs of one group. Rooms overwrite sizes that have been read: a
/// sample of its own opens group g, so the first g sizes are read by then.
class overlaid_rooms {
 public:
  using room_type = std::uint64_t;
  static constexpr std::size_t longest_run = 1;

  explicit overlaid_rooms(std::vector<std::uint64_t>& sizes)
      : rooms_(sizes.data()), next_(sizes.size()) {}

  void set(group_run run, std::uint64_t room) { rooms_[run.first] = room; }
  [[nodiscard]] std::uint64_t room(std::uint32_t first) const { return rooms_[first]; }
  [[nodiscard]] static std::uint32_t last(std::uint32_t first) { return first; }
  [[nodiscard]] std::uint32_t& next(std::uint32_t first) { return next_[first]; }

 private:
  std::uint64_t* rooms_;
  std::vector<std::uint32_t> next_;
};

/// The groups with room, for sizes that only fall.
///
/// A group is active while the current size fits it. The rooms of active groups are at least the
/// current size; the rooms of the others are below it. A group that becomes active when the size
/// falls therefore has less room than all active groups. The active groups are a stack with the
/// least room on top, and the top is the best fit. The others wait in buckets by the leading bits
/// of their room. The bucket through which the size is falling is a heap if it holds more than one
/// value.
///
/// Among groups with equal room, the best fit is the group that has had this room for the shortest
/// time. Groups that follow each other in this order and in their indices are one entry, a run.
template <class Rooms>
class sorted_open_bins {
 public:
  using room_type = typename Rooms::room_type;

  sorted_open_bins(Rooms rooms, room_type capacity, std::size_t sample_count)
      : rooms_(std::move(rooms)) {
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

  /// Activates the groups that fit `size`, which is at most the size of the previous call.
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
      // All rooms are equal, and the list has the youngest run first, as the stack needs it.
      std::uint32_t last = head;
      while (rooms_.next(last) != none) last = rooms_.next(last);
      rooms_.next(last) = std::exchange(top_, head);
      return;
    }
    for (std::uint32_t run = head; run != none; run = rooms_.next(run)) heap_.push_back(run);
    std::make_heap(heap_.begin(), heap_.end(), heap_order());
  }

  Rooms rooms_;
  unsigned shift_ = 0;
  std::size_t bucket_ = 0;
  std::uint32_t top_ = none;
  std::uint32_t next_age_ = 0;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> ages_;
  std::vector<std::uint32_t> heap_;
};

/// Packs `sample_count` samples in runs of equal size by best-fit decreasing. `next_run()` returns
/// the size and the number of samples of the next run, sizes descending; `smallest` is the last
/// size.
///
/// Complexity: linear, except for heaps of groups whose rooms agree in their leading bits.
template <class Rooms, class NextRun>
[[nodiscard]] group_assignment scalar_best_fit(std::size_t sample_count, Rooms rooms,
                                               typename Rooms::room_type capacity,
                                               typename Rooms::room_type smallest,
                                               NextRun const& next_run) {
  group_assignment result(sample_count);
  sorted_open_bins<Rooms> groups(std::move(rooms), capacity, sample_count);
  for (std::size_t assigned = 0; assigned != sample_count;) {
    auto const [size, run] = next_run();
    assigned += run;
    groups.fall_to(size);
    for (std::size_t left = run; left != 0;) {
      bool const opens = groups.empty();
      // Equal samples follow each other into a group while they fit.
      auto room = opens ? capacity : groups.best_room();
      std::size_t count = 0;
      do {
        room = static_cast<typename Rooms::room_type>(room - size);
        ++count;
      } while (room >= size && count != left);
      std::size_t const most = std::min(Rooms::longest_run, count == 1 ? left : left / count);
      group_run const taken = opens ? result.open(most) : groups.take(most);
      result.assign(taken, count);
      left -= taken.size() * count;
      if (room >= smallest) groups.push(taken.reversed(), room, size);
    }
  }
  return result;
}

/// Packs samples by best-fit decreasing of one integer resource. `counts[v]` samples have the value
/// v.
template <class Layout>
[[nodiscard]] grouping pack_counted_line(measured<Layout>& input,
                                         std::vector<std::uint32_t> counts) {
  auto const capacity = static_cast<std::uint32_t>(counts.size() - 1);
  std::uint32_t smallest = 0;
  while (smallest != capacity && counts[smallest] == 0) ++smallest;
  std::uint32_t value = capacity + 1;
  auto const next_run = [&] {
    do --value;
    while (counts[value] == 0);
    return std::pair(value, counts[value]);
  };
  run_rooms<std::uint32_t> rooms(input.size());
  auto assigned = scalar_best_fit(input.size(), std::move(rooms), capacity, smallest, next_run);
  // The position of the first sample of each size in the order of packing.
  std::uint32_t position = 0;
  for (std::size_t v = counts.size(); v-- != 0;) position += std::exchange(counts[v], position);
  std::vector<std::uint32_t> items(input.size());
  auto const size = input.amounts_of(0);
  fitting_indices indices(input.oversized);
  for (std::size_t k = 0; k != items.size(); ++k) {
    items[counts[static_cast<std::size_t>(size(k))]++] = indices.next();
  }
  release(input.demands);
  return std::move(assigned).collect(items);
}

/// The values of one integer resource, the largest first, and the numbers of their samples.
struct sorted_line {
  std::vector<std::uint32_t> order;
  std::vector<std::uint64_t> sizes;

  /// Sorts the samples and releases their demands.
  template <class Layout>
  explicit sorted_line(measured<Layout>& input)
      : order(order_descending(input.size(), input.amounts_of(0))), sizes(input.size()) {
    auto const size = input.amounts_of(0);
    for (std::size_t k = 0; k != sizes.size(); ++k) {
      sizes[k] = static_cast<std::uint64_t>(size(order[k]));
    }
    release(input.demands);
  }

  [[nodiscard]] std::size_t lower_bound(std::int64_t capacity) const {
    auto const ascending = [last = sizes.data() + sizes.size()](std::size_t k) {
      return static_cast<std::int64_t>(*(last - 1 - k));
    };
    auto const once = [](std::size_t) { return std::uint32_t{1}; };
    return martello_toth_bound(sizes.size(), ascending, once, capacity);
  }
};

/// Packs samples by best-fit decreasing of one integer resource.
template <class Layout>
[[nodiscard]] grouping pack_sorted_line(measured<Layout> const& input, sorted_line line) {
  std::size_t const count = line.sizes.size();
  std::size_t position = 0;
  auto const next_run = [&] {
    std::size_t const first = position;
    std::uint64_t const size = line.sizes[first];
    while (position != count && line.sizes[position] == size) ++position;
    return std::pair(size, position - first);
  };
  auto const capacity = static_cast<std::uint64_t>(input.capacity[0]);
  std::uint64_t const smallest = count == 0 ? 0 : line.sizes.back();
  overlaid_rooms rooms(line.sizes);
  auto assigned = scalar_best_fit(count, std::move(rooms), capacity, smallest, next_run);
  release(line.sizes);
  number_to_index(line.order, input.oversized);
  return std::move(assigned).collect(line.order);
}

/// Packs samples by best-fit decreasing of one integer resource. The lower bound is computed from
/// the counted or sorted values that the packing needs anyway.
template <class Layout>
[[nodiscard]] packing pack_line(measured<Layout>&& input) {
  packing result;
  packing_report& report = result.report;
  std::size_t const count = input.size();
  std::int64_t const capacity = input.capacity[0];
  report.rounds = 1;
  report.item_rounds = count;
  if (is_countable(count, capacity)) {
    auto counts = count_values(count, input.amounts_of(0), capacity);
    report.lower_bound = counted_bound(counts);
    result.groups = pack_counted_line(input, std::move(counts));
  } else {
    sorted_line line(input);
    report.lower_bound = line.lower_bound(capacity);
    result.groups = pack_sorted_line(input, std::move(line));
  }
  // Samples of zero demand also need a group.
  report.lower_bound = std::max<std::size_t>(report.lower_bound, count == 0 ? 0 : 1);
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
