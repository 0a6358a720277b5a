#pragma once

/// \file
/// Parts, and how even parts can be.

#include <omnibal/grouping.hpp>
#include <omnibal/solve_status.hpp>

namespace omnibal::inline v0 {

/// What a search for even parts has come to. Loads are sums of costs in the type in which they are
/// added up; where a cost has several kinds, shares of the sums over all samples, as `double`.
template <class Load>
struct balance_result {
  /// Empty unless solved.
  grouping parts;
  /// The largest load of a part, and what it cannot be below with so many parts.
  Load largest_load{};
  Load lower_bound{};
  /// True where no other parts have a smaller largest load, for all rounding.
  bool proven = false;
  solve_status status = solve_status::not_found;

  [[nodiscard]] friend bool operator==(balance_result const&, balance_result const&) = default;
};

}  // namespace omnibal::inline v0
