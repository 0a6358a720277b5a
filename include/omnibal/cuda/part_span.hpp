#pragma once

/// \file
/// Where a balancer on the device writes parts.

#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/grouping_span.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Arrays of the caller for the parts of one step or of many: part p of step s is group
/// s * parts + p.
struct part_span {
  /// `offsets` has an element for each part of each step and one more. `items`, one for each cost,
  /// gets indices into the costs. `group_count` may be empty.
  grouping_span groups;
  /// The part of each sample within its step, an element for each cost; empty where nobody asks.
  device_span<std::uint32_t> part_of{};
  /// One word, or empty where nobody asks; see `fault`.
  device_span<fault> faults{};
};

}  // namespace omnibal::inline v0::gpu
