// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best of many fillings: selects the targets, and calls `context_filling` for each list of
/// targets.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/length_levels.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The memory of `context_search`, reused between calls.
struct search_buffers {
  context_schedule best{};
  context_schedule tried{};
  std::vector<context_target> best_targets{};
  /// The targets in use, and the targets from which refinements start.
  std::vector<context_target> targets{};
  std::vector<context_target> from{};
  length_levels levels{};
  filling_buffers filling{};
};

/// Tries deadlines: first the longest time of a micro-step, then times between the bound and the
/// best time. It then tries levels of length. If the result is far from the bound, it repeats all
/// that with more ranks for all samples. A search of more effort first does the whole search of
/// less effort, so that its plan is never worse.
class context_search {
 public:
  context_search(context_instance const& instance, context_bound const& bound,
                 context_memory memory, search_buffers& buffers)
      : instance_(instance), bound_(bound), memory_(memory), buffers_(buffers) {}

  /// Returns the best schedule, which is in the buffers.
  context_schedule& run(effort level) {
    best_.makespan = std::numeric_limits<double>::infinity();
    try_micro_steps(0);
    if (!(best_.makespan <= std::numeric_limits<double>::max())) {
      throw_overflow(context_groups_name, "the time of all samples");
    }
    try_lengths();
    if (level != effort::fast) {
      refine(0, few_refinements);
      try_levels();
      if (try_degrees()) refine(0, few_refinements);
    }
    if (level == effort::thorough) refine(few_refinements, many_refinements);
    return best_;
  }

 private:
  /// The factors by which micro-steps may exceed the required time to keep long samples on few
  /// ranks.
  static constexpr double lengths[] = {1.2, 1.5, 2};
  static constexpr int few_refinements = 4;
  static constexpr int many_refinements = 40;
  /// The most numbers of micro-steps that are tried.
  static constexpr int max_numbers = 12;
  /// The next targets between the bound and the best time: powers of the golden section, which
  /// repeat no place.
  static constexpr double spread[] = {0.62, 0.38, 0.85, 0.24, 0.5, 0.73, 0.12, 0.95};
  static constexpr int spread_count = 8;
  /// The most levels that are tried.
  static constexpr std::size_t max_levels = 8;
  /// The first target, relative to the bound.
  static constexpr double above = 1.006;
  /// Results this close to the bound are not refined, or not tried with more ranks.
  static constexpr double near = 1.001;
  static constexpr double far = 1.03;
  /// The largest distance behind the best plan for refinement of levels and larger degrees.
  static constexpr double levels_behind = 1.02;
  static constexpr double degrees_behind = 1.1;

  /// Tries more and shorter micro-steps, as long as one of the last two was better than all before.
  /// If memory is scarce, the remaining samples would make an expensive micro-step, and ranks with
  /// short samples have no memory left long before a deadline.
  void try_micro_steps(std::uint32_t min_degree) {
    std::uint64_t steps = instance_.rounded(bound_.min_steps());
    double const shortest = bound_.area_from(0) / instance_.ranks;
    int misses = 0;
    for (int k = 0; k != max_numbers && misses != 2; ++k) {
      double const before = best_.makespan;
      if (instance_.fixed_time(steps) + shortest >= before) return;
      targets_.assign(1, first_target(steps, min_degree));
      if (min_degree == 0) {
        attempt(best_.makespan);
      } else {
        attempt_and_refine(degrees_behind);
      }
      misses = best_.makespan < before ? 0 : misses + 1;
      steps = instance_.rounded(steps + 1);
    }
  }

  [[nodiscard]] context_target first_target(std::uint64_t steps, std::uint32_t min_degree) const {
    double const mean =
        bound_.area_from(0) / (static_cast<double>(steps) * static_cast<double>(instance_.ranks));
    context_target target{.micro_steps = steps,
                          .longest = std::max(bound_.longest(), mean),
                          .min_degree = min_degree};
    if (steps == 1 && min_degree == 0) {
      double const time = above * bound_.makespan() - instance_.fixed_time(1);
      target.longest = std::max(target.longest, time);
      if (mean > 0) target.pace = std::max(1.0, time / mean);
    }
    return target;
  }

