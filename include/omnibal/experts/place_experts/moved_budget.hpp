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

/// Chooses a state of each layer, with at most `budget` moved copies in all and a small sum of the
/// largest loads. The states of a layer are its first placement and the placements after each move
/// of its search.
class moved_budget {
 public:
  moved_budget(std::span<std::vector<placement_point> const> layers, std::size_t budget)
      : layers_(layers), chosen_(layers.size(), 0) {
    for (auto const& points : layers) spent_ += points.front().moved;
    left_ = spent_ < budget ? budget - spent_ : 0;
    take_hull_steps();
    while (take_best_step()) {
    }
  }

  /// Returns the index of the chosen state of each layer.
  [[nodiscard]] std::vector<std::size_t> const& chosen() const { return chosen_; }

 private:
  /// A step of a layer from its chosen state to a later state.
  struct step {
    std::size_t layer;
    std::size_t point;
    std::int64_t gain;
    std::size_t moved;

    /// Returns true if this step has a larger gain for each moved copy than `other`.
    [[nodiscard]] bool is_before(step const& other) const {
      int128 const left = static_cast<int128>(gain) * static_cast<int128>(other.moved);
      int128 const right = static_cast<int128>(other.gain) * static_cast<int128>(moved);
      return left != right ? left > right : layer < other.layer;
    }
  };

  [[nodiscard]] step step_to(std::size_t layer, std::size_t from, std::size_t to) const {
    auto const& before = layers_[layer][from];
    auto const& after = layers_[layer][to];
    std::size_t const moved = after.moved > before.moved ? after.moved - before.moved : 0;
    return {layer, to, before.largest_load - after.largest_load, moved};
  }

  /// Adds the steps along the convex hull of the states of a layer, as points of moved copies and
  /// largest load.
  void add_hull(std::size_t layer, std::vector<step>& steps) const {
    std::size_t const count = layers_[layer].size();
    for (std::size_t from = 0; from + 1 < count;) {
      step best{};
      for (std::size_t to = from + 1; to != count; ++to) {
        step const next = step_to(layer, from, to);
        if (next.gain > 0 && (best.gain == 0 || !best.is_before(next))) best = next;
      }
      if (best.gain == 0) return;
      steps.push_back(best);
      from = best.point;
    }
  }

  void take_hull_steps() {
    std::vector<step> steps;
    for (std::size_t l = 0; l != layers_.size(); ++l) add_hull(l, steps);
    std::stable_sort(steps.begin(), steps.end(),
                     [](step const& left, step const& right) { return left.is_before(right); });
    std::vector<std::uint8_t> ended(layers_.size(), 0);
    for (step const& next : steps) {
      if (ended[next.layer] != 0) continue;
      if (next.moved > left_) {
        ended[next.layer] = 1;
        continue;
      }
      left_ -= next.moved;
      chosen_[next.layer] = next.point;
    }
  }

  /// Chooses the step with the largest gain that the rest of the budget allows.
  [[nodiscard]] bool take_best_step() {
    step best{};
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      for (std::size_t to = chosen_[l] + 1; to < layers_[l].size(); ++to) {
        step const next = step_to(l, chosen_[l], to);
        if (next.moved <= left_ && next.gain > best.gain) best = next;
      }
    }
    if (best.gain == 0) return false;
    left_ -= best.moved;
    chosen_[best.layer] = best.point;
    return true;
  }

  std::span<std::vector<placement_point> const> layers_;
  std::vector<std::size_t> chosen_;
  std::size_t spent_ = 0;
  std::size_t left_ = 0;
};

}  // namespace omnibal::inline v0::detail
