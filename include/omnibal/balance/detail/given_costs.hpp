#pragma once

/// \file
/// Costs as the user's functor gives them, for the loads that a result reports.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
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

/// The type in which costs of one kind are added up.
template <class Samples, class Cost>
using given_load =
    working_weight<typename weight_of<demand_result<Cost, sample_reference<Samples>>>::type>;

/// Calls `cost` once for each sample, in order. Precondition: the cost has one kind.
template <class Samples, class Cost>
[[nodiscard]] auto given_costs(std::string_view function, Samples const& samples,
                               Cost const& cost) {
  using load_type = given_load<Samples, Cost>;
  std::vector<load_type> result;
  result.reserve(std::ranges::size(samples));
  for (auto&& sample : samples) {
    auto const& value = std::invoke(cost, sample);
    if constexpr (weight<std::remove_cvref_t<decltype(value)>>) {
      result.push_back(checked_cost<load_type>(function, "cost", result.size(), value));
    } else {
      result.push_back(checked_cost<load_type>(function, "cost", result.size(), value[0]));
    }
  }
  return result;
}

/// A bound in whole numbers as the cost functor would give it, less what rounding may add.
template <class Load>
[[nodiscard]] Load given_bound(std::int64_t bound, whole_costs<1> const& costs,
                               std::vector<Load> const& given) {
  if constexpr (std::integral<Load>) {
    return bound;
  } else {
    auto const whole = static_cast<Load>(total_of(costs)[0]);
    if (whole <= 0) return Load{};
    Load total{};
    for (Load const load : given) total += load;
    Load const rounding =
        4 * std::numeric_limits<Load>::epsilon() * static_cast<Load>(given.size() + 4);
    return static_cast<Load>(bound) / whole * total * (1 - std::min(Load{1}, rounding));
  }
}

/// The largest sum in a part.
template <class Load>
[[nodiscard]] Load largest_given_load(grouping const& parts, std::vector<Load> const& given) {
  Load largest{};
  for (auto const& part : parts) {
    Load sum{};
    for (std::uint32_t const item : part) sum += given[item];
    largest = std::max(largest, sum);
  }
  return largest;
}

}  // namespace omnibal::inline v0::detail
