#pragma once

/// \file
/// A good solution by the layers about which the linear relaxation is least sure.

#include <omnibal/recompute/detail/hull_relaxation.hpp>
#include <omnibal/recompute/detail/layer_fronts.hpp>
#include <omnibal/recompute/detail/layer_order.hpp>
#include <omnibal/recompute/detail/list_search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// A few layers whose best choices are nearly as good as their second best ones have more
/// combinations than are needed to fill a budget nearly exactly. The other layers take the points of
/// the linear relaxation.
class core_search {
 public:
  /// There are no points where the linear relaxation does as well.
  /// Precondition: `relaxed` is solved for the same budget and takes a part of a step.
  void run(layer_fronts const& fronts, std::int64_t budget, hull_relaxation const& relaxed,
           std::size_t states) {
    relaxed.write_points(fronts.size(), points_);
    order_.sort(fronts, relaxed.broken());
    std::size_t const first = fronts.size() - std::min(fronts.size(), most_layers);
    gain_ = 0;
    for (std::size_t place = 0; place != first; ++place) {
      std::uint32_t const layer = order_.layer_at(place);
      front_point const& taken = fronts[layer][points_[layer]];
      budget -= taken.bytes;
      gain_ += taken.gain;
    }
    core_.clear();
    for (std::size_t place = first; place != fronts.size(); ++place) {
      for (front_point const& point : fronts[order_.layer_at(place)]) core_.push(point);
      core_.close();
    }
    core_.drop_above(budget);
    relaxed_.solve(core_, budget);
    if (!relaxed_.takes_all_steps()) {
      lists_.run(core_, budget, relaxed_, std::min(states, most_states), -1,
                 [](std::int64_t) { return false; });
    }
    if (relaxed_.takes_all_steps() || lists_.points().empty()) {
      points_.clear();
      return;
    }
    gain_ += lists_.gain();
    for (std::size_t place = first; place != fronts.size(); ++place) {
      points_[order_.layer_at(place)] = lists_.points()[place - first];
    }
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// The number of the point that each layer takes.
  [[nodiscard]] std::span<std::uint32_t> points() { return points_; }

 private:
  static constexpr std::size_t most_layers = 16;
  static constexpr std::size_t most_states = 64;

  std::int64_t gain_ = 0;
  std::vector<std::uint32_t> points_;
  layer_order order_;
  layer_fronts core_;
  hull_relaxation relaxed_;
  list_search lists_;
};

}  // namespace omnibal::inline v0::detail
