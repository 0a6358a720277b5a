// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups of the micro-step that a filling fills: a sample goes in, and the number of its group
/// comes out.

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_groups/bucket_queue.hpp>
#include <omnibal/context/context_groups/free_block_pool.hpp>
#include <omnibal/context/context_groups/free_rank_pool.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

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

/// The memory of `micro_step_groups`, reused between calls: the degrees in use with the queues of
/// their groups, and the free ranks.
struct micro_step_buffers {
  std::vector<used_degree> used{};
  /// The position of each degree in `used`, and the queue at each position.
  std::vector<std::uint32_t> slot_of{};
  std::vector<bucket_queue> queues{};
  std::vector<std::uint32_t> next_group{};
  free_rank_pool ranks{};
  free_block_pool blocks{};
};

/// Best fit of one sample at a time under a deadline. `context_filling` begins each micro-step,
/// sets its deadline, and places samples until none fits. The constructor empties `groups`. Each
/// micro-step then appends its groups.
class micro_step_groups {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  micro_step_groups(context_instance const& instance, context_memory memory,
                    std::vector<filled_group>& groups, micro_step_buffers& buffers)
      : instance_(instance),
        memory_(memory),
        groups_(groups),
        buffers_(buffers),
        per_byte_(instance.capacity > 0 ? 1 / static_cast<double>(instance.capacity) : 0) {
    groups_.clear();
    buffers_.used.clear();
    buffers_.slot_of.assign(instance.degrees.size(), none);
    buffers_.next_group.clear();
  }

  /// Begins a micro-step without groups. A call of `set_deadline` must follow.
  void begin(std::uint32_t micro_step) {
    micro_step_ = micro_step;
    first_group_ = groups_.size();
    for (used_degree const& used : buffers_.used) buffers_.slot_of[used.degree] = none;
    buffers_.used.clear();
    if (instance_.must_find_blocks) {
      buffers_.blocks.reset(instance_.ranks, instance_.ranks_per_node);
    } else {
      buffers_.ranks.reset(instance_.ranks, instance_.ranks_per_node);
    }
  }

  /// Sets the deadline of all groups of the micro-step, and the least degree of new groups as long
  /// as there are ranks for it.
  void set_deadline(double deadline, std::uint32_t min_degree) {
    deadline_ = deadline * (1 + context_rounding);
    per_time_ = deadline_ > 0 ? 1 / deadline_ : 0;
    min_degree_ = min_degree;
    for (std::size_t slot = 0; slot != buffers_.used.size(); ++slot) {
      buffers_.queues[slot].clear();
      buffers_.used[slot].misses = buffers_.used[slot].passed_over = 0;
    }
    for (std::size_t g = first_group_; g != groups_.size(); ++g) {
      insert(static_cast<std::uint32_t>(g));
    }
  }

  [[nodiscard]] double deadline() const { return deadline_; }

  [[nodiscard]] micro_step_load load() const {
    micro_step_load load;
    for (std::size_t g = first_group_; g != groups_.size(); ++g) {
      load.longest = std::max(load.longest, groups_[g].time);
      load.area += groups_[g].time * instance_.degrees[groups_[g].degree].ranks;
    }
    return load;
  }

  /// Puts a sample into an existing group or a group that is opened for it. Returns the group, or
  /// `none` if no group can hold the sample.
  [[nodiscard]] std::uint32_t place(context_sample const& sample) {
    std::uint32_t const wanted =
        are_ranks_left() ? opened_degree(sample, deadline_, min_degree_) : none;
    if (wanted != none) {
      std::uint32_t const group = join(sample, wanted);
      return group == none ? open(sample, wanted) : group;
    }
    for (std::size_t slot = buffers_.used.size(); slot-- != 0;) {
      used_degree& used = buffers_.used[slot];
      if (used.passed_over != 0) {
        --used.passed_over;
        continue;
      }
      std::uint32_t const group = join(sample, used.degree);
      if (group != none) {
        used.misses = 0;
        return group;
      }
      if (++used.misses >= max_tries) {
        used.passed_over = std::min(used.misses - max_tries + 1, max_passed_over);
      }
    }
    return none;
  }

