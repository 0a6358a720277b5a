// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The numbers of full steps and ranks, and the places of bundles in the steps.
///
/// `sorted_cells` and `step_mixer` return orders of bundles. A grid, which does not change, divides
/// such an order into steps.

#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// Full steps with one bundle for each rank. An order of bundles assigns them to steps: step s has
/// the bundles at the places [s * ranks, (s + 1) * ranks).
struct step_grid {
  std::uint32_t steps;
  std::uint32_t ranks;

  /// Returns the number of places of bundles.
  [[nodiscard]] std::size_t size() const { return std::size_t{steps} * ranks; }

  /// Returns the bundles of a step in an order of bundles.
  template <class Bundle>
  [[nodiscard]] std::span<Bundle> of_step(std::span<Bundle> order, std::size_t step) const {
    return order.subspan(step * ranks, ranks);
  }
};

}  // namespace omnibal::inline v0::detail
