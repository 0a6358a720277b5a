// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What an epoch costs in time of the ranks, by a stated cost of a tile and of a token.

#include "measure_batches.hpp"
#include "pack_options.hpp"

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>

namespace examples {

/// Seconds, added up over all ranks.
struct epoch_cost {
  /// For the samples themselves.
  double useful = 0;
  /// For what batches compute beyond that.
  double padding = 0;
  /// Until the slowest rank of each step has ended.
  double waiting = 0;

  [[nodiscard]] double total() const { return useful + padding + waiting; }
};

/// The cost of steps in which rank r runs batch `order[step * ranks + r]`. What a rank computes for
/// a batch that another one runs as well counts as padding.
[[nodiscard]] epoch_cost cost_of_epoch(std::span<std::uint32_t const> order,
                                       measured_batches const& batches,
                                       pack_options const& options);

/// The costs of batches that are filled in shuffled order, padded and not, and of the plan.
struct epoch_costs {
  epoch_cost padded;
  epoch_cost concatenated;
  epoch_cost planned;
};

/// Prints the shares of an epoch that are lost, its estimated time, and the gain of the plan.
void print_gain(pack_options const& options, epoch_costs const& costs, std::ostream& out);

}  // namespace examples
