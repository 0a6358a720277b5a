// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit decreasing of measured samples with one integer resource.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/unset_array.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/detail/bounds/counted_bound.hpp>
#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/collect_groups.hpp>
#include <omnibal/pack/detail/counted_values.hpp>
#include <omnibal/pack/detail/sorted_open_bins.hpp>
#include <omnibal/pack/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The sizes of counted samples in runs, the largest first, and the rooms of the groups. A run of
/// groups with equal room is stored under its first group, in memory of its own.
class counted_line {
 public:
  using room_type = std::uint32_t;
  static constexpr std::size_t longest_run = std::numeric_limits<std::size_t>::max();

  /// `counts[v]` samples have the size v. The counts must outlive this object.
  counted_line(std::vector<std::uint32_t> const& counts, std::size_t sample_count)
      : counts_(counts.data()), size_(static_cast<room_type>(counts.size())), runs_(sample_count) {}

  /// Returns the next size and the number of its samples. Precondition: samples are left.
  [[nodiscard]] std::pair<room_type, std::size_t> next_run() {
    do --size_;
    while (counts_[size_] == 0);
    return {size_, counts_[size_]};
  }

  void set(group_run run, room_type room) {
    runs_[run.first].room = room;
    runs_[run.first].last = run.last;
  }
  [[nodiscard]] room_type room(std::uint32_t first) const { return runs_[first].room; }
  [[nodiscard]] std::uint32_t last(std::uint32_t first) const { return runs_[first].last; }
  [[nodiscard]] std::uint32_t& next(std::uint32_t first) { return runs_[first].next; }

 private:
  struct linked_run {
    room_type room;
    std::uint32_t last;
    std::uint32_t next;
  };

  std::uint32_t const* counts_;
  room_type size_;
  unset_array<linked_run> runs_;
};

/// The sizes of sorted samples in runs, the largest first, and the rooms of the groups, each of
/// which is a run of its own. Rooms overwrite sizes. Invariant: group g opens for sample g or a
/// later one, and `next_run` has passed the sample by then.
class sorted_line {
 public:
  using room_type = std::uint64_t;
  static constexpr std::size_t longest_run = 1;

  explicit sorted_line(std::vector<std::uint64_t>&& sizes)
      : sizes_(std::move(sizes)), next_(sizes_.size()) {}

  /// Returns the next size and the number of its samples. Precondition: samples are left.
  [[nodiscard]] std::pair<room_type, std::size_t> next_run() {
    std::size_t const first = passed_;
    room_type const size = sizes_[first];
    while (passed_ != sizes_.size() && sizes_[passed_] == size) ++passed_;
    return {size, passed_ - first};
  }

  void set(group_run run, room_type room) { sizes_[run.first] = room; }
  [[nodiscard]] room_type room(std::uint32_t first) const { return sizes_[first]; }
  [[nodiscard]] static std::uint32_t last(std::uint32_t first) { return first; }
  [[nodiscard]] std::uint32_t& next(std::uint32_t first) { return next_[first]; }

 private:
  std::vector<room_type> sizes_;
  std::vector<std::uint32_t> next_;
  std::size_t passed_ = 0;
};

/// Packs `sample_count` samples of a line by best-fit decreasing; `smallest` is the smallest size.
///
/// Complexity: linear, except for heaps of groups whose rooms agree in their leading bits.
template <class Line>
[[nodiscard]] group_assignment scalar_best_fit(std::size_t sample_count, Line line,
                                               typename Line::room_type capacity,
                                               typename Line::room_type smallest) {
  group_assignment result(sample_count);
  sorted_open_bins<Line> groups(line, capacity, sample_count);
  for (std::size_t assigned = 0; assigned != sample_count;) {
    auto const [size, run] = line.next_run();
    assigned += run;
    groups.fall_to(size);
    for (std::size_t left = run; left != 0;) {
      bool const opens = groups.empty();
      // As many equal samples as fit are packed into the group one after the other.
      auto room = opens ? capacity : groups.best_room();
      std::size_t count = 0;
      do {
        room = static_cast<typename Line::room_type>(room - size);
        ++count;
      } while (room >= size && count != left);
      std::size_t const most = std::min(Line::longest_run, count == 1 ? left : left / count);
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
[[nodiscard]] grouping pack_counted(measured<Layout>& input, std::vector<std::uint32_t> counts) {
  auto const capacity = static_cast<std::uint32_t>(counts.size() - 1);
  std::uint32_t smallest = 0;
  while (smallest != capacity && counts[smallest] == 0) ++smallest;
  auto assigned =
      scalar_best_fit(input.size(), counted_line(counts, input.size()), capacity, smallest);
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

/// Packs samples by best-fit decreasing of one integer resource. Sorts the samples, releases their
/// demands, and writes the lower bound of the sorted sizes.
template <class Layout>
[[nodiscard]] grouping pack_sorted(measured<Layout>& input, std::size_t& lower_bound) {
  std::size_t const count = input.size();
  auto const size = input.amounts_of(0);
  std::vector<std::uint32_t> order = order_descending(count, size);
  std::vector<std::uint64_t> sizes(count);
  for (std::size_t k = 0; k != count; ++k) sizes[k] = static_cast<std::uint64_t>(size(order[k]));
  release(input.demands);
  auto const ascending = [last = sizes.data() + count](std::size_t k) {
    return static_cast<std::int64_t>(*(last - 1 - k));
  };
  auto const once = [](std::size_t) { return std::uint32_t{1}; };
  lower_bound = martello_toth_bound(count, ascending, once, input.capacity[0]);
  std::uint64_t const smallest = count == 0 ? 0 : sizes.back();
  auto assigned = scalar_best_fit(count, sorted_line(std::move(sizes)),
                                  static_cast<std::uint64_t>(input.capacity[0]), smallest);
  number_to_index(order, input.oversized);
  return std::move(assigned).collect(order);
}

/// Packs samples by best-fit decreasing of one integer resource. The lower bound is computed from
/// the counted or sorted values that the packing needs anyway.
template <class Layout>
[[nodiscard]] packing pack_scalars(measured<Layout>&& input) {
  packing result;
  packing_report& report = result.report;
  std::size_t const count = input.size();
  std::int64_t const capacity = input.capacity[0];
  report.rounds = 1;
  report.item_rounds = count;
  if (is_countable(count, capacity)) {
    auto counts = count_values(count, input.amounts_of(0), capacity);
    report.lower_bound = counted_bound(counts);
    result.groups = pack_counted(input, std::move(counts));
  } else {
    result.groups = pack_sorted(input, report.lower_bound);
  }
  // Samples of zero demand also need a group.
  report.lower_bound = std::max<std::size_t>(report.lower_bound, count == 0 ? 0 : 1);
  result.oversized = std::move(input.oversized);
  return result;
}

}  // namespace omnibal::inline v0::detail
