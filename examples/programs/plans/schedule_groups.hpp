// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups to steps and ranks, at random or by the scheduler.

#include "measure_batches.hpp"
#include "pack_options.hpp"

#include <omnibal/resources.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

/// One epoch, measured.
struct measured_steps {
  omnibal::steps steps;
  /// Groups that an earlier epoch left out, and those that this one leaves to the next.
  std::vector<std::uint32_t> carried{};
  std::vector<std::uint32_t> left_out{};
  /// The share of each step for which ranks wait for the slowest, and the mean over the steps.
  std::vector<amounts> waiting{};
  amounts dist_ratio{};
  /// The pairs of groups that share a step in this epoch and in the next, over what random
  /// steps give.
  double overlap = 1;
  /// How much the totals of steps vary, over what random steps give.
  amounts mix{};
};

/// The number of cells in the last step that repeat a group.
[[nodiscard]] std::size_t repeats(omnibal::steps const& schedule);

/// The epoch of the options in random steps: groups are dealt at random.
[[nodiscard]] measured_steps deal_at_random(pack_options const& options,
                                            std::span<omnibal::resources<2> const> loads);

/// The epoch of the options for their tolerance and remainder. With `remainder_policy::carry` the
/// epochs before it are scheduled as well, because each hands groups to the next.
[[nodiscard]] measured_steps schedule_groups(pack_options const& options,
                                             std::span<omnibal::resources<2> const> loads);

}  // namespace examples
