#pragma once

/// \file
/// What the largest load cannot be below.

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

}  // namespace omnibal::inline v0::detail
