#pragma once

/// \file
/// Where a schedule on the device is written.

#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Arrays of the caller for a schedule.
struct schedule_span {
  /// The group of rank r in step s at s * ranks + r. Only the last step may have fewer groups than
  /// ranks, the first of them; `schedule_rounds.cells` says how many groups there are in all.
  device_span<std::uint32_t> groups;
  /// One word, or empty where nobody asks; see `fault`.
  device_span<fault> faults{};
};

}  // namespace omnibal::inline v0::gpu
