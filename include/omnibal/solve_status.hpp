// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The effort and the outcome of a search.

namespace omnibal::inline v0 {

/// A preset for the options of a search, which determines how long the search looks for a better
/// result. More effort rarely gives a worse result. Each search documents the cost of its levels.
/// Explicit limits in the same options take precedence over the preset.
enum class effort {
  fast,      ///< little more than one pass
  normal,    ///< the default, for a program that waits for the result
  thorough,  ///< several times as long, for results that are computed once and used often
};

/// The outcome of a search for a solution. If no solution was found, other members of the result
/// say what is missing.
enum class solve_status {
  solved,
  /// No solution was found, but one may exist.
  not_found,
  /// It is proven that no solution exists.
  infeasible,
};

}  // namespace omnibal::inline v0
