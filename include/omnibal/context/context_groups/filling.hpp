// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// One filling: a schedule by best fit, longest samples first, for given targets.
///
/// `context_search` calls it once for each list of targets that it tries, and keeps the best
/// schedule. The input is the instance, its bound, the targets of the levels and a limit of the
/// makespan. The output is a schedule, whose makespan is infinite if the filling gave up. The loop
/// over micro-steps is here: it sets deadlines, and selects the samples to place. The groups of one
/// micro-step are in micro_step_groups.hpp.

#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/micro_step_groups.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The target of a filling for a level: consecutive samples by descending length, which have their
/// own micro-steps.
struct context_target {
  /// The micro-steps that share the work.
  std::uint64_t micro_steps = 1;
  /// The limit on the time of the longest group of a micro-step.
  double longest = 0;
  /// The time of a micro-step as a multiple of the average of the remaining work.
  double pace = 1;
  /// The least degree of samples, as long as there are ranks for it.
  std::uint32_t min_degree = 0;
  /// The end of the level.
  std::uint32_t end = ~std::uint32_t{0};
};

/// The state of a filling at the beginning of a level: the time of the earlier micro-steps and the
/// rank-seconds of the level.
struct context_level {
  double time = 0;
  double area = 0;
};

/// The memory of a filling, reused between calls.
struct filling_buffers {
  /// The links of the samples that have a group to later samples.
  std::vector<std::uint32_t> next{};
  micro_step_buffers micro_step{};
};

/// Best fit of malleable jobs under deadlines, one for each micro-step. The longest remaining
/// sample joins the most loaded group in which it ends in time, from the groups with the least
/// degree that suffices. Otherwise the sample opens such a group. If no ranks are left, shorter
/// samples fill the remaining room. The last micro-step of a level contains the rest of the level
/// and lasts as long as necessary. If memory is full, another micro-step follows. Samples of later
/// levels use the remaining room.
class context_filling {
 public:
  /// Writes to `schedule`. Memory: 8 bytes for each sample and 36 for each group.
  context_filling(context_instance const& instance, context_bound const& bound,
                  context_memory memory, context_schedule& schedule, filling_buffers& buffers)
      : instance_(instance),
        bound_(bound),
        schedule_(schedule),
        next_(buffers.next),
        groups_(instance, memory, schedule.groups, buffers.micro_step) {}

  /// Fills micro-steps, and gives up if the makespan would exceed the limit. Returns the last
  /// level.
  context_level run(std::span<context_target const> targets, double limit) {
    std::size_t const count = instance_.samples.size();
    limit_ = limit;
    schedule_.group_of.assign(count, micro_step_groups::none);
    schedule_.micro_steps = 0;
    next_.resize(count + 1);
    for (std::size_t i = 0; i <= count; ++i) next_[i] = static_cast<std::uint32_t>(i);
    for (context_target const& target : targets) fill_level(target);
    schedule_.makespan = placed_ == count ? instance_.fixed_time(schedule_.micro_steps) + time_
                                          : std::numeric_limits<double>::infinity();
    return level_;
  }

 private:
  /// After this number of consecutive misfits, some samples are passed over.
  static constexpr std::uint32_t max_misses = 8;
  /// The most postponements of the last deadline, and the least share of the deadline for each.
  static constexpr int max_passes = 12;
  static constexpr double min_postponement = 1e-3;

  void fill_level(context_target const& target) {
    auto const count = static_cast<std::uint32_t>(instance_.samples.size());
    target_ = target;
    target_.end = std::min(target.end, count);
    steps_left_ = target.micro_steps;
    level_ = {.time = time_};
    for (std::uint32_t i = next(0); i < target_.end; i = next(i + 1)) level_.area += area_of(i);
    area_left_ = level_.area;
    // Micro-steps of earlier levels hold samples of later levels, whose areas are not known.
    bool const is_last = target_.end == count;
    while (next(0) < target_.end && !is_late(is_last ? area_left_ / instance_.ranks : 0)) {
      fill_micro_step();
    }
  }

