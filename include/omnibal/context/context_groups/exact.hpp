// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The best plan of a few samples.

#include <omnibal/context/context_groups/blocks.hpp>
#include <omnibal/context/context_groups/filling.hpp>
#include <omnibal/context/context_groups/instance.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Depth-first branch and bound. Samples are placed one after the other, longest first. Each joins
/// an existing group or opens a group of any degree, in an existing micro-step or in a new one. The
/// search tries only one of several equal groups or micro-steps.
class context_exact {
 public:
  static constexpr std::size_t max_samples = 12;

  /// Searches for a plan below `makespan`, with at most `max_nodes` nodes. Returns true if no
  /// better plan exists than the plan found, if any.
  bool operator()(context_instance const& instance, context_bound const& bound,
                  context_memory memory, double makespan, std::uint64_t max_nodes) {
    instance_ = &instance;
    bound_ = &bound;
    memory_ = &memory;
    best_ = makespan * (1 - 4 * context_rounding);
    nodes_left_ = max_nodes;
    has_found_ = false;
    has_skipped_ = false;
    groups_.clear();
    steps_.clear();
    // References to groups stay valid.
    groups_.reserve(max_samples);
    steps_.reserve(max_samples + 1);
    group_of_.assign(instance.samples.size(), 0);
    longest_ = area_ = 0;
    place(0);
    memory_ = nullptr;
    return nodes_left_ != 0 && !has_skipped_;
  }

  [[nodiscard]] bool has_found() const { return has_found_; }
  [[nodiscard]] std::vector<std::uint32_t> const& group_of() const { return best_group_of_; }
  [[nodiscard]] std::vector<filled_group> const& groups() const { return best_groups_; }
  [[nodiscard]] std::uint32_t micro_steps() const { return best_steps_; }

 private:
  /// A micro-step: its longest group, its untouched nodes, and the room of each touched node in the
  /// order of touching.
  struct open_step {
    double longest = 0;
    std::uint32_t first_untouched = 0;
    std::uint32_t last_untouched = 0;
    std::uint32_t touched = 0;
    std::uint32_t rooms[max_samples] = {};

    [[nodiscard]] friend bool operator==(open_step const&, open_step const&) = default;
  };

  /// False if the search must stop at this node.
  [[nodiscard]] bool is_worth(std::size_t sample) {
    if (nodes_left_ == 0) return false;
    --nodes_left_;
    double const mean = (area_ + bound_->area_from(sample)) / instance_->ranks;
    return instance_->fixed_time(std::max<std::size_t>(1, steps_.size())) +
               std::max(longest_, mean * (1 - 4 * context_rounding)) <
           best_;
  }

  void place(std::size_t sample) {
    if (!is_worth(sample)) return;
    if (sample == instance_->samples.size()) return keep();
    join(sample);
    for (std::uint32_t step = 0; step != steps_.size(); ++step) {
      if (!is_repeated(step)) open_in(sample, step);
    }
    steps_.push_back({.last_untouched = instance_->ranks / instance_->ranks_per_node});
    open_in(sample, static_cast<std::uint32_t>(steps_.size() - 1));
    steps_.pop_back();
  }

  void keep() {
    if (instance_->must_find_blocks && !find_blocks()) return;
    best_ = (instance_->fixed_time(steps_.size()) + longest_) * (1 - 4 * context_rounding);
    best_groups_ = groups_;
    best_group_of_ = group_of_;
    best_steps_ = static_cast<std::uint32_t>(steps_.size());
    has_found_ = true;
  }

  /// Moves the groups of all micro-steps to blocks. False if there are no such blocks, or the
  /// search finds none.
  [[nodiscard]] bool find_blocks() {
    for (std::uint32_t step = 0; step != steps_.size(); ++step) {
      block_search const found = placer_(*instance_, groups_, step);
      if (found == block_search::gave_up) has_skipped_ = true;
      if (found != block_search::found) return false;
    }
    return true;
  }

