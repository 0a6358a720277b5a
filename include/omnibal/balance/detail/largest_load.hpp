#pragma once

/// \file
/// The largest load of parts, what it cannot be below, and both as the user knows them.

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
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A lower bound on the largest amount in any of some parts: the mean, the largest cost, and for
/// one kind the two least of the `parts + 1` largest costs, as two of these share a part. `order`
/// is that of `largest_first`.
template <std::size_t R>
[[nodiscard]] std::int64_t least_load(integer_costs<R> const& costs,
                                      std::span<std::uint32_t const> order, std::size_t parts) {
  std::int64_t result = 0;
  for (std::int64_t const sum : total_of(costs).amounts) {
    auto const count = static_cast<std::int64_t>(parts);
    result = std::max(result, sum / count + (sum % count != 0 ? 1 : 0));
  }
  for (resources<R> const& cost : costs) result = std::max(result, largest_amount(cost));
  if (R == 1 && order.size() > parts) {
    result = std::max(result, costs[order[parts - 1]][0] + costs[order[parts]][0]);
  }
  return result;
}

/// The largest amount in any of some parts; `part_of` has the part of each sample.
template <std::size_t R>
[[nodiscard]] std::int64_t largest_load(integer_costs<R> const& costs,
                                        std::span<std::uint32_t const> part_of, std::size_t parts) {
  integer_costs<R> loads(parts, resources<R>{});
  std::int64_t result = 0;
  for (std::size_t i = 0; i != part_of.size(); ++i) {
    loads[part_of[i]] += costs[i];
    result = std::max(result, largest_amount(loads[part_of[i]]));
  }
  return result;
}

/// Calls `cost` once for each sample, in order. Precondition: the cost has one kind.
template <class Samples, class Cost>
[[nodiscard]] auto given_costs(std::string_view function, Samples const& samples,
                               Cost const& cost) {
  using load_type = measured_weight<Samples, Cost>;
  std::vector<load_type> result;
  result.reserve(std::ranges::size(samples));
  for (auto&& sample : samples) {
    result.push_back(
        checked_costs<load_type>(function, "cost", result.size(), std::invoke(cost, sample))[0]);
  }
  return result;
}

/// A bound in whole numbers as the cost functor would give it, less what rounding may add.
template <class Load>
[[nodiscard]] Load given_bound(std::int64_t bound, integer_costs<1> const& costs,
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