  /// The least degree, from `min_degree` on if possible, with which a sample ends by a deadline and
  /// for which there are ranks; `none` if there is no such degree.
  [[nodiscard]] std::uint32_t opened_degree(context_sample const& sample, double deadline,
                                            std::uint32_t min_degree) const {
    std::uint32_t degree = instance_.first_in_time(sample, deadline, min_degree);
    if (is_open(degree)) return degree;
    if (min_degree == 0) return none;
    degree = instance_.first_in_time(sample, deadline);
    return is_open(degree) ? degree : none;
  }

  /// The first sample after sample `i` for which there are ranks or a group that may have room.
  [[nodiscard]] std::uint32_t first_that_fits(std::uint32_t i) const {
    auto const& samples = instance_.samples;
    auto found = samples.end();
    if (are_ranks_left()) {
      found = std::partition_point(samples.begin() + i, found, [&](context_sample const& sample) {
        return opened_degree(sample, deadline_, min_degree_) == none;
      });
    }
    for (used_degree const& used : buffers_.used) {
      std::uint32_t const degree = used.degree;
      bucket_queue const& queue = buffers_.queues[buffers_.slot_of[degree]];
      if (queue.empty()) continue;
      if (found == samples.begin() + i) break;
      degree_time const& time = instance_.degrees[degree].time;
      auto const is_too_long = [&](double room) {
        double const longest = longest_within(time, room * deadline_);
        double const bytes = room * static_cast<double>(instance_.capacity);
        return [this, degree, longest, bytes](context_sample const& sample) {
          return sample.tokens > longest || static_cast<double>(bytes_of(sample, degree)) > bytes;
        };
      };
      // Most degrees have no room even for the shortest of them.
      if (is_too_long(1 + 1e-9 - bucket_queue::share_of(queue.lowest()))(found[-1])) continue;
      found = std::partition_point(samples.begin() + i, found,
                                   is_too_long(1 + 1e-9 - min_share(queue)));
    }
    return static_cast<std::uint32_t>(found - samples.begin());
  }

 private:
  /// The numbers of groups that are asked for room, and that are compared to find the least loaded
  /// one.
  static constexpr std::size_t asked_groups = 8;
  static constexpr std::size_t max_compared = 64;
  /// The most consecutive samples that find no room in the groups of a degree before some samples
  /// do not look, and the most samples that do not look.
  static constexpr std::uint32_t max_tries = 2;
  static constexpr std::uint32_t max_passed_over = 8;

  [[nodiscard]] bool is_open(std::uint32_t degree) const {
    if (degree == instance_.degrees.size()) return false;
    std::uint32_t const ranks = instance_.degrees[degree].ranks;
    return instance_.must_find_blocks ? buffers_.blocks.has(ranks) : ranks <= buffers_.ranks.most();
  }

  [[nodiscard]] bool are_ranks_left() const {
    return instance_.must_find_blocks ? !buffers_.blocks.empty() : buffers_.ranks.most() != 0;
  }

  [[nodiscard]] std::uint32_t take(std::uint32_t ranks) {
    return instance_.must_find_blocks ? buffers_.blocks.take(ranks) : buffers_.ranks.take(ranks);
  }

  [[nodiscard]] std::int64_t bytes_of(context_sample const& sample, std::uint32_t degree) const {
    return memory_(sample.length, instance_.degrees[degree].ranks);
  }

