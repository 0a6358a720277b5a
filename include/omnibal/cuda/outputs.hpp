// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Output arrays for the groups, parts, and packings of the algorithms of cuda/.

#include <omnibal/config.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/experts/spill_plan.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Output arrays of the caller for groups. Only the device knows the number of groups. Therefore
/// `offsets` has one element more than the largest number of groups, and the offsets of groups that
/// do not exist are set to the number of items. As a `grouping_view` of `room()` groups, the output
/// is a valid grouping with empty groups at the end. The next algorithm on the stream accepts this
/// view.
struct grouping_span {
  device_span<std::uint32_t> offsets;
  device_span<std::uint32_t> items;
  /// An array of one element, which receives the number of groups.
  device_span<std::uint32_t> group_count;

  /// Returns the largest number of groups for which `offsets` has room.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::size_t room() const {
    return offsets.empty() ? 0 : offsets.size() - 1;
  }
  /// Returns a view of `room()` groups, for the next algorithm on the stream.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr grouping_view view() const {
    return {offsets.data(), items.data(), room()};
  }
};

/// Output arrays of the caller for the parts of one or several steps: part p of step s is group s *
/// parts + p.
struct part_span {
  /// The groups: `offsets` has an element for each part of each step and one more. `items`, one for
  /// each cost, receives indices into the costs. `group_count` may be empty.
  grouping_span groups;
  /// The part of each sample within its step, an element for each cost; empty if it is not needed.
  device_span<std::uint32_t> part_of{};
  /// The faults, one word. If the span is empty, a fault ends the program's work on the device; see
  /// `fault`.
  device_span<fault> faults{};
};

/// Output arrays of the caller for a packing. A span of one element may be empty if its value is
/// not needed.
struct packing_span {
  /// The groups: `items` has an element for each sample. Room for one group per sample, with one
  /// more offset, always suffices.
  grouping_span groups;
  /// The samples that exceed the capacity on their own, in ascending order.
  device_span<std::uint32_t> oversized{};
  /// An array of one element, which receives the number of oversized samples.
  device_span<std::uint32_t> oversized_count{};
  /// An array of one element, which receives the report of the packing.
  device_span<packing_report> report{};
  /// The faults, one word; the span may be empty, as in `part_span`.
  device_span<fault> faults{};
};

/// Output arrays of the caller for the split tokens of layers.
struct expert_split_span {
  /// The tokens of each slot of each layer.
  device_span<std::int64_t> tokens;
  /// The tokens of each rank of each layer.
  device_span<std::int64_t> rank_tokens;
  /// The largest number of tokens of a rank, for each layer.
  device_span<std::int64_t> largest;
  /// For each rank of each layer: 1 if the rank is in `expert_split::full_ranks`, otherwise 0.
  device_span<std::uint8_t> is_full;
  /// The faults, one word; the span may be empty, as in `part_span`.
  device_span<fault> faults = {};
};

/// Output arrays of the caller for the foreign copies of layers: the members of
/// `omnibal::spill_plan`, layer after layer.
struct spill_plan_span {
  /// The copies of each layer. Each layer has `experts + ranks` elements; the elements after its
  /// last copy are zero.
  device_span<foreign_copy> copies;
  /// The number of copies of each layer.
  device_span<std::uint32_t> copy_count;
  /// The tokens of each expert that stay on its home rank, for each layer.
  device_span<std::int64_t> home_tokens;
  /// The tokens of each rank of each layer.
  device_span<std::int64_t> rank_tokens;
  /// The largest number of tokens of a rank, for each layer.
  device_span<std::int64_t> largest;
  /// The largest number of tokens that a rank may have, for each layer.
  device_span<std::int64_t> cap;
  /// The lower bound on the number of copies, for each layer.
  device_span<std::uint32_t> fewest_copies;
  /// The outcome of the search, for each layer.
  device_span<solve_status> status;
  /// For each layer: 1 if its plan is proven to have the fewest copies, otherwise 0.
  device_span<std::uint8_t> is_proven;
  /// The faults, one word; the span may be empty, as in `part_span`.
  device_span<fault> faults = {};
};

/// Output arrays of `cu_seqlens`: the arrays of `omnibal::sequence_offsets`.
struct sequence_offsets_span {
  /// The position of the first offset of each group: one element more than there are groups.
  device_span<std::uint64_t> begins;
  /// The cumulative lengths of all groups, group after group. Each group has one element more than
  /// it has items.
  device_span<std::int32_t> offsets;
  /// The length of the longest sequence of each group.
  device_span<std::int32_t> longest;
  /// The faults, one word; the span may be empty, as in `part_span`.
  device_span<fault> faults = {};
};

}  // namespace omnibal::inline v0::gpu
