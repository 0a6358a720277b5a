// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sums of the costs of the first layers.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

inline constexpr measure_names cost_names{};

/// Returns true for a valid cost and a valid sum; the sum is not less than the cost.
template <class T>
[[nodiscard]] constexpr bool are_valid(T cost, T sum) {
  if constexpr (std::integral<T>) return (cost | sum) >= 0;
  return cost >= 0 && sum <= std::numeric_limits<T>::max();
}

/// Throws the error of a cost that is not valid, or of its sum.
template <class T, class Cost>
[[noreturn, gnu::noinline]] void throw_bad_sum(std::string_view function,
                                               measure_names const& names, std::size_t index,
                                               Cost cost) {
  static_cast<void>(checked_cost<T>(function, names.amount, index, cost));
  throw_overflow(function, names.sum);
}

/// Sets `sums[i]` to the sum of the costs of the first i layers, and calls `cost` once for each
/// layer, in order. Returns the largest difference of neighboring sums.
///
/// Errors: the errors of `measure_costs`. The function is never inlined, because a larger function
/// would keep the variables of the loop in memory.
template <class T, sample_range Layers, class Cost>
[[gnu::noinline]] T sum_costs(std::string_view function, Layers const& layers, Cost const& cost,
                              std::vector<T>& sums, measure_names const& names = cost_names) {
  check_index_count(function, "layers", std::ranges::size(layers));
  sums.resize(std::ranges::size(layers) + 1);
  // Integers wrap around, which the check finds.
  using sum_type = std::conditional_t<std::integral<T>, std::uint64_t, T>;
  T* next = sums.data();
  sum_type sum{};
  T largest{};
  *next = T{};
  for (auto&& layer : layers) {
    auto const given = std::invoke(cost, layer);
    T const before = static_cast<T>(sum);
    sum += static_cast<sum_type>(static_cast<T>(given));
    T const after = static_cast<T>(sum);
    if (!are_valid(static_cast<T>(given), after)) [[unlikely]] {
      throw_bad_sum<T>(function, names, static_cast<std::size_t>(next - sums.data()), given);
    }
    T const added = static_cast<T>(after - before);
    largest = largest < added ? added : largest;
    *++next = after;
  }
  return largest;
}

}  // namespace omnibal::inline v0::detail