  /// Puts a sample into the most loaded group of a degree in which it ends in time.
  [[nodiscard]] std::uint32_t join(context_sample const& sample, std::uint32_t degree) {
    std::uint32_t const slot = buffers_.slot_of[degree];
    if (degree < sample.least || slot == none) return none;
    double const added = instance_.added(sample, degree);
    double const max_load = deadline_ - added;
    std::int64_t const bytes = bytes_of(sample, degree);
    std::int64_t const max_bytes = instance_.capacity - bytes;
    if (!(max_load >= 0) || max_bytes < 0) return none;
    bucket_queue& queue = buffers_.queues[slot];
    auto const has_room = [&](std::uint32_t g) {
      return groups_[g].time <= max_load && groups_[g].bytes <= max_bytes;
    };
    // Groups of lower buckets have room for sure. Groups of higher buckets with room in time or in
    // bytes may have no room in the other.
    double const by_time = max_load * per_time_;
    double const by_bytes = static_cast<double>(max_bytes) * per_byte_;
    std::size_t const sure = bucket_queue::level_of(std::min(by_time, by_bytes));
    std::size_t const above = bucket_queue::level_of(std::max(by_time, by_bytes));
    auto& next = buffers_.next_group;
    std::uint32_t group = queue.take_below(sure, asked_groups, next, has_room);
    if (group == bucket_queue::none && sure != 0) {
      group = queue.take_below(sure - 1, asked_groups, next, has_room);
    }
    if (group == bucket_queue::none && above != sure) {
      group = queue.take_below(above, asked_groups, next, has_room);
    }
    if (group == bucket_queue::none) return none;
    groups_[group].time += added;
    groups_[group].bytes += bytes;
    insert(group);
    return group;
  }

  [[nodiscard]] std::uint32_t open(context_sample const& sample, std::uint32_t degree) {
    std::int64_t const bytes = bytes_of(sample, degree);
    if (bytes > instance_.capacity) throw_growing(sample, degree, bytes);
    auto const group = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({.micro_step = micro_step_,
                       .degree = degree,
                       .first_rank = take(instance_.degrees[degree].ranks),
                       .time = instance_.alone(sample, degree),
                       .bytes = bytes});
    buffers_.next_group.resize(groups_.size());
    if (buffers_.slot_of[degree] == none) {
      auto const slot = static_cast<std::uint32_t>(buffers_.used.size());
      buffers_.slot_of[degree] = slot;
      buffers_.used.push_back({degree});
      if (buffers_.queues.size() < buffers_.used.size()) buffers_.queues.emplace_back();
      buffers_.queues[slot].clear();
    }
    insert(group);
    return group;
  }

  [[noreturn]] void throw_growing(context_sample const& sample, std::uint32_t degree,
                                  std::int64_t bytes) const {
    std::uint32_t const fewer = instance_.degrees[sample.least].ranks;
    throw_memory(sample.length, instance_.degrees[degree].ranks, bytes,
                 "must not be above that with " + to_text(fewer) + " ranks");
  }

  void insert(std::uint32_t group) {
    filled_group const& own = groups_[group];
    buffers_.queues[buffers_.slot_of[own.degree]].insert(
        group, bucket_queue::level_of(share_of(own)), buffers_.next_group);
  }

  /// The larger share: of the deadline, or of the capacity.
  [[nodiscard]] double share_of(filled_group const& group) const {
    return std::max(group.time * per_time_, static_cast<double>(group.bytes) * per_byte_);
  }

  /// The share of the least loaded group, or less.
  [[nodiscard]] double min_share(bucket_queue const& queue) const {
    std::size_t asked = 0;
    double least = 1;
    std::uint32_t group = queue.first(queue.lowest());
    for (; group != bucket_queue::none && asked != max_compared; ++asked) {
      least = std::min(least, share_of(groups_[group]));
      group = buffers_.next_group[group];
    }
    if (group == bucket_queue::none) return least;
    return bucket_queue::share_of(queue.lowest());
  }

  /// The length above which samples surely take longer than `room`.
  [[nodiscard]] static double longest_within(degree_time const& time, double room) {
    double const unlimited = std::numeric_limits<double>::infinity();
    if (room < 0) return -1;
    double const by_tokens = time.linear > 0 ? room / time.linear : unlimited;
    double const by_squares = time.quadratic > 0 ? std::sqrt(room / time.quadratic) : unlimited;
    return std::min(by_tokens, by_squares) * (1 + 1e-9);
  }

  context_instance const& instance_;
  context_memory memory_;
  std::vector<filled_group>& groups_;
  micro_step_buffers& buffers_;
  double per_byte_;
  std::uint32_t micro_step_ = 0;
  /// The first group of this micro-step.
  std::size_t first_group_ = 0;
  double deadline_ = 0;
  double per_time_ = 0;
  std::uint32_t min_degree_ = 0;
};

}  // namespace omnibal::inline v0::detail
