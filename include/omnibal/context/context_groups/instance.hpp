// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The input of `context_groups`, in arrays. `make_instance` writes it, and all later steps only
/// read it.

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/detail/function_ref.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A functor (length, degree) to the bytes that a sample requires on each rank of its group.
using context_memory = function_ref<std::int64_t(std::int64_t, std::uint32_t)>;

inline constexpr std::string_view context_groups_name = "context_groups";

inline constexpr std::int64_t max_context_length = std::numeric_limits<std::uint32_t>::max();

/// An upper bound on the relative rounding error of a time or an area.
inline constexpr double context_rounding = 1e-12;

template <class Number>
[[noreturn]] void throw_memory(std::int64_t length, std::uint32_t degree, Number bytes,
                               std::string_view rule) {
  throw_invalid(context_groups_name, "memory(", length, ", ", degree, ") is ", bytes, ", ", rule);
}

/// A degree that groups may have. The least fixed time of all degrees is subtracted from its times.
struct context_degree {
  std::uint32_t ranks = 0;
  degree_time time{};
  /// The least slowness of a group of this degree.
  double slowness = 1;
  /// The largest capacity of a group of this degree.
  std::int64_t capacity = 0;
};

/// A sample of the step: its length, and its index in the list of the caller.
struct context_sample {
  std::int64_t length = 0;
  double tokens = 0;
  double squares = 0;
  std::uint32_t index = 0;
  /// The first degree on which the sample fits. If capacities differ, the sample may not fit on
  /// some larger degrees.
  std::uint32_t min_degree_index = 0;
};

/// The samples, degrees, ranks and limits of one call. A `degree_index` is an index of `degrees`;
/// a `degree` without this word is a number of ranks.
struct context_instance {
  /// The samples by descending length; `set_min_degrees` sets their `min_degree_index`.
  std::vector<context_sample> samples{};
  /// The degrees that groups may have, by ascending number of ranks.
  std::vector<context_degree> degrees{};
  std::uint32_t ranks = 0;
  /// The slowness of each rank, which is the speed of the fastest rank over the speed of the rank;
  /// empty if all ranks have the same speed and the same capacity. A group is as slow as its
  /// slowest rank. The samples of a group take their time on the fastest ranks times the slowness
  /// of the group.
  std::vector<double> slowness{};
  /// The maximum number of bytes on each rank; empty if `slowness` is empty. A group has the
  /// capacity of its rank with the smallest one.
  std::vector<std::int64_t> capacities{};
  /// The slowness of the slowest rank.
  double max_slowness = 1;
  /// The sum of the speeds of all ranks over the speed of the fastest rank.
  double total_speed = 0;
  /// The number of ranks of a node. Without nodes each rank is a node.
  std::uint32_t ranks_per_node = 0;
  /// The divisor of the number of micro-steps.
  std::uint32_t multiple = 1;
  /// The largest and the smallest capacity of a rank, and the sum of all capacities.
  std::int64_t capacity = 0;
  std::int64_t min_capacity = 0;
  double total_capacity = 0;
  /// The fixed time of each micro-step.
  double micro_step_time = 0;
  /// The least fixed time of a group. Each micro-step with samples adds this time once.
  double min_fixed_time = 0;
  /// True if a sample never requires fewer rank-seconds on more ranks. Then the least degree that
  /// ends a sample by a deadline has the least area.
  bool areas_ascend = true;
  /// True if the degrees are a divisor chain; see `is_divisor_chain`. Groups in descending order of
  /// degree are then on blocks.
  bool is_chain = false;
  /// True if blocks are required, and a search must find them.
  bool must_find_blocks = false;
  /// The degrees are cut into runs in which more ranks never require more time. These are the ends
  /// of the runs, as degree indices.
  std::vector<std::uint32_t> falling_run_ends{};

