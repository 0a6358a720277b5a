#pragma once

/// \file
/// What schedule_steps is asked for.

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// What becomes of the groups that do not fill a step.
enum class remainder_policy {
  /// They are the last step, in which the last ranks have no group. It has small loads, so that
  /// little time is lost. With several groups per rank it is a random sample and all ranks have as
  /// many groups, or one more; where each has two it exchanges groups with other steps, so that
  /// those with one more have lighter ones.
  short_step,
  /// They are the last step, in which the last ranks repeat groups with similar loads; these cells
  /// are `steps::is_repeat`. With several groups per rank they repeat random ones, and those that
  /// are left are dealt to no more ranks than they need.
  repeat,
  /// They are not in the steps of this epoch. `left_out` lists them, to be the `carried` of the
  /// next epoch.
  carry,
};

/// What a schedule depends on beside the loads and the ranks. Every pair of seed and epoch gives
/// another schedule.
struct schedule_steps_options {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  /// The dist ratio to reach in every resource: the share of a step for which ranks wait for the
  /// slowest, mean over all steps. 0 asks for the evenest steps, 1 deals at random; the larger it
  /// is, the more other groups a group meets in the course of the epochs.
  double max_dist_ratio = 0.005;
  remainder_policy remainder = remainder_policy::short_step;
  /// The groups of a rank in a step: micro-batches whose gradients are added up. With more than one
  /// only their sums are even, and where loads complement each other steps are better samples of
  /// all groups than random ones: see `step_mix`.
  std::uint32_t groups_per_rank = 1;
  /// True where not only the sums of several groups per rank must be even, but also the first
  /// groups of all ranks, the second ones and so on, as where ranks wait after each micro-batch:
  /// each of these is a step of one group for each rank, and totals complement each other. More
  /// groups that are alike meet, so that the `step_overlap` is larger.
  bool even_positions = false;
  /// The most rounds of cuts. With the usual `max_dist_ratio` about ten are run, with 0 about
  /// fifty; on a device each takes a few launches, also where no more cuts are needed.
  std::uint32_t rounds = 64;
  /// Groups that earlier epochs left out, one that epochs without a full step left out twice also
  /// twice. They run once more than the others, in the first steps.
  std::vector<std::uint32_t> carried{};
};

}  // namespace omnibal::inline v0