  void fill_micro_step() {
    auto const& samples = instance_.samples;
    std::uint32_t const first = next(0);
    groups_.begin(schedule_.micro_steps);
    groups_.set_deadline(deadline_for(samples[first]), target_.min_degree);
    place_all(first, target_.end);
    if (steps_left_ <= 1) place_rest();
    double const longest = groups_.load().longest;
    if (target_.end != samples.size()) {
      groups_.set_deadline(longest, 0);
      place_all(next(target_.end), static_cast<std::uint32_t>(samples.size()));
    }
    time_ += longest;
    ++schedule_.micro_steps;
    if (steps_left_ > 1) --steps_left_;
  }

  /// The deadline of a micro-step: its share of the remaining work, or the time of the longest
  /// sample on as few ranks as the target allows.
  [[nodiscard]] double deadline_for(context_sample const& longest) const {
    double const mean = area_left_ / (static_cast<double>(steps_left_) * instance_.ranks);
    double const paced = target_.pace * mean;
    std::uint32_t const degree =
        groups_.opened_degree(longest, std::max(target_.longest, paced), target_.min_degree);
    double const needed = degree == micro_step_groups::none ? instance_.shortest(longest)
                                                            : instance_.alone(longest, degree);
    return std::max(needed, paced);
  }

  /// Places samples that fit, from a sample on. If many similar samples in a row do not fit, more
  /// and more of them are passed over.
  void place_all(std::uint32_t first, std::uint32_t end) {
    auto const count = static_cast<std::uint32_t>(instance_.samples.size());
    std::uint32_t stride = 1;
    std::uint32_t misses = 0;
    for (std::uint32_t i = first; i < end; i = next(i)) {
      if (place(i)) {
        misses = 0;
        stride = 1;
        continue;
      }
      if (++misses > max_misses) stride *= 2;
      i = std::max(i + std::min(stride, count - i), groups_.first_that_fits(i));
    }
  }

  /// Postpones the deadline of the last micro-step by the remaining work, repeatedly, as long as
  /// that helps.
  void place_rest() {
    double step = 0;
    for (int pass = 0; pass != max_passes; ++pass) {
      std::uint32_t const first = next(0);
      if (first >= target_.end) return;
      double const needed = area_left_ / instance_.ranks;
      micro_step_load const load = groups_.load();
      if (is_late(std::max(load.longest, needed + load.area / instance_.ranks))) return;
      step = std::max({needed, 2 * step, min_postponement * groups_.deadline()});
      groups_.set_deadline(groups_.deadline() + step, target_.min_degree);
      std::size_t const before = placed_;
      place_all(first, target_.end);
      if (placed_ != before) step = 0;
    }
  }

  bool place(std::uint32_t i) {
    std::uint32_t const group = groups_.place(instance_.samples[i]);
    if (group == micro_step_groups::none) return false;
    schedule_.group_of[i] = group;
    next_[i] = i + 1;
    ++placed_;
    if (i < target_.end) area_left_ -= area_of(i);
    return true;
  }

  /// True if another micro-step of this time is one too many.
  [[nodiscard]] bool is_late(double longest) const {
    return instance_.fixed_time(schedule_.micro_steps + 1) + time_ + longest >= limit_;
  }

  /// The rank-seconds of a sample, if deadlines did not ask for more ranks.
  [[nodiscard]] double area_of(std::uint32_t i) const {
    return instance_.area(instance_.samples[i], std::max(bound_.natural(i), target_.min_degree));
  }

  /// The first sample from `i` on without a group, by path halving.
  [[nodiscard]] std::uint32_t next(std::uint32_t i) {
    while (next_[i] != i) {
      next_[i] = next_[next_[i]];
      i = next_[i];
    }
    return i;
  }

  context_instance const& instance_;
  context_bound const& bound_;
  context_schedule& schedule_;
  std::vector<std::uint32_t>& next_;
  micro_step_groups groups_;
  double limit_ = 0;
  context_target target_{};
  context_level level_{};
  std::uint64_t steps_left_ = 1;
  double area_left_ = 0;
  /// The sum of the longest groups of all micro-steps so far.
  double time_ = 0;
  std::size_t placed_ = 0;
};

}  // namespace omnibal::inline v0::detail
