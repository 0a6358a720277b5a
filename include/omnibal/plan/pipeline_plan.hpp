// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Machine, limits, layers and plan of a pipeline.

#include <omnibal/activation_option.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// The devices of a pipeline, one for each stage. A list with one value applies to every stage. A
/// device has one or several chunks of the model; see `stage_chunks`.
struct pipeline_machine {
  std::size_t stages = 1;
  weight_list<std::int64_t> memory_bytes{};
  /// The bytes of the memory that are reserved for other uses, such as buffers of a communication
  /// library.
  weight_list<std::int64_t> reserve_bytes{0};
  /// The device that converts work to times, for layers that are given as `layer_cost`.
  device_model device{};
  /// The bytes per second between neighboring stages, used by `simulate_training`. With the
  /// default, transfers take no time.
  std::int64_t link_bytes_per_second = std::numeric_limits<std::int64_t>::max();
};

struct plan_pipeline_options {
  /// The number of micro-batches of a step; must be positive.
  std::size_t micro_batches = 0;
  /// The maximum number of micro-batches whose activations a stage keeps at the same time: a list
  /// by stage, or one value for all. If the list is empty, the numbers are the numbers of 1F1B: the
  /// number of stages from this stage to the last, but at most the number of micro-batches. The
  /// function `peak_in_flight` returns the numbers of any schedule.
  weight_list<std::int64_t> in_flight{};
  /// The constraints on the cuts; members for bytes, capacity and devices must not be set. With
  /// several chunks, the stages of the constraints are the virtual stages.
  partition_constraints constraints{};
  /// The effort of the search; `states` and `rounds` take precedence if they are set.
  omnibal::effort effort = omnibal::effort::normal;
  /// The most partial solutions that are kept for the solution of a stage; see
  /// `select_recompute_options`.
  std::optional<std::size_t> states = {};
  /// The number of rounds in which solutions of stages replace lower bounds: 4, 16 or 64 by effort
  /// if not set. With several chunks, the number of price vectors that the lower bound evaluates.
  std::optional<std::size_t> rounds = {};
  /// The gap at which the search ends: the share of the best step by which the lower bound may be
  /// below the best step.
  double max_gap = 0.0001;
};

/// A layer of a plan: its choices, and the bytes that it needs with any choice. `state_bytes` are
/// the bytes of parameters, gradients and optimizer.
template <scalar_measure Time = std::int64_t>
struct plan_layer {
  std::vector<activation_option<Time>> choices;
  std::int64_t state_bytes = 0;

  [[nodiscard]] friend bool operator==(plan_layer const&, plan_layer const&) = default;
};

/// Anything with `choices` and `state_bytes`, as in `plan_layer`.
template <class Layer>
concept plannable_layer = requires(Layer const& layer) {
  { layer.choices } -> activation_option_range;
  { layer.state_bytes } -> detail::member_integer;
};

/// A range of `layer_cost`.
template <class Layers>
concept layer_cost_range =
    sample_range<Layers> && std::same_as<std::ranges::range_value_t<Layers const>, layer_cost>;

/// A range of layers that can be planned.
template <class Layers>
concept plannable_range =
    sample_range<Layers> && plannable_layer<std::ranges::range_value_t<Layers const>>;

/// An additional part of the machine of a pipeline, such as `offload_links`, that plans layers by
/// its own rules.
template <class Part, class Layers>
concept pipeline_part = requires(Part const& part, Layers const& layers,
                                 pipeline_machine const& machine,
                                 plan_pipeline_options const& options) {
  part.plan(layers, machine, options);
};

struct timed_layers_fn {
  /// Returns the layers with their times on a device in nanoseconds; the choices are the choices of
  /// `recompute_choice`.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: as `device_model`.
  template <layer_cost_range Costs>
  [[nodiscard]] std::vector<plan_layer<>> operator()(Costs const& costs,
                                                     device_model const& device) const {
    std::vector<plan_layer<>> result;
    result.reserve(std::ranges::size(costs));
    for (layer_cost const& cost : costs) {
      auto const choices = timed_choices{device}(cost);
      result.push_back({{choices.begin(), choices.end()}, cost.state_bytes()});
    }
    return result;
  }
};

/// Returns layers with times; see `timed_layers_fn`.
inline constexpr timed_layers_fn timed_layers{};

/// A stage of a plan.
template <scalar_measure Time>
struct planned_stage {
  /// The time of a micro-batch in all chunks: forward, backward and recomputation together.
  Time time{};
  /// The peak of the bytes that the stage uses in its memory, including the reserve.
  std::int64_t bytes = 0;
  /// The maximum number of micro-batches whose activations the stage keeps at the same time; with
  /// several chunks, the number of units. A unit is a micro-batch in a chunk.
  std::int64_t in_flight = 0;

  [[nodiscard]] friend bool operator==(planned_stage const&, planned_stage const&) = default;
};

/// The stages of a model and the choice of each layer: stage s runs the layers [boundaries[s],
/// boundaries[s + 1]). With several chunks the boundaries belong to virtual stages, and `layout_of`
/// maps virtual stages to stages.
template <scalar_measure Time>
struct pipeline_plan {
  /// The status of the plan: infeasible if no cuts and choices fit the memory of all stages. With
  /// several chunks, `not_found` if the search found neither a plan nor a proof that there is none.
  solve_status status = solve_status::solved;
  /// The boundaries of the virtual stages, from zero to the number of layers; one more than the
  /// number of virtual stages; empty unless solved.
  std::vector<std::uint32_t> boundaries{};
  /// The index of the choice of each layer; empty unless solved.
  std::vector<std::uint32_t> choices{};
  /// The stages; each entry sums up all chunks of the stage.
  std::vector<planned_stage<Time>> stages{};
  /// The time of a step by `estimate_makespan`: with one chunk, (micro-batches - 1) times the
  /// largest time of a stage plus the sum of the times.
  Time step_time{};
  /// A lower bound: no cuts and choices within the memory have a shorter step.
  Time lower_bound{};
  /// True if the search proved that no cuts and choices have a shorter step.
  bool proven = false;
  /// If infeasible, the first stage with the largest shortfall of memory, for the best cuts found.
  std::uint32_t stage = 0;
  /// If infeasible, the smallest number of bytes that must be added to the memory of every stage.
  /// The value is zero if the memory suffices, but no cuts satisfy the constraints. If `proven` is
  /// false, or if the status is `not_found`, fewer bytes may suffice.
  std::int64_t missing_bytes = 0;
  /// The number of chunks of each stage, and the placement of the chunks on the stages.
  std::size_t chunks = 1;
  chunk_placement placement = chunk_placement::looped;

  /// Returns the layout of the virtual stages on the stages.
  [[nodiscard]] chunk_layout layout_of(std::size_t batch_count) const {
    std::size_t const count = boundaries.empty() ? 0 : boundaries.size() - 1;
    return {count / chunks, batch_count, chunks, placement};
  }
  /// Returns the choices of the layers of a virtual stage.
  [[nodiscard]] std::span<std::uint32_t const> choices_of(std::size_t index) const& {
    return std::span(choices).subspan(boundaries[index], boundaries[index + 1] - boundaries[index]);
  }
  void choices_of(std::size_t index) const&& = delete;

  [[nodiscard]] friend bool operator==(pipeline_plan const&, pipeline_plan const&) = default;
};

}  // namespace omnibal::inline v0
