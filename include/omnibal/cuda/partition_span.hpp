#pragma once

/// \file
/// Where the algorithms of cuda/ write the stages of a chain.

#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/fault.hpp>

#include <cstdint>

namespace omnibal::inline v0::gpu {

/// Arrays of the caller for stages; see `partition_result`.
struct partition_span {
  /// One element more than there are stages.
  device_span<std::uint32_t> boundaries;
  /// One element, or none where nobody asks: the largest cost of a stage.
  device_span<std::int64_t> bottleneck{};
  /// One element, or none where nobody asks; see `fault`.
  device_span<fault> faults{};
};

}  // namespace omnibal::inline v0::gpu
