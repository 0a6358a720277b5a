// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The standard deviations of loads, from exact sums.

#include <omnibal/balance/schedule_steps/load_levels.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/bits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// Returns the standard deviation of the loads in each kind; 0 if all loads are equal.
template <std::size_t R>
[[nodiscard]] std::array<double, R> deviations(std::span<load_levels<R> const> levels) {
  load_levels<R> largest{};
  for (auto const& level : levels) {
    for (std::size_t r = 0; r != R; ++r) largest[r] = std::max(largest[r], level[r]);
  }
  std::array<double, R> result{};
  for (std::size_t r = 0; r != R; ++r) {
    // With loads of 32 bits, the sum of 2^32 squares and its product with 2^32 fit 128 bits.
    int const shift = std::max(0, bit_width(largest[r]) - 32);
    uint128 sum = 0;
    uint128 squares = 0;
    for (auto const& level : levels) {
      std::uint64_t const share = level[r] >> shift;
      sum += share;
      squares += share * share;
    }
    if (sum == 0) continue;
    auto const variance = static_cast<double>(squares * levels.size() - sum * sum);
    auto const unit = static_cast<double>(std::uint64_t{1} << shift);
    result[r] = std::sqrt(variance) / static_cast<double>(levels.size()) * unit;
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
