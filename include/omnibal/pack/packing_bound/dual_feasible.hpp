// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bounds on the number of groups from dual feasible functions.

#include <omnibal/config.hpp>
#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A dual feasible function of integers: values that fit `capacity` together have images that fit
/// `whole()` together. The sum of the images of all samples, divided by `whole()`, is therefore a
/// lower bound.
///
/// A parameter k is at most 2^14 or is a value of a sample, and a capacity is at most
/// `max_capacity`, so that images are below 2^63. Survey: Alves, Clautiaux, Valerio de Carvalho,
/// Rietz, Dual-Feasible Functions for Integer Programming and Combinatorial Optimization, 2016.
enum class dual_feasible {
  /// Keeps a share x if (k + 1) x is an integer; otherwise, rounds it to floor((k + 1) x) / k.
  /// Parameter k >= 1. Source: Fekete, Schepers, "New classes of fast lower bounds for bin packing
  /// problems", 2001, u^(k).
  rounded_parts,
  /// Divides the capacity into k parts. Counts the parts strictly below a share of less than a
  /// half, keeps a half, and is symmetric for larger shares. Parameter k >= 2. Source: Vanderbeck,
  /// "Exact algorithm for minimizing the number of setups in the one-dimensional cutting stock
  /// problem", 2000.
  parts_below,
  /// Counts the whole multiples of k in values below half of the capacity. For larger values,
  /// subtracts the whole multiples of k in the room that they leave. Parameter 1 <= k <= capacity.
  /// Source: Carlier, Clautiaux, Moukrim, "New reduction procedures and lower bounds for the
  /// two-dimensional bin packing problem with fixed orientation", 2007.
  counted_room,
  /// Counts the whole multiples of k, and adds the excess of the rest of the value over the rest of
  /// the capacity. Parameter 1 <= k <= capacity. Source: Burdett, Johnson, "A subadditive approach
  /// to solve linear integer programs", 1977.
  counted_rest,
};

/// A dual feasible function with its parameter and capacity.
class dual_feasible_function {
 public:
  static constexpr std::uint64_t max_capacity = std::uint64_t{1} << 31;

  constexpr dual_feasible_function(dual_feasible kind, std::uint64_t k, std::uint64_t capacity)
      : kind_(kind), k_(k), capacity_(capacity) {}

  /// Returns the image of the capacity.
  [[nodiscard]] constexpr std::uint64_t whole() const {
    switch (kind_) {
      case dual_feasible::rounded_parts: return k_ * capacity_;
      case dual_feasible::parts_below: return 2 * (k_ - 1);
      case dual_feasible::counted_room: return 2 * (capacity_ / k_);
      case dual_feasible::counted_rest: break;
    }
    return capacity_ / k_ * (k_ - capacity_ % k_);
  }

  /// Returns the image of a value up to the capacity.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t value) const {
    switch (kind_) {
      case dual_feasible::rounded_parts: {
        std::uint64_t const parts = (k_ + 1) * value / capacity_;
        bool const are_whole = parts * capacity_ == (k_ + 1) * value;
        return are_whole ? k_ * value : parts * capacity_;
      }
      case dual_feasible::parts_below:
        if (2 * value == capacity_) return k_ - 1;
        return 2 * value < capacity_ ? 2 * parts_below(value)
                                     : 2 * (k_ - 1) - 2 * parts_below(capacity_ - value);
      case dual_feasible::counted_room:
        if (2 * value == capacity_) return capacity_ / k_;
        return 2 * value < capacity_ ? 2 * (value / k_)
                                     : 2 * (capacity_ / k_ - (capacity_ - value) / k_);
      case dual_feasible::counted_rest: break;
    }
    std::uint64_t const rest = capacity_ % k_;
    std::uint64_t const over = std::max(value % k_, rest) - rest;
    return value / k_ * (k_ - rest) + over;
  }

 private:
  /// Returns the number of the k parts that end strictly below the value.
  [[nodiscard]] constexpr std::uint64_t parts_below(std::uint64_t value) const {
    std::uint64_t const parts = (k_ * value + capacity_ - 1) / capacity_;
    return parts == 0 ? 0 : parts - 1;
  }

  dual_feasible kind_;
  std::uint64_t k_;
  std::uint64_t capacity_;
};

/// A value and the number of times that it occurs.
struct counted_value {
  std::uint64_t value;
  std::uint64_t count;
};

/// The largest bound of the functions. Each function is applied after the functions of Fekete and
/// Schepers. These count values above `capacity - threshold` as the capacity and values below
/// `threshold` as zero.
///
/// Parameters are the numbers at which images of the given values jump, thinned out evenly if there
/// are more than the steps allow.
class dual_feasible_bounds {
 public:
  /// The largest number of images that are computed, in addition to eight for each value.
  static constexpr std::size_t max_steps = std::size_t{1} << 19;

  /// Preconditions: the values are positive, ascending and different; the capacity is at most
  /// `max_capacity`. `values` must outlive this object.
  dual_feasible_bounds(std::span<counted_value const> values, std::uint64_t capacity)
      : values_(values), capacity_(capacity) {}

