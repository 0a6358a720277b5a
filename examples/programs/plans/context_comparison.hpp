// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The steps of an epoch of long and short samples, planned in several ways that run on the same
/// ranks, in the same memory and by the same times.

#include "context_rivals.hpp"
#include "dataset.hpp"
#include "progress.hpp"

#include <omnibal/context/context_groups.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

/// How large steps are: a number of samples, or as many as reach a number of tokens. One of the two
/// is zero.
struct step_size {
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
};

/// What the ways have in common. The step has no lengths; its degrees are those that all may use.
struct context_setting {
  context_step step{};
  std::uint32_t ranks_per_node = 8;
  step_size size{};
  std::uint64_t seed = 0;
};

/// An epoch planned in one way, and what that costs.
struct context_epoch {
  std::string name;
  /// For the name of a file.
  std::string stem;
  /// The samples of each step; sample i of its plan is the i-th of these.
  omnibal::grouping steps{};
  std::vector<omnibal::context_plan> plans{};
  double seconds = 0;
  /// The shares of the time of all ranks in which they have nothing to do, and for which groups
  /// take longer than their samples would on one rank each.
  double waiting = 0;
  double sharing = 0;
  std::uint64_t micro_steps = 0;
  /// The most tokens that a rank holds at a time.
  std::int64_t max_tokens = 0;
  /// Processor time for each step, in the mean.
  double planning_milliseconds = 0;
  /// Where not empty, why there is no plan.
  std::string misfit{};
};

/// What becomes of the time of a step.
struct step_figures {
  double seconds = 0;
  /// Of a rank in the mean, without a group or after its end.
  double waiting = 0;
  /// Of a rank in the mean, what groups take beyond their samples on one rank each: exchanging
  /// tokens, starting.
  double sharing = 0;
};

/// Of a plan for samples with these lengths.
[[nodiscard]] step_figures figures_of(omnibal::context_plan const& plan, context_step const& step);

/// The time that `group`, the number of a group of the plan, takes beyond its samples on one rank
/// each.
[[nodiscard]] double sharing_time(omnibal::context_plan const& plan, std::size_t group,
                                  context_step const& step);

struct context_comparison {
  /// Samples that fit on no degree and are in no step, ascending.
  std::vector<std::uint32_t> oversized;
  /// No plan of the same steps takes less, whatever its degrees.
  double lower_bound = 0;
  /// One degree for the epoch, the best degree of each step, levels, and groups: powers of two,
  /// inside nodes, any degree. These have the same samples in a step. The last has others, those of
  /// like lengths, with the best degree of each step.
  std::vector<context_epoch> epochs;
};

/// Deals the samples to steps in random order and plans each step in each way. Equal input gives
/// equal plans. Errors: `std::runtime_error` where no sample fits; those of `context_groups`.
[[nodiscard]] context_comparison compare_context(dataset const& data,
                                                 context_setting const& setting, progress& shown);

}  // namespace examples
