// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plan of a schedule: the last step of each call.

#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// The memory of `context_plan_writer`, reused between calls.
struct plan_buffers {
  /// The groups of the schedule in the order of the plan.
  std::vector<std::uint32_t> order{};
  /// The number in the plan of each group of the schedule.
  std::vector<std::uint32_t> plan_group_of{};
  /// The sums of the lengths of each group of the plan, and of their squares.
  std::vector<double> tokens{};
  std::vector<double> squares{};
  /// The indices of the samples by group of the plan.
  keyed_indices samples_by_group{};
};

/// Writes the groups by micro-step and rank, the samples of each group in ascending order, and the
/// makespan. Compares the makespan with the bound, which may prove the plan.
class context_plan_writer {
 public:
  context_plan_writer(context_instance const& instance, context_schedule const& schedule,
                      plan_buffers& buffers, context_plan& plan)
      : instance_(instance),
        schedule_(schedule),
        buffers_(buffers),
        plan_(plan),
        moves_groups_(instance.is_chain && instance.has_equal_ranks()) {}

  /// Writes the plan. Precondition: the plan is empty except for its lower bound.
  void run() {
    sort_groups();
    write_samples();
    write_groups();
    write_times();
    compare_with_bound();
  }

 private:
  void sort_groups() {
    auto const& groups = schedule_.groups;
    auto& order = buffers_.order;
    order.resize(groups.size());
    for (std::uint32_t g = 0; g != groups.size(); ++g) order[g] = g;
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      auto const key = [&](filled_group const& group) {
        return std::tuple(group.micro_step, part_of(group), moves_groups_ ? ~group.degree_index : 0,
                          group.first_rank);
      };
      return key(groups[left]) < key(groups[right]);
    });
    buffers_.plan_group_of.resize(groups.size());
    for (std::uint32_t g = 0; g != groups.size(); ++g) buffers_.plan_group_of[order[g]] = g;
  }

  /// Returns the part of the ranks in which the order of groups is free: the node that contains the
  /// group. All whole nodes with groups are at the front and count as part 0. Without nodes the
  /// part is 0.
  [[nodiscard]] std::uint32_t part_of(filled_group const& group) const {
    if (!moves_groups_) return 0;
    bool const is_within = instance_.degrees[group.degree_index].ranks < instance_.ranks_per_node;
    return is_within ? group.first_rank / instance_.ranks_per_node : 0;
  }

  /// Writes the samples of each group, and the sums of their lengths.
  void write_samples() {
    auto const& samples = instance_.samples;
    std::size_t const groups = schedule_.groups.size();
    buffers_.tokens.assign(groups, 0);
    buffers_.squares.assign(groups, 0);
    // Words in the order of samples, so that the samples of each group ascend.
    auto& words = buffers_.samples_by_group.words;
    words.resize(samples.size());
    for (std::size_t i = 0; i != samples.size(); ++i) {
      std::uint32_t const group = buffers_.plan_group_of[schedule_.group_of[i]];
      buffers_.tokens[group] += samples[i].tokens;
      buffers_.squares[group] += samples[i].squares;
      words[samples[i].index] = std::uint64_t{group} << 32 | samples[i].index;
    }
    buffers_.samples_by_group.sort(groups);
    grouping& lists = plan_.samples;
    std::size_t closed = 0;
    for (std::uint64_t const word : words) {
      for (; closed != word >> 32; ++closed) lists.close();
      lists.push(static_cast<std::uint32_t>(word));
    }
    if (!words.empty()) lists.close();
  }

  void write_groups() {
    for (std::size_t g = 0; g != buffers_.order.size(); ++g) {
      filled_group const& group = group_at(g);
      while (plan_.micro_steps() <= group.micro_step) {
        plan_.micro_step_offsets.push_back(static_cast<std::uint32_t>(g));
      }
      ++plan_.micro_step_offsets.back();
      context_degree const& degree = instance_.degrees[group.degree_index];
      degree_time const scaled{degree.time.fixed, group.slowness * degree.time.linear,
                               group.slowness * degree.time.quadratic};
      double const time = scaled(buffers_.tokens[g], buffers_.squares[g]);
      plan_.groups.push_back({first_rank_at(g), degree.ranks, time + instance_.min_fixed_time});
    }
  }

  [[nodiscard]] filled_group const& group_at(std::size_t g) const {
    return schedule_.groups[buffers_.order[g]];
  }

  /// Returns the first rank of the next group. In a chain, the group starts behind the group
  /// before, or at the start of its node.
  [[nodiscard]] std::uint32_t first_rank_at(std::size_t g) const {
    filled_group const& group = group_at(g);
    if (!moves_groups_) return group.first_rank;
    std::uint32_t const part = part_of(group);
    bool const is_first = g == 0 || group_at(g - 1).micro_step != group.micro_step ||
                          part_of(group_at(g - 1)) != part;
    return is_first ? part * instance_.ranks_per_node
                    : plan_.groups.back().first_rank + plan_.groups.back().degree;
  }

  void write_times() {
    std::uint64_t const steps = instance_.rounded_steps(schedule_.micro_steps);
    plan_.micro_step_offsets.resize(steps + 1, plan_.micro_step_offsets.back());
    plan_.idle_ranks = steps * instance_.ranks;
    for (std::size_t k = 0; k != steps; ++k) {
      double longest = 0;
      for (context_group const& group : plan_.groups_of(k)) {
        longest = std::max(longest, group.time);
        plan_.idle_ranks -= group.degree;
      }
      plan_.makespan += instance_.micro_step_time + longest;
    }
  }

  /// Proves the plan if its makespan equals the bound. The bound is rounded down, so the comparison
  /// has a tolerance.
  void compare_with_bound() {
    double const gap = std::abs(plan_.makespan - plan_.lower_bound);
    plan_.proven = gap <= 16 * context_rounding * plan_.makespan;
    if (plan_.proven) plan_.lower_bound = plan_.makespan;
  }

  context_instance const& instance_;
  context_schedule const& schedule_;
  plan_buffers& buffers_;
  context_plan& plan_;
  /// True if groups move to other ranks, in descending order of degree.
  bool const moves_groups_;
};

}  // namespace omnibal::inline v0::detail
