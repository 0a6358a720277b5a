#pragma once

/// \file
/// What a pipeline is planned for, with which limits, and layers that can be planned; and the plan:
/// where a model is cut into stages and how each layer runs.

#include <omnibal/check.hpp>
#include <omnibal/choice.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/accelerator.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
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

/// The devices of a pipeline, one for each stage. Lists of one value hold for every stage.
struct pipeline_machine {
  std::size_t stages = 1;
  weight_list<std::int64_t> memory_bytes{};
  /// Bytes of the memory that are for something else, such as buffers of a communication library.
  weight_list<std::int64_t> reserve_bytes{0};
  /// Makes times of the work of layers that are given as `layer_cost`.
  accelerator device{};
  /// Between neighbouring stages; counted by `simulate_training`. The default leaves transfers out.
  std::int64_t link_bytes_per_second = std::numeric_limits<std::int64_t>::max();
};

struct plan_pipeline_options {
  /// The number of micro-batches of a step; must be positive.
  std::size_t micro_batches = 0;
  /// How many micro-batches keep their activations at once on each stage, or on all. Empty: those
  /// of 1F1B, the stages from this one to the last, or all micro-batches if there are fewer.
  /// `peak_in_flight` counts those of any schedule.
  weight_list<std::int64_t> in_flight{};
  /// What must be true of the cuts; without its bytes, capacity and devices.
  partition_constraints constraints{};
  /// What the search may take; a number below that is set takes precedence.
  omnibal::effort effort = omnibal::effort::normal;
  /// The most partial solutions that are kept when a stage is solved; see
  /// `select_recompute_options`.
  std::optional<std::size_t> states = {};
  /// How often the lower bounds of stages are replaced by solutions of these stages: 4, 16 or 64.
  std::optional<std::size_t> rounds = {};
  /// The search ends when the lower bound is below the best step by no more than this share of it.
  double max_gap = 0.0001;
};

/// A layer to plan: its choices, and what it takes in memory whatever the choice. `state_bytes` are
/// parameters, gradients and optimizer.
template <weight Time = std::int64_t>
struct plan_layer {
  std::vector<choice<Time>> choices;
  std::int64_t state_bytes = 0;

  [[nodiscard]] friend bool operator==(plan_layer const&, plan_layer const&) = default;
};

/// Anything with `choices` and `state_bytes`, as in `plan_layer`.
template <class Layer>
concept plannable_layer = requires(Layer const& layer) {
  { layer.choices } -> choice_range;
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

struct timed_layers_fn {
  /// The layers with the nanoseconds of a device; the choices are those of `recompute_choice`.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: those of `accelerator`.
  template <layer_cost_range Costs>
  [[nodiscard]] std::vector<plan_layer<>> operator()(Costs const& costs,
                                                     accelerator const& device) const {
    std::vector<plan_layer<>> result;
    result.reserve(std::ranges::size(costs));
    for (layer_cost const& cost : costs) {
      auto const choices = timed_choices{device}(cost);
      result.push_back({{choices.begin(), choices.end()}, cost.state_bytes()});
    }
    return result;
  }
};

/// Layers with times; see `timed_layers_fn`.
inline constexpr timed_layers_fn timed_layers{};

/// What a plan makes of a stage.
template <weight Time>
struct planned_stage {
  /// What a micro-batch takes, forward, backward and recomputation together.
  Time time{};
  /// What the stage takes of its memory at most, the reserve included.
  std::int64_t bytes = 0;
  /// How many micro-batches keep their activations at once.
  std::int64_t in_flight = 0;

  [[nodiscard]] friend bool operator==(planned_stage const&, planned_stage const&) = default;
};

/// Stages of a model: stage s runs the layers [boundaries[s], boundaries[s + 1]).
template <weight Time>
struct pipeline_plan {
  /// Infeasible where a stage lacks memory whatever the cuts and choices.
  solve_status status = solve_status::solved;
  /// One more than there are stages, from zero to the number of layers; empty where infeasible.
  std::vector<std::uint32_t> boundaries{};
  /// The number of the choice of each layer; empty where infeasible.
  std::vector<std::uint32_t> choices{};
  std::vector<planned_stage<Time>> stages{};
  /// (micro-batches - 1) times the largest time of a stage plus the sum of the times.
  Time step_time{};
  /// No cuts and choices within the memory have a shorter step.
  Time lower_bound{};
  /// True where the step is the shortest possible.
  bool proven = false;
  /// Where infeasible: the first stage that lacks most memory with the best cuts.
  std::uint32_t stage = 0;
  /// Where infeasible: the least that must be added to the memory of every stage; zero where the
  /// memory would do, but no cuts satisfy the constraints.
  std::int64_t missing_bytes = 0;

  /// The choices of the layers of a stage.
  [[nodiscard]] std::span<std::uint32_t const> choices_of(std::size_t index) const& {
    return std::span(choices).subspan(boundaries[index], boundaries[index + 1] - boundaries[index]);
  }
  void choices_of(std::size_t index) const&& = delete;

  [[nodiscard]] friend bool operator==(pipeline_plan const&, pipeline_plan const&) = default;
};

}  // namespace omnibal::inline v0
