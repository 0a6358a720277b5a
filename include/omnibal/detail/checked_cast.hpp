#pragma once

/// \file
/// Conversions between integers of any width, 128 bits included, that never wrap.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>

#include <limits>
#include <string_view>

namespace omnibal::inline v0::detail {

template <class T>
[[nodiscard]] constexpr bool is_negative(T value) {
  constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(1);
  if constexpr (is_signed) return value < T{};
  return false;
}

/// True where a `To` holds this integer.
template <class To, class From>
[[nodiscard]] constexpr bool holds(From value) {
  auto const narrowed = static_cast<To>(value);
  return static_cast<From>(narrowed) == value && is_negative(narrowed) == is_negative(value);
}

/// The same integer as a `To`. Errors: `std::overflow_error` that names the function and the
/// quantity where a `To` cannot hold it.
template <class To, class From>
[[nodiscard]] constexpr To checked_cast(std::string_view function, std::string_view quantity,
                                        From value) {
  if (!holds<To>(value)) [[unlikely]] {
    throw_overflow(function, quantity);
  }
  return static_cast<To>(value);
}

/// The integer of the type `To` that is nearest to this one. For bounds, which may become weaker by
/// it and never wrong.
template <class To, class From>
[[nodiscard]] constexpr To saturate_cast(From value) {
  using limits = std::numeric_limits<To>;
  if (holds<To>(value)) [[likely]] {
    return static_cast<To>(value);
  }
  return is_negative(value) ? limits::min() : limits::max();
}

}  // namespace omnibal::inline v0::detail
