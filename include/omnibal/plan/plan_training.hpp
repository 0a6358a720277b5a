#pragma once

/// \file
/// The three levers together: data, model, memory.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/partition/minimax.hpp>
#include <omnibal/plan/combine_shapes.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/simulate_training.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// What is balanced; each lever includes those before it.
enum class training_lever {
  baseline,  ///< the first data, stages of equal parameters, everything recomputed
  data,      ///< the second data
  model,     ///< the cuts with the shortest step
  memory     ///< cuts and kept activations together
};

/// A plan and what it gives in the simulation. Without a plan that fits there is no estimate.
struct lever_result {
  pipeline_plan<std::int64_t> plan;
  training_estimate estimate;

  [[nodiscard]] friend bool operator==(lever_result const&, lever_result const&) = default;
};

template <class MicroBatch>
struct training_plan {
  training_data<MicroBatch> first_data;
  training_data<MicroBatch> balanced_data;
  /// By `training_lever`.
  std::array<lever_result, 4> levers;

  [[nodiscard]] lever_result const& operator[](training_lever lever) const {
    return levers[static_cast<std::size_t>(lever)];
  }
};

struct shape_costs_fn {
  /// The layers of a model for the mean of some micro-batches in time and the largest of them in
  /// memory: what `plan_pipeline` plans for all of them.
  ///
  /// Complexity: linear. Memory: a `plan_layer` for each layer and micro-batch. Determinism:
  /// portable. Errors: those of `combine_shapes` and `accelerator`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost>
  [[nodiscard]] std::vector<plan_layer<>> operator()(std::vector<MicroBatch> const& batches,
                                                     accelerator const& device,
                                                     Cost const& cost) const {
    std::vector<shape_layers<>> shapes;
    shapes.reserve(batches.size());
    for (auto const& batch : batches) {
      shapes.push_back({1, timed_layers(std::invoke(cost, batch), device)});
    }
    return combine_shapes(shapes);
  }
};

/// Layers for a plan of many micro-batches; see `shape_costs_fn`.
inline constexpr shape_costs_fn shape_costs{};

struct plan_by_parameters_fn {
  /// Stages with the most even numbers of parameters and everything recomputed, as trainers cut
  /// models by default. It has no times, and its memory is not checked.
  ///
  /// Complexity, memory, determinism and errors: those of `minimax`.
  template <layer_cost_range Costs>
  [[nodiscard]] pipeline_plan<std::int64_t> operator()(Costs const& costs,
                                                       std::size_t stages) const {
    pipeline_plan<std::int64_t> result;
    result.boundaries = minimax(costs, stages, &layer_cost::parameters).boundaries;
    result.choices.assign(std::ranges::size(costs),
                          static_cast<std::uint32_t>(recompute_choice::full));
    return result;
  }
};

/// Stages by parameters; see `plan_by_parameters_fn`.
inline constexpr plan_by_parameters_fn plan_by_parameters{};

struct plan_training_fn {
  /// Applies the levers of OmniBal in their order, each with the simulated time of all steps: data
  /// first, because sizes that are bounded are what the memory can be filled for; then the cuts,
  /// with everything recomputed; then cuts and kept activations together.
  ///
  /// `first(samples)` and `balanced(samples)` give the `training_data` without and with balance,
  /// `cost(micro_batch)` the costs of all layers. `options.micro_batches` should be that of a step
  /// on a rank. The steps are also there by themselves: `plan_by_parameters`, `shape_costs`,
  /// `plan_pipeline`, `simulate_training`.
  ///
  /// The plans of `model` and `memory` never exceed the memory of the machine for any micro-batch
  /// of the balanced data; where none fits, their status says so and they are not simulated.
  ///
  /// Complexity and memory: those of the steps. Determinism: portable where the functors are, but
  /// for the shares. Errors: `std::invalid_argument` for data without micro-batches, and those of
  /// the steps. Source: Yao et al., "OmniBal", ICML 2025.
  template <class Samples, class First, class Balanced, class Cost>
  [[nodiscard]] auto operator()(Samples const& samples, pipeline_machine const& machine,
                                First const& first, Balanced const& balanced, Cost const& cost,
                                plan_pipeline_options const& options) const {
    training_plan<batch_of<First, Samples>> result{
        std::invoke(first, samples), std::invoke(balanced, samples), {}};
    auto const& before = result.first_data;
    auto const& after = result.balanced_data;
    check_batches("first", before.batches.size());
    check_batches("balanced", after.batches.size());
    auto& levers = result.levers;
    levers[0].plan = plan_by_parameters(std::invoke(cost, before.batches[0]), machine.stages);
    levers[0].estimate = simulate_training(levers[0].plan, before, machine, cost);
    levers[1].plan = levers[0].plan;
    levers[1].estimate = simulate_training(levers[1].plan, after, machine, cost);

    auto const layers = shape_costs(after.batches, machine.device, cost);
    levers[2].plan = plan_recomputed(layers, machine, options);
    levers[3].plan = plan_pipeline(layers, machine, options);
    for (std::size_t lever : {std::size_t{2}, std::size_t{3}}) {
      if (levers[lever].plan.status != solve_status::solved) continue;
      levers[lever].estimate = simulate_training(levers[lever].plan, after, machine, cost);
    }
    return result;
  }

 private:
  static constexpr std::string_view name = "plan_training";

  template <class Arrange, class Samples>
  using batch_of =
      typename decltype(std::remove_cvref_t<
                        std::invoke_result_t<Arrange const&, Samples const&>>::batches)::value_type;

  static void check_batches(std::string_view argument, std::size_t count) {
    if (count != 0) return;
    detail::throw_invalid(name, std::string(argument) + " gives no micro-batches");
  }

  /// Only the cuts are free.
  [[nodiscard]] static pipeline_plan<std::int64_t> plan_recomputed(
      std::vector<plan_layer<>> layers, pipeline_machine const& machine,
      plan_pipeline_options const& options) {
    constexpr auto full = static_cast<std::size_t>(recompute_choice::full);
    for (auto& layer : layers) layer.choices = {layer.choices[full]};
    auto result = plan_pipeline(layers, machine, options);
    std::ranges::fill(result.choices, static_cast<std::uint32_t>(full));
    return result;
  }
};

/// The three levers; see `plan_training_fn`.
inline constexpr plan_training_fn plan_training{};

}  // namespace omnibal::inline v0
