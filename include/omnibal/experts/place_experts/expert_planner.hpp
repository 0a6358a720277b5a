// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The placements of all layers of `place_experts`.

#include <omnibal/experts/expert_placement.hpp>
#include <omnibal/experts/place_experts/first_placement.hpp>
#include <omnibal/experts/place_experts/moved_budget.hpp>
#include <omnibal/experts/place_experts/old_placement.hpp>
#include <omnibal/experts/place_experts/placed_layer.hpp>
#include <omnibal/experts/place_experts/placement_search.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The options of `place_experts` that the planner reads.
struct planner_options {
  std::size_t layers;
  std::optional<std::size_t> max_moved;
  double max_gap;
  omnibal::effort effort;
  std::uint64_t seed;
};

/// Plans the placements of all layers: one search for each layer, and then the division of the
/// moved copies among the layers.
class expert_planner {
 public:
  expert_planner(expert_shape const& shape, planner_options const& options)
      : shape_(shape), options_(options), limits_(placement_effort::of(options.effort)) {}

  /// Runs the search for one layer. Precondition: the sum of the loads is below 2^60. `old` is
  /// empty if there is no old placement.
  void add_layer(std::vector<std::int64_t> loads, std::vector<std::uint32_t> old) {
    auto const bound = placement_bound<std::int64_t>(shape_, loads);
    auto const slack = static_cast<double>(bound) * options_.max_gap;
    std::int64_t const goal = bound + static_cast<std::int64_t>(slack);
    bool const has_old = !old.empty();
    if (!has_old) old = first_placement(shape_, loads, nodes_of_groups(shape_, loads));
    std::size_t const repaired = has_old ? repair_duplicates(shape_, loads, old) : 0;
    placed_layer layer(shape_, std::move(loads), std::move(old));
    placement_search search(layer, limits_, has_old ? copy_price::if_moved : copy_price::nothing);
    std::vector<placement_point> points;
    auto const add_point = [&] {
      points.push_back({repaired + layer.moved(), search.largest_load(), layer.changes().size()});
    };
    add_point();
    std::size_t const slots = layer.slots().size();
    if (options_.max_moved) {
      // A search may move several times the equal share of its layer in the budget.
      std::size_t const limit = 4 * std::min(*options_.max_moved / options_.layers, slots) + 4;
      search.descend(goal, std::min(limit, slots), add_point);
    } else {
      search.descend(goal, slots, [] {});
      search.kick(goal, options_.seed + layers_.size());
      add_point();
    }
    layers_.push_back(std::move(layer));
    points_.push_back(std::move(points));
  }

  /// Writes the placements of all layers, with at most `max_moved` moved copies together.
  void write(expert_placement& result) const {
    std::vector<std::size_t> chosen;
    if (options_.max_moved) {
      chosen = moved_budget(points_, *options_.max_moved).chosen();
    } else {
      for (auto const& points : points_) chosen.push_back(points.size() - 1);
    }
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      placement_point const& point = points_[l][chosen[l]];
      auto const slots = layers_[l].slots_after(point.changes);
      result.experts.insert(result.experts.end(), slots.begin(), slots.end());
    }
  }

 private:
  expert_shape shape_;
  planner_options options_;
  placement_effort limits_;
  std::vector<placed_layer> layers_;
  std::vector<std::vector<placement_point>> points_;
};

}  // namespace omnibal::inline v0::detail
