// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One filling: a schedule by best fit, longest samples first, for given targets.
///
/// `context_search` makes a filling for each list of targets that it tries. The input is the
/// instance, its bound, the targets of the levels and a limit of the makespan. The output is a
/// schedule, whose makespan is infinite if the filling gave up. The loops over levels and
/// micro-steps are here: they set deadlines, run passes over the remaining samples, and record each
/// placement. The best fit inside a micro-step is in best_fit_pass.hpp.

#include <omnibal/context/context_groups/best_fit_pass.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/free_ranks.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/micro_step_groups.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>
#include <omnibal/context/context_groups/schedule.hpp>
#include <omnibal/detail/remaining_indices.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace omnibal::inline v0::detail {

/// The memory of a filling, reused between calls.
struct filling_buffers {
  remaining_indices remaining{};
  free_ranks ranks{};
  best_fit_buffers best_fit{};
};

/// Best fit of malleable jobs under deadlines, one for each micro-step. The longest remaining
/// sample joins the most loaded group in which it ends in time, from the groups with the least
/// degree that suffices. Otherwise the sample opens such a group. If no ranks are left, shorter
/// samples fill the remaining room. The last micro-step of a level contains the rest of the level
/// and lasts as long as necessary. If memory is full, another micro-step follows. Samples of later
/// levels use the remaining room.
class context_filling {
 public:
  /// Prepares an empty schedule. Memory: 8 bytes for each sample and 36 for each group.
  context_filling(context_instance const& instance, context_bound const& bound,
                  context_memory memory, context_schedule& schedule, filling_buffers& buffers)
      : instance_(instance),
        bound_(bound),
        memory_(memory),
        schedule_(schedule),
        remaining_(buffers.remaining),
        buffers_(buffers),
        count_(static_cast<std::uint32_t>(instance.samples.size())) {
    schedule_.group_of.assign(count_, best_fit_pass::none);
    schedule_.groups.clear();
    schedule_.micro_steps = 0;
    remaining_.reset(count_);
  }

  /// Fills the micro-steps of all levels, and gives up if the makespan would reach the limit.
  /// Returns the work of the last level.
  level_work run(std::span<level_target const> targets, double limit) {
    level_work last{};
    for (level_target const& target : targets) last = fill_level(target, limit);
    schedule_.makespan = remaining_.empty() ? instance_.fixed_time(schedule_.micro_steps) + time_
                                            : std::numeric_limits<double>::infinity();
    return last;
  }

 private:
  /// The maximum number of postponements of the last deadline, and the least postponement as a
  /// share of the deadline.
  static constexpr int max_passes = 12;
  static constexpr double min_postponement = 1e-3;

  /// The level whose micro-steps are filled, and its remaining work.
  struct open_level {
    level_target const& target;
    /// The end of the level in the samples of the instance.
    std::uint32_t end;
    std::uint64_t micro_steps_left;
    /// The rank-seconds of the samples of the level without a group.
    double area_left = 0;
  };

  level_work fill_level(level_target const& target, double limit) {
    std::uint32_t const end = std::min(target.end, count_);
    open_level level{.target = target, .end = end, .micro_steps_left = target.micro_steps};
    for (std::uint32_t i = remaining_.first_from(0); i < end; i = remaining_.first_from(i + 1)) {
      level.area_left += area_of(i, target);
    }
    level_work const work{.time_before = time_, .area = level.area_left};
    // Micro-steps of earlier levels hold samples of later levels, whose areas are not known.
    bool const is_last = end == count_;
    while (remaining_.first_from(0) < end &&
           !is_late(is_last ? level.area_left / instance_.total_speed : 0, limit)) {
      fill_micro_step(level, limit);
    }
    return work;
  }

  void fill_micro_step(open_level& level, double limit) {
    micro_step_groups groups(instance_, memory_, schedule_.micro_steps, schedule_.groups,
                             buffers_.ranks);
    std::uint32_t const first = remaining_.first_from(0);
    placement_request const in_level{
        .first = first,
        .end = level.end,
        .min_degree_index = level.target.min_degree_index,
        .deadline = rounded_up(deadline_for(instance_.samples[first], groups, level))};
    place(groups, in_level, level);
    if (level.micro_steps_left <= 1) place_rest(groups, in_level, level, limit);
    double const longest = groups.load().longest;
    if (level.end != count_) {
      place(groups,
            {.first = remaining_.first_from(level.end),
             .end = count_,
             .min_degree_index = 0,
             .deadline = rounded_up(longest)},
            level);
    }
    time_ += longest;
    ++schedule_.micro_steps;
    if (level.micro_steps_left > 1) --level.micro_steps_left;
  }

