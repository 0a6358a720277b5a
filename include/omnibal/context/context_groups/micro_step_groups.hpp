// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The groups and the free ranks of one micro-step.

#include <omnibal/check.hpp>
#include <omnibal/context/context_groups/free_block_pool.hpp>
#include <omnibal/context/context_groups/free_rank_pool.hpp>
#include <omnibal/context/context_groups/free_window_pool.hpp>
#include <omnibal/context/context_groups/instance.hpp>
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

/// The memory of `micro_step_groups`, reused between calls: the free ranks, if groups may be
/// anywhere, if they must be on blocks, and if speeds differ.
struct rank_buffers {
  free_rank_pool ranks{};
  free_block_pool blocks{};
  free_window_pool windows{};
};

/// The groups of a micro-step, which are appended to the groups of the schedule, and the ranks
/// without a group.
class micro_step_groups {
 public:
  /// Begins a micro-step without groups.
  micro_step_groups(context_instance const& instance, context_memory memory,
                    std::uint32_t micro_step, std::vector<filled_group>& groups,
                    rank_buffers& buffers)
      : instance_(instance),
        memory_(memory),
        micro_step_(micro_step),
        groups_(groups),
        first_(static_cast<std::uint32_t>(groups.size())),
        buffers_(buffers) {
    if (!instance_.has_equal_speeds()) {
      buffers_.windows.reset(instance_);
    } else if (instance_.must_find_blocks) {
      buffers_.blocks.reset(instance_.ranks, instance_.ranks_per_node);
    } else {
      buffers_.ranks.reset(instance_.ranks, instance_.ranks_per_node);
    }
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

  [[nodiscard]] bool are_ranks_left() const {
    if (!instance_.has_equal_speeds()) return !buffers_.windows.empty();
    return instance_.must_find_blocks ? !buffers_.blocks.empty() : buffers_.ranks.max_ranks() != 0;
  }

  /// Returns true if a group of a degree can be opened. `degree_index` may be the number of
  /// degrees.
  [[nodiscard]] bool has_ranks_for(std::uint32_t degree_index) const {
    if (degree_index == instance_.degrees.size()) return false;
    if (!instance_.has_equal_speeds()) return buffers_.windows.has(degree_index);
    std::uint32_t const ranks = instance_.degrees[degree_index].ranks;
    return instance_.must_find_blocks ? buffers_.blocks.has(ranks)
                                      : ranks <= buffers_.ranks.max_ranks();
  }

  /// Returns the slowness of the next group of a degree. Precondition: there are ranks for it.
  [[nodiscard]] double slowness_of_next(std::uint32_t degree_index) const {
    return instance_.has_equal_speeds() ? 1 : buffers_.windows.first(degree_index).slowness;
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

  /// Opens a group for a sample. Precondition: there are ranks for the degree.
  [[nodiscard]] std::uint32_t open(context_sample const& sample, std::uint32_t degree_index) {
    std::int64_t const bytes = bytes_of(sample, degree_index);
    if (bytes > instance_.capacity) throw_growing(sample, degree_index, bytes);
    double const slowness = slowness_of_next(degree_index);
    groups_.push_back({.micro_step = micro_step_,
                       .degree_index = degree_index,
                       .first_rank = take_ranks(degree_index),
                       .time = instance_.time_alone(sample, degree_index, slowness),
                       .bytes = bytes,
                       .slowness = slowness});
    return end() - 1;
  }

 private:
  /// Returns the first rank of a new group.
  [[nodiscard]] std::uint32_t take_ranks(std::uint32_t degree_index) {
    if (!instance_.has_equal_speeds()) return buffers_.windows.take(degree_index);
    std::uint32_t const ranks = instance_.degrees[degree_index].ranks;
    return instance_.must_find_blocks ? buffers_.blocks.take(ranks) : buffers_.ranks.take(ranks);
  }

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
  rank_buffers& buffers_;
};

}  // namespace omnibal::inline v0::detail