  void try_lengths() {
    if (best_targets_.size() > 1) return;
    context_target const from = best_targets_.front();
    if (from.micro_steps == 1) return;
    double const natural = instance_.alone(instance_.samples.front(), bound_.natural(0));
    for (double const factor : lengths) {
      context_target target = from;
      target.longest *= factor;
      attempt(target);
      // No deadline gives the longest sample more ranks than it has without a deadline.
      if (target.longest >= natural) return;
    }
  }

  /// Tries twice the ranks for all samples, repeatedly, although they may have more rank-seconds.
  /// Fewer and larger groups share the work more evenly if many samples are long, and hold more if
  /// memory is short. False if no such plan was better.
  bool try_degrees() {
    double const before = best_.makespan;
    std::uint32_t ranks = instance_.degrees.front().ranks;
    for (std::uint32_t d = 1; d < instance_.degrees.size(); ++d) {
      if (best_.makespan <= far * bound_.makespan()) break;
      if (instance_.degrees[d].ranks / 2 < ranks) continue;
      ranks = instance_.degrees[d].ranks;
      double const best = best_.makespan;
      try_micro_steps(d);
      if (best_.makespan < best) try_lengths();
    }
    return best_.makespan < before;
  }

  /// Tries two levels, which few samples can fill, then the best number of levels.
  void try_levels() {
    if (best_.makespan <= near * bound_.makespan()) return;
    buffers_.levels.measure(instance_, memory_);
    for (std::size_t const most : {std::size_t{2}, max_levels}) {
      double const load = buffers_.levels.part(most, targets_);
      bool const is_new = targets_.size() > 1 && (most == 2 || targets_.size() > 2);
      if (!is_new || load >= best_.makespan) continue;
      attempt_and_refine(levels_behind);
    }
  }

  /// Refines a plan that is close to the best plan.
  void attempt_and_refine(double behind) {
    double const limit = behind * best_.makespan;
    attempt(limit);
    if (tried_.makespan >= limit) return;
    from_ = targets_;
    refine_last(0, few_refinements);
  }

  /// Other deadlines of the best plan.
  void refine(int first, int last) {
    from_ = best_targets_;
    last_level_ = best_level_;
    refine_last(first, last);
  }

  /// Tries other deadlines of the last level, between the time of its areas and the best time.
  /// First a golden section, in which a missed deadline is a lower end, then deadlines all over
  /// that range.
  void refine_last(int first, int last) {
    if (bound_.area_from(0) <= 0) return;
    std::uint64_t steps = 0;
    for (context_target const& level : from_) steps += level.micro_steps;
    double const before = instance_.fixed_time(steps) + last_level_.time;
    double const area = last_level_.area / instance_.ranks;
    double const least = std::max(bound_.makespan(), before + area);
    double low = least;
    for (int k = first; k != last && best_.makespan > std::max(low, near * bound_.makespan());
         ++k) {
      bool const is_spread = k >= few_refinements;
      double const from = is_spread ? least : low;
      double const aim = from + spread[is_spread ? k % spread_count : 0] * (best_.makespan - from);
      targets_ = from_;
      context_target& target = targets_.back();
      if (area > 0) target.pace = std::max(1.0, (aim - before) / area);
      if (target.micro_steps == 1) target.longest = aim - before;
      attempt(best_.makespan);
      if (tried_.makespan > best_.makespan) low = is_spread ? low : aim;
    }
  }

  void attempt(context_target const& target) {
    targets_.assign(1, target);
    attempt(best_.makespan);
  }

  /// Fills for the targets, and gives up if the result exceeds a limit.
  void attempt(double limit) {
    context_filling filling(instance_, bound_, memory_, tried_, buffers_.filling);
    last_level_ = filling.run(targets_, limit);
    if (tried_.makespan >= best_.makespan) return;
    best_ = tried_;
    best_level_ = last_level_;
    best_targets_ = targets_;
  }

  context_instance const& instance_;
  context_bound const& bound_;
  context_memory memory_;
  search_buffers& buffers_;
  context_schedule& best_ = buffers_.best;
  context_schedule& tried_ = buffers_.tried;
  std::vector<context_target>& best_targets_ = buffers_.best_targets;
  std::vector<context_target>& targets_ = buffers_.targets;
  std::vector<context_target>& from_ = buffers_.from;
  /// The last levels of the best filling and of the filling in work.
  context_level best_level_{};
  context_level last_level_{};
};

}  // namespace omnibal::inline v0::detail
