// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times of a list of operations.

#include <omnibal/pipeline/list_objective.hpp>

#include <limits>

namespace omnibal::inline v0::detail {

/// The times of lists of operations, one for each objective.
template <class T>
struct list_times {
  T makespan{};
  T longest_stage{};

  /// The times of lists that exceed the memory.
  [[nodiscard]] static list_times unfit() {
    return {std::numeric_limits<T>::max(), std::numeric_limits<T>::max()};
  }

  [[nodiscard]] T of(list_objective objective) const {
    return objective == list_objective::makespan ? makespan : longest_stage;
  }
};

}  // namespace omnibal::inline v0::detail
