#pragma once

/// \file
/// What is left of the choices of each layer once those are gone that another one beats.

#include <omnibal/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// What a choice takes and gains beyond the choice of the layer with the fewest bytes.
struct front_point {
  std::int64_t bytes;
  std::int64_t gain;
  /// The number of the choice within its layer.
  std::uint32_t index;
};

/// A front for each layer. Its points ascend strictly in bytes and in gain; the first is zero in
/// both.
class layer_fronts {
 public:
  [[nodiscard]] std::size_t size() const { return offsets_.size() - 1; }
  [[nodiscard]] std::span<front_point const> operator[](std::size_t layer) const {
    return std::span(points_).subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }
  /// The sum over the layers of the largest gains.
  [[nodiscard]] std::int64_t most_gain() const {
    std::int64_t sum = 0;
    for (std::size_t layer = 0; layer != size(); ++layer) sum += (*this)[layer].back().gain;
    return sum;
  }

  /// Drops the points with more than `most_bytes`; the first ones stay.
  void drop_above(std::int64_t most_bytes) {
    std::size_t kept = 0;
    for (std::size_t layer = 0, next = 0; layer != size(); ++layer) {
      for (; next != offsets_[layer + 1]; ++next) {
        if (points_[next].bytes <= most_bytes) points_[kept++] = points_[next];
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

/// From one corner of the convex hull of a front to the next.
struct hull_step {
  std::int64_t bytes;
  std::int64_t gain;
  std::uint32_t layer;
  /// The point of the front to which it leads.
  std::uint32_t point;
};

/// More gain for a byte.
[[nodiscard]] inline bool is_steeper(hull_step const& left, hull_step const& right) {
  return static_cast<int128>(left.gain) * right.bytes >
         static_cast<int128>(right.gain) * left.bytes;
}

/// The steps of the hulls of all fronts, the steepest first, equal ones by layer and point.
inline void find_hull_steps(layer_fronts const& fronts, std::vector<hull_step>& steps) {
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

}  // namespace omnibal::inline v0::detail
