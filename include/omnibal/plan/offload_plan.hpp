// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Layers, stages and plan of a pipeline whose devices offload activations.

#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// A layer of a plan whose modules are kept, recomputed or offloaded.
struct offload_layer {
  /// The modules of the layer. The link transfers during the times of the forward and backward pass
  /// in this member.
  activation_layer<> activations{};
  /// The time of the forward and backward pass of a micro-batch, without recomputation.
  std::int64_t time = 0;
  /// The bytes of parameters, gradients and optimizer on the device.
  std::int64_t state_bytes = 0;

  [[nodiscard]] friend bool operator==(offload_layer const&, offload_layer const&) = default;
};

/// A stage of an `offload_plan`.
struct offload_stage {
  /// The time of a micro-batch: forward, backward and recomputation together.
  std::int64_t time = 0;
  /// The peak of the bytes that the stage uses in its memory, including the reserve.
  std::int64_t bytes = 0;
  /// The maximum number of micro-batches whose activations the stage keeps at the same time.
  std::int64_t in_flight = 0;
  /// The bytes that the stage offloads for each micro-batch.
  std::int64_t offloaded_bytes = 0;

  [[nodiscard]] friend bool operator==(offload_stage const&, offload_stage const&) = default;
};

/// The stages of a model and the choice for each module: stage s runs the layers [boundaries[s],
/// boundaries[s + 1]).
struct offload_plan {
  /// The status of the plan: infeasible if no cuts and choices fit the memory of all stages.
  solve_status status = solve_status::solved;
  /// The boundaries of the stages, one more than the number of stages; empty unless solved.
  std::vector<std::uint32_t> boundaries{};
  /// The choice of each module of each layer; empty unless solved.
  std::vector<std::vector<activation_choice>> choices{};
  std::vector<offload_stage> stages{};
  /// The time of a step by `estimate_makespan`: (micro-batches - 1) times the largest time of a
  /// stage plus the sum of the times.
  std::int64_t step_time = 0;
  /// A lower bound: no cuts and choices within the memory have a shorter step.
  std::int64_t lower_bound = 0;
  /// True if the search proved that no cuts and choices have a shorter step.
  bool proven = false;
  /// If infeasible, the first stage with the largest shortfall of memory, for the cuts whose
  /// largest shortfall is smallest.
  std::uint32_t stage = 0;
  /// If infeasible, the smallest number of bytes that must be added to the memory of every stage.
  /// The value is zero if the memory suffices, but no cuts satisfy the constraints.
  std::int64_t missing_bytes = 0;

  [[nodiscard]] friend bool operator==(offload_plan const&, offload_plan const&) = default;
};

}  // namespace omnibal::inline v0
