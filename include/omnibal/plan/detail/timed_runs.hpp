// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The units of a model as runs of equal units, and the sums over the units of a stage.

#include <omnibal/check.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/detail/unit_timer.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The passes and the state of the units of a virtual stage.
struct virtual_stage_cost {
  step_seconds forward{};
  step_seconds backward{};
  double parameters = 0;
  double expert_parameters = 0;
  double optimizer_bytes = 0;
  double units = 0;
  double cut_bytes = 0;
  std::int64_t state_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::int64_t host_bytes = 0;
  std::int64_t transient_bytes = 0;

  [[nodiscard]] static virtual_stage_cost of(std::string_view function, timed_unit const& unit,
                                             recompute_choice choice) {
    // One layer uses its offloaded bytes while the bytes of its neighbor are on their way.
    std::int64_t transient = unit.cost[choice].transient_bytes;
    checked_add(function, "the bytes of a layer", transient, unit.offloaded_bytes);
    checked_add(function, "the bytes of a layer", transient, unit.offloaded_bytes);
    return {.forward = unit.forward,
            .backward = unit.backward,
            .parameters = static_cast<double>(unit.cost.parameters) - unit.expert_parameters,
            .expert_parameters = unit.expert_parameters,
            .optimizer_bytes = static_cast<double>(unit.cost.optimizer_bytes),
            .units = 1,
            .cut_bytes = static_cast<double>(unit.cost.cut_bytes),
            .state_bytes = unit.cost.state_bytes(),
            .kept_bytes = unit.cost[choice].kept_bytes - unit.offloaded_bytes,
            .host_bytes = unit.offloaded_bytes,
            .transient_bytes = transient};
  }

  void add(std::string_view function, virtual_stage_cost const& other) {
    forward.add(other.forward);
    backward.add(other.backward);
    parameters += other.parameters;
    expert_parameters += other.expert_parameters;
    optimizer_bytes += other.optimizer_bytes;
    units += other.units;
    cut_bytes = std::max(cut_bytes, other.cut_bytes);
    checked_add(function, "the state of a stage", state_bytes, other.state_bytes);
    checked_add(function, "the bytes of a stage", kept_bytes, other.kept_bytes);
    checked_add(function, "the offloaded bytes of a stage", host_bytes, other.host_bytes);
    transient_bytes = std::max(transient_bytes, other.transient_bytes);
  }
};

/// A run of `count` equal units.
struct timed_run {
  virtual_stage_cost unit{};
  std::int64_t count = 0;
};

/// Returns the number of units of all runs.
[[nodiscard]] inline std::int64_t unit_count(std::span<timed_run const> runs) {
  std::int64_t count = 0;
  for (timed_run const& run : runs) count += run.count;
  return count;
}

/// Returns the units of a model, with their costs and times for a micro-batch.
template <layered_model Model, class Pieces>
[[nodiscard]] std::vector<timed_run> timed_runs(std::string_view function, Model const& model,
                                                training_step const& step,
                                                micro_batch_work const& batch, machine const& on,
                                                Pieces const& pieces) {
  unit_timer<Pieces> const timer(function, step, batch, on, pieces);
  std::vector<timed_run> result;
  for_each_layer(function, model, [&](auto const& layer, std::int64_t count) {
    if (count == 0) return;
    result.push_back({virtual_stage_cost::of(function, timer(layer), step.recomputed), count});
  });
  return result;
}

}  // namespace omnibal::inline v0::detail
