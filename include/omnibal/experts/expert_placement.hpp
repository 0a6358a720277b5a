// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The copies of experts on ranks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// The experts in the slots of all ranks, for each layer. An expert has one copy or more and at
/// most one on a rank, and each copy serves an equal share of the load of the expert.
struct expert_placement {
  std::size_t layers = 0;
  std::size_t ranks = 0;
  /// The slots of a rank.
  std::size_t slots = 0;
  /// The expert of each slot, slots fastest, then ranks: layers * ranks * slots numbers.
  std::vector<std::uint32_t> experts{};
  /// The load of the heaviest rank of each layer, to about 15 digits.
  std::vector<double> largest_loads{};
  /// For each layer a lower bound of the heaviest rank with any placement, whatever it moves.
  std::vector<double> lower_bounds{};
  /// The copies of each layer on ranks that did not have them in the old placement; zeros without
  /// one.
  std::vector<std::size_t> moved{};

  /// Returns the experts of a rank.
  [[nodiscard]] std::span<std::uint32_t const> operator()(std::size_t layer,
                                                          std::size_t rank) const& {
    return std::span(experts).subspan((layer * ranks + rank) * slots, slots);
  }
  void operator()(std::size_t layer, std::size_t rank) const&& = delete;

  [[nodiscard]] friend bool operator==(expert_placement const&, expert_placement const&) = default;
};

}  // namespace omnibal::inline v0
