// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a plan of groups promises, checked by its definition.

#include <omnibal/context/context_groups.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace test {

/// A question as its caller has it.
struct context_question {
  std::vector<std::int64_t> lengths;
  std::uint32_t ranks = 1;
  omnibal::context_cost cost{};
  /// Bytes of each token, shared by the ranks of a group, and of each rank.
  std::int64_t token_bytes = 1;
  std::int64_t rank_bytes = 0;
  omnibal::context_groups_options options{};

  [[nodiscard]] std::int64_t bytes(std::int64_t length, std::uint32_t degree) const {
    return rank_bytes + (length * token_bytes + degree - 1) / degree;
  }
  [[nodiscard]] auto memory() const {
    return [this](std::int64_t length, std::uint32_t degree) { return bytes(length, degree); };
  }
  [[nodiscard]] omnibal::context_plan plan() const {
    return omnibal::context_groups(lengths, ranks, cost, memory(), options);
  }
  [[nodiscard]] bool allows(std::uint32_t degree) const {
    auto const& listed = options.degrees;
    bool const is_listed =
        listed.empty() || std::find(listed.begin(), listed.end(), degree) != listed.end();
    std::uint32_t const node = options.ranks_per_node;
    return is_listed && degree >= 1 &&
           degree <= std::min<std::size_t>(ranks, cost.degrees.size()) &&
           (node == 0 || degree <= node || degree % node == 0);
  }
  /// True if groups lie on blocks: asked for, or because the degrees are a chain of divisors.
  [[nodiscard]] bool has_blocks() const {
    if (options.placement == omnibal::group_placement::blocks) return true;
    std::uint32_t const node = options.ranks_per_node;
    for (std::uint32_t degree = 1; degree <= ranks; ++degree) {
      if (!allows(degree)) continue;
      if (degree < node && node % degree != 0) return false;
      for (std::uint32_t larger = degree + 1; larger <= ranks; ++larger) {
        if (allows(larger) && larger % degree != 0) return false;
      }
    }
    return true;
  }
  /// True if a group may start at a rank that leaves room for it.
  [[nodiscard]] bool may_start_at(std::uint32_t first_rank, std::uint32_t degree) const {
    if (has_blocks() && first_rank % degree != 0) return false;
    std::uint32_t const node = options.ranks_per_node;
    if (node == 0) return true;
    std::uint32_t const last = first_rank + degree - 1;
    return first_rank / node == last / node || (first_rank % node == 0 && degree % node == 0);
  }
  /// The bytes that each rank of a group has for samples.
  [[nodiscard]] std::int64_t capacity(std::uint32_t first_rank, std::uint32_t degree) const {
    auto const& capacities = options.capacities;
    if (capacities.empty()) return options.capacity;
    auto const first = capacities.begin() + first_rank;
    return *std::min_element(first, first + degree);
  }
  /// The largest capacity of a group of a degree; -1 where no group may have it.
  [[nodiscard]] std::int64_t max_capacity(std::uint32_t degree) const {
    std::int64_t most = -1;
    for (std::uint32_t first = 0; allows(degree) && first + degree <= ranks; ++first) {
      if (may_start_at(first, degree)) most = std::max(most, capacity(first, degree));
    }
    return most;
  }
  /// True if a sample of this length fits into a group that may be.
  [[nodiscard]] bool fits(std::int64_t length) const {
    for (std::uint32_t degree = 1; degree <= ranks; ++degree) {
      if (bytes(length, degree) <= max_capacity(degree)) return true;
    }
    return false;
  }
  /// The time of the slowest rank of a group for what takes the fastest of all ranks one unit.
  [[nodiscard]] double slowness(std::uint32_t first_rank, std::uint32_t degree) const {
    auto const& speeds = options.speeds;
    if (speeds.size() < 2) return 1;
    auto const first = speeds.begin() + first_rank;
    return *std::max_element(speeds.begin(), speeds.end()) /
           *std::min_element(first, first + degree);
  }
  /// The time of a group with these samples.
  [[nodiscard]] double time(std::span<std::uint32_t const> samples, std::uint32_t degree,
                            std::uint32_t first_rank) const {
    double tokens = 0;
    double squares = 0;
    for (std::uint32_t const sample : samples) {
      auto const length = static_cast<double>(lengths[sample]);
      tokens += length;
      squares += length * length;
    }
    omnibal::degree_time const& row = cost.degrees[degree - 1];
    return row.fixed +
           slowness(first_rank, degree) * (row.linear * tokens + row.quadratic * squares);
  }
};

