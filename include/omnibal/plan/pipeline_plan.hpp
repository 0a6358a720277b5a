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

/// The devices of a pipeline, one for each stage. A list of one value holds for every stage. A
/// device has one chunk of the model or several; see `stage_chunks`.
struct pipeline_machine {
  std::size_t stages = 1;
  weight_list<std::int64_t> memory_bytes{};
  /// The bytes of the memory that are reserved for other uses, such as buffers of a communication
  /// library.
  weight_list<std::int64_t> reserve_bytes{0};
  /// The device that converts work to times, for layers that are given as `layer_cost`.
  device_model device{};
  /// The bytes per second between neighboring stages, used by `simulate_training`. The default is
  /// that transfers take no time.
  std::int64_t link_bytes_per_second = std::numeric_limits<std::int64_t>::max();
};

struct plan_pipeline_options {
  /// The number of micro-batches of a step; must be positive.
  std::size_t micro_batches = 0;
  /// The number of micro-batches that keep their activations at once, on each stage or on all. If
  /// the list is empty, the numbers are as in 1F1B: the number of stages from this one to the last,
  /// or all micro-batches if there are fewer. `peak_in_flight` returns the numbers of any schedule.
  weight_list<std::int64_t> in_flight{};
  /// The constraints on the cuts, without bytes, capacity and devices. With several chunks, their
  /// stages are the virtual stages.
  partition_constraints constraints{};
  /// The effort of the search; a number below that is set takes precedence.
  omnibal::effort effort = omnibal::effort::normal;
  /// The most partial solutions that are kept for the solution of a stage; see
  /// `select_recompute_options`.
  std::optional<std::size_t> states = {};
  /// The number of times that solutions of stages replace lower bounds of these stages: 4, 16 or 64
  /// by effort if not set. With several chunks, the number of prices of bytes and devices that are
  /// tried for the lower bound.
  std::optional<std::size_t> rounds = {};
  /// The gap at which the search ends: the share of the best step by which the lower bound may be
  /// below the best step.
  double max_gap = 0.0001;
};

/// A layer to plan: its choices, and its memory whatever the choice. `state_bytes` are the bytes of
/// parameters, gradients and optimizer.
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

/// A further part of the machine of a pipeline, such as `offload_links`, that plans layers by its
/// own rules.
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
  /// The most bytes of its memory that the stage uses, the reserve included.
  std::int64_t bytes = 0;
  /// The number of micro-batches that keep their activations at once; with several chunks, the
  /// number of units, each a micro-batch in a chunk.
  std::int64_t in_flight = 0;

  [[nodiscard]] friend bool operator==(planned_stage const&, planned_stage const&) = default;
};

/// The stages of a model and how each layer runs: stage s runs the layers [boundaries[s],
/// boundaries[s + 1]). With several chunks these are the virtual stages, and `layout_of` says on
/// which stage each of them lies.
template <scalar_measure Time>
struct pipeline_plan {
  /// The status of the plan: infeasible if a stage lacks memory whatever the cuts and choices. With
  /// several chunks, `not_found` if the search found no plan and no proof that there is none.
  solve_status status = solve_status::solved;
  /// The boundaries of the virtual stages, one more than these stages, from zero to the number of
  /// layers; empty unless solved.
  std::vector<std::uint32_t> boundaries{};
  /// The number of the choice of each layer; empty unless solved.
  std::vector<std::uint32_t> choices{};
  /// The stages, each with all of its chunks.
  std::vector<planned_stage<Time>> stages{};
  /// The time of a step by `estimate_makespan`: with one chunk, (micro-batches - 1) times the
  /// largest time of a stage plus the sum of the times.
  Time step_time{};
  /// A lower bound: no cuts and choices within the memory have a shorter step.
  Time lower_bound{};
  /// True if the step is the shortest possible.
  bool proven = false;
  /// The first stage that lacks the most memory with the best cuts, if infeasible.
  std::uint32_t stage = 0;
  /// The least bytes that must be added to the memory of every stage, if infeasible. The value is
  /// zero if the memory suffices, but no cuts satisfy the constraints. If `proven` is false, or if
  /// the status is `not_found`, fewer bytes may suffice.
  std::int64_t missing_bytes = 0;
  /// The number of chunks of each stage, and their order on the stages.
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
