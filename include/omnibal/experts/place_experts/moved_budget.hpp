// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The division of a budget of moved copies among layers.

#include <omnibal/config.hpp>
#include <omnibal/experts/place_experts/placement_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A step of the search of a layer from one state to a later state.
struct placement_step {
  /// The index of the later state.
  std::size_t point;
  std::int64_t gain;
  std::size_t moved;

  placement_step() = default;
  placement_step(std::span<placement_point const> points, std::size_t from, std::size_t to)
      : point(to),
        gain(points[from].largest_load - points[to].largest_load),
        moved(points[to].moved > points[from].moved ? points[to].moved - points[from].moved : 0) {}

  /// Returns a value above 0 if this step has a larger gain for each moved copy than `other`, and 0
  /// if both have the same.
  [[nodiscard]] int compare(placement_step const& other) const {
    int128 const left = static_cast<int128>(gain) * static_cast<int128>(other.moved);
    int128 const right = static_cast<int128>(other.gain) * static_cast<int128>(moved);
    return (left > right) - (left < right);
  }
};

/// Returns the indices of the first state and of the later states with more moved copies than all
/// states before them in the result and fewer than all states after them. The largest load never
/// increases from state to state, so another state is never better.
[[nodiscard]] inline std::vector<std::size_t> useful_points(
    std::span<placement_point const> points) {
  std::vector<std::size_t> result;
  for (std::size_t p = points.size(); p-- != 1;) {
    if (result.empty() || points[p].moved < points[result.back()].moved) result.push_back(p);
  }
  // The last state that moves no more copies than the first state is better than those before it.
  while (result.size() > 1 && points[result[result.size() - 2]].moved <= points[0].moved) {
    result.pop_back();
  }
  result.push_back(0);
  std::reverse(result.begin(), result.end());
  return result;
}

/// Returns the steps along the convex hull of the states of a layer, as points of moved copies and
/// largest load. Precondition: the largest load of a state is at most the largest load of the state
/// before it. O(states) (Andrew, 1979).
[[nodiscard]] inline std::vector<placement_step> hull_steps(
    std::span<placement_point const> points) {
  std::vector<placement_step> result;
  std::size_t last = 0;
  for (std::size_t const p : useful_points(points)) {
    if (points[p].largest_load == points[last].largest_load) continue;
    placement_step next(points, last, p);
    while (!result.empty() && next.compare(result.back()) >= 0) {
      result.pop_back();
      next = {points, result.empty() ? 0 : result.back().point, p};
    }
    result.push_back(next);
    last = p;
  }
  return result;
}

/// Chooses a state of each layer, with at most `budget` moved copies in all and a small sum of the
/// largest loads. The states of a layer are its first placement and the placements after each move
/// of its search.
class moved_budget {
 public:
  using points_type = std::vector<placement_point>;
  using steps_type = std::vector<placement_step>;

  /// `points` has the states of each layer, and `hulls` their `hull_steps`.
  moved_budget(std::span<points_type const> points, std::span<steps_type const> hulls,
               std::size_t budget)
      : points_(points), chosen_(points.size(), 0) {
    std::size_t spent = 0;
    for (auto const& own : points) spent += own.front().moved;
    left_ = spent < budget ? budget - spent : 0;
    take_hull_steps(hulls);
    while (take_best_step()) {
    }
  }

  /// Returns the index of the chosen state of each layer.
  [[nodiscard]] std::vector<std::size_t> const& chosen() const { return chosen_; }

 private:
  struct layer_step {
    std::size_t layer;
    placement_step step;
  };

  void take_hull_steps(std::span<steps_type const> hulls) {
    std::vector<layer_step> steps;
    for (std::size_t l = 0; l != hulls.size(); ++l) {
      for (placement_step const& step : hulls[l]) steps.push_back({l, step});
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](layer_step const& left, layer_step const& right) {
                       return left.step.compare(right.step) > 0;
                     });
    std::vector<std::uint8_t> ended(hulls.size(), 0);
    for (auto const& [layer, step] : steps) {
      if (ended[layer] != 0) continue;
      if (step.moved > left_) {
        ended[layer] = 1;
        continue;
      }
      left_ -= step.moved;
      chosen_[layer] = step.point;
    }
  }

  /// Chooses the step with the largest gain that the rest of the budget allows.
  [[nodiscard]] bool take_best_step() {
    layer_step best{};
    for (std::size_t l = 0; l != points_.size(); ++l) {
      for (std::size_t to = chosen_[l] + 1; to < points_[l].size(); ++to) {
        placement_step const next(points_[l], chosen_[l], to);
        if (next.moved <= left_ && next.gain > best.step.gain) best = {l, next};
      }
    }
    if (best.step.gain == 0) return false;
    left_ -= best.step.moved;
    chosen_[best.layer] = best.step.point;
    return true;
  }

  std::span<points_type const> points_;
  std::vector<std::size_t> chosen_;
  std::size_t left_ = 0;
};

}  // namespace omnibal::inline v0::detail
