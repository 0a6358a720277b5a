// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order in which label search decides the layers.

#include <omnibal/config.hpp>
#include <omnibal/detail/pareto_fronts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The branching order of the layers. The layer whose best point at a price is clearest comes
/// first, because only few points of such a layer can be part of a good solution. Equal layers stay
/// together.
class layer_order {
 public:
  void sort(pareto_fronts const& fronts, hull_step const& price) {
    losses_.clear();
    layers_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      losses_.push_back(clearness(fronts[layer], price));
      layers_.push_back(layer);
    }
    std::sort(layers_.begin(), layers_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return losses_[a] > losses_[b] || (losses_[a] == losses_[b] && a < b);
    });
    places_.resize(layers_.size());
    for (std::uint32_t place = 0; place != layers_.size(); ++place) places_[layers_[place]] = place;
  }

  [[nodiscard]] std::uint32_t layer_at(std::size_t place) const { return layers_[place]; }
  [[nodiscard]] std::uint32_t place_of(std::uint32_t layer) const { return places_[layer]; }

 private:
  /// Returns the loss of the second best point compared with the best point.
  [[nodiscard]] static int128 clearness(std::span<front_point const> front,
                                        hull_step const& price) {
    constexpr int128 lowest = -(static_cast<int128>(1) << 126);
    int128 best = lowest;
    int128 second = lowest;
    for (front_point const& point : front) {
      int128 const value = surplus(point, price);
      second = std::max(second, std::min(best, value));
      best = std::max(best, value);
    }
    return best - second;
  }

  std::vector<int128> losses_;
  /// The layers, in descending order of this loss.
  std::vector<std::uint32_t> layers_;
  std::vector<std::uint32_t> places_;
};

}  // namespace omnibal::inline v0::detail
