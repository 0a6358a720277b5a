// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The input and the output of a filling: the targets of the levels, and a schedule of the samples.
/// `context_search` selects the targets, and `context_plan_writer` reads the best schedule.

#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The target of a filling for a level: consecutive samples by descending length, which have their
/// own micro-steps.
struct level_target {
  /// The number of micro-steps that share the work of the level.
  std::uint64_t micro_steps = 1;
  /// The limit on the time of the longest group of a micro-step.
  double longest = 0;
  /// The deadline of a micro-step, as a multiple of its average share of the remaining work.
  double pace = 1;
  /// The least degree of new groups. Smaller degrees are used only if no degree from it on is
  /// possible.
  std::uint32_t min_degree_index = 0;
  /// The end of the level in the samples of the instance.
  std::uint32_t end = ~std::uint32_t{0};
};

/// The work of a level: the time of all micro-steps before the level, and the rank-seconds of its
/// samples.
struct level_work {
  double time_before = 0;
  double area = 0;
};

/// A group of ranks in a micro-step. `time` lacks the least fixed time of all degrees. `bytes`
/// includes the bytes that the group has less than the largest capacity of all ranks, so that each
/// group has room up to that capacity.
struct filled_group {
  std::uint32_t micro_step = 0;
  std::uint32_t degree_index = 0;
  std::uint32_t first_rank = 0;
  double time = 0;
  std::int64_t bytes = 0;
  double slowness = 1;
};

/// The groups of all micro-steps, in any order, and the group of each sample of the instance.
struct context_schedule {
  std::vector<std::uint32_t> group_of{};
  std::vector<filled_group> groups{};
  std::uint32_t micro_steps = 0;
  /// The time of the step; infinite unless every sample has a group.
  double makespan = std::numeric_limits<double>::infinity();
};

}  // namespace omnibal::inline v0::detail
