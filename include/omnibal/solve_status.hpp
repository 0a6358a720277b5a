#pragma once

/// \file
/// How much a search may take, and what came of it.

namespace omnibal::inline v0 {

/// A preset of the options of a search: how long it looks for a better result. More effort hardly
/// ever gives a worse one. Each search says what its levels cost; numbers set beside it take
/// precedence.
enum class effort {
  fast,      ///< little more than one pass
  normal,    ///< the default: what a program that waits for the result wants
  thorough,  ///< several times as long, for results that are computed once and used often
};

/// What came of a search for a solution; a result says beside it what is missing.
enum class solve_status {
  solved,
  /// Nothing was found that satisfies the question; there may be something.
  not_found,
  /// Nothing satisfies the question: that is proven.
  infeasible,
};

}  // namespace omnibal::inline v0
