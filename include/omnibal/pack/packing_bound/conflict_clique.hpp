// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups from samples of which no two fit together.

#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/pack/score.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Cliques of the graph of conflicts, which has an edge between two samples that exceed a capacity
/// together. Each sample of a clique needs a group of its own.
///
/// Two cliques are built greedily: with the samples by descending largest share of a capacity, and
/// by descending number of conflicts. If there are many samples, only the largest samples are
/// examined.
template <class Layout>
class conflict_clique {
 public:
  /// `input` must outlive this object.
  explicit conflict_clique(measured<Layout> const& input) : input_(input) {
    capacity_shares<kinds, weight_type> const share(input.capacity);
    auto const largest_share = [&](std::size_t k) {
      amounts_type const amounts = input.amounts(k);
      std::uint64_t largest = 0;
      for (std::size_t r = 0; r != kinds; ++r) largest = std::max(largest, share(amounts[r], r));
      return largest;
    };
    for (std::uint32_t const k : order_descending(input.size(), largest_share)) {
      if (amounts_.size() == max_examined_samples) break;
      amounts_.push_back(input.amounts(k));
    }
  }

  /// Returns the number of samples of the larger clique.
  [[nodiscard]] std::size_t size() {
    std::size_t const first = greedy_clique();
    std::vector<std::uint64_t> conflicts(amounts_.size(), 0);
    for (std::size_t i = 0; i != amounts_.size(); ++i) {
      for (std::size_t j = 0; j != i; ++j) {
        if (!are_in_conflict(amounts_[i], amounts_[j])) continue;
        ++conflicts[i];
        ++conflicts[j];
      }
    }
    std::vector<amounts_type> by_conflicts;
    for (std::uint32_t const k :
         order_descending(conflicts.size(), [&](std::size_t i) { return conflicts[i]; })) {
      by_conflicts.push_back(amounts_[k]);
    }
    amounts_.swap(by_conflicts);
    return std::max(first, greedy_clique());
  }

 private:
  using amounts_type = typename Layout::amounts_type;
  using weight_type = typename amounts_type::value_type;
  static constexpr std::size_t kinds = amounts_type::size();
  /// The largest number of samples that are examined.
  static constexpr std::size_t max_examined_samples = 768;

  [[nodiscard]] bool are_in_conflict(amounts_type const& one, amounts_type const& other) const {
    // The comparison avoids a sum, which may exceed the largest integer.
    for (std::size_t r = 0; r != kinds; ++r) {
      if (one[r] > input_.capacity[r] - other[r]) return true;
    }
    return false;
  }

  /// Returns the size of a clique that is built greedily: each sample, in order, joins if it is in
  /// conflict with all samples of the clique.
  [[nodiscard]] std::size_t greedy_clique() const {
    std::vector<amounts_type> clique;
    for (amounts_type const& sample : amounts_) {
      bool const is_in = std::all_of(clique.begin(), clique.end(), [&](amounts_type const& member) {
        return are_in_conflict(sample, member);
      });
      if (is_in) clique.push_back(sample);
    }
    return clique.size();
  }

  measured<Layout> const& input_;
  std::vector<amounts_type> amounts_;
};

}  // namespace omnibal::inline v0::detail