  /// Returns the number of micro-steps of a plan in which `steps` micro-steps have samples.
  [[nodiscard]] std::uint64_t rounded_steps(std::uint64_t steps) const {
    return (steps + multiple - 1) / multiple * multiple;
  }
  /// Returns the fixed time of `steps` micro-steps that have samples, without the times of their
  /// groups.
  [[nodiscard]] double fixed_time(std::uint64_t steps) const {
    return static_cast<double>(rounded_steps(steps)) * micro_step_time +
           static_cast<double>(steps) * min_fixed_time;
  }

  /// Returns true if all ranks have the same speed and the same capacity.
  [[nodiscard]] bool has_equal_ranks() const { return slowness.empty(); }
  [[nodiscard]] bool has_equal_capacities() const { return min_capacity == capacity; }
  /// Returns true if a group of d ranks starts at a multiple of d.
  [[nodiscard]] bool is_on_blocks() const { return is_chain || must_find_blocks; }

  /// Returns the time that a sample adds to an existing group of the fastest ranks.
  [[nodiscard]] double added_time(context_sample const& sample, std::size_t degree_index) const {
    degree_time const& time = degrees[degree_index].time;
    return time.linear * sample.tokens + time.quadratic * sample.squares;
  }
  /// Returns the time of a group of a given slowness that contains only this sample.
  [[nodiscard]] double time_alone(context_sample const& sample, std::size_t degree_index,
                                  double slowness_of_group) const {
    return degrees[degree_index].time.fixed + slowness_of_group * added_time(sample, degree_index);
  }
  /// Returns the least time of a group that contains only this sample.
  [[nodiscard]] double time_alone(context_sample const& sample, std::size_t degree_index) const {
    return time_alone(sample, degree_index, degrees[degree_index].slowness);
  }
  /// Returns the rank-seconds of the fastest ranks that a sample adds to an existing group.
  [[nodiscard]] double area(context_sample const& sample, std::size_t degree_index) const {
    return degrees[degree_index].ranks * added_time(sample, degree_index);
  }
  /// Returns the rank-seconds of a sample in a group that ends at the deadline, including the
  /// sample's share of the fixed time.
  [[nodiscard]] double shared_area(context_sample const& sample, std::size_t degree_index,
                                   double deadline) const {
    double const room = deadline - degrees[degree_index].time.fixed;
    double const unshared = area(sample, degree_index);
    return room > 0 ? unshared * (deadline / room) : unshared;
  }

  /// Returns the index of the least degree, from `min_degree_index` on, with which a sample ends by
  /// a deadline; the number of degrees if there is none. Bisects each run.
  [[nodiscard]] std::uint32_t first_in_time(context_sample const& sample, double deadline,
                                            std::uint32_t min_degree_index = 0) const {
    std::uint32_t first = std::max(sample.min_degree_index, min_degree_index);
    for (std::uint32_t const end : falling_run_ends) {
      if (first >= end) continue;
      if (time_alone(sample, first) <= deadline) return first;
      if (time_alone(sample, end - 1) <= deadline) {
        std::uint32_t late = first;
        std::uint32_t in_time = end - 1;
        while (in_time - late > 1) {
          std::uint32_t const middle = late + (in_time - late) / 2;
          (time_alone(sample, middle) <= deadline ? in_time : late) = middle;
        }
        return in_time;
      }
      first = end;
    }
    return static_cast<std::uint32_t>(degrees.size());
  }

  /// Returns the least time of a sample if its memory allowed all degrees. This time never falls as
  /// the length grows.
  [[nodiscard]] double min_time_of_length(context_sample const& sample) const {
    double min = std::numeric_limits<double>::infinity();
    for (std::uint32_t const end : falling_run_ends) {
      min = std::min(min, time_alone(sample, end - 1));
    }
    return min;
  }

  /// Returns the least time of a sample.
  [[nodiscard]] double min_time(context_sample const& sample) const {
    double min = std::numeric_limits<double>::infinity();
    for (std::uint32_t const end : falling_run_ends) {
      if (sample.min_degree_index < end) min = std::min(min, time_alone(sample, end - 1));
    }
    return min;
  }
};

}  // namespace omnibal::inline v0::detail
