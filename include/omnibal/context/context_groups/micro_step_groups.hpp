// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups of one micro-step.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/free_ranks.hpp>
#include <omnibal/context/context_groups/instance.hpp>
#include <omnibal/context/context_groups/rank_windows.hpp>
#include <omnibal/context/context_groups/schedule.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The longest group and the rank-seconds of a micro-step.
struct micro_step_load {
  double longest = 0;
  double area = 0;
};

/// The groups of a micro-step, which are appended to the groups of the schedule. New groups take
/// their ranks from the free ranks.
class micro_step_groups {
 public:
  /// Begins a micro-step without groups.
  micro_step_groups(context_instance const& instance, context_memory memory,
                    std::uint32_t micro_step, std::vector<filled_group>& groups, free_ranks& ranks)
      : instance_(instance),
        memory_(memory),
        micro_step_(micro_step),
        groups_(groups),
        first_(static_cast<std::uint32_t>(groups.size())),
        ranks_(ranks) {
    ranks_.reset();
  }
  micro_step_groups(micro_step_groups const&) = delete;
  micro_step_groups& operator=(micro_step_groups const&) = delete;

  /// Return the first group of the micro-step in the schedule, and the end of its groups.
  [[nodiscard]] std::uint32_t first() const { return first_; }
  [[nodiscard]] std::uint32_t end() const { return static_cast<std::uint32_t>(groups_.size()); }
  [[nodiscard]] filled_group const& operator[](std::uint32_t group) const { return groups_[group]; }

  /// Returns the load of all groups of the micro-step.
  [[nodiscard]] micro_step_load load() const {
    micro_step_load load;
    for (std::uint32_t g = first_; g != end(); ++g) {
      load.longest = std::max(load.longest, groups_[g].time);
      double const ranks = instance_.degrees[groups_[g].degree_index].ranks;
      load.area += groups_[g].time * ranks / groups_[g].slowness;
    }
    return load;
  }

  [[nodiscard]] bool are_ranks_left() const { return !ranks_.empty(); }

  /// Returns true if a group of a degree can be opened. `degree_index` may be the number of
  /// degrees. Precondition: all ranks have the same speed and the same capacity.
  [[nodiscard]] bool has_ranks_for(std::uint32_t degree_index) const {
    return degree_index != instance_.degrees.size() && ranks_.has(degree_index);
  }

  /// Returns the ranks of a new group of a degree that has the capacity for a sample; nullptr if
  /// there are none. Precondition: speeds or capacities differ.
  [[nodiscard]] rank_window const* find_window(context_sample const& sample,
                                               std::uint32_t degree_index) const {
    // Equal capacities hold the sample on its least degree, and therefore on all larger ones.
    if (instance_.has_equal_capacities()) return ranks_.find_window(degree_index, 0);
    std::int64_t const bytes = bytes_of(sample, degree_index);
    if (bytes > instance_.capacity) throw_growing(sample, degree_index, bytes);
    return ranks_.find_window(degree_index, bytes);
  }

  [[nodiscard]] std::int64_t bytes_of(context_sample const& sample,
                                      std::uint32_t degree_index) const {
    return memory_(sample.length, instance_.degrees[degree_index].ranks);
  }

  /// Adds the time and the bytes of a sample to a group.
  void add(std::uint32_t group, double time, std::int64_t bytes) {
    groups_[group].time += time;
    groups_[group].bytes += bytes;
  }

  /// Opens a group for a sample. Precondition: there are ranks for the degree and the sample.
  [[nodiscard]] std::uint32_t open(context_sample const& sample, std::uint32_t degree_index) {
    std::int64_t const bytes = bytes_of(sample, degree_index);
    if (bytes > instance_.capacity) throw_growing(sample, degree_index, bytes);
    rank_window const window = ranks_.take(degree_index, bytes);
    groups_.push_back({.micro_step = micro_step_,
                       .degree_index = degree_index,
                       .first_rank = window.first_rank,
                       .time = instance_.time_alone(sample, degree_index, window.slowness),
                       .bytes = bytes + (instance_.capacity - window.capacity),
                       .slowness = window.slowness});
    return end() - 1;
  }

 private:
  [[noreturn]] void throw_growing(context_sample const& sample, std::uint32_t degree_index,
                                  std::int64_t bytes) const {
    std::uint32_t const fewer = instance_.degrees[sample.min_degree_index].ranks;
    throw_memory(sample.length, instance_.degrees[degree_index].ranks, bytes,
                 "must not be above that with " + to_text(fewer) + " ranks");
  }

  context_instance const& instance_;
  context_memory memory_;
  std::uint32_t micro_step_;
  std::vector<filled_group>& groups_;
  std::uint32_t first_;
  free_ranks& ranks_;
};

}  // namespace omnibal::inline v0::detail
