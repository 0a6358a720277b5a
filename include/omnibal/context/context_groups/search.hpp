// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best of many fillings: the instance and its bound go in, and the best schedule comes out.
/// `attempt` makes one filling for a list of targets; all other functions select targets.

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
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The targets of a filling, the schedule that it returned, and the work of its last level.
struct context_candidate {
  std::vector<level_target> targets{};
  context_schedule schedule{};
  level_work last_level{};
};

/// The memory of `context_search`, reused between calls.
struct search_buffers {
  /// The best candidate so far, and the candidate that was tried last.
  context_candidate best{};
  context_candidate tried{};
  /// The targets of the candidate whose last level is refined.
  std::vector<level_target> refined{};
  length_levels levels{};
  filling_buffers filling{};
};

/// Tries deadlines: first the longest time of a micro-step, then times between the bound and the
/// best time. It then tries levels of length. If the result is far from the bound, it repeats these
/// steps with more ranks for all samples. A search of more effort first does the whole search of
/// less effort, so that its plan is never worse.
class context_search {
 public:
  context_search(context_instance const& instance, context_bound const& bound,
                 context_memory memory, search_buffers& buffers)
      : instance_(instance), bound_(bound), memory_(memory), buffers_(buffers) {}

  /// Returns the best schedule, which is in the buffers.
  context_schedule& run(effort search_effort) {
    buffers_.best.schedule.makespan = std::numeric_limits<double>::infinity();
    buffers_.filling.ranks.prepare(instance_);
    try_micro_steps(0);
    if (!is_finite(best_makespan())) {
      throw_overflow(context_groups_name, "the time of all samples");
    }
    try_longer_micro_steps();
    if (search_effort != effort::fast) {
      refine(buffers_.best);
      try_levels();
      if (try_degrees()) refine(buffers_.best);
    }
    if (search_effort == effort::thorough) refine_everywhere();
    return buffers_.best.schedule;
  }

 private:
  /// The factors by which the limit on the time of micro-steps is extended, so that long samples
  /// stay on few ranks.
  static constexpr double longer_step_factors[] = {1.2, 1.5, 2};
  /// The number of deadlines that `refine` tries, and the number that `refine_everywhere` tries.
  static constexpr int golden_refinements = 4;
  static constexpr int spread_refinements = 36;
  /// The maximum count of different numbers of micro-steps that the search tries.
  static constexpr int max_step_counts = 12;
  /// The positions of deadlines between the bound and the best time, as shares of the distance: the
  /// golden section of `refine`, and the spread positions of `refine_everywhere`.
  static constexpr double golden_section = 0.62;
  static constexpr double spread[] = {0.5, 0.73, 0.12, 0.95, 0.62, 0.38, 0.85, 0.24};
  static constexpr int spread_count = 8;
  /// The maximum number of levels that are tried.
  static constexpr std::size_t max_levels = 8;
  /// The first target, as a multiple of the bound.
  static constexpr double first_target_factor = 1.006;
  /// Plans are refined, and levels are tried, if the makespan is above this multiple of the bound.
  static constexpr double refined_above = 1.001;
  /// More ranks for all samples are tried if the makespan is above this multiple of the bound.
  static constexpr double more_ranks_above = 1.03;
  /// Plans of levels and of more ranks are refined if the makespan is below this multiple of the
  /// best makespan.
  static constexpr double levels_refined_below = 1.02;
  static constexpr double more_ranks_refined_below = 1.1;

  [[nodiscard]] double best_makespan() const { return buffers_.best.schedule.makespan; }

  /// Tries plans with more and shorter micro-steps, until two plans in a row are not better than
  /// the best plan. More micro-steps help if memory is scarce: otherwise the remaining samples
  /// cause an expensive micro-step, and ranks with short samples fill their memory long before a
  /// deadline.
  void try_micro_steps(std::uint32_t min_degree_index) {
    std::uint64_t steps = instance_.rounded_steps(bound_.min_steps());
    double const shortest = bound_.area_from(0) / instance_.total_speed;
    int misses = 0;
    for (int k = 0; k != max_step_counts && misses != 2; ++k) {
      double const before = best_makespan();
      if (instance_.fixed_time(steps) + shortest >= before) return;
      level_target const target = first_target(steps, min_degree_index);
      if (min_degree_index == 0) {
        attempt({&target, 1}, before);
      } else {
        attempt_and_refine({&target, 1}, more_ranks_refined_below);
      }
      misses = best_makespan() < before ? 0 : misses + 1;
      steps = instance_.rounded_steps(steps + 1);
    }
  }

  /// Returns the target of `steps` micro-steps of equal length.
  [[nodiscard]] level_target first_target(std::uint64_t steps,
                                          std::uint32_t min_degree_index) const {
    double const mean = bound_.area_from(0) / (static_cast<double>(steps) * instance_.total_speed);
    level_target target{.micro_steps = steps,
                        .longest = std::max(bound_.longest(), mean),
                        .min_degree_index = min_degree_index};
    if (steps == 1 && min_degree_index == 0) {
      double const time = first_target_factor * bound_.makespan() - instance_.fixed_time(1);
      target.longest = std::max(target.longest, time);
      if (mean > 0) target.pace = std::max(1.0, time / mean);
    }
    return target;
  }

