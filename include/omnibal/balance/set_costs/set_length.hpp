#pragma once

/// \file
/// The lengths of which the ready set costs are made.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace omnibal::inline v0::detail {

/// A functor whose lengths `T` can hold: floating-point ones only where it floats.
template <class Length, class Sample, class T>
concept length_function = cost_function<Length, Sample> &&
    (std::floating_point<T> || std::integral<demand_result<Length, Sample>>);

/// A functor that can be assigned even where it is a lambda with captures, which cannot.
template <class Function>
class assignable_function {
 public:
  explicit assignable_function(Function function) : function_(std::move(function)) {}
  assignable_function(assignable_function const&) = default;
  assignable_function& operator=(assignable_function const& other) {
    if (this != &other) function_.emplace(*other.function_);
    return *this;
  }
  ~assignable_function() = default;

  [[nodiscard]] Function const& operator*() const { return *function_; }

 private:
  std::optional<Function> function_;
};

/// The length of a sample; throws where it is negative, not finite or above what `T` can hold.
template <class T, class Length, class Sample>
[[nodiscard]] T checked_length(std::string_view function, assignable_function<Length> const& length,
                               Sample const& sample) {
  auto const value = std::invoke(*length, sample);
  if constexpr (std::integral<T>) {
    if (std::in_range<T>(value) && value >= 0) return static_cast<T>(value);
  } else {
    auto const result = static_cast<T>(value);
    if (is_valid_weight(result)) return result;
  }
  throw_invalid(function, "the length of a sample is " + to_text(value) +
                              ", must be finite and not negative");
}

/// `left * right`, or `std::overflow_error` where that is not a finite value of the type.
template <class T>
[[nodiscard]] T checked_product(std::string_view function, T left, T right) {
  T result{};
  if constexpr (std::floating_point<T>) {
    result = left * right;
    if (!(result <= std::numeric_limits<T>::max())) throw_overflow(function, "the value");
  } else {
    if (__builtin_mul_overflow(left, right, &result)) throw_overflow(function, "the value");
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
