// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A schedule of the samples of one step: the result of the search, which `context_plan_writer`
/// reads.

#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A group of ranks in a micro-step. `degree` is an index of the degrees of the instance, and
/// `time` lacks the least fixed time of all degrees.
struct filled_group {
  std::uint32_t micro_step = 0;
  std::uint32_t degree = 0;
  std::uint32_t first_rank = 0;
  double time = 0;
  std::int64_t bytes = 0;
};

/// The groups of all micro-steps, in any order, and the group of each sample of the instance.
struct context_schedule {
  std::vector<std::uint32_t> group_of{};
  std::vector<filled_group> groups{};
  std::uint32_t micro_steps = 0;
  /// Infinite unless every sample has a group.
  double makespan = std::numeric_limits<double>::infinity();
};

}  // namespace omnibal::inline v0::detail
