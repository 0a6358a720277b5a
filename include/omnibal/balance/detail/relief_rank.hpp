#pragma once

/// \file
/// In which order samples leave a rank that has too much.

#include <bit>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Larger for a sample that goes first: one with more cost for its bytes, in steps of about a
/// fifth, and of alike ones a larger one. Precondition: a positive cost.
[[nodiscard]] constexpr std::uint32_t relief_rank(std::int64_t cost, std::int64_t bytes) {
  // Four steps for each doubling, from the bits after the leading one.
  auto const steps = [](std::int64_t value) {
    auto const number = static_cast<std::uint64_t>(value);
    auto const bits = static_cast<int>(std::bit_width(number));
    if (bits == 0) return 0u;
    auto const after_leading = static_cast<unsigned>(std::rotr(number, bits - 1) >> 62);
    return static_cast<unsigned>(bits) * 4 + after_leading;
  };
  auto const number = static_cast<std::uint64_t>(cost);
  auto const bits = static_cast<unsigned>(std::bit_width(number));
  auto const leading = static_cast<std::uint32_t>(std::rotr(number, static_cast<int>(bits)) >> 48);
  return (steps(cost) + 256 - steps(bytes)) << 22 | bits << 16 | leading;
}

}  // namespace omnibal::inline v0::detail
