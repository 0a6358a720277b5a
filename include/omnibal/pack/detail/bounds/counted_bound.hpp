// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups from the counts of the values of one integer resource.

#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/detail/bounds/pattern_prices.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the larger of L2 and the bound from patterns, from the counts of the values from zero to
/// the capacity.
[[nodiscard]] inline std::size_t counted_bound(std::vector<std::uint32_t> const& counts) {
  std::size_t const bound = martello_toth_bound(
      counts.size(), [](std::size_t k) { return static_cast<std::int64_t>(k); },
      [&](std::size_t k) { return counts[k]; }, static_cast<std::int64_t>(counts.size()) - 1);
  return std::max(bound, counted_pattern_bound(counts));
}

}  // namespace omnibal::inline v0::detail
