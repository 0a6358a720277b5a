#pragma once

/// \file
/// Sums of the costs of the first layers.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The first number from `first` on for which `is_true`, as it is for all smaller ones, no longer
/// holds; `last` where there is none before it.
template <class Condition>
[[nodiscard]] std::size_t first_without(std::size_t first, std::size_t last,
                                        Condition const& is_true) {
  while (first != last) {
    std::size_t const middle = first + (last - first) / 2;
    if (is_true(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/// The type in which the costs of these layers are added.
template <class Layers, class Cost>
using chain_weight_of = working_weight<demand_result<Cost, sample_reference<Layers>>>;

inline constexpr measure_names cost_names{};

/// Throws the error of the first integer that is not a valid cost, or of the first sum that leaves
/// its type. `sums` are those of such costs, modulo 2^64.
template <class Cost>
[[noreturn]] void throw_bad_sum(std::string_view function, measure_names const& names,
                                std::span<std::int64_t const> sums) {
  for (std::size_t i = 0; i + 1 != sums.size(); ++i) {
    auto const difference =
        static_cast<std::uint64_t>(sums[i + 1]) - static_cast<std::uint64_t>(sums[i]);
    static_cast<void>(
        checked_cost<std::int64_t>(function, names.amount, i, static_cast<Cost>(difference)));
    if (sums[i + 1] < 0) break;
  }
  throw_overflow(function, names.sum);
}

/// Throws the error of a floating-point cost that is not valid, or of the sum before it.
template <class T>
[[noreturn]] void throw_bad_sum(std::string_view function, measure_names const& names,
                                std::size_t index, T value, T sum) {
  if (is_valid_weight(sum)) check_weight(function, names.amount, index, value);
  throw_overflow(function, names.sum);
}

/// The part of `sum_costs` for integers.
template <class Layers, class Cost>
[[nodiscard]] std::int64_t fill_sums(std::string_view function, measure_names const& names,
                                     Layers const& layers, Cost const& cost,
                                     std::span<std::int64_t> sums) {
  std::int64_t* next = sums.data();
  std::int64_t largest = 0;
  std::uint64_t sum = 0;
  std::int64_t all_bits = 0;
  *next = 0;
  for (auto&& layer : layers) {
    auto const value = static_cast<std::int64_t>(std::invoke(cost, layer));
    sum += static_cast<std::uint64_t>(value);
    *++next = static_cast<std::int64_t>(sum);
    // A bad cost or sum is negative here; the check of each would take most of the time.
    all_bits |= value | *next;
    largest = std::max(largest, value);
  }
  using cost_type = demand_result<Cost, sample_reference<Layers>>;
  if (all_bits < 0) throw_bad_sum<cost_type>(function, names, sums);
  return largest;
}

/// The same for floating-point numbers. A call of its own: as a part of a larger function the loop
/// would keep its variables in memory, which takes three times as long.
template <class Layers, class Cost>
[[nodiscard, gnu::noinline]] double fill_sums(std::string_view function, measure_names const& names,
                                              Layers const& layers, Cost const& cost,
                                              std::span<double> sums) {
  constexpr double most = std::numeric_limits<double>::max();
  // A comparison as integers finds negative numbers, infinity and NaN at once.
  constexpr auto infinite_bits =
      std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  double* next = sums.data();
  double largest = 0;
  double sum = 0;
  *next = 0;
  for (auto&& layer : layers) {
    auto const value = static_cast<double>(std::invoke(cost, layer));
    if (std::bit_cast<std::uint64_t>(value) >= infinite_bits) [[unlikely]] {
      if (!(value >= 0 && sum + value <= most)) {
        throw_bad_sum(function, names, static_cast<std::size_t>(next - sums.data()), value, sum);
      }
    }
    double const before = sum;
    sum += value;
    double const added = sum - before;
    largest = largest < added ? added : largest;
    *++next = sum;
  }
  if (sum > most) throw_overflow(function, names.sum);
  return largest;
}

/// Makes `sums[i]` the sum of the costs of the first i layers, and calls `cost` once for each
/// layer, in order. Returns the largest difference of neighbouring sums.
///
/// Errors: those of `measure_costs`.
template <class T, sample_range Layers, class Cost>
T sum_costs(std::string_view function, Layers const& layers, Cost const& cost, std::vector<T>& sums,
            measure_names const& names = cost_names) {
  check_index_count(function, "layers", std::ranges::size(layers));
  sums.resize(std::ranges::size(layers) + 1);
  return fill_sums(function, names, layers, cost, std::span(sums));
}

}  // namespace omnibal::inline v0::detail
