// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Costs of samples as integers, and limits of loads above a bound.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
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

/// Costs whose sums cannot overflow: for each kind, the sum of any of them is at most 2^63 - 1. If
/// there are several kinds, the amounts of each kind are shares of their sum over all samples, so
/// that kinds can be compared.
template <std::size_t R>
using integer_costs = std::vector<resources<R>>;

/// The number of kinds that `Cost` returns for these samples.
template <class Samples, class Cost>
inline constexpr std::size_t cost_kinds = kinds_of<demand_result<Cost, sample_reference<Samples>>>;

/// Throws if there are no parts, or more parts than a grouping can have.
inline void check_parts(std::string_view function, std::size_t parts) {
  check_positive(function, "parts", parts);
  check_number(function, "parts", parts);
}

/// The names of the measured amounts in error texts.
struct measure_names {
  std::string_view amount = "cost";
  std::string_view sum = "the sum of the costs";
};

/// Returns an amount in the type of computation; throws if it is negative, not finite or above
/// 2^63 - 1.
template <class Working, scalar_measure T>
[[nodiscard]] constexpr Working checked_cost(std::string_view function, std::string_view argument,
                                             std::size_t index, T value) {
  auto const result = to_working<Working>({function, argument, index}, value);
  check_weight(function, argument, index, result);
  return result;
}

/// Returns each kind of an amount, a weight or resources, in the type of computation. Checks each
/// amount as `checked_cost` does.
template <class Working, class Amount>
[[nodiscard]] constexpr auto checked_costs(std::string_view function, std::string_view argument,
                                           std::size_t index, Amount const& value) {
  auto const result = to_resources<Working>({function, argument, index}, value);
  for (Working const amount : result.amounts) check_weight(function, argument, index, amount);
  return result;
}

/// Calls `amount_at(index)` once for each index below `count`, in order, and converts the results
/// to integer costs. Integers of one kind stay unchanged. The memory of `result` is reused.
///
/// Errors: `std::invalid_argument` for an amount that is negative, not finite or above 2^63 - 1,
/// `std::overflow_error` if the sum of all amounts exceeds its type, `std::length_error` above
/// 2^32 - 1 samples.
template <class AmountAt, std::size_t R>
void measure_costs_into(std::string_view function, measure_names const& names, std::size_t count,
                        AmountAt const& amount_at, integer_costs<R>& result) {
  using result_type = std::remove_cvref_t<std::invoke_result_t<AmountAt const&, std::size_t>>;
  using working = working_weight<result_type>;
  constexpr bool is_exact = std::integral<working> && R == 1;

  check_index_count(function, "samples", count);
  result.resize(count);
  resources<R, working> total{};
  for (std::size_t index = 0; index != count; ++index) {
    auto const amounts = checked_costs<working>(function, names.amount, index, amount_at(index));
    for (std::size_t r = 0; r != R; ++r) {
      checked_add(function, names.sum, total[r], amounts[r]);
      // The bits of a floating-point number are kept here until the total is known.
      result[index][r] = std::bit_cast<std::int64_t>(amounts[r]);
    }
  }
  if constexpr (!is_exact) {
    for (std::size_t r = 0; r != R; ++r) {
      auto const sum = static_cast<double>(total[r]);
      auto const to_whole = R == 1 ? fixed_point::by_power_of_two(sum) : fixed_point::by_share(sum);
      for (resources<R>& cost : result) {
        cost[r] = to_whole(static_cast<double>(std::bit_cast<working>(cost[r])));
      }
    }
  }
}

/// Returns the integer costs of samples; `cost` is called once for each sample, in order. Errors:
/// the errors of `measure_costs_into`.
template <sample_range Samples, class Cost>
[[nodiscard]] integer_costs<cost_kinds<Samples, Cost>> measure_costs(std::string_view function,
                                                                     Samples const& samples,
                                                                     Cost const& cost) {
  integer_costs<cost_kinds<Samples, Cost>> result;
  auto const first = std::ranges::begin(samples);
  auto const cost_at = [&](std::size_t index) -> demand_result<Cost, sample_reference<Samples>> {
    return std::invoke(cost,
                       first[static_cast<std::ranges::range_difference_t<Samples const>>(index)]);
  };
  measure_costs_into(function, {}, std::ranges::size(samples), cost_at, result);
  return result;
}

/// Returns the cost of each sample; `cost` is called once for each sample, in order. Precondition:
/// the cost has one kind.
template <sample_range Samples, class Cost>
[[nodiscard]] auto given_costs(std::string_view function, std::string_view argument,
                               Samples const& samples, Cost const& cost) {
  using load_type = measured_weight<Samples, Cost>;
  std::vector<load_type> result;
  result.reserve(std::ranges::size(samples));
  for (auto&& sample : samples) {
    result.push_back(
        checked_costs<load_type>(function, argument, result.size(), std::invoke(cost, sample))[0]);
  }
  return result;
}

/// Returns the largest amount of all kinds.
template <std::size_t R>
[[nodiscard]] constexpr std::int64_t largest_amount(resources<R> const& amounts) {
  std::int64_t result = amounts[0];
  for (std::size_t r = 1; r < R; ++r) result = std::max(result, amounts[r]);
  return result;
}

/// Returns the sum over the kinds, which measures how large a sample is.
template <std::size_t R>
[[nodiscard]] constexpr std::int64_t sum_of(resources<R> const& amounts) {
  std::int64_t result = amounts[0];
  for (std::size_t r = 1; r < R; ++r) result += amounts[r];
  return result;
}

/// Returns the sum of all costs.
template <std::size_t R>
[[nodiscard]] constexpr resources<R> total_of(integer_costs<R> const& costs) {
  resources<R> total{};
  for (resources<R> const& cost : costs) total += cost;
  return total;
}

/// Throws unless `max_overload` is finite and not negative.
inline void check_max_overload(std::string_view function, double max_overload) {
  check_weight(function, "options.max_overload", max_overload);
}

/// Returns bound * (1 + `max_overload`), computed in `double` and at most the largest integer.
[[nodiscard]] OMNIBAL_HOST_DEVICE inline std::int64_t with_overload(std::int64_t bound,
                                                                    double max_overload) {
  constexpr std::int64_t most = INT64_MAX;
  double const slack = static_cast<double>(bound) * max_overload;
  if (slack >= static_cast<double>(most - bound)) return most;
  return bound + static_cast<std::int64_t>(slack);
}

}  // namespace omnibal::inline v0::detail
