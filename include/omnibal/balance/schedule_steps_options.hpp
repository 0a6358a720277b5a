// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Options of `schedule_steps`.

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// The treatment of the groups that do not fill a step.
enum class remainder_policy {
  /// The groups form a last step, in which the last ranks have no group. This step has small loads,
  /// so that little time is lost. With several groups per rank the step is a random sample, and the
  /// counts of all ranks differ by at most one. If each rank has at least two groups, the last step
  /// exchanges groups with other steps, and ranks with one more group get lighter groups.
  short_step,
  /// The groups form a last step, in which the last ranks repeat groups with similar loads;
  /// `steps::is_repeat` marks these cells. With several groups per rank the ranks repeat random
  /// groups, and the remaining groups go to the smallest sufficient number of ranks.
  repeat,
  /// The groups are not in the steps of this epoch. `unscheduled_groups` lists them as the
  /// `carried` groups of the next epoch.
  carry,
};

/// The options of a schedule besides the loads and the ranks. Every pair of seed and epoch results
/// in another schedule.
struct schedule_steps_options {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  /// The target dist ratio in every resource: the share of a step for which ranks are idle until
  /// the slowest rank ends, on average over all steps. With 0 the steps are as even as possible;
  /// with 1 the assignment is random. With a larger ratio, a group shares steps with more different
  /// groups over the epochs.
  double max_dist_ratio = 0.005;
  remainder_policy remainder = remainder_policy::short_step;
  /// The number of groups of a rank in a step: micro-batches whose gradients are summed. With more
  /// than one group, only the sums over the groups of a rank are even. If loads complement each
  /// other, steps are better samples of all groups than random steps: see `step_spread`.
  std::uint32_t groups_per_rank = 1;
  /// Whether the loads at each position are even, not only the sums of several groups per rank. The
  /// first groups of all ranks are then even, the second groups and so on. This is useful if ranks
  /// synchronize after each micro-batch. Each position is a step of one group for each rank, and
  /// totals complement each other. More groups with similar loads share a step, and the
  /// `step_overlap` is larger.
  bool even_positions = false;
  /// The maximum number of rounds of cuts. The default `max_dist_ratio` requires about ten rounds,
  /// zero about fifty. On a device each round costs a few launches, even if no more cuts are
  /// necessary.
  std::uint32_t rounds = 64;
  /// The groups that earlier epochs left out. A group is listed twice if epochs without a full step
  /// left it out twice. These groups run once more than other groups, in the first steps.
  std::vector<std::uint32_t> carried{};
  /// The speed of each rank, the same in all steps, or one value for all; empty for equal speeds.
  std::vector<double> speeds{};
};

}  // namespace omnibal::inline v0
