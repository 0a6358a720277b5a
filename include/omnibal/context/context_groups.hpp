// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of ranks of different sizes for the samples of one step.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/allowed_degrees.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/exact.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/keyed_indices.hpp>
#include <omnibal/context/context_groups/plan_writer.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/context/context_groups/search.hpp>
#include <omnibal/context/context_groups/sorted_samples.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A functor (length, degree) to the bytes that a sample requires on each rank of its group.
template <class Memory>
concept context_bytes =
    std::regular_invocable<Memory const&, std::int64_t, std::uint32_t> && std::integral<
        std::remove_cvref_t<std::invoke_result_t<Memory const&, std::int64_t, std::uint32_t>>>;

/// The runs of neighboring ranks that a group may have.
enum class group_placement {
  /// Any run of neighboring ranks. Groups are on blocks in any case if the degrees are a chain of
  /// divisors. With nodes, each degree below the ranks of a node also divides that number.
  anywhere,
  /// A block: a group of d ranks starts at a multiple of d. Then the communicators of ranks / d
  /// blocks for each degree suffice.
  blocks,
};

struct context_groups_options {
  /// The most bytes that the samples of a group may require on each of its ranks.
  std::int64_t capacity = std::numeric_limits<std::int64_t>::max();
  /// The degrees that groups may have, ascending. If the list is empty, these are all degrees of
  /// the table of costs. Degrees above the number of ranks are ignored. `powers_of_two` and
  /// `divisors` return such lists.
  std::vector<std::uint32_t> degrees{};
  /// The ranks of a node. Each group is inside a node or consists of whole nodes. With 0, the
  /// default, groups may be anywhere. The options of exchanges refuse 0; there 1 means that nodes
  /// do not matter.
  std::uint32_t ranks_per_node = 0;
  /// The ranks at which groups may start. Choose `blocks` if the trainer has only communicators of
  /// blocks.
  group_placement placement = group_placement::anywhere;
  /// The divisor of the number of micro-steps, at most 65,536. If necessary, empty micro-steps at
  /// the end complete the number.
  std::uint32_t multiple = 1;
  /// The effort of the search. `fast` tries about five plans. `normal` tries four more, and up to
  /// ten with levels of length. If the best of these is more than 3 % above the bound, `normal`
  /// also tries some plans with each doubling of the least degree of all samples. `thorough` tries
  /// 36 more. For at most twelve samples `normal` also visits up to 20,000 nodes of a search tree
  /// and `thorough` up to 10,000,000. Unless the tree has more nodes, the plan is then proven to be
  /// the best. No plan is worse than a plan of less effort.
  omnibal::effort effort = omnibal::effort::normal;
};

/// Returns the degrees 1, 2, 4, ... up to `most`.
[[nodiscard]] inline std::vector<std::uint32_t> powers_of_two(std::uint32_t most) {
  std::vector<std::uint32_t> result;
  for (std::uint64_t degree = 1; degree <= most; degree *= 2) {
    result.push_back(static_cast<std::uint32_t>(degree));
  }
  return result;
}