  /// True if an earlier micro-step has equal groups and equal rooms.
  [[nodiscard]] bool is_repeated(std::uint32_t step) const {
    for (std::uint32_t other = 0; other != step; ++other) {
      if (steps_[other] == steps_[step] && has_equal_groups(other, step)) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_equal_groups(std::uint32_t left, std::uint32_t right) const {
    std::size_t r = 0;
    for (filled_group const& group : groups_) {
      if (group.micro_step != left) continue;
      while (r != groups_.size() && groups_[r].micro_step != right) ++r;
      if (r == groups_.size() || !is_alike(group, groups_[r])) return false;
      ++r;
    }
    while (r != groups_.size() && groups_[r].micro_step != right) ++r;
    return r == groups_.size();
  }

  [[nodiscard]] static bool is_alike(filled_group const& left, filled_group const& right) {
    return left.degree == right.degree && left.time == right.time && left.bytes == right.bytes;
  }

  void join(std::size_t sample) {
    context_sample const& own = instance_->samples[sample];
    for (std::uint32_t g = 0; g != groups_.size(); ++g) {
      bool const is_tried =
          std::any_of(groups_.begin(), groups_.begin() + g, [&](filled_group const& earlier) {
            return earlier.micro_step == groups_[g].micro_step && is_alike(earlier, groups_[g]);
          });
      if (is_tried) continue;
      filled_group const before = groups_[g];
      std::int64_t const bytes = bytes_of(own, before.degree);
      if (bytes > instance_->capacity - before.bytes) continue;
      group_of_[sample] = g;
      groups_[g].bytes += bytes;
      put(sample, g);
      groups_[g] = before;
    }
  }

  void open_in(std::size_t sample, std::uint32_t step) {
    context_sample const& own = instance_->samples[sample];
    for (std::uint32_t d = 0; d != instance_->degrees.size(); ++d) {
      std::int64_t const bytes = bytes_of(own, d);
      if (bytes > instance_->capacity) continue;
      if (instance_->degrees[d].ranks >= instance_->ranks_per_node) {
        open_nodes(sample, step, d, bytes);
      } else {
        open_within(sample, step, d, bytes);
      }
    }
  }

  void open_nodes(std::size_t sample, std::uint32_t step, std::uint32_t degree,
                  std::int64_t bytes) {
    std::uint32_t const nodes = instance_->degrees[degree].ranks / instance_->ranks_per_node;
    open_step const before = steps_[step];
    if (nodes > before.last_untouched - before.first_untouched) return;
    steps_[step].first_untouched += nodes;
    open(sample, step, degree, bytes, before.first_untouched * instance_->ranks_per_node);
    steps_[step] = before;
  }

  void open_within(std::size_t sample, std::uint32_t step, std::uint32_t degree,
                   std::int64_t bytes) {
    std::uint32_t const ranks = instance_->degrees[degree].ranks;
    std::uint32_t const per_node = instance_->ranks_per_node;
    std::uint32_t const nodes = instance_->ranks / per_node;
    open_step const before = steps_[step];
    for (std::uint32_t t = 0; t <= before.touched; ++t) {
      bool const is_new = t == before.touched;
      if (is_new && before.last_untouched == before.first_untouched) break;
      std::uint32_t const room = is_new ? per_node : before.rooms[t];
      bool const is_tried = std::find(before.rooms, before.rooms + t, room) != before.rooms + t;
      if (room < ranks || is_tried) continue;
      open_step& own = steps_[step];
      own.rooms[t] = room - ranks;
      if (is_new) {
        ++own.touched;
        --own.last_untouched;
      }
      open(sample, step, degree, bytes, (nodes - t) * per_node - room);
      own = before;
    }
  }

  void open(std::size_t sample, std::uint32_t step, std::uint32_t degree, std::int64_t bytes,
            std::uint32_t first_rank) {
    group_of_[sample] = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({.micro_step = step,
                       .degree = degree,
                       .first_rank = first_rank,
                       .time = instance_->degrees[degree].time.fixed,
                       .bytes = bytes});
    put(sample, groups_.size() - 1);
    groups_.pop_back();
  }

  /// Adds the time of a sample to its group and continues with the next sample. The caller restores
  /// the group.
  void put(std::size_t sample, std::size_t g) {
    context_sample const& own = instance_->samples[sample];
    std::uint32_t const step = groups_[g].micro_step;
    double const before[] = {longest_, area_, steps_[step].longest};
    std::uint32_t const degree = groups_[g].degree;
    groups_[g].time += instance_->added(own, degree);
    area_ += instance_->area(own, degree);
    if (groups_[g].time > steps_[step].longest) {
      longest_ += groups_[g].time - steps_[step].longest;
      steps_[step].longest = groups_[g].time;
    }
    place(sample + 1);
    longest_ = before[0];
    area_ = before[1];
    steps_[step].longest = before[2];
  }

  [[nodiscard]] std::int64_t bytes_of(context_sample const& sample, std::uint32_t degree) const {
    return (*memory_)(sample.length, instance_->degrees[degree].ranks);
  }

  context_instance const* instance_ = nullptr;
  context_bound const* bound_ = nullptr;
  context_memory const* memory_ = nullptr;
  std::vector<filled_group> groups_;
  std::vector<open_step> steps_;
  std::vector<std::uint32_t> group_of_;
  /// The sums of the longest groups of the micro-steps, and of all areas.
  double longest_ = 0;
  double area_ = 0;
  double best_ = 0;
  std::uint64_t nodes_left_ = 0;
  bool has_found_ = false;
  /// True if a plan was rejected because the search for its blocks gave up.
  bool has_skipped_ = false;
  block_placer placer_;
  std::vector<filled_group> best_groups_;
  std::vector<std::uint32_t> best_group_of_;
  std::uint32_t best_steps_ = 0;
};

}  // namespace omnibal::inline v0::detail
