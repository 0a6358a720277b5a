// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The input of `context_groups`, in arrays.

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

inline constexpr std::int64_t max_context_length = std::numeric_limits<std::uint32_t>::max();

/// The relative rounding error of a time or an area.
inline constexpr double context_rounding = 1e-12;

template <class Number>
[[noreturn]] void throw_memory(std::int64_t length, std::uint32_t degree, Number bytes,
                               std::string_view rule) {
  throw_invalid("context_groups", "memory(" + to_text(length) + ", " + to_text(degree) + ") is " +
                                      to_text(bytes) + ", " + std::string(rule));
}

/// A degree that may be used, and its times, from which the least fixed time of all degrees is
/// subtracted.
struct context_degree {
  std::uint32_t ranks = 0;
  degree_time time{};
};

/// A group of ranks in a micro-step.
struct filled_group {
  std::uint32_t micro_step = 0;
  std::uint32_t degree = 0;
  std::uint32_t first_rank = 0;
  double time = 0;
  std::int64_t bytes = 0;
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

  /// True if each degree divides the next one, and each degree below the ranks of a node divides
  /// that number.
  [[nodiscard]] bool find_chain() const {
    for (std::size_t d = 0; d != degrees.size(); ++d) {
      std::uint32_t const own = degrees[d].ranks;
      if (own < ranks_per_node && ranks_per_node % own != 0) return false;
      if (d + 1 != degrees.size() && degrees[d + 1].ranks % own != 0) return false;
    }
    return true;
  }

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

  /// Finds the runs of degrees, which shorten searches of degrees.
  void find_runs() {
    areas_ascend = find_ascending();
    runs.clear();
    for (std::uint32_t d = 1; d <= degrees.size(); ++d) {
      if (d == degrees.size() || !is_faster(degrees[d].time, degrees[d - 1].time)) {
        runs.push_back(d);
      }
    }
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

 private:
  [[nodiscard]] bool find_ascending() const {
    for (std::size_t d = 1; d < degrees.size(); ++d) {
      if (degrees[d].time.fixed < degrees[d - 1].time.fixed || !ascends(d, &degree_time::linear) ||
          !ascends(d, &degree_time::quadratic)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] static bool is_faster(degree_time const& left, degree_time const& right) {
    return left.fixed <= right.fixed && left.linear <= right.linear &&
           left.quadratic <= right.quadratic;
  }

  [[nodiscard]] bool ascends(std::size_t d, double degree_time::*part) const {
    // Shares of the same work may differ by rounding.
    return degrees[d].ranks * (degrees[d].time.*part) >=
           (1 - context_rounding) * (degrees[d - 1].ranks * (degrees[d - 1].time.*part));
  }
};

}  // namespace omnibal::inline v0::detail