  /// Returns the deadline of a micro-step without groups: its share of the remaining work, or the
  /// time of its longest sample on as few ranks as the target allows. The longest sample can always
  /// end by this deadline.
  [[nodiscard]] double deadline_for(context_sample const& longest, micro_step_groups const& groups,
                                    open_level const& level) const {
    level_target const& target = level.target;
    double const mean =
        level.area_left / (static_cast<double>(level.micro_steps_left) * instance_.total_speed);
    double const paced = target.pace * mean;
    double const deadline = std::max(target.longest, paced);
    if (!instance_.has_equal_capacities()) {
      double const needed = time_in_free_ranks(longest, groups, deadline, target.min_degree_index);
      return std::max(
          needed <= deadline ? needed : time_in_free_ranks(longest, groups, deadline, 0), paced);
    }
    auto const degrees = instance_.degrees.size();
    std::uint32_t degree_index =
        instance_.first_in_time(longest, deadline, target.min_degree_index);
    if (degree_index == degrees) degree_index = instance_.first_in_time(longest, deadline);
    double const needed = degree_index == degrees ? instance_.min_time(longest)
                                                  : instance_.time_alone(longest, degree_index);
    return std::max(needed, paced);
  }

  /// Returns the time of a sample in a new group of the least degree, from `min_degree_index` on,
  /// that ends by a deadline. If there is none, returns the least time; infinity if no degree has
  /// the capacity.
  [[nodiscard]] double time_in_free_ranks(context_sample const& sample,
                                          micro_step_groups const& groups, double deadline,
                                          std::uint32_t min_degree_index) const {
    double least = std::numeric_limits<double>::infinity();
    std::uint32_t d = std::max(sample.min_degree_index, min_degree_index);
    for (; d != instance_.degrees.size() && least > deadline; ++d) {
      rank_window const* const window = groups.find_window(sample, d);
      if (window == nullptr) continue;
      least = std::min(least, instance_.time_alone(sample, d, window->slowness));
    }
    return least;
  }

  /// Returns a deadline that rounding errors of times do not exceed.
  [[nodiscard]] static double rounded_up(double deadline) {
    return deadline * (1 + context_rounding);
  }

  /// Postpones the deadline of the last micro-step by the time of the remaining work, up to
  /// `max_passes` times. Ends if all samples of the level have a group, or if the makespan would
  /// reach the limit.
  void place_rest(micro_step_groups& groups, placement_request request, open_level& level,
                  double limit) {
    double postponement = 0;
    for (int pass = 0; pass != max_passes; ++pass) {
      request.first = remaining_.first_from(0);
      if (request.first >= request.end) return;
      double const needed = level.area_left / instance_.total_speed;
      micro_step_load const load = groups.load();
      if (is_late(std::max(load.longest, needed + load.area / instance_.total_speed), limit))
        return;
      postponement = std::max({needed, 2 * postponement, min_postponement * request.deadline});
      request.deadline = rounded_up(request.deadline + postponement);
      if (place(groups, request, level)) postponement = 0;
    }
  }

  /// Places the samples that fit into the groups of a micro-step. Returns true if there were such
  /// samples.
  bool place(micro_step_groups& groups, placement_request const& request, open_level& level) {
    std::size_t const before = remaining_.size();
    best_fit_pass(instance_, groups, request, buffers_.best_fit)
        .run(remaining_,
             [&](std::uint32_t sample, std::uint32_t group) { record(sample, group, level); });
    return remaining_.size() != before;
  }

  /// Records the group of a sample, which the groups of the micro-step contain already.
  void record(std::uint32_t sample, std::uint32_t group, open_level& level) {
    schedule_.group_of[sample] = group;
    remaining_.remove(sample);
    if (sample < level.end) level.area_left -= area_of(sample, level.target);
  }

  /// Returns true if the makespan would reach the limit with another micro-step of this time.
  [[nodiscard]] bool is_late(double longest, double limit) const {
    return instance_.fixed_time(schedule_.micro_steps + 1) + time_ + longest >= limit;
  }

  /// Returns the rank-seconds of a sample on the least degree that the target allows. A deadline
  /// may require more ranks.
  [[nodiscard]] double area_of(std::uint32_t i, level_target const& target) const {
    std::uint32_t const degree_index =
        std::max(bound_.min_area_degree_index(i), target.min_degree_index);
    return instance_.area(instance_.samples[i], degree_index);
  }

  context_instance const& instance_;
  context_bound const& bound_;
  context_memory memory_;
  context_schedule& schedule_;
  remaining_indices& remaining_;
  filling_buffers& buffers_;
  /// The number of samples.
  std::uint32_t count_;
  /// The sum of the longest groups of all micro-steps so far.
  double time_ = 0;
};

}  // namespace omnibal::inline v0::detail
