#pragma once

/// \file
/// How much a search may take.

namespace omnibal::inline v0 {

/// A preset of the options of a search: how long it looks for a better result. More effort hardly
/// ever gives a worse one. Each search says what its levels cost; numbers set beside it take
/// precedence.
enum class effort {
  fast,      ///< little more than one pass
  normal,    ///< the default: what a program that waits for the result wants
  thorough,  ///< several times as long, for results that are computed once and used often
};

}  // namespace omnibal::inline v0
