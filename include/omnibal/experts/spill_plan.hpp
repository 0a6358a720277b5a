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

/// Copies of experts on foreign ranks for one batch, and the division of the tokens among homes and
/// copies.
struct spill_plan {
  /// The foreign copies in the order of their experts, then of their ranks. Each copy has at least
  /// one token.
  std::vector<foreign_copy> copies{};
  /// The tokens of each expert that stay on its home rank.
  std::vector<std::int64_t> home_tokens{};
  /// The tokens of each rank.
  std::vector<std::int64_t> rank_tokens{};
  /// The largest number of tokens of a rank.
  std::int64_t largest = 0;
  /// The largest number of tokens that a rank may have.
  std::int64_t cap = 0;
  /// A lower bound on the number of copies of any plan in which no rank exceeds the cap.
  std::size_t fewest_copies = 0;
  /// `solved` if no rank exceeds the cap. `infeasible` if the slots are too few for
  /// `fewest_copies`. The status is `not_found` if a rank still exceeds the cap although the search
  /// used all slots that it could fill; then `largest` is above `cap`.
  solve_status status = solve_status::not_found;
  /// True if no rank exceeds the cap and it is proven that no such plan has fewer copies.
  bool proven = false;

  [[nodiscard]] friend bool operator==(spill_plan const&, spill_plan const&) = default;
};

}  // namespace omnibal::inline v0
