// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Conversions of numbers that keep the value, bound it, or report that it does not fit.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0::detail {

template <class T>
[[nodiscard]] constexpr bool is_negative(T value) {
  constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(1);
  if constexpr (is_signed) return value < T{};
  return false;
}

/// Returns true if `To` can represent this integer.
template <class To, class From>
[[nodiscard]] constexpr bool holds(From value) {
  auto const narrowed = static_cast<To>(value);
  return static_cast<From>(narrowed) == value && is_negative(narrowed) == is_negative(value);
}

/// Returns the same integer as a `To`. Errors: `std::overflow_error` that names the function and
/// the quantity if `To` cannot represent the integer.
template <class To, class From>
[[nodiscard]] constexpr To checked_cast(std::string_view function, std::string_view quantity,
                                        From value) {
  if (!holds<To>(value)) [[unlikely]] {
    throw_overflow(function, quantity);
  }
  return static_cast<To>(value);
}

/// Returns the integer of the type `To` that is nearest to this one. The function is for bounds,
/// which may become weaker but never wrong.
template <class To, class From>
[[nodiscard]] constexpr To saturate_cast(From value) {
  using limits = std::numeric_limits<To>;
  if (holds<To>(value)) [[likely]] {
    return static_cast<To>(value);
  }
  return is_negative(value) ? limits::min() : limits::max();
}

/// A map from numbers to fixed point, rounded down. The numbers are between zero and a largest
/// number, which may be their sum.
class fixed_point {
 public:
  /// Returns a map whose factors are powers of two, so that numbers keep their bits; `largest`
  /// stays below 2^bits.
  [[nodiscard]] OMNIBAL_HOST_DEVICE static fixed_point by_power_of_two(double largest,
                                                                       int bits = 62) {
    return {largest, bits, false};
  }
  /// Returns a map of the largest number to 2^bits.
  [[nodiscard]] static fixed_point by_share(double largest, int bits = 52) {
    return {largest, bits, true};
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE std::int64_t operator()(double value) const {
    double const scaled = value * first_factor_ * second_factor_;
    return static_cast<std::int64_t>(divisor_ == 1.0 ? scaled : scaled / divisor_);
  }

  /// Returns the number that the map converts to `value`. Precondition: the factors of the map are
  /// powers of two.
  [[nodiscard]] double original(std::int64_t value) const {
    return static_cast<double>(value) / first_factor_ / second_factor_;
  }

 private:
  OMNIBAL_HOST_DEVICE fixed_point(double largest, int bits, bool is_share) {
    int exponent = 0;
    double const mantissa = std::frexp(largest, &exponent);
    // Two steps, because one factor would leave the range of the type for very small numbers.
    int const half = (bits - exponent) / 2;
    first_factor_ = std::ldexp(1.0, half);
    second_factor_ = std::ldexp(1.0, bits - exponent - half);
    if (is_share && mantissa > 0.0) divisor_ = mantissa;
  }

  double first_factor_;
  double second_factor_;
  double divisor_ = 1.0;
};

/// Returns a time as an integer. Integers stay unchanged; floating-point times are multiplied by
/// the power of two with which `total` stays below 2^62.
template <class Time>
[[nodiscard]] std::int64_t to_whole_time(Time time, Time total) {
  if constexpr (std::floating_point<Time>) {
    return fixed_point::by_power_of_two(total)(time);
  } else {
    return time;
  }
}

/// Returns the time of an integer from `to_whole_time` with the same total.
template <class Time>
[[nodiscard]] Time from_whole_time(std::int64_t whole, Time total) {
  if constexpr (std::floating_point<Time>) {
    return fixed_point::by_power_of_two(total).original(whole);
  } else {
    return whole;
  }
}

}  // namespace omnibal::inline v0::detail
