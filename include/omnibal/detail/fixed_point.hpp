#pragma once

/// \file
/// Floating-point numbers as integers that compare and add up alike everywhere.

#include <cmath>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// Maps numbers from zero to a largest one, or to their sum, to fixed point, rounded down.
class fixed_point {
 public:
  /// Only powers of two as factors, so that numbers keep their bits; `largest` becomes less than
  /// 2^bits.
  [[nodiscard]] static fixed_point by_power_of_two(double largest, int bits = 62) {
    return {largest, bits, false};
  }
  /// The largest itself becomes 2^bits.
  [[nodiscard]] static fixed_point by_share(double largest, int bits = 52) {
    return {largest, bits, true};
  }

  [[nodiscard]] std::int64_t operator()(double value) const {
    double const scaled = value * first_factor_ * second_factor_;
    return static_cast<std::int64_t>(divisor_ == 1.0 ? scaled : scaled / divisor_);
  }

  /// The number that becomes this. Precondition: the map is one by powers of two.
  [[nodiscard]] double original(std::int64_t value) const {
    return static_cast<double>(value) / first_factor_ / second_factor_;
  }

 private:
  fixed_point(double largest, int bits, bool is_share) {
    int exponent = 0;
    double const mantissa = std::frexp(largest, &exponent);
    // In two steps, as one factor would leave the range of the type for very small numbers.
    int const half = (bits - exponent) / 2;
    first_factor_ = std::ldexp(1.0, half);
    second_factor_ = std::ldexp(1.0, bits - exponent - half);
    if (is_share && mantissa > 0.0) divisor_ = mantissa;
  }

  double first_factor_;
  double second_factor_;
  double divisor_ = 1.0;
};

}  // namespace omnibal::inline v0::detail
