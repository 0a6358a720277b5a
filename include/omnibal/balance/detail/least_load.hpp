#pragma once

/// \file
/// The largest load of parts, and what it cannot be below.

#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// A lower bound on the largest amount in any of some parts: the mean, the largest cost, and for
/// one kind the two least of the `parts + 1` largest costs, as two of these share a part. `order`
/// is that of `largest_first`.
template <std::size_t R>
[[nodiscard]] std::int64_t least_load(whole_costs<R> const& costs,
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
[[nodiscard]] std::int64_t largest_load(whole_costs<R> const& costs,
                                        std::span<std::uint32_t const> part_of, std::size_t parts) {
  whole_costs<R> loads(parts, resources<R>{});
  std::int64_t result = 0;
  for (std::size_t i = 0; i != part_of.size(); ++i) {
    loads[part_of[i]] += costs[i];
    result = std::max(result, largest_amount(loads[part_of[i]]));
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
