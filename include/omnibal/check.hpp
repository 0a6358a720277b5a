// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Argument checks. A wrong argument is a `std::invalid_argument` or a `std::length_error`; a sum
/// that exceeds its type is a `std::overflow_error`. The text of the exception names the function,
/// the argument and the value.

#include <bit>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0 {

/// The largest number of elements of a range, because indices of samples, groups and layers have 32
/// bits.
inline constexpr std::size_t max_index_count = std::numeric_limits<std::uint32_t>::max();

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns the shortest text that converts back to `value`.
template <class T>
  requires std::is_arithmetic_v<T>
[[nodiscard]] std::string to_text(T value) {
  // All narrower integers use one type, so that the compiler instantiates only one function.
  if constexpr (std::integral<T> && !std::same_as<T, std::int64_t> &&
                sizeof(T) < sizeof(std::int64_t)) {
    return to_text(std::int64_t{value});
  } else {
    char buffer[64];
    auto const written = std::to_chars(buffer, buffer + sizeof(buffer), value);
    return std::string(buffer, written.ptr);
  }
}

[[nodiscard]] constexpr std::string_view to_text(std::string_view text) { return text; }

/// Returns one text that consists of all parts, which are texts or numbers.
template <class... Part>
[[nodiscard]] std::string joined_text(Part... part) {
  std::string result;
  (result.append(to_text(part)), ...);
  return result;
}

/// Returns the values of a range as `{1, 2, 3}`.
template <class Values>
[[nodiscard]] std::string list_text(Values const& values) {
  std::string text("{");
  for (auto const& value : values) text.append(text.size() == 1 ? "" : ", ").append(to_text(value));
  return text + "}";
}

/// Returns the only value of an array, without braces: the amounts of one resource.
template <class Value>
[[nodiscard]] std::string list_text(Value const (&values)[1]) {
  return std::string(to_text(values[0]));
}

/// Returns the text of an error: the name of `function`, followed by all parts, which are texts or
/// numbers.
template <class... Part>
[[nodiscard]] std::string message(std::string_view function, Part... part) {
  return joined_text("omnibal::", function, ": ", part...);
}

template <class... Part>
[[noreturn]] void throw_invalid(std::string_view function, Part... part) {
  throw std::invalid_argument(message(function, part...));
}

[[noreturn]] inline void throw_length(std::string_view function, std::string_view argument,
                                      std::size_t size) {
  throw std::length_error(
      message(function, argument, " has ", size, " elements, more than 32-bit indices can name"));
}

[[noreturn]] inline void throw_overflow(std::string_view function, std::string_view sum) {
  throw std::overflow_error(message(function, sum, " exceeds the largest value of its type"));
}

inline void check_index_count(std::string_view function, std::string_view argument,
                              std::size_t size) {
  if (size > max_index_count) throw_length(function, argument, size);
}

/// Throws `std::length_error` if `value`, a number of elements, is too large for 32-bit indices.
/// `argument` names the number in the text.
inline void check_number(std::string_view function, std::string_view argument, std::size_t value) {
  if (value <= max_index_count) return;
  throw std::length_error(
      message(function, argument, " is ", value, ", must be at most ", max_index_count));
}

/// Returns true for a number that is neither infinite nor NaN. With -ffast-math or
/// -ffinite-math-only a compiler may remove comparisons because it assumes such numbers. Therefore
/// the bits of the exponent are read, behind a statement that hides their origin from the compiler.
template <std::floating_point T>
[[nodiscard]] constexpr bool is_finite(T value) {
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
  constexpr std::uint64_t exponent = 0x7ff0000000000000U;
  auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if (!std::is_constant_evaluated()) __asm__("" : "+r"(bits));
  return (bits & exponent) != exponent;
#else
  return (value < T{0} ? -value : value) <= std::numeric_limits<T>::max();
#endif
}

/// Returns true for a weight that can be summed and compared: finite and not negative.
template <class T>
[[nodiscard]] constexpr bool is_valid_weight(T value) {
  if constexpr (std::floating_point<T>) {
    return value >= T{0} && is_finite(value);
  } else if constexpr (std::unsigned_integral<T>) {
    return true;
  } else {
    return value >= T{0};
  }
}

