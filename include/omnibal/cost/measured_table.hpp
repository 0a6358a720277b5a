// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A cost from a table of measurements.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// A functor from a size to a value, from a table of measurements. Between two measured sizes the
/// value is interpolated linearly; outside of them it is extrapolated from the nearest two points.
/// With a single point the value is constant. The value is never below zero. `measured_table`
/// creates the functor.
template <class Value>
class measured_cost {
 public:
  /// Returns the value for a size. Integer values are rounded to the nearest integer, halves up.
  ///
  /// Complexity: logarithmic in the points. Allocates nothing. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` for a negative size, `std::overflow_error` for a value above
  /// its type.
  [[nodiscard]] Value operator()(std::int64_t size) const {
    detail::check_weight("measured_table", "size", size);
    if (sizes_.size() == 1) return values_[0];
    auto const above = std::upper_bound(sizes_.begin() + 1, sizes_.end() - 1, size);
    auto const right = static_cast<std::size_t>(above - sizes_.begin());
    std::size_t const left = right - 1;
    if constexpr (std::integral<Value>) {
      detail::int128 const rise = detail::int128{values_[right]} - values_[left];
      detail::int128 const run = detail::int128{sizes_[right]} - sizes_[left];
      detail::int128 const change = rise * (detail::int128{size} - sizes_[left]);
      return clamped(values_[left] + detail::floored_quotient(2 * change + run, 2 * run));
    } else {
      double const run = static_cast<double>(sizes_[right] - sizes_[left]);
      double const part = static_cast<double>(size - sizes_[left]) / run;
      Value const result = values_[left] + part * (values_[right] - values_[left]);
      if (!detail::is_finite(result)) {
        detail::throw_overflow("measured_table", "the value of a size");
      }
      return std::max(Value{0}, result);
    }
  }

  [[nodiscard]] std::size_t points() const noexcept { return sizes_.size(); }

 private:
  friend struct measured_table_fn;

  measured_cost() = default;

  [[nodiscard]] static Value clamped(detail::int128 value) {
    if (value > std::numeric_limits<Value>::max()) {
      detail::throw_overflow("measured_table", "the value of a size");
    }
    return value < 0 ? Value{0} : static_cast<Value>(value);
  }

  std::vector<std::int64_t> sizes_;
  std::vector<Value> values_;
};

namespace detail {

template <class Points, class Size, class Value>
concept measured_points = sample_range<Points> && cost_function<Size, sample_reference<Points>> &&
    integral_measure<demand_result<Size, sample_reference<Points>>> &&
    cost_function<Value, sample_reference<Points>>;

/// The type of the values in a table: `std::int64_t` or `double`.
template <class Points, class Value>
using table_value = measured_weight<Points, Value>;

}  // namespace detail

struct measured_table_fn {
  /// Returns a functor from a size to a value through measured points, such as the nanoseconds of a
  /// layer as a function of its tokens. Example: `measured_table(points, &point::tokens,
  /// &point::nanoseconds)`. The functor can replace any cost model.
  ///
  /// Preconditions: at least one point, and strictly ascending sizes. Complexity: linear. Memory:
  /// 16 bytes for each point. Determinism: portable for integers. Errors: `std::invalid_argument`
  /// for no points, sizes that do not ascend, and a size or value that is negative or not finite.
  template <class Points, class Size, class Value>
    requires detail::measured_points<Points, Size, Value>
  [[nodiscard]] measured_cost<detail::table_value<Points, Value>> operator()(
      Points const& points, Size const& size, Value const& value) const {
    using value_type = detail::table_value<Points, Value>;
    measured_cost<value_type> result;
    result.sizes_.reserve(std::ranges::size(points));
    result.values_.reserve(std::ranges::size(points));
    std::size_t index = 0;
    for (auto&& point : points) {
      auto const next =
          detail::to_working<std::int64_t>({name, "size", index}, std::invoke(size, point));
      auto const measured_value =
          detail::to_working<value_type>({name, "value", index}, std::invoke(value, point));
      detail::check_weight(name, "size", index, next);
      detail::check_weight(name, "value", index, measured_value);
      if (index > 0 && next <= result.sizes_.back()) {
        detail::throw_invalid(name, "size[", index, "] is ", next, ", must be above ",
                              result.sizes_.back());
      }
      result.sizes_.push_back(next);
      result.values_.push_back(measured_value);
      ++index;
    }
    if (index == 0) detail::throw_invalid(name, "points is empty");
    return result;
  }

 private:
  static constexpr std::string_view name = "measured_table";
};

/// Returns a cost functor through measured points; see `measured_table_fn`.
inline constexpr measured_table_fn measured_table{};

}  // namespace omnibal::inline v0
