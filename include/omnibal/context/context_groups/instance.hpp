// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The input of `context_groups`, in arrays. `set_degrees`, `sort_samples` and `set_least_degrees`
/// write it at the beginning of a call, and all later steps only read it.

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

/// The relative rounding error of a time or an area.
inline constexpr double context_rounding = 1e-12;

template <class Number>
[[noreturn]] void throw_memory(std::int64_t length, std::uint32_t degree, Number bytes,
                               std::string_view rule) {
  throw_invalid(context_groups_name, "memory(" + to_text(length) + ", " + to_text(degree) +
                                         ") is " + to_text(bytes) + ", " + std::string(rule));
}

/// A degree that may be used, and its times, from which the least fixed time of all degrees is
/// subtracted.
struct context_degree {
  std::uint32_t ranks = 0;
  degree_time time{};
};

/// A sample by descending length.
struct context_sample {
  std::int64_t length = 0;
  double tokens = 0;
  double squares = 0;
  std::uint32_t index = 0;
  /// The first degree on which the sample fits.
  std::uint32_t least = 0;
};

/// The samples, degrees, ranks and memory of one call.
struct context_instance {
  std::vector<context_sample> samples{};
  /// The degrees by ascending number of ranks.
  std::vector<context_degree> degrees{};
  std::uint32_t ranks = 0;
  std::uint32_t ranks_per_node = 0;
  std::uint32_t multiple = 1;
  std::int64_t capacity = 0;
  /// `micro_step`: the fixed time of each micro-step. `min_fixed`: the least fixed time of a
  /// group, which each micro-step with samples adds.
  double micro_step = 0;
  double min_fixed = 0;
  /// True if more ranks never have fewer rank-seconds. Then the least degree that ends a sample by
  /// a deadline has the least area.
  bool areas_ascend = true;
  /// `is_chain`: groups of a micro-step in descending order are on blocks.
  /// `must_find_blocks`: blocks are required, and a search must find them.
  bool is_chain = false;
  bool must_find_blocks = false;
  /// The ends of runs of degrees in which more ranks never require more time.
  std::vector<std::uint32_t> runs{};

  /// The number of micro-steps of a plan in which `steps` micro-steps have samples.
  [[nodiscard]] std::uint64_t rounded(std::uint64_t steps) const {
    return (steps + multiple - 1) / multiple * multiple;
  }
  /// The time of `steps` micro-steps with samples without their groups.
  [[nodiscard]] double fixed_time(std::uint64_t steps) const {
    return static_cast<double>(rounded(steps)) * micro_step +
           static_cast<double>(steps) * min_fixed;
  }

  /// The time that a sample adds to an existing group.
  [[nodiscard]] double added(context_sample const& sample, std::size_t degree) const {
    degree_time const& time = degrees[degree].time;
    return time.linear * sample.tokens + time.quadratic * sample.squares;
  }
  /// The time of a sample alone.
  [[nodiscard]] double alone(context_sample const& sample, std::size_t degree) const {
    return degrees[degree].time.fixed + added(sample, degree);
  }
  /// The rank-seconds of a sample if all samples of its group end by a deadline, with its share of
  /// the fixed time.
  [[nodiscard]] double shared_area(context_sample const& sample, std::size_t degree,
                                   double deadline) const {
    double const room = deadline - degrees[degree].time.fixed;
    double const own = area(sample, degree);
    return room > 0 ? own * (deadline / room) : own;
  }
  /// The rank-seconds that a sample adds to an existing group.
  [[nodiscard]] double area(context_sample const& sample, std::size_t degree) const {
    return degrees[degree].ranks * added(sample, degree);
  }

  /// The least degree, from one on, with which a sample ends by a deadline; the number of degrees
  /// if there is none.
  [[nodiscard]] std::uint32_t first_in_time(context_sample const& sample, double deadline,
                                            std::uint32_t from = 0) const {
    std::uint32_t first = std::max(sample.least, from);
    for (std::uint32_t const last : runs) {
      if (first >= last) continue;
      if (alone(sample, first) <= deadline) return first;
      if (alone(sample, last - 1) <= deadline) {
        std::uint32_t late = first;
        std::uint32_t in_time = last - 1;
        while (in_time - late > 1) {
          std::uint32_t const middle = late + (in_time - late) / 2;
          (alone(sample, middle) <= deadline ? in_time : late) = middle;
        }
        return in_time;
      }
      first = last;
    }
    return static_cast<std::uint32_t>(degrees.size());
  }

  /// The least time of a sample if its memory allowed all degrees: never less for a longer one.
  [[nodiscard]] double shortest_of_length(context_sample const& sample) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t const last : runs) least = std::min(least, alone(sample, last - 1));
    return least;
  }

  /// The least time of a sample.
  [[nodiscard]] double shortest(context_sample const& sample) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t const last : runs) {
      if (sample.least < last) least = std::min(least, alone(sample, last - 1));
    }
    return least;
  }
};

}  // namespace omnibal::inline v0::detail
