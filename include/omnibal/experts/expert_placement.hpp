// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The copies of experts on ranks.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// The experts in the slots of all ranks, for each layer. An expert has one copy or more, and at
/// most one copy on each rank. Each copy serves an equal share of the load of its expert.
struct expert_placement {
  std::size_t layers = 0;
  std::size_t ranks = 0;
  /// The number of slots of a rank.
  std::size_t slots = 0;
  /// The expert of each slot: `layers * ranks * slots` numbers, slots fastest, then ranks, then
  /// layers.
  std::vector<std::uint32_t> experts{};
  /// The largest load of a rank in each layer, to about 15 digits.
  std::vector<double> largest_loads{};
  /// For each layer a lower bound on the largest load of a rank in any placement, with any number
  /// of moved copies.
  std::vector<double> lower_bounds{};
  /// The number of copies of each layer on ranks that did not have their expert in the old
  /// placement; zeros if there is no old placement.
  std::vector<std::size_t> moved{};

  /// Returns the experts in the slots of a rank in a layer.
  [[nodiscard]] std::span<std::uint32_t const> operator()(std::size_t layer,
                                                          std::size_t rank) const& {
    return std::span(experts).subspan((layer * ranks + rank) * slots, slots);
  }
  void operator()(std::size_t layer, std::size_t rank) const&& = delete;

  [[nodiscard]] friend bool operator==(expert_placement const&, expert_placement const&) = default;
};

}  // namespace omnibal::inline v0
