// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best schedule of a few samples: `context_groups` calls it after the search.

#include <omnibal/context/context_groups/block_placer.hpp>
#include <omnibal/context/context_groups/bound.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::detail {

/// The maximum number of samples, and therefore of groups, for branch and bound.
inline constexpr std::size_t max_exact_samples = block_placer::max_groups;

/// An undo of changes: restores a value at the end of its scope.
template <class T>
class restored {
 public:
  explicit restored(T& value) : value_(value), before_(value) {}
  restored(restored const&) = delete;
  restored& operator=(restored const&) = delete;
  ~restored() { value_ = before_; }

 private:
  T& value_;
  T const before_;
};

/// Depth-first branch and bound. Samples are placed one after the other, longest first. Each joins
/// an existing group or opens a group of any degree, in an existing micro-step or in a new one. The
/// search tries only one of several equal groups or micro-steps. Free ranks follow the rule of two
/// ends (free_node_pool.hpp). Instead of best fit, the search tries each number of free ranks of
/// the touched nodes, and an untouched node. `branch_...` functions make a change, continue the
/// search and undo the change.
class context_exact {
 public:
  /// Starts from a schedule of at most `max_exact_samples` samples, which a better schedule
  /// replaces.
  context_exact(context_instance const& instance, context_bound const& bound, context_memory memory,
                context_schedule& schedule)
      : instance_(instance), bound_(bound), memory_(memory), schedule_(schedule) {}

  /// Visits at most `max_nodes` nodes. Returns true if the final schedule is proven to be the best.
  [[nodiscard]] bool run(std::uint64_t max_nodes) {
    limit_ = schedule_.makespan * (1 - 4 * context_rounding);
    nodes_left_ = max_nodes;
    branch_on(0);
    return nodes_left_ != 0 && !has_skipped_;
  }

 private:
  /// A micro-step: its longest group, its untouched nodes, and the free ranks of each touched node
  /// in the order of touching.
  struct open_step {
    double longest = 0;
    std::uint32_t first_untouched = 0;
    std::uint32_t last_untouched = 0;
    std::uint32_t touched = 0;
    std::uint32_t rooms[max_exact_samples] = {};

    [[nodiscard]] friend bool operator==(open_step const&, open_step const&) = default;
  };

  /// Counts a node. Returns false if no nodes are left, or if no continuation of the partial
  /// schedule can be better than the best schedule.
  [[nodiscard]] bool is_worth(std::size_t sample) {
    if (nodes_left_ == 0) return false;
    --nodes_left_;
    double const mean = (area_ + bound_.area_from(sample)) / instance_.ranks;
    return instance_.fixed_time(std::max<std::size_t>(1, step_count_)) +
               std::max(longest_, mean * (1 - 4 * context_rounding)) <
           limit_;
  }

  /// Tries all placements of this sample and of all later samples.
  void branch_on(std::size_t sample) {
    if (!is_worth(sample)) return;
    if (sample == instance_.samples.size()) return record_schedule();
    branch_on_groups(sample);
    for (std::uint32_t step = 0; step != step_count_; ++step) {
      if (!is_repeated(step)) branch_on_new_groups(sample, step);
    }
    restored const steps(step_count_);
    std::uint32_t const step = step_count_++;
    steps_[step] = {.last_untouched = instance_.ranks / instance_.ranks_per_node};
    branch_on_new_groups(sample, step);
  }

  /// Replaces the schedule of the caller by the partial schedule, which is complete.
  void record_schedule() {
    if (instance_.must_find_blocks && !find_blocks()) return;
    schedule_.groups.assign(groups_, groups_ + group_count_);
    schedule_.group_of.assign(group_of_, group_of_ + instance_.samples.size());
    schedule_.micro_steps = step_count_;
    schedule_.makespan = instance_.fixed_time(step_count_) + longest_;
    limit_ = schedule_.makespan * (1 - 4 * context_rounding);
  }

  /// Moves the groups of all micro-steps to blocks. Returns false if there are no such blocks, or
  /// if the search finds none.
  [[nodiscard]] bool find_blocks() {
    for (std::uint32_t step = 0; step != step_count_; ++step) {
      block_search const found = block_placer(instance_, groups()).run(step);
      if (found == block_search::gave_up) has_skipped_ = true;
      if (found != block_search::found) return false;
    }
    return true;
  }

