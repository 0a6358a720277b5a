// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Filling of micro-steps one after the other, longest samples first.

#include <omnibal/context/context_groups/blocks.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/bucket_queue.hpp>
#include <omnibal/context/context_groups/free_rank_pool.hpp>
#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <cmath>
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
  /// The longest time of a micro-step.
  double longest = 0;
  /// The time of a micro-step as a multiple of the average of the remaining work.
  double pace = 1;
  /// The least degree of samples, as long as there are ranks for it.
  std::uint32_t min_degree = 0;
  /// The end of the level.
  std::uint32_t end = ~std::uint32_t{0};
};

/// The state of a filling at the begin of a level: the time of the micro-steps before, and the
/// rank-seconds of the level.
struct context_level {
  double time = 0;
  double area = 0;
};

/// Best fit of malleable jobs under deadlines, one for each micro-step. The longest remaining
/// sample joins the most loaded group in which it ends in time, from the groups with the least
/// degree that suffices. Otherwise the sample opens such a group. If no ranks are left, shorter
/// samples fill the remaining room. The last micro-step of a level contains the rest of the level
/// and lasts as long as necessary. If memory is full, another micro-step follows. Samples of later
/// levels use the remaining room.
class context_filling {
 public:
  /// Gives up if the plan would exceed a limit. Memory: 8 bytes for each sample and 36 for each
  /// group, kept for the next call.
  void operator()(context_instance const& instance, context_bound const& bound,
                  context_memory memory, std::span<context_target const> targets, double limit) {
    instance_ = &instance;
    bound_ = &bound;
    memory_ = &memory;
    limit_ = limit;
    std::size_t const count = instance.samples.size();
    group_of_.assign(count, none);
    next_.resize(count + 1);
    for (std::size_t i = 0; i <= count; ++i) next_[i] = static_cast<std::uint32_t>(i);
    groups_.clear();
    slot_of_.assign(instance.degrees.size(), none);
    used_.clear();
    next_group_.clear();
    per_byte_ = instance.capacity > 0 ? 1 / static_cast<double>(instance.capacity) : 0;
    micro_steps_ = 0;
    placed_ = 0;
    time_ = 0;
    for (context_target const& target : targets) fill_level(target);
    memory_ = nullptr;
  }