  /// Tries longer micro-steps of the best plan, if it has a single level.
  void try_longer_micro_steps() {
    if (buffers_.best.targets.size() > 1) return;
    level_target const from = buffers_.best.targets.front();
    if (from.micro_steps == 1) return;
    double const unhurried =
        instance_.time_alone(instance_.samples.front(), bound_.min_area_degree_index(0));
    for (double const factor : longer_step_factors) {
      level_target target = from;
      target.longest *= factor;
      attempt({&target, 1}, best_makespan());
      // No deadline gives the longest sample more ranks than it has without a deadline.
      if (target.longest >= unhurried) return;
    }
  }

  /// Tries twice the ranks for all samples, repeatedly, although they may have more rank-seconds.
  /// Fewer and larger groups share the work more evenly if many samples are long, and hold more if
  /// memory is short. Returns true if such a plan was better.
  bool try_degrees() {
    double const before = best_makespan();
    std::uint32_t ranks = instance_.degrees.front().ranks;
    for (std::uint32_t d = 1; d < instance_.degrees.size(); ++d) {
      if (best_makespan() <= more_ranks_above * bound_.makespan()) break;
      if (instance_.degrees[d].ranks / 2 < ranks) continue;
      ranks = instance_.degrees[d].ranks;
      double const before_degree = best_makespan();
      try_micro_steps(d);
      if (best_makespan() < before_degree) try_longer_micro_steps();
    }
    return best_makespan() < before;
  }

  /// Tries two levels, which few samples can fill, then the best number of levels.
  void try_levels() {
    if (best_makespan() <= refined_above * bound_.makespan()) return;
    buffers_.levels.measure(instance_, memory_);
    for (std::size_t const max_count : {std::size_t{2}, max_levels}) {
      auto const [targets, time] = buffers_.levels.partition(max_count);
      bool const is_new = targets.size() > 1 && (max_count == 2 || targets.size() > 2);
      if (!is_new || time >= best_makespan()) continue;
      attempt_and_refine(targets, levels_refined_below);
    }
  }

  /// Tries targets, and refines the plan if its makespan is below this multiple of the best
  /// makespan.
  void attempt_and_refine(std::span<level_target const> targets, double refined_below) {
    double const limit = refined_below * best_makespan();
    if (attempt(targets, limit) < limit) refine(buffers_.tried);
  }

  /// The last level of a candidate, which gets other deadlines.
  struct last_level_times {
    /// The time of the areas of the last level, and of all fixed parts and earlier levels.
    double area_time;
    double time_before;
    /// The least makespan that a deadline may allow.
    double min_aim;
  };

  /// Copies the targets of a candidate to `buffers_.refined`, because an attempt may overwrite the
  /// candidate. Returns the times of its last level.
  [[nodiscard]] last_level_times copy_targets(context_candidate const& candidate) {
    buffers_.refined = candidate.targets;
    std::uint64_t steps = 0;
    for (level_target const& target : candidate.targets) steps += target.micro_steps;
    double const before = instance_.fixed_time(steps) + candidate.last_level.time_before;
    double const area = candidate.last_level.area / instance_.total_speed;
    return {area, before, std::max(bound_.makespan(), before + area)};
  }

  /// Sets the deadline of the last of the copied targets so that the makespan `aim` is possible,
  /// and tries these targets. Returns the makespan.
  double attempt_last_deadline(last_level_times const& times, double aim) {
    level_target& last = buffers_.refined.back();
    if (times.area_time > 0) {
      last.pace = std::max(1.0, (aim - times.time_before) / times.area_time);
    }
    if (last.micro_steps == 1) last.longest = aim - times.time_before;
    return attempt(buffers_.refined, best_makespan());
  }

  /// Tries other deadlines of the last level of a candidate, between the time of its areas and the
  /// best time, by a golden section. A missed deadline is a lower end.
  void refine(context_candidate const& candidate) {
    if (bound_.area_from(0) <= 0) return;
    last_level_times const times = copy_targets(candidate);
    double low = times.min_aim;
    for (int k = 0; k != golden_refinements && is_refinable_above(low); ++k) {
      double const aim = low + golden_section * (best_makespan() - low);
      double const makespan = attempt_last_deadline(times, aim);
      if (makespan > best_makespan()) low = aim;
    }
  }

  /// Tries deadlines of the last level of the best candidate, spread over the whole range of
  /// `refine`.
  void refine_everywhere() {
    if (bound_.area_from(0) <= 0) return;
    last_level_times const times = copy_targets(buffers_.best);
    double const low = times.min_aim;
    for (int k = 0; k != spread_refinements && is_refinable_above(low); ++k) {
      attempt_last_deadline(times, low + spread[k % spread_count] * (best_makespan() - low));
    }
  }

  /// Returns true if the best makespan is above `low` and far enough above the bound.
  [[nodiscard]] bool is_refinable_above(double low) const {
    return best_makespan() > std::max(low, refined_above * bound_.makespan());
  }

  /// Fills for the targets, gives up if the makespan reaches a limit, and keeps the result if it is
  /// the best so far. Returns the makespan.
  double attempt(std::span<level_target const> targets, double limit) {
    context_candidate& tried = buffers_.tried;
    tried.targets.assign(targets.begin(), targets.end());
    tried.last_level = context_filling(instance_, bound_, memory_, tried.schedule, buffers_.filling)
                           .run(targets, limit);
    double const makespan = tried.schedule.makespan;
    if (makespan < best_makespan()) buffers_.best = tried;
    return makespan;
  }

  context_instance const& instance_;
  context_bound const& bound_;
  context_memory memory_;
  search_buffers& buffers_;
};

}  // namespace omnibal::inline v0::detail
