// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Amounts of several kinds of things, in which samples are measured.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace omnibal::inline v0 {

/// A number for measurements, an integer of up to 64 bits except `bool` or a floating-point number.
template <class T>
concept scalar_measure = (std::integral<T> && sizeof(T) <= sizeof(std::int64_t) &&
                          !std::same_as<std::remove_cv_t<T>, bool>) ||
                         std::floating_point<T>;

namespace detail {

/// True if a number of type `From` may be converted to `To`. All conversions are allowed except
/// from floating-point numbers to integers.
template <class From, class To>
concept scalar_measure_for = scalar_measure<From> && scalar_measure<To> &&
    (std::floating_point<To> || std::integral<From>);

/// True if `To` can represent every value of `From`. If `To` is a floating-point type, values may
/// be rounded.
template <class From, class To>
inline constexpr bool always_holds = std::floating_point<To> ||
                                     (std::integral<From> &&
                                      std::numeric_limits<From>::digits <=
                                          std::numeric_limits<To>::digits &&
                                      (std::signed_integral<To> || !std::signed_integral<From>));

/// Returns `value` as an amount of type `T`. Throws if `T` cannot represent an integer `value`.
template <class T, class Given>
[[nodiscard]] constexpr T checked_amount(std::size_t kind, Given value) {
  if constexpr (!always_holds<Given, T>) {
    if (!holds<T>(value)) [[unlikely]] {
      using limits = std::numeric_limits<T>;
      throw_invalid("resources", "amount[", kind, "] is ", value, ", must be in [", limits::min(),
                    ", ", limits::max(), "]");
    }
  }
  return static_cast<T>(value);
}

}  // namespace detail

/// Amounts of `R` kinds of things (images, tokens, bytes, ...): a demand, a capacity or a load.
///
/// `resources{9, 4096}` is a `resources<2, std::int64_t>`; with a floating-point argument the type
/// is `double`. The arguments may be integers of any type. An integer that the type of the amounts
/// cannot represent is a `std::invalid_argument`; on a device the code does not compile. Without
/// arguments the amounts are zero in `resources<2>{}` and not set in `resources<2> amounts;`. The
/// type is trivially copyable. Arithmetic does not check for overflow. Callers whose sums have no
/// bound use the checked sums of the algorithms. Members can be called from host and device.
/// Structured bindings work.
template <std::size_t R, scalar_measure T = std::int64_t>
  requires(R > 0)
struct resources {
  using value_type = T;

  T amounts[R];

  resources() = default;

  template <class... Given>
    requires(sizeof...(Given) == R && (detail::scalar_measure_for<Given, T> && ...) &&
             (detail::always_holds<Given, T> && ...))
  OMNIBAL_HOST_DEVICE constexpr resources(Given... given) : amounts{static_cast<T>(given)...} {}

  template <class... Given>
    requires(sizeof...(Given) == R && (detail::scalar_measure_for<Given, T> && ...) &&
             !(detail::always_holds<Given, T> && ...))
  constexpr resources(Given... given) : resources(std::index_sequence_for<Given...>(), given...) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::size_t size() { return R; }

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T& operator[](std::size_t kind) {
    return amounts[kind];
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T const& operator[](std::size_t kind) const {
    return amounts[kind];
  }

  /// Returns true if no amount is above the amount of `capacity`. A NaN never fits.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr bool fits(resources const& capacity) const {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && amounts[r] <= capacity.amounts[r];
    return result;
  }

