// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of ranks of different sizes for the samples of one step.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/make_instance.hpp>
#include <omnibal/context/context_groups/solve.hpp>
#include <omnibal/context/context_groups_options.hpp>
#include <omnibal/context/context_plan.hpp>
#include <omnibal/context/detail/copy_lengths.hpp>
#include <omnibal/detail/conversions.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
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

  std::vector<std::uint32_t> lengths_;
  detail::solver_buffers solver_;
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
  ///   bytes of the samples of a group add up and never exceed `options.capacity`, or with
  ///   `options.capacities` the capacity of any rank of the group. The bytes must
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
  /// With `options.speeds`, `cost` has the times of the fastest ranks. In a group whose slowest
  /// rank has another speed, the terms of tokens and squares are multiplied by the speed of the
  /// fastest rank over that speed; fixed times are not. A new group gets the fastest free ranks of
  /// its size, so that degrees of a chain are still on blocks, but not in descending order. Equal
  /// speeds give the plan without speeds. With `options.capacities`, these are the fastest free
  /// ranks with room for the first sample of the group, and of equally fast ranks those with the
  /// smallest capacity. Equal capacities give the plan of one capacity.
  ///
  /// Preconditions: lengths are from 0 to 2^32 - 1; `options.ranks_per_node` divides `ranks`.
  /// Complexity: normally ten to twenty fillings, and about ten more for each doubling of the
  /// degree if these are far from the bound. A filling is nearly linear in samples and degrees in
  /// use. It is linear in samples times degrees if times jump up and down from degree to degree.
  /// With `blocks` and no chain, a filling also searches the free ranks of a micro-step for each
  /// sample. With different speeds or capacities, a micro-step also requires time linear in ranks
  /// times degrees in use, for each different capacity, on blocks, and in ranks times the sum of
  /// the degrees elsewhere. Memory: about 200 bytes for each sample and 600 for each degree in use,
  /// in the workspace if one is given. With different speeds or capacities, 24 bytes for each rank
  /// and degree in use are added, and small allocations in each call. Determinism: run-to-run, and
  /// the same on all ranks that run the same program; `digest()` identifies the plan. Errors:
  /// `std::invalid_argument` if there are no ranks, if no degree may be used, or if degrees do not
  /// ascend or the table lacks one. It is also thrown if a time is negative, zero or not finite, if
  /// a memory is negative or grows with the degree, and if a number violates a precondition. It is
  /// thrown as well if there are several speeds and not one for each rank, or if a speed is not
  /// positive, not finite, or below 2^-31 of the largest speed. Further errors: `std::length_error`
  /// if there are more than 2^32 - 1 samples; `std::overflow_error` if times exceed the range of
  /// numbers. A sample that fits on no degree is no error: the status says so. Sources: the problem
  /// is from FlexSP (Wang et al., ASPLOS 2025); malleable jobs are from Turek, Wolf and Yu,
  /// "Approximate algorithms for scheduling parallelizable tasks", 1992, and Ludwig and Tiwari,
  /// 1994.
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
    detail::check_index_count(name, "lengths", std::ranges::size(lengths));
    detail::check_context_arguments(ranks, cost, options);
    detail::copy_lengths(name, lengths, detail::max_context_length, workspace.lengths_);
    auto const bytes = [&memory](std::int64_t length, std::uint32_t degree) {
      auto const measured = +memory(length, degree);
      if (std::cmp_less(measured, 0)) {
        detail::throw_memory(length, degree, measured, "must not be negative");
      }
      // The largest value, which is the default capacity, means no limit.
      return detail::saturate_cast<std::int64_t>(measured);
    };
    detail::solve_context_groups(workspace.lengths_, ranks, cost, bytes, options, workspace.solver_,
                                 workspace.plan_);
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
};

/// Plans groups of ranks for the samples of one step; see `context_groups_fn`.
inline constexpr context_groups_fn context_groups{};

}  // namespace omnibal::inline v0
