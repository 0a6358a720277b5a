#pragma once

/// \file
/// In which order to decide about layers.

#include <omnibal/config.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The layers with the clearest choice at the price of a step come first: few of their points can
/// be part of a good solution. Equal layers stay together.
class layer_order {
 public:
  void sort(layer_fronts const& fronts, hull_step const& step) {
    clear_.clear();
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      clear_.push_back({clearness(fronts, layer, step), layer});
    }
    std::sort(clear_.begin(), clear_.end(), [](entry const& left, entry const& right) {
      return left.loss != right.loss ? left.loss > right.loss : left.layer < right.layer;
    });
    places_.resize(clear_.size());
    for (std::uint32_t place = 0; place != clear_.size(); ++place) {
      places_[clear_[place].layer] = place;
    }
  }

  [[nodiscard]] std::uint32_t layer_at(std::size_t place) const { return clear_[place].layer; }
  [[nodiscard]] std::uint32_t place_of(std::uint32_t layer) const { return places_[layer]; }

 private:
  struct entry {
    int128 loss;
    std::uint32_t layer;
  };

  /// What the second best point loses against the best one.
  [[nodiscard]] static int128 clearness(layer_fronts const& fronts, std::uint32_t layer,
                                        hull_step const& step) {
    auto const front = fronts[layer];
    constexpr int128 lowest = -(static_cast<int128>(1) << 126);
    int128 best = lowest;
    int128 second = lowest;
    for (front_point const& point : front) {
      int128 const surplus = static_cast<int128>(point.gain) * step.bytes -
                             static_cast<int128>(point.bytes) * step.gain;
      second = std::max(second, std::min(best, surplus));
      best = std::max(best, surplus);
    }
    return best - second;
  }

  std::vector<entry> clear_;
  std::vector<std::uint32_t> places_;
};

}  // namespace omnibal::inline v0::detail