  /// Returns the largest bound.
  [[nodiscard]] std::size_t largest() {
    if (values_.empty()) return 0;
    // The largest number of parts of the functions that round.
    constexpr std::uint64_t max_parts = 32;
    steps_left_ = max_steps + 8 * values_.size();
    std::vector<std::uint64_t> const widths = halves_and_parts();
    std::size_t const functions = 2 * max_parts + (2 + max_outer_parts) * widths.size();
    auto const small_values = static_cast<std::size_t>(
        std::partition_point(values_.begin(), values_.end(),
                             [this](counted_value of) { return 2 * of.value <= capacity_; }) -
        values_.begin());
    std::size_t const thresholds =
        std::clamp<std::size_t>(max_steps / (functions * values_.size()), 1, small_values + 1);
    for (std::size_t i = 0; i != thresholds; ++i) {
      // The first threshold is zero.
      std::size_t const first = i * (small_values + 1) / thresholds;
      set_threshold(first == 0 ? 0 : values_[first - 1].value + 1);
      for (std::uint64_t k = 1; k <= max_parts; ++k) {
        consider(dual_feasible::rounded_parts, k);
        consider(dual_feasible::parts_below, k + 1);
      }
      for (std::uint64_t const width : widths) {
        consider(dual_feasible::counted_room, width);
        consider_rounded({dual_feasible::counted_rest, width, capacity_});
      }
    }
    return bound_;
  }

 private:
  /// Returns widths just above a whole part of the capacity, and values up to half of the capacity.
  [[nodiscard]] std::vector<std::uint64_t> halves_and_parts() const {
    // The approximate number of values, and the largest number of parts.
    constexpr std::uint64_t max_values = 64;
    constexpr std::uint64_t max_parts = 16;
    std::vector<std::uint64_t> widths;
    std::size_t const stride = values_.size() / max_values + 1;
    for (std::size_t i = 0; i < values_.size() && 2 * values_[i].value <= capacity_; i += stride) {
      widths.push_back(values_[i].value);
    }
    for (std::uint64_t part = 2; part <= max_parts; ++part) {
      widths.push_back(capacity_ / part + 1);
    }
    return widths;
  }

  void set_threshold(std::uint64_t threshold) {
    seen_.clear();
    full_ = 0;
    for (counted_value const of : values_) {
      if (of.value < threshold) continue;
      if (of.value > capacity_ - threshold) {
        full_ += of.count;
      } else {
        seen_.push_back(of);
      }
    }
  }

  void consider(dual_feasible kind, std::uint64_t k) {
    consider(seen_, dual_feasible_function(kind, k, capacity_));
  }

  void consider(std::span<counted_value const> values, dual_feasible_function const& function) {
    std::uint64_t const whole = function.whole();
    if (whole == 0 || values.size() > steps_left_) return;
    steps_left_ -= values.size();
    uint128 sum = 0;
    for (counted_value const of : values) {
      sum += static_cast<uint128>(function(of.value)) * of.count;
    }
    bound_ = std::max(bound_, static_cast<std::size_t>(full_ + (sum + whole - 1) / whole));
  }

  /// Considers a function by itself, and with `parts_below` applied to its images for several k.
  /// The composition of two dual feasible functions is dual feasible.
  void consider_rounded(dual_feasible_function const& function) {
    consider(seen_, function);
    std::uint64_t const whole = function.whole();
    if (whole == 0 || whole > dual_feasible_function::max_capacity) return;
    if (seen_.size() > steps_left_) return;
    images_.clear();
    for (counted_value const of : seen_) images_.push_back({function(of.value), of.count});
    for (std::uint64_t k = 2; k <= max_outer_parts; ++k) {
      consider(images_, {dual_feasible::parts_below, k, whole});
    }
  }

  /// The largest number of parts to which images are rounded.
  static constexpr std::uint64_t max_outer_parts = 12;

  std::span<counted_value const> values_;
  std::uint64_t capacity_;
  /// The values between the thresholds, and the number of values above.
  std::vector<counted_value> seen_;
  std::uint64_t full_ = 0;
  std::vector<counted_value> images_;
  std::size_t steps_left_ = 0;
  std::size_t bound_ = 0;
};

/// Returns the values in ascending order.
template <class Value>
[[nodiscard]] std::vector<std::uint64_t> sorted_values(std::size_t count, Value const& value,
                                                       std::int64_t capacity) {
  std::vector<std::uint64_t> values(count);
  for (std::size_t i = 0; i != count; ++i) values[i] = static_cast<std::uint64_t>(value(i));
  std::vector<std::uint64_t> spare;
  radix_sort(values, spare, 0,
             static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(capacity))));
  return values;
}

/// Returns the bound from one integer resource by dual feasible functions.
template <class Value>
[[nodiscard]] std::size_t dual_feasible_bound(std::size_t count, Value const& value,
                                              std::int64_t capacity) {
  if (static_cast<std::uint64_t>(capacity) > dual_feasible_function::max_capacity) return 0;
  std::vector<counted_value> counted;
  for (std::uint64_t const next : sorted_values(count, value, capacity)) {
    if (next == 0) continue;
    if (counted.empty() || counted.back().value != next) counted.push_back({next, 0});
    ++counted.back().count;
  }
  return dual_feasible_bounds(counted, static_cast<std::uint64_t>(capacity)).largest();
}

}  // namespace omnibal::inline v0::detail
