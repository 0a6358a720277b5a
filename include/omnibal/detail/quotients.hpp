// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Quotients of 128-bit integers, rounded up or down.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// Returns amount / ranks, rounded up. Precondition: neither is negative, and `ranks` is positive.
[[nodiscard]] constexpr int128 share_of(int128 amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

/// Returns value / divisor, rounded down. Precondition: the divisor is positive.
[[nodiscard]] constexpr int128 floored_quotient(int128 value, int128 divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}

/// Returns value / divisor, rounded up. Precondition: the divisor is positive.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr int128 ceiled_quotient(int128 value, int128 divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

/// Returns the least multiple of `ranks` that is not below `amount`.
[[nodiscard]] constexpr int128 rounded_up(int128 amount, std::int64_t ranks) {
  return share_of(amount, ranks) * ranks;
}

}  // namespace omnibal::inline v0::detail
