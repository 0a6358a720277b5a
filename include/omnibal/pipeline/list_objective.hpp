// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The quantity that a list of operations makes small.

#include <omnibal/config.hpp>

namespace omnibal::inline v0 {

/// The quantity that `list_schedule` makes small.
enum class list_objective {
  /// The end of the last operation.
  makespan,
  /// The longest time from the first operation of a stage to its last one. This is the time between
  /// steps if a stage begins the next step as soon as it has finished its own operations.
  longest_stage
};

}  // namespace omnibal::inline v0
