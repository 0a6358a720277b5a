// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The limit of a local search.

#include <cstddef>

namespace omnibal::inline v0::detail {

/// The number of steps that a local search may run. Each search defines its steps: an exchange, a
/// split, a round, a node or an operation on a word.
class search_budget {
 public:
  explicit constexpr search_budget(std::size_t steps) : steps_(steps) {}

  [[nodiscard]] constexpr bool is_spent() const { return spent_ >= steps_; }
  constexpr void spend(std::size_t steps = 1) { spent_ += steps; }
  /// Returns the number of steps so far. The last step may exceed the budget.
  [[nodiscard]] constexpr std::size_t spent() const { return spent_; }
  [[nodiscard]] constexpr std::size_t left() const { return is_spent() ? 0 : steps_ - spent_; }

 private:
  std::size_t steps_;
  std::size_t spent_ = 0;
};

}  // namespace omnibal::inline v0::detail