  /// Returns true if an earlier micro-step has equal groups and equal free ranks.
  [[nodiscard]] bool is_repeated(std::uint32_t step) const {
    for (std::uint32_t other = 0; other != step; ++other) {
      if (steps_[other] == steps_[step] && has_equal_groups(other, step)) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_equal_groups(std::uint32_t left, std::uint32_t right) const {
    std::size_t r = 0;
    for (filled_group const& group : groups()) {
      if (group.micro_step != left) continue;
      while (r != group_count_ && groups_[r].micro_step != right) ++r;
      if (r == group_count_ || !is_alike(group, groups_[r])) return false;
      ++r;
    }
    while (r != group_count_ && groups_[r].micro_step != right) ++r;
    return r == group_count_;
  }

  [[nodiscard]] static bool is_alike(filled_group const& left, filled_group const& right) {
    return left.degree_index == right.degree_index && left.time == right.time &&
           left.bytes == right.bytes;
  }

  /// Adds a sample to each group of the schedule that has room.
  void branch_on_groups(std::size_t sample) {
    context_sample const& own = instance_.samples[sample];
    for (std::uint32_t g = 0; g != group_count_; ++g) {
      bool const is_tried = std::any_of(groups_, groups_ + g, [&](filled_group const& earlier) {
        return earlier.micro_step == groups_[g].micro_step && is_alike(earlier, groups_[g]);
      });
      if (is_tried) continue;
      std::int64_t const bytes = bytes_of(own, groups_[g].degree_index);
      if (bytes > instance_.capacity - groups_[g].bytes) continue;
      restored const group(groups_[g]);
      branch_with_sample(sample, g, bytes);
    }
  }

  /// Opens a group of each degree for a sample in a micro-step.
  void branch_on_new_groups(std::size_t sample, std::uint32_t step) {
    context_sample const& own = instance_.samples[sample];
    for (std::uint32_t d = 0; d != instance_.degrees.size(); ++d) {
      std::int64_t const bytes = bytes_of(own, d);
      if (bytes > instance_.capacity) continue;
      if (instance_.degrees[d].ranks >= instance_.ranks_per_node) {
        branch_on_whole_nodes(sample, step, d, bytes);
      } else {
        branch_within_node(sample, step, d, bytes);
      }
    }
  }

  /// Opens a group of whole nodes, at the front of the untouched nodes.
  void branch_on_whole_nodes(std::size_t sample, std::uint32_t step, std::uint32_t degree_index,
                             std::int64_t bytes) {
    std::uint32_t const nodes = instance_.degrees[degree_index].ranks / instance_.ranks_per_node;
    open_step& own = steps_[step];
    if (nodes > own.last_untouched - own.first_untouched) return;
    std::uint32_t const first_rank = own.first_untouched * instance_.ranks_per_node;
    restored const untouched(own.first_untouched);
    own.first_untouched += nodes;
    branch_with_group(sample, step, degree_index, bytes, first_rank);
  }

  /// Opens a group in a touched node of each number of free ranks, and in the last untouched node.
  void branch_within_node(std::size_t sample, std::uint32_t step, std::uint32_t degree_index,
                          std::int64_t bytes) {
    std::uint32_t const ranks = instance_.degrees[degree_index].ranks;
    std::uint32_t const per_node = instance_.ranks_per_node;
    std::uint32_t const nodes = instance_.ranks / per_node;
    open_step& own = steps_[step];
    std::uint32_t const touched = own.touched;
    for (std::uint32_t t = 0; t <= touched; ++t) {
      bool const is_new = t == touched;
      if (is_new && own.last_untouched == own.first_untouched) break;
      std::uint32_t const room = is_new ? per_node : own.rooms[t];
      bool const is_tried = std::find(own.rooms, own.rooms + t, room) != own.rooms + t;
      if (room < ranks || is_tried) continue;
      restored const before(own);
      own.rooms[t] = room - ranks;
      if (is_new) {
        ++own.touched;
        --own.last_untouched;
      }
      branch_with_group(sample, step, degree_index, bytes, (nodes - t) * per_node - room);
    }
  }

  /// Opens a group for a sample.
  void branch_with_group(std::size_t sample, std::uint32_t step, std::uint32_t degree_index,
                         std::int64_t bytes, std::uint32_t first_rank) {
    restored const count(group_count_);
    std::uint32_t const group = group_count_++;
    groups_[group] = {.micro_step = step,
                      .degree_index = degree_index,
                      .first_rank = first_rank,
                      .time = instance_.degrees[degree_index].time.fixed};
    branch_with_sample(sample, group, bytes);
  }

  /// Adds a sample to a group and continues with the next sample. The caller restores the group.
  void branch_with_sample(std::size_t sample, std::uint32_t g, std::int64_t bytes) {
    context_sample const& own = instance_.samples[sample];
    filled_group& group = groups_[g];
    double& step_longest = steps_[group.micro_step].longest;
    restored const step_before(step_longest);
    restored const longest_before(longest_);
    restored const area_before(area_);
    group_of_[sample] = g;
    group.bytes += bytes;
    group.time += instance_.added_time(own, group.degree_index);
    area_ += instance_.area(own, group.degree_index);
    if (group.time > step_longest) {
      longest_ += group.time - step_longest;
      step_longest = group.time;
    }
    branch_on(sample + 1);
  }

  [[nodiscard]] std::span<filled_group> groups() { return {groups_, group_count_}; }
  [[nodiscard]] std::span<filled_group const> groups() const { return {groups_, group_count_}; }

  [[nodiscard]] std::int64_t bytes_of(context_sample const& sample,
                                      std::uint32_t degree_index) const {
    return memory_(sample.length, instance_.degrees[degree_index].ranks);
  }

  context_instance const& instance_;
  context_bound const& bound_;
  context_memory memory_;
  context_schedule& schedule_;
  /// The partial schedule.
  filled_group groups_[max_exact_samples] = {};
  open_step steps_[max_exact_samples + 1] = {};
  std::uint32_t group_of_[max_exact_samples] = {};
  std::uint32_t group_count_ = 0;
  std::uint32_t step_count_ = 0;
  /// The sums of the longest groups of the micro-steps, and of all areas.
  double longest_ = 0;
  double area_ = 0;
  /// Partial schedules that reach this makespan are not continued.
  double limit_ = 0;
  std::uint64_t nodes_left_ = 0;
  /// True if a schedule was rejected because the search for its blocks gave up.
  bool has_skipped_ = false;
};

}  // namespace omnibal::inline v0::detail
