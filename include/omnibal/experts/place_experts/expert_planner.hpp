// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The placements of all layers of `place_experts`.

#include <omnibal/detail/run_bodies.hpp>
#include <omnibal/executor.hpp>
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
#include <string_view>
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

  /// Runs the search for each layer on an executor. `loads_of(l)` and `old_of(l)` return the loads
  /// and the old experts of a layer, which are empty if there is no old placement. Precondition:
  /// the sum of the loads of a layer is below 2^60.
  template <class LoadsOf, class OldOf, executor Executor>
  void run(std::string_view function, LoadsOf const& loads_of, OldOf const& old_of,
           Executor const& run) {
    layers_.resize(options_.layers);
    points_.resize(options_.layers);
    hulls_.resize(options_.layers);
    run_bodies(function, run, options_.layers,
               [&](std::size_t l) { search_layer(l, loads_of(l), old_of(l)); });
  }

  /// Writes the placements of all layers, with at most `max_moved` moved copies together.
  void write(expert_placement& result) const {
    std::vector<std::size_t> chosen;
    if (options_.max_moved) {
      chosen = moved_budget(points_, hulls_, *options_.max_moved).chosen();
    } else {
      for (auto const& points : points_) chosen.push_back(points.size() - 1);
    }
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      auto const slots = layers_[l]->slots_after(points_[l][chosen[l]].changes);
      result.experts.insert(result.experts.end(), slots.begin(), slots.end());
    }
  }

 private:
  void search_layer(std::size_t number, std::vector<std::int64_t> loads,
                    std::vector<std::uint32_t> old) {
    auto const bound = placement_bound<std::int64_t>(shape_, loads);
    auto const slack = static_cast<double>(bound) * options_.max_gap;
    std::int64_t const goal = bound + static_cast<std::int64_t>(slack);
    bool const has_old = !old.empty();
    if (!has_old) old = first_placement(shape_, loads, nodes_of_groups(shape_, loads));
    std::size_t const repaired = has_old ? repair_duplicates(shape_, loads, old) : 0;
    placed_layer& layer = layers_[number].emplace(shape_, std::move(loads), std::move(old));
    placement_search search(layer, limits_, has_old ? copy_price::if_moved : copy_price::nothing);
    auto const add_point = [&] {
      points_[number].push_back(
          {repaired + layer.moved(), search.largest_load(), layer.changes().size()});
    };
    add_point();
    std::size_t const slots = layer.slots().size();
    if (options_.max_moved) {
      // A search may move several times the equal share of its layer in the budget.
      std::size_t const limit = 4 * std::min(*options_.max_moved / options_.layers, slots) + 4;
      search.descend(goal, std::min(limit, slots), add_point);
      hulls_[number] = hull_steps(points_[number]);
    } else {
      search.descend(goal, slots, [] {});
      search.kick(goal, options_.seed + number);
      add_point();
    }
  }

  expert_shape shape_;
  planner_options options_;
  placement_effort limits_;
  /// The layers after their searches.
  std::vector<std::optional<placed_layer>> layers_;
  /// The states of each layer from which its placement is chosen.
  std::vector<std::vector<placement_point>> points_;
  std::vector<std::vector<placement_step>> hulls_;
};

}  // namespace omnibal::inline v0::detail
