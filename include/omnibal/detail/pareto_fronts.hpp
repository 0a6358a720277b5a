// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Pareto fronts of bytes and gain, and the steps of their convex hulls.

#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A point of a Pareto front: a choice of a layer. Bytes and gain are relative to the choice with
/// the fewest bytes.
struct front_point {
  std::int64_t bytes;
  std::int64_t gain;
  /// The number of the choice within its layer.
  std::uint32_t index;
};

/// The Pareto front of each layer. Points ascend strictly in bytes and gain, and the first point is
/// zero in both.
class pareto_fronts {
 public:
  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<front_point const> operator[](std::size_t layer) const {
    return std::span(points_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  [[nodiscard]] std::size_t point_count() const { return points_.size(); }

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

/// A step from one corner of the convex hull of a front to the next corner.
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

/// Returns the surplus of a point in units of 1 / `price.bytes`: its gain beyond the price of its
/// bytes, at the gain per byte of the step `price`. The points with the largest surplus solve the
/// Lagrangian relaxation.
[[nodiscard]] inline int128 surplus(front_point const& point, hull_step const& price) {
  return static_cast<int128>(point.gain) * price.bytes -
         static_cast<int128>(point.bytes) * price.gain;
}

/// Finds the steps of the hulls of all fronts, the steepest first, equal steps by layer and point.
inline void find_hull_steps(pareto_fronts const& fronts, std::vector<hull_step>& steps) {
  steps.clear();
  for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
    auto const front = fronts[layer];
    std::size_t const first = steps.size();
    for (std::uint32_t point = 1; point != front.size(); ++point) {
      hull_step step{};
      for (;; steps.pop_back()) {
        front_point const& corner = front[steps.size() == first ? 0 : steps.back().point];
        step = {front[point].bytes - corner.bytes, front[point].gain - corner.gain, layer, point};
        if (steps.size() == first || !is_steeper(step, steps.back())) break;
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

}  // namespace omnibal::inline v0::detail
