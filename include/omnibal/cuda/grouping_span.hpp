#pragma once

/// \file
/// Where the algorithms of cuda/ write groups.

#include <omnibal/config.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/grouping.hpp>

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

}  // namespace omnibal::inline v0::gpu
