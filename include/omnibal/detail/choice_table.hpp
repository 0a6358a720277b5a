// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The choices of all layers as integers, in an order that does not depend on the order of the
/// layers.

#include <omnibal/activation_option.hpp>
#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// A number and its place, which are sorted instead of larger objects, so that sorting is compiled
/// once.
struct sort_key {
  std::int64_t number;
  std::uint64_t place;
};

/// Sorts numbers ascending, equal numbers by place.
inline void sort_keys(std::vector<sort_key>& keys) {
  std::sort(keys.begin(), keys.end(), [](sort_key const& left, sort_key const& right) {
    return left.number != right.number ? left.number < right.number : left.place < right.place;
  });
}

/// The bytes and the gain of a choice in addition to the choice of the layer with the fewest bytes.
struct front_point {
  std::int64_t bytes;
  std::int64_t gain;
  /// The number of the choice within its layer.
  std::uint32_t index;
};

/// A front for each layer: points ascend strictly in bytes and gain, and the first point is zero in
/// both.
class pareto_fronts {
 public:
  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<front_point const> operator[](std::size_t layer) const {
    return std::span(points_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  [[nodiscard]] std::size_t point_count() const { return points_.size(); }
  /// Returns the sum over the layers of the largest gains.
  [[nodiscard]] std::int64_t max_gain() const {
    std::int64_t sum = 0;
    for (std::size_t layer = 0; layer != size(); ++layer) sum += (*this)[layer].back().gain;
    return sum;
  }

  /// Drops the points with more than `max_bytes`; the first points stay.
  void drop_above(std::int64_t max_bytes) {
    std::size_t kept = 0;
    for (std::size_t layer = 0, next = 0; layer != size(); ++layer) {
      for (; next != offsets_[layer + 1]; ++next) {
        if (points_[next].bytes <= max_bytes) points_[kept++] = points_[next];
      }
      offsets_[layer + 1] = kept;
    }
    points_.resize(kept);
  }

  void push(front_point const& point) { points_.push_back(point); }
  void close() { offsets_.push_back(points_.size()); }
  void clear() {
    offsets_.resize(1);
    points_.clear();
  }

 private:
  std::vector<std::size_t> offsets_{0};
  std::vector<front_point> points_;
};

/// A step from one corner of the convex hull of a front to the next.
struct hull_step {
  std::int64_t bytes;
  std::int64_t gain;
  std::uint32_t layer;
  /// The point of the front to which the step leads.
  std::uint32_t point;
};

/// Returns whether the left step has more gain for a byte.
[[nodiscard]] inline bool is_steeper(hull_step const& left, hull_step const& right) {
  return static_cast<int128>(left.gain) * right.bytes >
         static_cast<int128>(right.gain) * left.bytes;
}

/// Finds the steps of the hulls of all fronts, the steepest first, equal steps by layer and point.
inline void find_hull_steps(pareto_fronts const& fronts, std::vector<hull_step>& steps) {
  steps.clear();
  for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
    auto const front = fronts[layer];
    std::size_t const first = steps.size();
    for (std::uint32_t point = 1; point != front.size(); ++point) {
      auto const step_from = [&](front_point const& corner) {
        return hull_step{front[point].bytes - corner.bytes, front[point].gain - corner.gain, layer,
                         point};
      };
      hull_step step = step_from(steps.size() == first ? front[0] : front[steps.back().point]);
      while (steps.size() != first && is_steeper(step, steps.back())) {
        steps.pop_back();
        step = step_from(steps.size() == first ? front[0] : front[steps.back().point]);
      }
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end(), [](hull_step const& left, hull_step const& right) {
    if (is_steeper(left, right)) return true;
    if (is_steeper(right, left)) return false;
    return left.layer != right.layer ? left.layer < right.layer : left.point < right.point;
  });
}

/// A choice with its number within the layer. The order puts small choices first.
template <class Time>
struct numbered_choice {
  std::int64_t bytes;
  Time time;
  std::int64_t transient_bytes;
  std::uint32_t index;

  [[nodiscard]] friend auto operator<=>(numbered_choice const&, numbered_choice const&) = default;
};

/// The choices of the layers; the choices of each layer are sorted from the smallest to the
/// largest.
template <class Time>
class choice_table {
 public:
  explicit choice_table(std::string_view function) : function_(function) {}

  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<numbered_choice<Time> const> operator[](std::size_t layer) const {
    return std::span(choices_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// Returns the choice of a layer with this number.
  [[nodiscard]] numbered_choice<Time> const& choice(std::size_t layer, std::uint32_t index) const {
    std::size_t k = offsets_[layer];
    while (choices_[k].index != index) ++k;
    return choices_[k];
  }
  [[nodiscard]] bool are_equal(std::size_t left, std::size_t right) const {
    auto const a = (*this)[left];
    auto const b = (*this)[right];
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  /// Appends a layer. Errors: `std::invalid_argument` for no choices and for a number that is
  /// negative or not finite, `std::overflow_error` if the sum of the largest times leaves its type.
  template <activation_option_range Choices>
  void push_layer(Choices&& choices) {
    Time slowest{};
    std::uint32_t index = 0;
    for (auto const& way : choices) {
      std::int64_t transient_bytes = 0;
      if constexpr (has_transient_bytes<std::remove_cvref_t<decltype(way)>>) {
        transient_bytes = checked<std::int64_t>("transient_bytes", index, way.transient_bytes);
      }
      choices_.push_back({checked<std::int64_t>("bytes", index, way.bytes),
                          checked<Time>("time", index, way.time), transient_bytes, index});
      slowest = std::max(slowest, choices_.back().time);
      ++index;
    }
    close_layer(slowest);
  }

  /// Returns the layers in the order of their choices, equal layers by index.
  [[nodiscard]] std::vector<std::uint32_t> ordered_layers() const {
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      auto const a = (*this)[left];
      auto const b = (*this)[right];
      auto const [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
      if (x == a.end() || y == b.end()) {
        return a.size() != b.size() ? a.size() < b.size() : left < right;
      }
      return *x < *y;
    });
    return order;
  }

  /// Returns a time as an integer; the largest times of all layers add up to at most 2^63 - 1.
  [[nodiscard]] std::int64_t to_whole(Time time) const {
    if constexpr (std::floating_point<Time>) {
      return fixed_point::by_power_of_two(total_time_)(time);
    } else {
      return time;
    }
  }
  [[nodiscard]] Time from_whole(std::int64_t time) const {
    if constexpr (std::floating_point<Time>) {
      return fixed_point::by_power_of_two(total_time_).original(time);
    } else {
      return time;
    }
  }

 private:
  void close_layer(Time slowest) {
    auto const first = choices_.begin() + static_cast<std::ptrdiff_t>(offsets_.back());
    if (first == choices_.end()) {
      throw_invalid(function_, "layer ", size(), " has no choices");
    }
    checked_add(function_, "the sum of the largest times", total_time_, slowest);
    std::sort(first, choices_.end());
    offsets_.push_back(choices_.size());
  }

  template <class Working, scalar_measure T>
  [[nodiscard]] Working checked(std::string_view member, std::uint32_t index, T value) const {
    auto const result = static_cast<Working>(value);
    if (is_valid_weight(value) && is_valid_weight(result)) return result;
    throw_invalid(function_, member, " of choice ", index, " of layer ", size(), " is ", value,
                  ", must be finite, not negative and below 2^63");
  }

  std::string_view function_;
  std::vector<std::size_t> offsets_{0};
  std::vector<numbered_choice<Time>> choices_;
  /// The sum of the largest times of the layers.
  Time total_time_{};
};

/// The fronts of layers under a limit.
struct limited_fronts {
  pareto_fronts fronts;
  /// The bytes and the time of all first points together.
  std::int64_t bytes = 0;
  std::int64_t time = 0;
  /// The gain of all last points together.
  std::int64_t max_gain = 0;
};

/// Fills `result` with the fronts of the choices whose transient bytes are at most
/// `max_transient`. Preconditions: each layer has such a choice, and the fewest bytes add up to at
/// most 2^63 - 1.
template <class Time>
void limit_fronts(choice_table<Time> const& table, std::span<std::uint32_t const> order,
                  std::int64_t max_transient, limited_fronts& result) {
  result.fronts.clear();
  result.bytes = 0;
  result.time = 0;
  result.max_gain = 0;
  for (std::uint32_t const layer : order) {
    std::int64_t first_bytes = 0;
    std::int64_t first_time = -1;
    std::int64_t last_time = 0;
    for (auto const& way : table[layer]) {
      if (way.transient_bytes > max_transient) continue;
      std::int64_t const time = table.to_whole(way.time);
      if (first_time < 0) {
        first_bytes = way.bytes;
        first_time = time;
      } else if (time >= last_time) {
        continue;
      }
      last_time = time;
      result.fronts.push({way.bytes - first_bytes, first_time - time, way.index});
    }
    result.fronts.close();
    result.max_gain += first_time - last_time;
    result.time += first_time;
    result.bytes += first_bytes;
  }
}

}  // namespace omnibal::inline v0::detail
