// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The objective of a search for lists of operations.

#include <omnibal/config.hpp>

namespace omnibal::inline v0 {

/// The quantity that `list_schedule` minimizes.
enum class list_objective {
  /// The end of the last operation.
  makespan,
  /// The longest time from the begin of the first operation of a stage to the end of its last
  /// operation. It is the time between steps if each stage begins the next step as soon as it has
  /// finished its own operations.
  longest_stage
};

}  // namespace omnibal::inline v0
