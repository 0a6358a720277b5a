#pragma once

/// \file
/// Where the algorithms of cuda/ write: arrays of the caller for groups, parts, packings and
/// schedules.

#include <omnibal/config.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Where an algorithm writes groups: arrays of the caller. How many groups there will be only the
/// device knows, so `offsets` has room for a number of groups and one element more; the offsets of
/// groups that do not come to exist are set to the number of items. So what was written is, as a
/// `grouping_view` of `room()` groups, a valid grouping with empty groups at the end, and the next
/// algorithm on the stream can take it as it is.
struct grouping_span {
  device_span<std::uint32_t> offsets;
  device_span<std::uint32_t> items;
  /// One element: the number of groups.
  device_span<std::uint32_t> group_count;

  /// The largest number of groups.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t room() const {
    return offsets.empty() ? 0 : offsets.size() - 1;
  }
  /// The groups, for the next algorithm.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr grouping_view view() const {
    return {offsets.data(), items.data(), room()};
  }
};

/// Arrays of the caller for the parts of one step or of many: part p of step s is group
/// s * parts + p.
struct part_span {
  /// `offsets` has an element for each part of each step and one more. `items`, one for each cost,
  /// gets indices into the costs. `group_count` may be empty.
  grouping_span groups;
  /// The part of each sample within its step, an element for each cost; empty where nobody asks.
  device_span<std::uint32_t> part_of{};
  /// One word, or empty: then a fault ends the program's work on the device; see `fault`.
  device_span<fault> faults{};
};

/// Arrays of the caller for a packing. A span of one element may be empty where nobody asks for
/// what it holds.
struct packing_span {
  /// `items` has an element for each sample; so many groups and one more offset always suffice.
  grouping_span groups;
  /// Samples that exceed the capacity alone, ascending.
  device_span<std::uint32_t> oversized{};
  /// One element: the number of those.
  device_span<std::uint32_t> oversized_count{};
  /// One element.
  device_span<packing_report> report{};
  /// One element, or empty as in `part_span`; see `fault`.
  device_span<fault> faults{};
};

/// Arrays of the caller for a schedule.
struct schedule_span {
  /// The group of rank r in step s at s * ranks + r. Only the last step may have fewer groups than
  /// ranks, the first of them; `schedule_steps.cells` says how many groups there are in all.
  device_span<std::uint32_t> groups;
  /// One word, or empty: then a fault ends the program's work on the device; see `fault`.
  device_span<fault> faults{};
};

/// Where `cu_seqlens` writes: the arrays of `omnibal::sequence_offsets`.
struct sequence_offsets_span {
  /// Where the offsets of each group begin: one element more than there are groups.
  device_span<std::uint64_t> begins;
  /// The cumulative lengths of all groups one after the other: an element for each item and one for
  /// each group.
  device_span<std::int32_t> offsets;
  /// The length of the longest sequence of each group.
  device_span<std::int32_t> longest;
  /// One word, or empty as in `part_span`; see `fault`.
  device_span<fault> faults = {};
};

}  // namespace omnibal::inline v0::gpu
