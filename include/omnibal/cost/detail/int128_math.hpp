#pragma once

/// \file
/// Shares of 128-bit numbers, and the way back to 64 bits.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0::detail {

/// amount / ranks, rounded up. Precondition: neither is negative, and ranks are positive.
[[nodiscard]] constexpr int128 share_of(int128 amount, std::int64_t ranks) {
  return (amount + ranks - 1) / ranks;
}

/// The least multiple of `ranks` that is not below `amount`.
[[nodiscard]] constexpr int128 rounded_up(int128 amount, std::int64_t ranks) {
  return share_of(amount, ranks) * ranks;
}

[[nodiscard]] constexpr std::int64_t to_int64(std::string_view function, std::string_view quantity,
                                              int128 value) {
  using limits = std::numeric_limits<std::int64_t>;
  if (value < limits::min() || value > limits::max()) throw_overflow(function, quantity);
  return static_cast<std::int64_t>(value);
}

}  // namespace omnibal::inline v0::detail
