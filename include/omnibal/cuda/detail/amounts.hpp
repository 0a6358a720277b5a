// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Demands and loads in device code: the conversions of resources.hpp, which report errors as
/// faults.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

template <class Amount>
using working_weight_of =
    omnibal::detail::working_weight<typename omnibal::detail::weight_of<Amount>::type>;

/// The type of sums of these amounts: resources of `std::int64_t` or `double`.
template <class Amount>
using load_of = resources<omnibal::detail::kinds_of<Amount>, working_weight_of<Amount>>;

/// Saturating sums of amounts that are not negative: the largest value represents all larger sums.
/// The sums do not depend on the order of additions.
template <std::size_t R>
struct saturating_load {
  std::uint64_t amounts[R];
};

template <std::size_t R>
struct add_loads {
  OMNIBAL_HOST_DEVICE saturating_load<R> operator()(saturating_load<R> left,
                                                    saturating_load<R> const& right) const {
    for (std::size_t r = 0; r != R; ++r) {
      left.amounts[r] = saturating_sum(left.amounts[r], right.amounts[r]);
    }
    return left;
  }
};

/// The largest value of the type in which integers are summed.
inline constexpr std::uint64_t largest_sum = 0x7fffffffffffffffu;

/// Converts one weight to `Working`, the type of sums. If the weight is negative, not finite or too
/// large, raises a fault and returns zero.
template <class Working, scalar_measure T>
[[nodiscard]] OMNIBAL_HOST_DEVICE inline Working checked_weight(T value, fault* faults) {
  bool valid = true;
  if constexpr (std::floating_point<T>) {
    // The constant is the largest value of `double`. The comparison is false for a NaN.
    valid = value >= T{0} && static_cast<double>(value) <= 0x1.fffffffffffffp+1023;
  } else if constexpr (std::signed_integral<T>) {
    valid = value >= T{0};
  } else {
    valid = static_cast<std::uint64_t>(value) <= largest_sum;
  }
  if (!valid) {
    raise(faults, fault::invalid_amount);
    return Working{0};
  }
  return static_cast<Working>(value);
}

/// Returns the weight of one kind of an amount: the amount itself if it is a weight, otherwise an
/// element of the resources.
template <class Amount>
[[nodiscard]] OMNIBAL_HOST_DEVICE inline auto weight_at(Amount const& amount,
                                                        [[maybe_unused]] std::size_t kind) {
  if constexpr (scalar_measure<Amount>) {
    return amount;
  } else {
    return amount[kind];
  }
}

/// Returns the weight of one kind of an integral amount, checked as by `checked_weight`.
template <class Amount>
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::uint64_t checked_amount(Amount const& amount,
                                                                      std::size_t kind,
                                                                      fault* faults) {
  return static_cast<std::uint64_t>(checked_weight<std::int64_t>(weight_at(amount, kind), faults));
}

/// Returns the weights of all kinds, checked as by `checked_weight`.
template <class Amount>
[[nodiscard]] OMNIBAL_HOST_DEVICE inline auto checked_load(Amount const& amount, fault* faults) {
  saturating_load<omnibal::detail::kinds_of<Amount>> result;
  for (std::size_t r = 0; r != omnibal::detail::kinds_of<Amount>; ++r) {
    result.amounts[r] = checked_amount(amount, r, faults);
  }
  return result;
}

/// Returns a sum as a signed integer. If the sum exceeds the largest signed integer, raises a fault
/// and returns this integer.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::int64_t checked_sum(std::uint64_t sum,
                                                                  fault* faults) {
  if (sum > largest_sum) {
    raise(faults, fault::overflow);
    sum = largest_sum;
  }
  return static_cast<std::int64_t>(sum);
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