  OMNIBAL_HOST_DEVICE constexpr resources& operator+=(resources const& other) {
    for (std::size_t r = 0; r != R; ++r) amounts[r] = static_cast<T>(amounts[r] + other.amounts[r]);
    return *this;
  }
  OMNIBAL_HOST_DEVICE constexpr resources& operator-=(resources const& other) {
    for (std::size_t r = 0; r != R; ++r) amounts[r] = static_cast<T>(amounts[r] - other.amounts[r]);
    return *this;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr resources operator+(resources left,
                                                                         resources const& right) {
    return left += right;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr resources operator-(resources left,
                                                                         resources const& right) {
    return left -= right;
  }
  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator==(resources const& left,
                                                                     resources const& right) {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && left.amounts[r] == right.amounts[r];
    return result;
  }

 private:
  template <std::size_t... Kind, class... Given>
  constexpr resources(std::index_sequence<Kind...>, Given... given)
      : amounts{detail::checked_amount<T>(Kind, given)...} {}
};

template <scalar_measure... T>
resources(T...)
    -> resources<sizeof...(T),
                 std::conditional_t<(std::floating_point<T> || ...), double, std::int64_t>>;

/// Returns the amount of kind `Kind`; used by structured bindings.
template <std::size_t Kind, std::size_t R, class T>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr T get(resources<R, T> const& amounts) {
  static_assert(Kind < R);
  return amounts.amounts[Kind];
}

namespace detail {

template <class T>
inline constexpr bool is_resources = false;
template <std::size_t R, class T>
inline constexpr bool is_resources<resources<R, T>> = true;

/// The type of the weights in `T`: `T` itself if it is a weight, otherwise the type of the amounts
/// of resources.
template <class T>
struct weight_of {
  using type = T;
};
template <std::size_t R, class T>
struct weight_of<resources<R, T>> {
  using type = T;
};

/// The type in which the library computes weights and resources: 64-bit integers, or `double` if
/// any weight is a floating-point number.
template <class... T>
using working_weight = std::conditional_t<(std::floating_point<typename weight_of<T>::type> || ...),
                                          double, std::int64_t>;

/// The name of a number in an error text: `cost[17]`, `demand of sample 17`.
struct weight_name {
  std::string_view function;
  std::string_view argument;
  std::size_t index = 0;
  std::string_view before = "[";
  std::string_view after = "]";

  [[nodiscard]] std::string text() const { return joined_text(argument, before, index, after); }
};

/// Returns `value` in the working type. Throws if an unsigned value exceeds the range of this type.
template <class Working, scalar_measure T>
[[nodiscard]] constexpr Working to_working(weight_name const& name, T value) {
  if constexpr (!always_holds<T, Working> && std::unsigned_integral<T>) {
    if (!holds<Working>(value)) [[unlikely]] {
      throw_invalid(name.function, name.text(), " is ", value, ", must be at most ",
                    std::numeric_limits<Working>::max());
    }
  }
  return static_cast<Working>(value);
}

/// Returns `value`, a number or resources, as resources of the type `Working`.
template <class Working, class T>
[[nodiscard]] constexpr auto to_resources(weight_name const& name, T const& value) {
  if constexpr (scalar_measure<T>) {
    return resources<1, Working>{to_working<Working>(name, value)};
  } else if constexpr (std::same_as<typename T::value_type, Working>) {
    return value;
  } else {
    resources<T::size(), Working> result{};
    for (std::size_t r = 0; r != T::size(); ++r) result[r] = to_working<Working>(name, value[r]);
    return result;
  }
}

/// The number of kinds of a number (one) or of resources.
template <class T>
inline constexpr std::size_t kinds_of = 1;
template <std::size_t R, class T>
inline constexpr std::size_t kinds_of<resources<R, T>> = R;

/// Returns a capacity as resources of the type `Working`. The text of an error contains the kind.
template <class Working, class T>
[[nodiscard]] constexpr auto to_capacity(std::string_view function, T const& value) {
  resources<kinds_of<T>, Working> result{};
  if constexpr (scalar_measure<T>) {
    result[0] = to_working<Working>({function, "capacity", 0}, value);
  } else {
    for (std::size_t r = 0; r != T::size(); ++r) {
      result[r] = to_working<Working>({function, "capacity", r}, value[r]);
    }
  }
  return result;
}

/// Throws unless all amounts of the capacity are positive and finite.
template <std::size_t R, class T>
constexpr void check_capacity(std::string_view function, resources<R, T> const& capacity) {
  for (std::size_t r = 0; r != R; ++r) {
    if (is_positive(capacity[r])) continue;
    throw_invalid(function, "capacity[", r, "] is ", capacity[r], ", must be positive and finite");
  }
}

/// True if both types have the same number of kinds of resources.
template <class Left, class Right>
concept same_kinds = kinds_of<Left>
== kinds_of<Right>;

}  // namespace detail

/// A type of measurements of samples: resources, or a single number, which represents one resource.
template <class T>
concept measure = scalar_measure<T> || detail::is_resources<T>;

/// A type of measurements in integers.
template <class T>
concept integral_measure = measure<T> && std::integral<typename detail::weight_of<T>::type>;

}  // namespace omnibal::inline v0

template <std::size_t R, class T>
struct std::tuple_size<omnibal::resources<R, T>> : std::integral_constant<std::size_t, R> {};

template <std::size_t Kind, std::size_t R, class T>
struct std::tuple_element<Kind, omnibal::resources<R, T>> {
  using type = T;
};
