// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best of many fillings.

#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/length_levels.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Tries deadlines: first the longest time of a micro-step, then times between the bound and the
/// best time. It then tries levels of length. If the result is far from the bound, it repeats all
/// that with more ranks for all samples. A search of more effort first does the whole search of
/// less effort, so that its plan is never worse.
class context_search {
 public:
  /// Returns the best filling, whose pieces are valid until the next call.
  kept_filling const& operator()(context_instance const& instance, context_bound const& bound,
                                 context_memory memory, double lower_bound, effort level) {
    instance_ = &instance;
    bound_ = &bound;
    memory_ = &memory;
    lower_bound_ = lower_bound;
    best_time_ = std::numeric_limits<double>::infinity();
    try_micro_steps(0);
    if (!(best_time_ <= std::numeric_limits<double>::max())) {
      throw_overflow("context_groups", "the time of all samples");
    }
    try_lengths();
    if (level != effort::fast) {
      refine(0, few_refinements);
      try_levels();
      if (try_degrees()) refine(0, few_refinements);
    }
    if (level == effort::thorough) refine(few_refinements, many_refinements);
    memory_ = nullptr;
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
    std::uint64_t steps = instance_->rounded(bound_->min_steps());
    double const shortest = bound_->area_from(0) / instance_->ranks;
    int misses = 0;
    for (int k = 0; k != max_numbers && misses != 2; ++k) {
      double const before = best_time_;
      if (instance_->fixed_time(steps) + shortest >= before) return;
      targets_.assign(1, first_target(steps, min_degree));
      if (min_degree == 0) {
        attempt(best_time_);
      } else {
        attempt_and_refine(degrees_behind);
      }
      misses = best_time_ < before ? 0 : misses + 1;
      steps = instance_->rounded(steps + 1);
    }
  }

  [[nodiscard]] context_target first_target(std::uint64_t steps, std::uint32_t min_degree) const {
    double const mean =
        bound_->area_from(0) / (static_cast<double>(steps) * static_cast<double>(instance_->ranks));
    context_target target{.micro_steps = steps,
                          .longest = std::max(bound_->longest(), mean),
                          .min_degree = min_degree};
    if (steps == 1 && min_degree == 0) {
      double const time = above * lower_bound_ - instance_->fixed_time(1);
      target.longest = std::max(target.longest, time);
      if (mean > 0) target.pace = std::max(1.0, time / mean);
    }
    return target;
  }

  void try_lengths() {
    if (best_targets_.size() > 1) return;
    context_target const from = best_targets_.front();
    if (from.micro_steps == 1) return;
    double const natural = instance_->alone(instance_->samples.front(), bound_->natural(0));
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
    double const before = best_time_;
    std::uint32_t ranks = instance_->degrees.front().ranks;
    for (std::uint32_t d = 1; d < instance_->degrees.size(); ++d) {
      if (best_time_ <= far * lower_bound_) break;
      if (instance_->degrees[d].ranks / 2 < ranks) continue;
      ranks = instance_->degrees[d].ranks;
      double const best = best_time_;
      try_micro_steps(d);
      if (best_time_ < best) try_lengths();
    }
    return best_time_ < before;
  }

  /// Tries two levels, which few samples can fill, then the best number of levels.
  void try_levels() {
    if (best_time_ <= near * lower_bound_) return;
    levels_.measure(*instance_, *memory_);
    for (std::size_t const most : {std::size_t{2}, max_levels}) {
      double const load = levels_.part(most, targets_);
      bool const is_new = targets_.size() > 1 && (most == 2 || targets_.size() > 2);
      if (!is_new || load >= best_time_) continue;
      attempt_and_refine(levels_behind);
    }
  }

  /// Refines a plan that is close to the best plan.
  void attempt_and_refine(double behind) {
    double const limit = behind * best_time_;
    attempt(limit);
    if (tried_time_ >= limit) return;
    from_ = targets_;
    refine_last(0, few_refinements);
  }

  /// Other deadlines of the best plan.
  void refine(int first, int last) {
    from_ = best_targets_;
    last_level_ = best_.last_level();
    refine_last(first, last);
  }

  /// Tries other deadlines of the last level, between the time of its areas and the best time.
  /// First a golden section, in which a missed deadline is a lower end, then deadlines all over
  /// that range.
  void refine_last(int first, int last) {
    if (bound_->area_from(0) <= 0) return;
    std::uint64_t steps = 0;
    for (context_target const& level : from_) steps += level.micro_steps;
    double const before = instance_->fixed_time(steps) + last_level_.time;
    double const area = last_level_.area / instance_->ranks;
    double const least = std::max(lower_bound_, before + area);
    double low = least;
    for (int k = first; k != last && best_time_ > std::max(low, near * lower_bound_); ++k) {
      bool const is_spread = k >= few_refinements;
      double const from = is_spread ? least : low;
      double const aim = from + spread[is_spread ? k % spread_count : 0] * (best_time_ - from);
      targets_ = from_;
      context_target& target = targets_.back();
      if (area > 0) target.pace = std::max(1.0, (aim - before) / area);
      if (target.micro_steps == 1) target.longest = aim - before;
      attempt(best_time_);
      if (tried_time_ > best_time_) low = is_spread ? low : aim;
    }
  }

  void attempt(context_target const& target) {
    targets_.assign(1, target);
    attempt(best_time_);
  }

  /// Fills for the targets, and gives up if the result exceeds a limit.
  void attempt(double limit) {
    tried_(*instance_, *bound_, *memory_, targets_, limit);
    tried_time_ = tried_.makespan();
    last_level_ = tried_.last_level();
    if (tried_time_ >= best_time_) return;
    best_time_ = tried_time_;
    best_targets_ = targets_;
    best_.keep(tried_);
  }

  context_instance const* instance_ = nullptr;
  context_bound const* bound_ = nullptr;
  context_memory const* memory_ = nullptr;
  double lower_bound_ = 0;
  double best_time_ = 0;
  double tried_time_ = 0;
  std::vector<context_target> best_targets_;
  /// The targets in use, and the targets from which refinements start, with the known state of the
  /// last level.
  std::vector<context_target> targets_;
  std::vector<context_target> from_;
  context_level last_level_{};
  length_levels levels_;
  context_filling tried_;
  kept_filling best_;
};

}  // namespace omnibal::inline v0::detail
