// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The bits of unsigned numbers, on host and device.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// Returns the number of bits up to the highest one that is set; zero for zero. Does the same as
/// `std::bit_width`, which device code cannot call.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr int bit_width(std::uint64_t value) {
  return value == 0 ? 0 : 64 - __builtin_clzll(value);
}

}  // namespace omnibal::inline v0::detail
