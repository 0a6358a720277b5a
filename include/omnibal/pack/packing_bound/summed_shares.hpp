// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Bound from one kind of demand in place of several.

#include <omnibal/detail/measure.hpp>
#include <omnibal/pack/detail/summed_shares.hpp>
#include <omnibal/pack/packing_bound/dual_feasible.hpp>

#include <cstddef>

namespace omnibal::inline v0::detail {

/// Returns the bound by dual feasible functions from the sum of the shares of all capacities.
template <class Layout>
[[nodiscard]] std::size_t summed_shares_bound(measured<Layout> const& input) {
  summed_shares<Layout::amounts_type::size()> const sum(input.capacity);
  return dual_feasible_bound(
      input.size(), [&](std::size_t k) { return sum(input.amounts(k)); }, sum.whole());
}

}  // namespace omnibal::inline v0::detail