inline bool is_close(double left, double right) {
  return std::abs(left - right) <= 1e-9 * std::max(std::abs(left), std::abs(right));
}

/// True where no rank from `first` to `last` - 1 finds a group.
inline bool are_idle(omnibal::context_plan const& plan, std::size_t step, std::uint32_t first,
                     std::uint32_t last) {
  for (std::uint32_t rank = first; rank < last; ++rank) {
    if (plan.group_of(step, rank) != plan.groups.size()) return false;
  }
  return true;
}

/// What is wrong with the groups of a micro-step, empty where nothing is. `idle` counts ranks.
inline std::string micro_step_faults(context_question const& question,
                                     omnibal::context_plan const& plan, std::size_t step,
                                     double& longest, std::uint64_t& idle) {
  std::uint32_t free_from = 0;
  longest = 0;
  for (std::size_t g = plan.micro_step_offsets[step]; g != plan.micro_step_offsets[step + 1]; ++g) {
    omnibal::context_group const& group = plan.groups[g];
    if (!question.allows(group.degree)) return "a degree that is not allowed";
    if (group.first_rank < free_from) return "groups that share ranks";
    if (!are_idle(plan, step, free_from, group.first_rank)) return "an idle rank with a group";
    idle += group.first_rank - free_from;
    free_from = group.first_rank + group.degree;
    if (free_from > question.ranks) return "a group beyond the last rank";
    if (!question.may_start_at(group.first_rank, group.degree)) {
      return "a group in parts of nodes or off its block";
    }
    if (plan.samples[g].empty()) return "a group without samples";
    std::int64_t bytes = 0;
    for (std::uint32_t const sample : plan.samples[g]) {
      bytes += question.bytes(question.lengths[sample], group.degree);
    }
    if (bytes > question.capacity(group.first_rank, group.degree)) {
      return "a group above the capacity";
    }
    double const time = question.time(plan.samples[g], group.degree, group.first_rank);
    if (!is_close(time, group.time)) return "a wrong time";
    longest = std::max(longest, group.time);
    for (std::uint32_t rank = group.first_rank; rank != free_from; ++rank) {
      if (plan.group_of(step, rank) != g) return "a rank that does not find its group";
    }
  }
  if (!are_idle(plan, step, free_from, question.ranks)) return "an idle rank with a group";
  idle += question.ranks - free_from;
  return {};
}

/// What is wrong with a plan, empty where nothing is.
inline std::string context_faults(context_question const& question,
                                  omnibal::context_plan const& plan) {
  if (plan.status != omnibal::solve_status::solved) return "not solved";
  if (plan.micro_steps() % question.options.multiple != 0) return "no multiple of micro-steps";
  if (plan.groups.size() != plan.samples.size()) return "groups without lists of samples";
  double makespan = 0;
  std::uint64_t idle = 0;
  for (std::size_t step = 0; step != plan.micro_steps(); ++step) {
    double longest = 0;
    std::string const found = micro_step_faults(question, plan, step, longest, idle);
    if (!found.empty()) return found;
    makespan += question.cost.micro_step + longest;
  }
  if (idle != plan.idle_ranks) return "a wrong number of idle ranks";
  if (!is_close(makespan, plan.makespan)) return "a wrong makespan";
  if (plan.lower_bound > plan.makespan) return "a bound above the makespan";
  if (plan.proven && plan.lower_bound != plan.makespan) return "proven beside its bound";
  std::vector<std::uint32_t> seen(plan.samples.items().begin(), plan.samples.items().end());
  std::sort(seen.begin(), seen.end());
  std::vector<std::uint32_t> all(question.lengths.size());
  std::iota(all.begin(), all.end(), 0u);
  return seen == all ? "" : "samples lost or doubled";
}

}  // namespace test
