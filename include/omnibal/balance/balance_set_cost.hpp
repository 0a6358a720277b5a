// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Consecutive runs of samples for costs that are not sums.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// Finds the best runs by bisection on the largest cost. A probe fills runs one after the other up
/// to a bound. If the probe succeeds, its largest cost is a new upper bound. If the probe fails,
/// the smallest cost at which a run exceeded the bound is a new lower bound, because any smaller
/// bound results in the same runs. Both bounds are costs of runs, so the search ends without a
/// tolerance.
template <sample_range Samples, class Set>
class run_search {
 public:
  using value_type = std::remove_cvref_t<decltype(std::declval<Set const&>().value())>;

  run_search(std::string_view function, Samples const& samples, std::size_t parts, Set const& empty)
      : function_(function), samples_(samples), parts_(parts), empty_(empty) {}

  /// Returns the cost of each sample by itself.
  [[nodiscard]] std::vector<value_type> single_values() {
    std::vector<value_type> values(std::ranges::size(samples_));
    for (std::uint32_t i = 0; i != values.size(); ++i) values[i] = restart(i);
    return values;
  }

  /// Returns the position in `order` at which each run except the first begins. `bound` is a lower
  /// bound on the largest cost, and at least the cost of each single sample. The number of runs is
  /// the number of parts, or the number of samples if there are fewer samples.
  [[nodiscard]] std::vector<std::uint32_t> best_cuts(std::span<std::uint32_t const> order,
                                                     value_type bound) {
    value_type most = even_cuts(order);
    std::vector<std::uint32_t> best = cuts_;
    while (bound < most) {
      value_type const middle = bound + (most - bound) / 2;
      // Rounding may make `middle` equal to `most`. A probe up to `most` would not lower `most`.
      if (probe(order, middle < most ? middle : bound)) {
        most = largest_;
        best = cuts_;
      } else {
        bound = min_overflow_;
      }
    }
    return best;
  }

 private:
  /// Adds a sample to the set and returns the cost of the set.
  [[nodiscard]] value_type extend(std::uint32_t index) {
    set_->add(std::ranges::begin(
        samples_)[static_cast<std::ranges::range_difference_t<Samples const>>(index)]);
    value_type const value = set_->value();
    check_weight(function_, "set_cost", index, value);
    return value;
  }
  /// Starts a new set with a sample and returns the cost of the set.
  [[nodiscard]] value_type restart(std::uint32_t index) {
    set_.emplace(empty_);
    return extend(index);
  }

  /// Cuts runs whose counts differ by at most one, and returns the largest of their costs.
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

  /// Returns whether runs with costs up to `bound` exist. If so, sets `cuts_` and `largest_`;
  /// otherwise sets `min_overflow_`. A run ends early if each remaining part can get only one
  /// sample.
  [[nodiscard]] bool probe(std::span<std::uint32_t const> order, value_type bound) {
    cuts_.clear();
    largest_ = value_type{};
    min_overflow_ = std::numeric_limits<value_type>::max();
    std::size_t left = std::min(parts_, order.size()) - 1;
    value_type value = restart(order[0]);
    for (std::size_t i = 1; i != order.size(); ++i) {
      if (order.size() - i > left) {
        value_type const longer = extend(order[i]);
        if (longer <= bound) {
          value = longer;
          continue;
        }
        min_overflow_ = std::min(min_overflow_, longer);
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
  std::optional<Set> set_;
  std::vector<std::uint32_t> cuts_;
  value_type largest_{};
  value_type min_overflow_{};
};

}  // namespace detail

/// The order in which samples are cut into runs.
enum class run_order {
  /// Samples by descending cost of a set that contains only the sample; samples with equal costs by
  /// index.
  largest_first,
  /// The order of the samples in the call.
  given,
};

struct balance_set_cost_options {
  run_order order = run_order::largest_first;
};

struct balance_set_cost_fn {
  /// Cuts the samples, in the order `options.order`, into consecutive runs with the smallest
  /// possible largest cost. `empty` is the accumulator of an empty set, such as
  /// `padded_batch{&sample::tokens}`; the function copies it for each set.
  ///
  /// No other parts have a smaller largest cost if the cost of a set depends only on its count and
  /// its largest sample. The cost must not decrease with either. Such costs are count * longest for
  /// padded batches and count * longest^2 for padded attention. The cost may instead increase with
  /// the sum of amounts, as in an unmasked pack. The largest sum is then at most 2 - 1/parts times
  /// the smallest possible. For such costs `lpt` with these amounts returns smaller largest sums.
  /// For other costs, the parts are only the best among all divisions of this order into runs.
  ///
  /// The samples of a part keep the order of the runs. If there are no fewer samples than parts, no
  /// part is empty; otherwise the last parts are empty. Complexity: the sort and each of about 20
  /// probes cost linear time; for integers, the number of probes is at most the number of bits of
  /// the largest value. Memory: 40 bytes per sample at most, including the result. Determinism:
  /// portable for integers. Errors: `std::invalid_argument` if there are no parts or a value of a
  /// set is negative or not finite, `std::length_error` above 2^32 - 1 samples or parts, and any
  /// exception of the accumulator. Sources: Zheng et al., "OrchMLLM", 2025, for padded batches;
  /// Pinar, Aykanat, "Fast optimal load balancing algorithms for 1D partitioning", 2004, for the
  /// bisection.
  template <sample_range Samples, class Set>
    requires set_cost<Set, sample_reference<Samples>>
  [[nodiscard]] grouping operator()(Samples const& samples, std::size_t parts, Set const& empty,
                                    balance_set_cost_options const& options = {}) const {
    detail::check_parts(name, parts);
    detail::check_index_count(name, "samples", std::ranges::size(samples));
    if (std::ranges::size(samples) == 0) {
      return grouping(std::vector<std::uint32_t>(parts + 1, 0), {});
    }
    detail::run_search<Samples, Set> search(name, samples, parts, empty);
    auto const values = search.single_values();
    std::vector<std::uint32_t> order = ordered(values, options.order);
    std::vector<std::uint32_t> offsets =
        search.best_cuts(order, *std::max_element(values.begin(), values.end()));
    offsets.insert(offsets.begin(), 0);
    offsets.resize(parts + 1, static_cast<std::uint32_t>(order.size()));
    return grouping(std::move(offsets), std::move(order));
  }

 private:
  static constexpr std::string_view name = "balance_set_cost";

  template <class Value>
  [[nodiscard]] static std::vector<std::uint32_t> ordered(std::vector<Value> const& values,
                                                          run_order order) {
    if (order == run_order::given) {
      std::vector<std::uint32_t> result(values.size());
      std::iota(result.begin(), result.end(), 0u);
      return result;
    }
    return detail::order_descending(values.size(), [&values](std::size_t i) {
      if constexpr (std::floating_point<Value>) {
        // Non-negative numbers have the order of their bits. The addition of zero turns -0.0 into
        // 0.0.
        return std::bit_cast<std::uint64_t>(static_cast<double>(values[i]) + 0.0);
      } else {
        return values[i];
      }
    });
  }
};

/// Cuts ordered samples into consecutive runs for costs that are not sums; see
/// `balance_set_cost_fn`.
inline constexpr balance_set_cost_fn balance_set_cost{};

}  // namespace omnibal::inline v0
