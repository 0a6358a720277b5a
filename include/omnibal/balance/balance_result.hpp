// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The result of a search for even parts.

#include <omnibal/grouping.hpp>
#include <omnibal/solve_status.hpp>

namespace omnibal::inline v0 {

/// The result of a search for even parts. Loads are sums of costs in the type of these sums. If a
/// cost has several kinds, loads are shares of the sums over all samples, as `double`. If parts
/// have different speeds, a load is the load that the fastest part has at the same time.
template <class Load>
struct balance_result {
  /// The parts; empty if the search found no solution.
  grouping parts;
  /// The largest load of a part.
  Load largest_load{};
  /// A lower bound on the largest load for this number of parts.
  Load lower_bound{};
  /// Whether it is proven, despite rounding, that no other parts have a smaller largest load.
  bool proven = false;
  solve_status status = solve_status::not_found;

  [[nodiscard]] friend bool operator==(balance_result const&, balance_result const&) = default;
};

}  // namespace omnibal::inline v0
