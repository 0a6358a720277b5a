#pragma once

/// \file
/// Cutting samples in a given order into runs whose largest cost is least.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Finds the best runs by bisection on the largest cost. A probe fills runs one after the other up
/// to a bound. Where it succeeds, the largest cost that it reached is a new upper bound; where it
/// fails, the least cost at which a run overflowed is a new lower bound, as below it the runs would
/// be the same. Both are costs of runs, so that the search ends without a tolerance.
template <sample_range Samples, class Set>
class run_search {
 public:
  using value_type = std::remove_cvref_t<decltype(std::declval<Set const&>().value())>;

  run_search(std::string_view function, Samples const& samples, std::size_t parts, Set const& empty)
      : function_(function), samples_(samples), parts_(parts), empty_(empty), set_(empty) {}

  /// The cost of each sample alone.
  [[nodiscard]] std::vector<value_type> single_values() {
    std::vector<value_type> values(std::ranges::size(samples_));
    for (std::uint32_t i = 0; i != values.size(); ++i) values[i] = restart(i);
    return values;
  }

  /// The position in `order` at which each run but the first begins. `bound` is a lower bound on
  /// the largest cost that no single sample exceeds. There are as many runs as parts, or as samples
  /// where these are fewer.
  [[nodiscard]] std::vector<std::uint32_t> best_cuts(std::span<std::uint32_t const> order,
                                                     value_type bound) {
    value_type most = even_cuts(order);
    std::vector<std::uint32_t> best = cuts_;
    while (bound < most) {
      value_type const middle = bound + (most - bound) / 2;
      // Rounding may give the upper bound, which a probe could not lower.
      if (probe(order, middle < most ? middle : bound)) {
        most = largest_;
        best = cuts_;
      } else {
        bound = least_overflow_;
      }
    }
    return best;
  }

 private:
  /// The cost of the set with one sample more.
  [[nodiscard]] value_type extend(std::uint32_t index) {
    set_.add(std::ranges::begin(
        samples_)[static_cast<std::ranges::range_difference_t<Samples const>>(index)]);
    value_type const value = set_.value();
    check_weight(function_, "set_cost", index, value);
    return value;
  }
  /// The cost of a sample alone.
  [[nodiscard]] value_type restart(std::uint32_t index) {
    set_ = empty_;
    return extend(index);
  }

  /// Runs whose counts differ by one at most; the largest of their costs.
  [[nodiscard]] value_type even_cuts(std::span<std::uint32_t const> order) {
    cuts_.clear();
    value_type largest{};
    std::size_t const runs = std::min(parts_, order.size());
    for (std::size_t run = 0, first = 0; run != runs; ++run) {
      std::size_t const last = first + (order.size() - first) / (runs - run);
      if (run != 0) cuts_.push_back(static_cast<std::uint32_t>(first));
      value_type value = restart(order[first]);
      for (std::size_t i = first + 1; i != last; ++i) value = extend(order[i]);
      largest = std::max(largest, value);
      first = last;
    }
    return largest;
  }

  /// True where runs with costs up to `bound` exist; sets `cuts_` and `largest_`, or
  /// `least_overflow_`. A run ends early where each part that is left has but one sample to get.
  [[nodiscard]] bool probe(std::span<std::uint32_t const> order, value_type bound) {
    cuts_.clear();
    largest_ = value_type{};
    least_overflow_ = std::numeric_limits<value_type>::max();
    std::size_t left = std::min(parts_, order.size()) - 1;
    value_type value = restart(order[0]);
    for (std::size_t i = 1; i != order.size(); ++i) {
      if (order.size() - i > left) {
        value_type const longer = extend(order[i]);
        if (longer <= bound) {
          value = longer;
          continue;
        }
        least_overflow_ = std::min(least_overflow_, longer);
        if (left == 0) return false;
      }
      largest_ = std::max(largest_, value);
      cuts_.push_back(static_cast<std::uint32_t>(i));
      value = restart(order[i]);
      --left;
    }
    largest_ = std::max(largest_, value);
    return true;
  }

  std::string_view function_;
  Samples const& samples_;
  std::size_t parts_;
  Set const& empty_;
  Set set_;
  std::vector<std::uint32_t> cuts_;
  value_type largest_{};
  value_type least_overflow_{};
};

}  // namespace omnibal::inline v0::detail
