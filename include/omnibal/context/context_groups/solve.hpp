// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The steps of `context_groups` after the checks: the instance, the bound, the search, branch and
/// bound, and the plan. Input: the checked arguments of the call. Output: its plan.

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/exact.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_groups/make_instance.hpp>
#include <omnibal/context/context_groups/plan_writer.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/context/context_groups/search.hpp>
#include <omnibal/context/context_groups_options.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/solve_status.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// The memory of `solve_context_groups`, reused between calls.
struct solver_buffers {
  context_instance instance{};
  keyed_indices samples_by_length{};
  context_bound bound{};
  search_buffers search{};
  plan_buffers writing{};
};

/// Empties a plan, whose status is then `solved`.
inline void clear_plan(context_plan& plan) {
  plan.status = solve_status::solved;
  plan.micro_step_offsets.assign(1, 0);
  plan.groups.clear();
  plan.samples.clear();
  plan.makespan = plan.lower_bound = 0;
  plan.proven = false;
  plan.idle_ranks = 0;
  plan.sample = plan.min_degree = 0;
}

/// Improves a schedule of few samples on ranks of equal speed and capacity. Returns true if the
/// schedule is then proven to be optimal.
inline bool run_branch_and_bound(context_instance const& instance, context_bound const& bound,
                                 context_memory memory, effort search_effort,
                                 context_schedule& schedule) {
  constexpr by_effort<std::uint64_t> levels{.fast = 0, .normal = 20'000, .thorough = 10'000'000};
  std::uint64_t const max_nodes = levels[search_effort];
  if (max_nodes == 0 || instance.samples.size() > max_exact_samples) return false;
  if (!instance.has_equal_ranks()) return false;
  return context_exact(instance, bound, memory, schedule).run(max_nodes);
}

/// Plans samples with checked lengths on checked ranks. Searches for a schedule that is near the
/// lower bound, continues with branch and bound if there are few samples, and writes the plan.
inline void solve_context_groups(std::span<std::uint32_t const> lengths, std::size_t ranks,
                                 context_cost const& cost, context_memory memory,
                                 context_groups_options const& options, solver_buffers& buffers,
                                 context_plan& plan) {
  clear_plan(plan);
  context_instance& instance = buffers.instance;
  auto const misfit =
      make_instance(lengths, ranks, cost, memory, options, buffers.samples_by_length, instance);
  if (misfit) {
    plan.status = solve_status::infeasible;
    plan.sample = misfit->index;
    plan.min_degree = misfit->min_degree;
    return;
  }
  if (instance.samples.empty()) {
    plan.proven = true;
    return;
  }
  context_bound& bound = buffers.bound;
  bound.measure(instance, memory);
  plan.lower_bound = bound.makespan();
  if (!is_finite(plan.lower_bound)) {
    throw_overflow(context_groups_name, "the time of all samples");
  }
  context_search search(instance, bound, memory, buffers.search);
  context_schedule& best = search.run(options.effort);
  bool const is_optimal = run_branch_and_bound(instance, bound, memory, options.effort, best);
  context_plan_writer(instance, best, buffers.writing, plan).run();
  if (!is_optimal) return;
  plan.lower_bound = plan.makespan;
  plan.proven = true;
}

}  // namespace omnibal::inline v0::detail