  /// The group of a sample by descending length.
  [[nodiscard]] std::vector<std::uint32_t> const& group_of() const { return group_of_; }
  [[nodiscard]] std::vector<filled_group> const& groups() const { return groups_; }
  [[nodiscard]] std::uint32_t micro_steps() const { return micro_steps_; }
  [[nodiscard]] context_level const& last_level() const { return level_; }
  /// Infinite if the filling gave up.
  [[nodiscard]] double makespan() const {
    bool const is_whole = placed_ == group_of_.size();
    return is_whole ? instance_->fixed_time(micro_steps_) + time_
                    : std::numeric_limits<double>::infinity();
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// The numbers of groups that are asked for room, and that are compared to find the least loaded
  /// one.
  static constexpr std::size_t asked_groups = 8;
  static constexpr std::size_t max_compared = 64;
  /// The most consecutive samples that may not fit before some samples are passed over.
  static constexpr std::uint32_t max_misses = 8;
  /// The most consecutive samples that find no room in the groups of a degree before some samples
  /// do not look, and the most samples that do not look.
  static constexpr std::uint32_t max_tries = 2;
  static constexpr std::uint32_t max_passed_over = 8;
  /// The most postponements of the last deadline, and the least share of the deadline for each.
  static constexpr int max_passes = 12;
  static constexpr double min_postponement = 1e-3;

  void fill_level(context_target const& target) {
    auto const count = static_cast<std::uint32_t>(instance_->samples.size());
    target_ = target;
    target_.end = std::min(target.end, count);
    steps_left_ = target.micro_steps;
    level_ = {.time = time_};
    for (std::uint32_t i = next(0); i < target_.end; i = next(i + 1)) level_.area += area_of(i);
    area_left_ = level_.area;
    // Micro-steps of earlier levels hold samples of later levels, whose areas are not known.
    bool const is_last = target_.end == count;
    while (next(0) < target_.end && !is_late(is_last ? area_left_ / instance_->ranks : 0)) {
      fill_micro_step();
    }
  }

  void fill_micro_step() {
    auto const& samples = instance_->samples;
    for (used_degree const& used : used_) slot_of_[used.degree] = none;
    used_.clear();
    if (instance_->must_find_blocks) {
      blocks_.reset(instance_->ranks, instance_->ranks_per_node);
    } else {
      rooms_.reset(instance_->ranks, instance_->ranks_per_node);
    }
    std::size_t const first_group = groups_.size();
    std::uint32_t const first = next(0);
    min_degree_ = target_.min_degree;
    set_deadline(samples[first]);
    place_all(first, target_.end);
    if (steps_left_ <= 1) place_rest(first_group);
    double const longest = load_from(first_group).longest;
    if (target_.end != samples.size()) {
      min_degree_ = 0;
      postpone(longest, first_group);
      place_all(next(target_.end), static_cast<std::uint32_t>(samples.size()));
    }
    time_ += longest;
    ++micro_steps_;
    if (steps_left_ > 1) --steps_left_;
  }

  /// A degree with groups in this micro-step, the number of consecutive samples that found no room
  /// in them, and the number of the next samples that do not look.
  struct used_degree {
    std::uint32_t degree = 0;
    std::uint32_t misses = 0;
    std::uint32_t passed_over = 0;
  };

  /// The longest group and the rank-seconds of a micro-step.
  struct micro_step_load {
    double longest = 0;
    double area = 0;
  };

  [[nodiscard]] micro_step_load load_from(std::size_t first_group) const {
    micro_step_load load;
    for (std::size_t g = first_group; g != groups_.size(); ++g) {
      load.longest = std::max(load.longest, groups_[g].time);
      load.area += groups_[g].time * instance_->degrees[groups_[g].degree].ranks;
    }
    return load;
  }

  /// True if another micro-step of this time is one too many.
  [[nodiscard]] bool is_late(double longest) const {
    return instance_->fixed_time(micro_steps_ + 1) + time_ + longest >= limit_;
  }

  /// Places samples that fit, from a sample on. If many similar samples in a row do not fit, more
  /// and more of them are passed over.
  void place_all(std::uint32_t first, std::uint32_t end) {
    auto const count = static_cast<std::uint32_t>(instance_->samples.size());
    std::uint32_t stride = 1;
    std::uint32_t misses = 0;
    for (std::uint32_t i = first; i < end; i = next(i)) {
      if (place(i)) {
        misses = 0;
        stride = 1;
        continue;
      }
      if (++misses > max_misses) stride *= 2;
      i = std::max(i + std::min(stride, count - i), first_that_fits(i));
    }
  }

  /// Postpones the deadline of the last micro-step by the remaining work, repeatedly, as long as
  /// that helps.
  void place_rest(std::size_t first_group) {
    double step = 0;
    for (int pass = 0; pass != max_passes; ++pass) {
      std::uint32_t const first = next(0);
      if (first >= target_.end) return;
      double const needed = area_left_ / instance_->ranks;
      micro_step_load const load = load_from(first_group);
      if (is_late(std::max(load.longest, needed + load.area / instance_->ranks))) return;
      step = std::max({needed, 2 * step, min_postponement * deadline_});
      postpone(deadline_ + step, first_group);
      std::size_t const before = placed_;
      place_all(first, target_.end);
      if (placed_ != before) step = 0;
    }
  }

  void set_deadline(double deadline) {
    deadline_ = deadline * (1 + context_rounding);
    per_time_ = deadline_ > 0 ? 1 / deadline_ : 0;
  }

  /// A new deadline for existing groups.
  void postpone(double deadline, std::size_t first_group) {
    set_deadline(deadline);
    for (std::size_t slot = 0; slot != used_.size(); ++slot) {
      levels_[slot].clear();
      used_[slot].misses = used_[slot].passed_over = 0;
    }
    for (std::size_t g = first_group; g != groups_.size(); ++g) {
      insert(static_cast<std::uint32_t>(g));
    }
  }

  /// The deadline of a micro-step: its share of the remaining work, or the time of the longest
  /// sample on as few ranks as the target allows.
  void set_deadline(context_sample const& first) {
    double const mean = area_left_ / (static_cast<double>(steps_left_) * instance_->ranks);
    double const paced = target_.pace * mean;
    deadline_ = std::max(target_.longest, paced);
    std::uint32_t const degree = opened_degree(first);
    double const needed =
        degree == none ? instance_->shortest(first) : instance_->alone(first, degree);
    set_deadline(std::max(needed, paced));
  }

  /// The least degree with which a sample ends in time and for which there are ranks; `none` if
  /// there is no such degree.
  [[nodiscard]] std::uint32_t opened_degree(context_sample const& sample) const {
    std::uint32_t degree = instance_->first_in_time(sample, deadline_, min_degree_);
    if (is_open(degree)) return degree;
    if (min_degree_ == 0) return none;
    degree = instance_->first_in_time(sample, deadline_);
    return is_open(degree) ? degree : none;
  }

  [[nodiscard]] bool is_open(std::uint32_t degree) const {
    if (degree == instance_->degrees.size()) return false;
    std::uint32_t const ranks = instance_->degrees[degree].ranks;
    return instance_->must_find_blocks ? blocks_.has(ranks) : ranks <= rooms_.most();
  }

  [[nodiscard]] bool are_ranks_left() const {
    return instance_->must_find_blocks ? !blocks_.empty() : rooms_.most() != 0;
  }

  [[nodiscard]] std::uint32_t take(std::uint32_t ranks) {
    return instance_->must_find_blocks ? blocks_.take(ranks) : rooms_.take(ranks);
  }

  [[nodiscard]] std::int64_t bytes_of(context_sample const& sample, std::uint32_t degree) const {
    return (*memory_)(sample.length, instance_->degrees[degree].ranks);
  }

  /// The rank-seconds of a sample, if deadlines did not ask for more ranks.
  [[nodiscard]] double area_of(std::uint32_t i) const {
    return instance_->area(instance_->samples[i], std::max(bound_->natural(i), target_.min_degree));
  }

  /// Puts a sample into an existing group or a group that is opened for it. False if no group can
  /// hold the sample.
  bool place(std::uint32_t i) {
    context_sample const& sample = instance_->samples[i];
    std::uint32_t const wanted = are_ranks_left() ? opened_degree(sample) : none;
    if (wanted != none) {
      if (join(i, wanted)) return true;
      open(i, wanted);
      return true;
    }
    for (std::size_t slot = used_.size(); slot-- != 0;) {
      used_degree& used = used_[slot];
      if (used.passed_over != 0) {
        --used.passed_over;
      } else if (join(i, used.degree)) {
        used.misses = 0;
        return true;
      } else if (++used.misses >= max_tries) {
        used.passed_over = std::min(used.misses - max_tries + 1, max_passed_over);
      }
    }
    return false;
  }

  /// Puts a sample into the most loaded group of a degree in which it ends in time.
  bool join(std::uint32_t i, std::uint32_t degree) {
    context_sample const& sample = instance_->samples[i];
    if (degree < sample.least || slot_of_[degree] == none) return false;
    double const added = instance_->added(sample, degree);
    double const max_load = deadline_ - added;
    std::int64_t const bytes = bytes_of(sample, degree);
    std::int64_t const max_bytes = instance_->capacity - bytes;
    if (!(max_load >= 0) || max_bytes < 0) return false;
    bucket_queue& levels = levels_[slot_of_[degree]];
    auto const has_room = [&](std::uint32_t g) {
      return groups_[g].time <= max_load && groups_[g].bytes <= max_bytes;
    };
    // Groups of lower levels have room for sure. Groups of higher levels with room in time or in
    // bytes may have no room in the other.
    double const by_time = max_load * per_time_;
    double const by_bytes = static_cast<double>(max_bytes) * per_byte_;
    std::size_t const sure = bucket_queue::level_of(std::min(by_time, by_bytes));
    std::size_t const above = bucket_queue::level_of(std::max(by_time, by_bytes));
    std::uint32_t group = levels.take_below(sure, asked_groups, next_group_, has_room);
    if (group == bucket_queue::none && sure != 0) {
      group = levels.take_below(sure - 1, asked_groups, next_group_, has_room);
    }
    if (group == bucket_queue::none && above != sure) {
      group = levels.take_below(above, asked_groups, next_group_, has_room);
    }
    if (group == bucket_queue::none) return false;
    add(i, group, bytes);
    insert(group);
    return true;
  }

  /// The larger share: of the deadline, or of the capacity.
  [[nodiscard]] double share_of(double time, std::int64_t bytes) const {
    return std::max(time * per_time_, static_cast<double>(bytes) * per_byte_);
  }

  void insert(std::uint32_t group) {
    filled_group const& own = groups_[group];
    levels_[slot_of_[own.degree]].insert(
        group, bucket_queue::level_of(share_of(own.time, own.bytes)), next_group_);
  }

  void open(std::uint32_t i, std::uint32_t degree) {
    context_sample const& sample = instance_->samples[i];
    std::int64_t const bytes = bytes_of(sample, degree);
    if (bytes > instance_->capacity) throw_growing(sample, degree, bytes);
    auto const group = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({.micro_step = micro_steps_,
                       .degree = degree,
                       .first_rank = take(instance_->degrees[degree].ranks),
                       .time = instance_->degrees[degree].time.fixed});
    next_group_.resize(groups_.size());
    add(i, group, bytes);
    if (slot_of_[degree] == none) {
      slot_of_[degree] = static_cast<std::uint32_t>(used_.size());
      used_.push_back({degree});
      if (levels_.size() < used_.size()) levels_.emplace_back();
      levels_[slot_of_[degree]].clear();
    }
    insert(group);
  }

  [[noreturn]] void throw_growing(context_sample const& sample, std::uint32_t degree,
                                  std::int64_t bytes) const {
    std::uint32_t const fewer = instance_->degrees[sample.least].ranks;
    throw_memory(sample.length, instance_->degrees[degree].ranks, bytes,
                 "must not be above that with " + to_text(fewer) + " ranks");
  }

  void add(std::uint32_t i, std::uint32_t group, std::int64_t bytes) {
    context_sample const& sample = instance_->samples[i];
    groups_[group].time += instance_->added(sample, groups_[group].degree);
    groups_[group].bytes += bytes;
    group_of_[i] = group;
    next_[i] = i + 1;
    ++placed_;
    if (i < target_.end) area_left_ -= area_of(i);
  }

  /// The first sample after sample `i` for which there are ranks or a group that may have room.
  [[nodiscard]] std::uint32_t first_that_fits(std::uint32_t i) const {
    auto const& samples = instance_->samples;
    auto found = samples.end();
    if (are_ranks_left()) {
      found = std::partition_point(samples.begin() + i, found, [&](context_sample const& sample) {
        return opened_degree(sample) == none;
      });
    }
    for (used_degree const& used : used_) {
      std::uint32_t const degree = used.degree;
      bucket_queue const& levels = levels_[slot_of_[degree]];
      if (levels.empty()) continue;
      if (found == samples.begin() + i) break;
      degree_time const& time = instance_->degrees[degree].time;
      auto const is_too_long = [&](double room) {
        double const longest = longest_within(time, room * deadline_);
        double const bytes = room * static_cast<double>(instance_->capacity);
        return [this, degree, longest, bytes](context_sample const& sample) {
          return sample.tokens > longest || static_cast<double>(bytes_of(sample, degree)) > bytes;
        };
      };
      // Most degrees have no room even for the shortest of them.
      if (is_too_long(1 + 1e-9 - bucket_queue::share_of(levels.lowest()))(found[-1])) continue;
      found = std::partition_point(samples.begin() + i, found,
                                   is_too_long(1 + 1e-9 - min_share(levels)));
    }
    return static_cast<std::uint32_t>(found - samples.begin());
  }

  /// The share of the least loaded group, or less.
  [[nodiscard]] double min_share(bucket_queue const& levels) const {
    std::size_t asked = 0;
    double least = 1;
    std::uint32_t group = levels.first(levels.lowest());
    for (; group != bucket_queue::none && asked != max_compared; ++asked) {
      least = std::min(least, share_of(groups_[group].time, groups_[group].bytes));
      group = next_group_[group];
    }
    if (group == bucket_queue::none) return least;
    return bucket_queue::share_of(levels.lowest());
  }

  /// The length above which samples surely take longer than `room`.
  [[nodiscard]] static double longest_within(degree_time const& time, double room) {
    double const unlimited = std::numeric_limits<double>::infinity();
    if (room < 0) return -1;
    double const by_tokens = time.linear > 0 ? room / time.linear : unlimited;
    double const by_squares = time.quadratic > 0 ? std::sqrt(room / time.quadratic) : unlimited;
    return std::min(by_tokens, by_squares) * (1 + 1e-9);
  }

  /// The first sample from `i` on without a group, by path halving.
  [[nodiscard]] std::uint32_t next(std::uint32_t i) {
    while (next_[i] != i) {
      next_[i] = next_[next_[i]];
      i = next_[i];
    }
    return i;
  }

  context_instance const* instance_ = nullptr;
  context_bound const* bound_ = nullptr;
  context_memory const* memory_ = nullptr;
  double limit_ = 0;
  context_target target_{};
  context_level level_{};
  std::uint64_t steps_left_ = 1;
  std::uint32_t min_degree_ = 0;
  double deadline_ = 0;
  double per_time_ = 0;
  double per_byte_ = 0;
  double area_left_ = 0;
  double time_ = 0;
  std::uint32_t micro_steps_ = 0;
  std::size_t placed_ = 0;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::uint32_t> next_;
  std::vector<filled_group> groups_;
  /// The degrees of this micro-step, and the positions of their groups.
  std::vector<used_degree> used_;
  std::vector<std::uint32_t> slot_of_;
  std::vector<bucket_queue> levels_;
  std::vector<std::uint32_t> next_group_;
  free_rank_pool rooms_;
  block_rooms blocks_;
};

/// The groups of a filling, kept while other fillings are tried.
class kept_filling {
 public:
  void keep(context_filling const& filling) {
    group_of_ = filling.group_of();
    groups_ = filling.groups();
    micro_steps_ = filling.micro_steps();
    makespan_ = filling.makespan();
    last_level_ = filling.last_level();
  }

  [[nodiscard]] std::vector<std::uint32_t> const& group_of() const { return group_of_; }
  [[nodiscard]] std::vector<filled_group> const& groups() const { return groups_; }
  [[nodiscard]] std::uint32_t micro_steps() const { return micro_steps_; }
  [[nodiscard]] double makespan() const { return makespan_; }
  [[nodiscard]] context_level const& last_level() const { return last_level_; }

 private:
  std::vector<std::uint32_t> group_of_;
  std::vector<filled_group> groups_;
  std::uint32_t micro_steps_ = 0;
  double makespan_ = 0;
  context_level last_level_{};
};

}  // namespace omnibal::inline v0::detail
