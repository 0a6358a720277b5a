#pragma once

/// \file
/// Where the packers of cuda/ write a packing.

#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/grouping_span.hpp>
#include <omnibal/pack/packing.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Arrays of the caller for a packing. A span of one element may be empty where nobody asks for what
/// it holds.
struct packing_span {
  /// `items` has an element for each sample; so many groups and one more offset always suffice.
  grouping_span groups;
  /// Samples that exceed the capacity alone, ascending.
  device_span<std::uint32_t> oversized{};
  /// One element: the number of those.
  device_span<std::uint32_t> oversized_count{};
  /// One element.
  device_span<packing_report> report{};
  /// One element; see `fault`.
  device_span<fault> faults{};
};

}  // namespace omnibal::inline v0::gpu
