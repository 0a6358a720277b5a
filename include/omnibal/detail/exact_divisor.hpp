#pragma once

/// \file
/// Division without a division instruction.

#include <bit>
#include <cstdint>
#include <limits>

namespace omnibal::inline v0::detail {

/// Divides multiples of a fixed positive number, and tells multiples from other numbers, by one
/// multiplication with the inverse modulo 2^64. Source: Granlund, Montgomery, "Division by
/// invariant integers using multiplication", PLDI 1994.
class exact_divisor {
 public:
  explicit constexpr exact_divisor(std::uint64_t divisor = 1)
      : shift_(std::countr_zero(divisor)),
        largest_quotient_(std::numeric_limits<std::uint64_t>::max() / divisor) {
    std::uint64_t const odd = divisor >> shift_;
    // Correct in three bits; each step of Newton's iteration doubles them.
    inverse_ = odd;
    for (int bits = 3; bits < 64; bits *= 2) inverse_ *= 2 - odd * inverse_;
  }

  [[nodiscard]] constexpr bool divides(std::uint64_t value) const {
    return quotient(value) <= largest_quotient_;
  }

  /// value / divisor. Precondition: `divides(value)`.
  [[nodiscard]] constexpr std::uint64_t quotient(std::uint64_t value) const {
    return std::rotr(value * inverse_, shift_);
  }

 private:
  int shift_;
  std::uint64_t largest_quotient_;
  std::uint64_t inverse_ = 0;
};

}  // namespace omnibal::inline v0::detail
