// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The effort and the outcome of a search.

namespace omnibal::inline v0 {

/// A preset of the options of a search: how long the search looks for a better result. More effort
/// hardly ever gives a worse result. Each search documents the cost of its levels. Numbers in the
/// same options take precedence.
enum class effort {
  fast,      ///< little more than one pass
  normal,    ///< the default, for a program that waits for the result
  thorough,  ///< several times as long, for results that are computed once and used often
};

/// The outcome of a search for a solution; other members of the result say what is missing.
enum class solve_status {
  solved,
  /// No solution was found, but one may exist.
  not_found,
  /// It is proven that no solution exists.
  infeasible,
};

}  // namespace omnibal::inline v0
