#pragma once

/// \file
/// Shares of 128-bit numbers.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// amount / ranks, rounded up. Precondition: neither is negative, and ranks are positive.
[[nodiscard]] constexpr int128 share_of(int128 amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

/// The least multiple of `ranks` that is not below `amount`.
[[nodiscard]] constexpr int128 rounded_up(int128 amount, std::int64_t ranks) {
  return share_of(amount, ranks) * ranks;
}

}  // namespace omnibal::inline v0::detail