/// Throws unless a number is a valid weight.
template <class T>
constexpr void check_weight(std::string_view function, std::string_view argument, T value) {
  if (is_valid_weight(value)) [[likely]] {
    return;
  }
  throw_invalid(function, argument, " is ", value, ", must be finite and not negative");
}

/// Throws unless an element of a list, such as `cost[17]`, is a valid weight.
template <class T>
constexpr void check_weight(std::string_view function, std::string_view argument, std::size_t index,
                            T value) {
  if (is_valid_weight(value)) [[likely]] {
    return;
  }
  check_weight(function, joined_text(argument, "[", index, "]"), value);
}

/// Returns true for a number above zero, which must be finite if it is a floating-point number.
template <class T>
[[nodiscard]] constexpr bool is_positive(T value) {
  if constexpr (std::floating_point<T>) {
    return value > T{0} && is_finite(value);
  } else {
    return value > T{0};
  }
}

/// Throws unless a number is positive, and finite if it is a floating-point number.
template <class T>
constexpr void check_positive(std::string_view function, std::string_view argument, T value) {
  if (is_positive(value)) [[likely]] {
    return;
  }
  throw_invalid(function, argument, " is ", value, ", must be positive",
                (std::floating_point<T> ? " and finite" : ""));
}

/// Throws unless an element of a list is positive.
template <class T>
constexpr void check_positive(std::string_view function, std::string_view argument,
                              std::size_t index, T value) {
  if (is_positive(value)) [[likely]] {
    return;
  }
  check_positive(function, joined_text(argument, "[", index, "]"), value);
}

/// Throws unless `share` is in [0, 1].
inline void check_share(std::string_view function, std::string_view name, double share) {
  if (share >= 0.0 && share <= 1.0) return;
  throw_invalid(function, name, " is ", share, ", must be in [0, 1]");
}

/// Throws unless a list of `size` elements has an element for each of `count` things. `things`
/// names the things in the text.
inline void check_size(std::string_view function, std::string_view argument, std::size_t size,
                       std::size_t count, std::string_view things) {
  if (size == count) return;
  throw_invalid(function, argument, " has ", size, " values for ", count, " ", things);
}

/// Adds `value` to `sum`; throws `std::overflow_error` if the result is not a finite value of the
/// type.
template <class T>
constexpr void checked_add(std::string_view function, std::string_view name, T& sum, T value) {
  if constexpr (std::floating_point<T>) {
    sum += value;
    if (!is_finite(sum)) throw_overflow(function, name);
  } else {
    if (__builtin_add_overflow(sum, value, &sum)) throw_overflow(function, name);
  }
}

/// Returns `left * right`; throws `std::overflow_error` if the result is not a finite value of the
/// left type.
template <class T, class Factor>
[[nodiscard]] constexpr T checked_product(std::string_view function, std::string_view name, T left,
                                          Factor right) {
  T result{};
  if constexpr (std::floating_point<T>) {
    result = left * static_cast<T>(right);
    if (!is_finite(result)) throw_overflow(function, name);
  } else {
    if (__builtin_mul_overflow(left, right, &result)) throw_overflow(function, name);
  }
  return result;
}

template <class... Rule>
[[noreturn]] void throw_number(std::string_view function, std::string_view argument,
                               std::int64_t value, Rule... rule) {
  throw_invalid(function, argument, " is ", value, ", ", rule...);
}

/// Throws unless `value` is in [least, most].
constexpr void check_between(std::string_view function, std::string_view argument,
                             std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) [[likely]] {
    return;
  }
  throw_number(function, argument, value, "must be from ", least, " to ", most);
}

/// Throws unless `divisor` divides `value`.
constexpr void check_multiple(std::string_view function, std::string_view argument,
                              std::int64_t value, std::string_view divisor_name,
                              std::int64_t divisor) {
  if (value % divisor == 0) return;
  throw_number(function, argument, value, "must be a multiple of ", divisor_name, ", which is ",
               divisor);
}

}  // namespace omnibal::inline v0::detail
