// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Copies of experts on foreign ranks.

#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// A copy of an expert on a rank that is not its home, and its tokens.
struct foreign_copy {
  std::uint32_t expert = 0;
  std::uint32_t rank = 0;
  std::int64_t tokens = 0;

  [[nodiscard]] friend bool operator==(foreign_copy const&, foreign_copy const&) = default;
};

/// Copies of experts on foreign ranks for one batch, and the tokens that they get.
struct spill_plan {
  /// The foreign copies by expert, then by rank. Each has tokens.
  std::vector<foreign_copy> copies{};
  /// The tokens of each expert that stay on its home rank.
  std::vector<std::int64_t> home_tokens{};
  /// The tokens of each rank.
  std::vector<std::int64_t> rank_tokens{};
  /// The tokens of the rank with the most.
  std::int64_t largest = 0;
  /// The most tokens that a rank may have.
  std::int64_t cap = 0;
  /// A lower bound of the number of copies of any plan that keeps the cap.
  std::size_t fewest_copies = 0;
  /// `solved` if no rank exceeds the cap. `infeasible` if the slots are too few for
  /// `fewest_copies`. `not_found` if the search filled all slots that it could use; `largest` says
  /// how far it came.
  solve_status status = solve_status::not_found;
  /// True if the plan keeps the cap and no plan has fewer copies.
  bool proven = false;

  [[nodiscard]] friend bool operator==(spill_plan const&, spill_plan const&) = default;
};

}  // namespace omnibal::inline v0
