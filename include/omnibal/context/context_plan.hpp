// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A plan of groups of ranks of different sizes for the samples of one step.

#include <omnibal/check.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// Neighboring ranks that share samples of a micro-step.
struct context_group {
  std::uint32_t first_rank = 0;
  /// The number of ranks: the context-parallel degree.
  std::uint32_t degree = 0;
  /// The time of the samples of the group, without the fixed time of a micro-step.
  double time = 0;

  [[nodiscard]] friend bool operator==(context_group const&, context_group const&) = default;
};

/// The micro-steps of one training step: in each, groups of ranks of different sizes, and the
/// samples of each group.
struct context_plan {
  /// The status of the plan: infeasible if a sample fits on no allowed degree.
  solve_status status = solve_status::solved;
  /// The offsets of the micro-steps in `groups`: the groups of micro-step k are
  /// [micro_step_offsets[k], micro_step_offsets[k + 1]).
  std::vector<std::uint32_t> micro_step_offsets{0};
  /// The groups of all micro-steps, in each micro-step by ascending rank. Ranks between the groups
  /// are idle.
  std::vector<context_group> groups{};
  /// The samples of each group, ascending.
  grouping samples{};
  /// The time of the step if all ranks begin each micro-step together: the sum over the micro-steps
  /// of their fixed time and their longest group.
  double makespan = 0;
  /// A lower bound: no plan has a shorter makespan.
  double lower_bound = 0;
  /// True if no plan has a shorter makespan than this plan.
  bool proven = false;
  /// The number of ranks without a group, summed over the micro-steps.
  std::uint64_t idle_ranks = 0;
  /// If the plan is infeasible, the first sample that fits on no allowed degree.
  std::uint32_t sample = 0;
  /// The least degree, allowed or not, on which `sample` would fit, if the plan is infeasible. The
  /// value is 0 if the sample fits on no degree up to 65,536.
  std::uint32_t min_degree = 0;

  [[nodiscard]] std::size_t micro_steps() const noexcept { return micro_step_offsets.size() - 1; }

  /// Returns the groups of a micro-step. Precondition: the micro-step exists.
  [[nodiscard]] std::span<context_group const> groups_of(std::size_t micro_step) const& {
    std::size_t const first = micro_step_offsets[micro_step];
    return std::span(groups).subspan(first, micro_step_offsets[micro_step + 1] - first);
  }
  void groups_of(std::size_t micro_step) const&& = delete;

  /// Returns the number of the group of a rank in a micro-step, an index of `groups` and `samples`.
  /// Returns `groups.size()` if the rank is idle. Complexity: logarithmic.
  [[nodiscard]] std::size_t group_of(std::size_t micro_step, std::size_t rank) const {
    auto const own = groups_of(micro_step);
    auto const after = std::upper_bound(
        own.begin(), own.end(), rank,
        [](std::size_t wanted, context_group const& group) { return wanted < group.first_rank; });
    if (after == own.begin()) return groups.size();
    context_group const& found = *(after - 1);
    if (rank - found.first_rank >= found.degree) return groups.size();
    return micro_step_offsets[micro_step] + static_cast<std::size_t>(after - own.begin()) - 1;
  }

  /// Identifies the groups, their ranks and their samples: equal on all ranks that computed the
  /// same plan. Times are not part of the digest.
  [[nodiscard]] std::uint64_t digest() const {
    detail::data_digest result;
    for (std::uint32_t const offset : micro_step_offsets) result.add(std::uint64_t{offset});
    for (context_group const& group : groups) {
      result.add(std::uint64_t{group.first_rank} << 32 | group.degree);
    }
    for (std::uint32_t const offset : samples.offsets()) result.add(std::uint64_t{offset});
    for (std::uint32_t const item : samples.items()) result.add(std::uint64_t{item});
    return result.value();
  }

  [[nodiscard]] friend bool operator==(context_plan const&, context_plan const&) = default;
};

}  // namespace omnibal::inline v0
