// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Knapsacks of several kinds of demand: the most valuable samples for a room.

#include <omnibal/detail/search_budget.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// Solves the multidimensional knapsack problem for up to 64 samples by a depth-first search. The
/// number of nodes is bounded, so that the search may miss the best subset.
///
/// Among several best subsets, returns the first in the order of the samples. Allocates nothing.
/// Source: Kellerer, Pferschy, Pisinger, Knapsack Problems, 2004, chapter 9.
template <std::size_t R>
class bounded_knapsack {
 public:
  using amounts_type = resources<R, std::int64_t>;
  static constexpr std::size_t max_values = 64;

  /// Fills `room` from at most `max_values` samples that have these demands and values. Returns
  /// the largest sum of values that is found. Precondition: no value is negative, and their sum
  /// fits 63 bits.
  std::int64_t fill(std::span<amounts_type const> demands, std::span<std::int64_t const> values,
                    amounts_type const& room) {
    candidates_ = 0;
    for (std::size_t i = 0; i != demands.size(); ++i) {
      if (demands[i].fits(room)) position_[candidates_++] = i;
    }
    demands_ = demands;
    values_ = values;
    sum_from_[candidates_] = 0;
    for (std::size_t k = candidates_; k-- != 0;) {
      sum_from_[k] = sum_from_[k + 1] + values[position_[k]];
    }
    best_ = 0;
    chosen_ = 0;
    budget_ = nodes;
    search(0, room, 0, 0);
    work_ = (budget_.spent() + demands.size()) * words_of_node;
    return best_;
  }

  /// Returns true if the last subset contains the sample at `position`.
  [[nodiscard]] bool has(std::size_t position) const { return (chosen_ >> position & 1) != 0; }

  /// Returns the work of the last call, in operations on a word.
  [[nodiscard]] std::size_t work() const { return work_; }

 private:
  /// The maximum number of nodes of a search, the same as in `subset_sum`.
  static constexpr search_budget nodes{256};
  /// The work of a node, in operations on a word.
  static constexpr std::size_t words_of_node = 4 + R;

  /// Adds candidates from `first` on to the candidates in `mask`, which have the value `sum` and
  /// leave `room`.
  void search(std::size_t first, amounts_type const& room, std::int64_t sum, std::uint64_t mask) {
    if (sum > best_) {
      best_ = sum;
      chosen_ = mask;
    }
    for (std::size_t k = first; k != candidates_ && !budget_.is_spent(); ++k) {
      if (sum_from_[k] <= best_ - sum) return;
      budget_.spend();
      std::size_t const i = position_[k];
      if (!demands_[i].fits(room)) continue;
      search(k + 1, room - demands_[i], sum + values_[i], mask | std::uint64_t{1} << i);
    }
  }

  std::span<amounts_type const> demands_;
  std::span<std::int64_t const> values_;
  /// The positions of the samples that fit the room.
  std::array<std::size_t, max_values> position_ = {};
  std::size_t candidates_ = 0;
  /// The sum of the values of the candidates from the k-th on.
  std::array<std::int64_t, max_values + 1> sum_from_ = {};
  std::int64_t best_ = 0;
  std::uint64_t chosen_ = 0;
  search_budget budget_ = nodes;
  std::size_t work_ = 0;
};

}  // namespace omnibal::inline v0::detail
