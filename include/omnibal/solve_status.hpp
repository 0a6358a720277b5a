#pragma once

/// \file
/// What came of a search for a solution.

namespace omnibal::inline v0 {

/// What came of a search for a solution; a result says beside it what is missing.
enum class solve_status {
  solved,
  /// Nothing was found that satisfies the question; there may be something.
  not_found,
  /// Nothing satisfies the question: that is proven.
  infeasible,
};

}  // namespace omnibal::inline v0
