// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stages of a plan whose layers have choices, as `joint_search` uses them.

#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/segment_bounds.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Bounds and solves stages for `joint_search`: lower bounds of the times of consecutive layers,
/// and solutions by `select_recompute`.
class recompute_stages {
 public:
  using solution = recompute_result<std::int64_t>;

  recompute_stages(integer_layers const& layers, stage_budgets const& rooms,
                   plan_pipeline_options const& options)
      : layers_(layers), rooms_(rooms), options_(options), runs_(layers) {}

  [[nodiscard]] std::size_t layers_size() const { return layers_.size(); }
  [[nodiscard]] std::size_t size() const { return rooms_.memory.size(); }
  /// Returns the least time of the layers [first, last) with enough memory.
  [[nodiscard]] std::int64_t min_time(std::size_t first, std::size_t last) const {
    return layers_.min_time(first, last);
  }
  /// Returns the time of a layer with the choice that keeps the fewest bytes.
  [[nodiscard]] std::int64_t small_time(std::size_t layer) const {
    return layers_[layer].front().time;
  }
  /// Returns a lower bound of the time of a stage; `no_time` if the stage exceeds its memory.
  [[nodiscard]] std::int64_t lower_bound(stage_range const& range) const {
    return runs_.min_time(range.first, range.last, room(range), rooms_.in_flight[range.stage]);
  }
  /// Returns true only if some choices of the layers fit the memory of the stage.
  [[nodiscard]] bool fits(stage_range const& range) const {
    return runs_.fits(range.first, range.last, room(range), rooms_.in_flight[range.stage]);
  }

  [[nodiscard]] solution solve(stage_range const& range) const {
    std::vector<std::span<whole_choice const>> stage;
    for (std::size_t l = range.first; l != range.last; ++l) stage.push_back(layers_.by_index(l));
    return select_recompute(stage, room(range),
                            {.in_flight = rooms_.in_flight[range.stage],
                             .effort = options_.effort,
                             .states = options_.states,
                             .max_gap = options_.max_gap});
  }

 private:
  /// Returns the bytes of the memory of a stage that remain for activations.
  [[nodiscard]] std::int64_t room(stage_range const& range) const {
    return rooms_.memory[range.stage] - rooms_.reserve[range.stage] -
           layers_.state_bytes(range.first, range.last);
  }

  integer_layers const& layers_;
  stage_budgets const& rooms_;
  plan_pipeline_options const& options_;
  segment_bounds runs_;
};

}  // namespace omnibal::inline v0::detail