/// Returns the degrees that divide a number, such as the number of attention heads.
[[nodiscard]] inline std::vector<std::uint32_t> divisors(std::uint32_t number) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t degree = 1; degree <= number / degree; ++degree) {
    if (number % degree != 0) continue;
    result.push_back(degree);
    if (degree != number / degree) result.push_back(number / degree);
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// The memory of `context_groups`, and its last result. A workspace that is reused for the same
/// number of samples and ranks avoids all allocations. It owns the result that a call returns by
/// reference.
class context_groups_workspace {
 public:
  context_groups_workspace() = default;
  /// Returns the result of the last call.
  [[nodiscard]] context_plan const& result() const& { return plan_; }
  void result() const&& = delete;

 private:
  friend struct context_groups_fn;

  detail::context_instance instance_;
  detail::keyed_indices samples_by_length_;
  detail::context_bound bound_;
  detail::search_buffers search_;
  detail::plan_buffers writing_;
  context_plan plan_;
};

struct context_groups_fn {
  /// Plans micro-steps of groups of ranks for the samples of one training step. A long document
  /// runs on many ranks while short documents run on one rank each: `context_groups(lengths, ranks,
  /// cost, memory, {.capacity = bytes})`. All ranks compute the same plan from gathered lengths.
  ///
  /// - `lengths`: the lengths of all samples of the step, in tokens.
  /// - `cost`: the times of groups of each degree. Times need not fall as the degree grows.
  /// - `memory(length, degree)`: the bytes that a sample requires on each rank of its group. The
  ///   bytes of the samples of a group add up and never exceed `options.capacity`. The bytes must
  ///   not grow with the degree. All d ranks together must require no fewer bytes than one rank
  ///   would; the search also calls `memory(length, 1)`.
  ///
  /// Every sample is in exactly one group. The groups of a micro-step have disjoint ranks, and the
  /// ranks of a group are neighbors. The plan is the best of many fillings, longest samples first.
  /// The deadlines of the fillings are between the lower bound and the best time found. Some
  /// fillings hold all samples at once, and others have separate micro-steps for levels of length.
  /// The time of a step is the sum over its micro-steps of the time of the longest group, as if all
  /// ranks began each micro-step together. Ranks that wait only for the ranks of their group are
  /// never later.
  ///
  /// Groups are on blocks if the degrees in use are a chain: a group of d ranks starts at a
  /// multiple of d. In a chain each degree divides the next one, and each degree below
  /// `options.ranks_per_node` divides that number. The number of ranks is arbitrary. The groups of
  /// a micro-step, or of a node, then descend in degree. A trainer requires the communicators of
  /// ranks / d blocks for each degree d. If the degrees are no chain, groups are any neighboring
  /// ranks, unless `options.placement` is `blocks`. With `blocks` the search considers only plans
  /// on blocks, and `proven` refers to such plans.
  ///
  /// Preconditions: lengths are from 0 to 2^32 - 1; `options.ranks_per_node` divides `ranks`.
  /// Complexity: normally ten to twenty fillings, and about ten more for each doubling of the
  /// degree if these are far from the bound. A filling is nearly linear in samples and degrees in
  /// use. It is linear in samples times degrees if times jump up and down from degree to degree.
  /// With `blocks` and no chain, a filling also searches the free ranks of a micro-step for each
  /// sample. Memory: about 200 bytes for each sample and 600 for each degree in use, in the
  /// workspace if one is given. Determinism: run-to-run, and the same on all ranks that run the
  /// same program; `digest()` identifies the plan. Errors: `std::invalid_argument` if there are no
  /// ranks, if no degree may be used, if degrees do not ascend or the table lacks one, if a time is
  /// negative, zero or not finite, if a memory is negative or grows with the degree, and if a
  /// number violates a precondition; `std::length_error` if there are more than 2^32 - 1 samples;
  /// `std::overflow_error` if times exceed the range of numbers. A sample that fits on no degree is
  /// no error: the status says so. Sources: the problem is from FlexSP (Wang et al., ASPLOS 2025);
  /// malleable jobs are from Turek, Wolf and Yu, "Approximate algorithms for scheduling
  /// parallelizable tasks", 1992, and Ludwig and Tiwari, 1994.
  template <sample_range Lengths, context_bytes Memory>
    requires std::integral<std::ranges::range_value_t<Lengths const>>
  [[nodiscard]] context_plan operator()(Lengths const& lengths, std::size_t ranks,
                                        context_cost const& cost, Memory const& memory,
                                        context_groups_options const& options = {}) const {
    context_groups_workspace workspace;
    (*this)(lengths, ranks, cost, memory, options, workspace);
    return std::move(workspace.plan_);
  }

  /// Plans micro-steps in the memory of a workspace. A call allocates only memory beyond the memory
  /// of earlier calls. The workspace owns the plan.
  template <sample_range Lengths, context_bytes Memory>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_plan const& operator()(
      Lengths const& lengths, std::size_t ranks, context_cost const& cost, Memory const& memory,
      context_groups_options const& options, context_groups_workspace& workspace) const {
    std::size_t const count = std::ranges::size(lengths);
    detail::check_index_count(name, "lengths", count);
    check(ranks, cost, options);
    set_degrees(ranks, cost, options, workspace.instance_);
    auto& samples = workspace.instance_.samples;
    samples.clear();
    samples.reserve(count);
    auto const first = std::ranges::begin(lengths);
    for (std::uint32_t i = 0; i != count; ++i) {
      samples.push_back(
          detail::sample_of_length(checked_length(i, first[static_cast<std::ptrdiff_t>(i)]), i));
    }
    auto const bytes = [&memory](std::int64_t length, std::uint32_t degree) {
      auto const measured = +memory(length, degree);
      if (std::cmp_less(measured, 0)) {
        detail::throw_memory(length, degree, measured, "must not be negative");
      }
      // The largest value, which is the default capacity, means no limit.
      return detail::saturate_cast<std::int64_t>(measured);
    };
    solve(workspace, bytes, options.effort);
    return workspace.plan_;
  }

  /// Plans micro-steps in the memory of a workspace, with default options.
  template <sample_range Lengths, context_bytes Memory>
  requires std::integral<std::ranges::range_value_t<Lengths const>> context_plan const& operator()(
      Lengths const& lengths, std::size_t ranks, context_cost const& cost, Memory const& memory,
      context_groups_workspace& workspace) const {
    return (*this)(lengths, ranks, cost, memory, {}, workspace);
  }

 private:
  static constexpr std::string_view name = detail::context_groups_name;
  static constexpr std::uint32_t max_multiple = 65536;

  /// Plans the samples of the instance of a workspace, which are in the order of the caller. Sorts
  /// the samples, searches for a schedule that is near the lower bound, continues with branch and
  /// bound if there are few samples, and writes the plan.
  static void solve(context_groups_workspace& workspace, detail::context_memory memory,
                    effort search_effort) {
    context_plan& plan = workspace.plan_;
    clear(plan);
    detail::sort_by_length(workspace.instance_.samples, workspace.samples_by_length_);
    detail::set_min_degrees(workspace.instance_, memory, plan);
    if (plan.status != solve_status::solved) return;
    detail::context_instance const& instance = workspace.instance_;
    if (instance.samples.empty()) {
      plan.proven = true;
      return;
    }
    workspace.bound_.measure(instance, memory);
    plan.lower_bound = workspace.bound_.makespan();
    if (!(plan.lower_bound <= std::numeric_limits<double>::max())) {
      detail::throw_overflow(name, "the time of all samples");
    }
    detail::context_search search(instance, workspace.bound_, memory, workspace.search_);
    detail::context_schedule& best = search.run(search_effort);
    bool const is_optimal =
        run_branch_and_bound(instance, workspace.bound_, memory, search_effort, best);
    detail::context_plan_writer(instance, best, workspace.writing_, plan).run();
    if (!is_optimal) return;
    plan.lower_bound = plan.makespan;
    plan.proven = true;
  }

  static void clear(context_plan& plan) {
    plan.status = solve_status::solved;
    plan.micro_step_offsets.assign(1, 0);
    plan.groups.clear();
    plan.samples.clear();
    plan.makespan = plan.lower_bound = 0;
    plan.proven = false;
    plan.idle_ranks = 0;
    plan.sample = plan.min_degree = 0;
  }

  /// Improves a schedule of few samples. Returns true if the schedule is then proven to be optimal.
  static bool run_branch_and_bound(detail::context_instance const& instance,
                                   detail::context_bound const& bound,
                                   detail::context_memory memory, effort search_effort,
                                   detail::context_schedule& schedule) {
    constexpr std::uint64_t nodes_of_effort[] = {0, 20'000, 10'000'000};
    std::uint64_t const max_nodes = nodes_of_effort[static_cast<std::size_t>(search_effort)];
    if (max_nodes == 0 || instance.samples.size() > detail::max_exact_samples) return false;
    return detail::context_exact(instance, bound, memory, schedule).run(max_nodes);
  }

  template <std::integral Length>
  static std::uint64_t checked_length(std::size_t index, Length given) {
    // Characters are numbers too, but only promoted characters can be compared.
    auto const length = +given;
    if (std::cmp_less(length, 0) || std::cmp_greater(length, detail::max_context_length)) {
      detail::throw_invalid(name, "lengths[", index, "] is ", length, ", must be from 0 to ",
                            detail::max_context_length);
    }
    return static_cast<std::uint64_t>(length);
  }

  static void check(std::size_t ranks, context_cost const& cost,
                    context_groups_options const& options) {
    detail::check_positive(name, "ranks", ranks);
    detail::check_number(name, "ranks", ranks);
    detail::check_weight(name, "options.capacity", options.capacity);
    detail::check_positive(name, "options.multiple", options.multiple);
    if (options.multiple > max_multiple) {
      detail::throw_invalid(name, "options.multiple is ", options.multiple, ", must be at most ",
                            max_multiple);
    }
    if (options.ranks_per_node != 0 && ranks % options.ranks_per_node != 0) {
      detail::throw_invalid(name, "options.ranks_per_node is ", options.ranks_per_node,
                            ", must divide the ranks, which are ", ranks);
    }
    for (std::size_t i = 0; i != options.degrees.size(); ++i) {
      // In 64 bits the largest degree has a successor.
      std::uint64_t const least = i == 0 ? 1 : std::uint64_t{options.degrees[i - 1]} + 1;
      if (options.degrees[i] >= least) continue;
      detail::throw_invalid(name, "options.degrees[", i, "] is ", options.degrees[i],
                            ", must be at least ", least);
    }
    detail::check_weight(name, "cost.micro_step", cost.micro_step);
    if (cost.degrees.empty()) detail::throw_invalid(name, "cost.degrees is empty");
    for (std::size_t d = 0; d != std::min(ranks, cost.degrees.size()); ++d) {
      check_time(d, cost.degrees[d]);
    }
  }

  static void check_time(std::size_t row, degree_time const& time) {
    bool const is_valid = detail::is_valid_weight(time.fixed) &&
                          detail::is_valid_weight(time.linear) &&
                          detail::is_valid_weight(time.quadratic);
    if (is_valid && (time.fixed > 0 || time.linear > 0 || time.quadratic > 0)) return;
    detail::throw_invalid(name, "cost.degrees[", row, "] is ",
                          detail::list_text(std::array{time.fixed, time.linear, time.quadratic}),
                          (is_valid ? ", must not be zero" : ", must be finite and not negative"));
  }

  /// Sets the ranks, their degrees and the limits of an instance.
  static void set_degrees(std::size_t ranks, context_cost const& cost,
                          context_groups_options const& options,
                          detail::context_instance& instance) {
    instance.ranks = static_cast<std::uint32_t>(ranks);
    // Without nodes each rank is a node, and every group consists of whole nodes.
    instance.ranks_per_node = std::max<std::uint32_t>(1, options.ranks_per_node);
    instance.multiple = options.multiple;
    instance.capacity = options.capacity;
    instance.micro_step_time = cost.micro_step;
    if (!detail::select_degrees(instance, cost, options.degrees)) {
      detail::throw_invalid(
          name, "options.degrees is ", detail::list_text(options.degrees),
          ", must have a degree that ", ranks, " ranks",
          (options.ranks_per_node == 0 ? ""
                                       : " in nodes of " + detail::to_text(options.ranks_per_node)),
          " allow");
    }
    instance.must_find_blocks = options.placement == group_placement::blocks && !instance.is_chain;
  }
};

/// Plans groups of ranks for the samples of one step; see `context_groups_fn`.
inline constexpr context_groups_fn context_groups{};

}  // namespace omnibal::inline v0
