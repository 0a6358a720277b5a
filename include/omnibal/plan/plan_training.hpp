// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balance of data, model and memory together.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/plan/stage_chunks.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// The layers of a model for micro-batches of one shape, such as the groups of one level of length.
template <scalar_measure Time = std::int64_t>
struct shape_layers {
  /// The number of micro-batches of this shape, or any number in proportion to it.
  std::int64_t count = 1;
  std::vector<plan_layer<Time>> layers;
};

struct combine_shapes_fn {
  /// Combines layers for several shapes of micro-batches into the layers of one plan that runs all
  /// shapes. The times are the averages over the micro-batches; averages of integers are rounded
  /// up. The bytes are the largest of all shapes, so that no order of the micro-batches exceeds the
  /// memory.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable for integers. Errors:
  /// `std::invalid_argument` if there are no shapes, if counts are negative or all zero, or if the
  /// number of layers or of choices differs from the first shape. It is also thrown if times or
  /// bytes are negative or not finite. Further errors: `std::overflow_error` if the counts add up
  /// to more than 2^63 - 1.
  template <scalar_measure Time>
  [[nodiscard]] std::vector<plan_layer<Time>> operator()(
      std::vector<shape_layers<Time>> const& shapes) const {
    if (shapes.empty()) detail::throw_invalid(name, "there are no shapes");
    std::int64_t total = 0;
    for (std::size_t s = 0; s != shapes.size(); ++s) {
      detail::check_weight(name, "count", s, shapes[s].count);
      detail::checked_add(name, "the sum of the counts", total, shapes[s].count);
      check_size("shapes[" + detail::to_text(s) + "]", "layers", shapes[s].layers.size(),
                 shapes[0].layers.size());
    }
    if (total == 0) detail::throw_invalid(name, "all counts are 0");
    std::vector<plan_layer<Time>> result(shapes[0].layers.size());
    for (std::size_t l = 0; l != result.size(); ++l) combine(shapes, total, l, result[l]);
    return result;
  }

 private:
  static constexpr std::string_view name = "combine_shapes";

  static void check_size(std::string const& place, std::string_view what, std::size_t size,
                         std::size_t expected) {
    if (size == expected) return;
    detail::throw_invalid(name, place + " has " + detail::to_text(size) + " " + std::string(what) +
                                    ", the first has " + detail::to_text(expected));
  }

  template <scalar_measure Time>
  static void combine(std::vector<shape_layers<Time>> const& shapes, std::int64_t total,
                      std::size_t layer, plan_layer<Time>& result) {
    result.choices.resize(shapes[0].layers[layer].choices.size());
    for (auto const& shape : shapes) {
      auto const& given = shape.layers[layer];
      check_size("layer " + detail::to_text(layer), "choices", given.choices.size(),
                 result.choices.size());
      detail::check_weight(name, "state_bytes", layer, given.state_bytes);
      result.state_bytes = std::max(result.state_bytes, given.state_bytes);
    }
    for (std::size_t c = 0; c != result.choices.size(); ++c) {
      using sum_type = std::conditional_t<std::floating_point<Time>, Time, detail::int128>;
      sum_type sum{};
      auto& combined = result.choices[c];
      for (auto const& shape : shapes) {
        auto const& way = shape.layers[layer].choices[c];
        detail::check_weight(name, "time", layer, way.time);
        detail::check_weight(name, "bytes", layer, way.bytes);
        detail::check_weight(name, "transient_bytes", layer, way.transient_bytes);
        sum += static_cast<sum_type>(way.time) * static_cast<sum_type>(shape.count);
        combined.bytes = std::max(combined.bytes, way.bytes);
        combined.transient_bytes = std::max(combined.transient_bytes, way.transient_bytes);
      }
      if constexpr (std::floating_point<Time>) {
        combined.time = sum / static_cast<Time>(total);
      } else {
        combined.time = static_cast<Time>((sum + total - 1) / total);
      }
    }
  }
};

/// Combines layers for micro-batches of several shapes; see `combine_shapes_fn`.
inline constexpr combine_shapes_fn combine_shapes{};

/// The levers of `plan_training`; each lever includes the previous levers.
enum class training_lever {
  baseline,  ///< the first data, stages of equal parameters, everything recomputed
  data,      ///< the second data
  model,     ///< the cuts with the shortest step
  memory     ///< cuts and kept activations together
};

/// The plan of a lever and its simulated time. If no plan fits, `estimate` is empty.
struct lever_result {
  pipeline_plan<std::int64_t> plan;
  training_estimate estimate;

  [[nodiscard]] friend bool operator==(lever_result const&, lever_result const&) = default;
};

/// The result of `plan_training`: both orders of the data, and the plan of each lever.
template <class MicroBatch>
struct training_plan {
  training_data<MicroBatch> first_data;
  training_data<MicroBatch> balanced_data;
  /// The results of the levers, indexed by `training_lever`.
  std::array<lever_result, 4> levers;

  [[nodiscard]] lever_result const& operator[](training_lever lever) const {
    return levers[static_cast<std::size_t>(lever)];
  }
};

/// The result of `plan_training` with an additional part of the machine, such as `offload_links`:
/// the levers without the part, and one more lever with the part.
template <class MicroBatch, class Lever>
struct extended_training_plan : training_plan<MicroBatch> {
  Lever extended;
};

struct shape_costs_fn {
  /// Computes layers for a plan of many micro-batches: the average time and the largest memory of
  /// the micro-batches. `plan_pipeline` plans with these layers for all of them.
  ///
  /// Complexity: linear. Memory: a `plan_layer` for each layer and micro-batch. Determinism:
  /// portable. Errors: as `combine_shapes` and `device_model`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost>
  [[nodiscard]] std::vector<plan_layer<>> operator()(std::vector<MicroBatch> const& batches,
                                                     device_model const& device,
                                                     Cost const& cost) const {
    std::vector<shape_layers<>> shapes;
    shapes.reserve(batches.size());
    for (auto const& batch : batches) {
      shapes.push_back({1, timed_layers(std::invoke(cost, batch), device)});
    }
    return combine_shapes(shapes);
  }
};

/// Computes layers for a plan of many micro-batches; see `shape_costs_fn`.
inline constexpr shape_costs_fn shape_costs{};

struct plan_by_parameters_fn {
  /// Plans stages with nearly equal numbers of parameters and all activations recomputed, as
  /// trainers cut models by default. With several chunks on each stage, the virtual stages have
  /// nearly equal numbers of parameters. The plan has no times, and its memory is not checked.
  ///
  /// Complexity, memory, determinism and errors: as `partition_minimax`.
  template <layer_cost_range Costs>
  [[nodiscard]] pipeline_plan<std::int64_t> operator()(Costs const& costs, std::size_t stages,
                                                       stage_chunks const& chunks = {}) const {
    pipeline_plan<std::int64_t> result;
    result.chunks = chunks.count;
    result.placement = chunks.placement;
    result.boundaries =
        partition_minimax(costs, stages * chunks.count, &layer_cost::parameters).boundaries;
    result.choices.assign(std::ranges::size(costs),
                          static_cast<std::uint32_t>(recompute_choice::full));
    return result;
  }
};

/// Plans stages by parameters; see `plan_by_parameters_fn`.
inline constexpr plan_by_parameters_fn plan_by_parameters{};

struct plan_training_fn {
  /// Applies the levers of OmniBal in order, each with the simulated time of all steps. The first
  /// lever is data, because only micro-batches of bounded size allow a plan to fill the memory. The
  /// next lever is the cuts, with all activations recomputed. The last lever is cuts and kept
  /// activations together.
  ///
  /// `first(samples)` and `balanced(samples)` return the `training_data` without and with balance,
  /// `cost(micro_batch)` returns the costs of all layers. `options.micro_batches` should be the
  /// number of micro-batches of a step on a rank. The schedule is 1F1B. The parts are also
  /// available separately: `plan_by_parameters`, `shape_costs`, `plan_pipeline`,
  /// `simulate_training`.
  ///
  /// The plans of `model` and `memory` never exceed the memory of the machine for any micro-batch
  /// of the balanced data. If no plan fits, the status of the plan is not `solved`, and the plan is
  /// not simulated.
  ///
  /// Complexity and memory: as the parts. Determinism: portable if the functors are, except for
  /// `waiting_share`. Errors: `std::invalid_argument` if data has no micro-batches; the errors of
  /// the parts. Source: Yao et al., "OmniBal", ICML 2025.
  template <class Samples, class First, class Balanced, class Cost>
  [[nodiscard]] auto operator()(Samples const& samples, pipeline_machine const& machine,
                                First const& first, Balanced const& balanced, Cost const& cost,
                                plan_pipeline_options const& options) const {
    auto const plan = [&](auto const& layers) { return plan_pipeline(layers, machine, options); };
    return apply(samples, machine, first, balanced, cost, stage_chunks{}, plan, one_f_one_b{});
  }

  /// Applies the levers to stages that have several looped chunks of the model. The schedule is
  /// `interleaved_1f1b`.
  ///
  /// Errors: as above, and `std::invalid_argument` if chunks are not looped.
  template <class Samples, class First, class Balanced, class Cost>
  [[nodiscard]] auto operator()(Samples const& samples, pipeline_machine const& machine,
                                stage_chunks const& chunks, First const& first,
                                Balanced const& balanced, Cost const& cost,
                                plan_pipeline_options const& options) const {
    if (chunks.placement != chunk_placement::looped) {
      detail::throw_invalid(name,
                            "chunks.placement is not looped: call the parts with a schedule of "
                            "your own");
    }
    auto const plan = [&](auto const& layers) {
      return plan_pipeline(layers, machine, chunks, options);
    };
    if (chunks.count == 1) {
      return apply(samples, machine, first, balanced, cost, chunks, plan, one_f_one_b{});
    }
    return apply(samples, machine, first, balanced, cost, chunks, plan,
                 interleaved_1f1b{.chunks = chunks.count});
  }

  /// Applies the same levers, and one more lever with an additional part of the machine. With
  /// `offload_links` this lever chooses cuts and kept, recomputed and offloaded activations
  /// together.
  ///
  /// Complexity, memory, determinism and errors: as the call without the part and as the member
  /// `train` of the part.
  template <class Samples, class Part, class First, class Balanced, class Cost>
  [[nodiscard]] auto operator()(Samples const& samples, pipeline_machine const& machine,
                                Part const& part, First const& first, Balanced const& balanced,
                                Cost const& cost, plan_pipeline_options const& options) const {
    auto levers = (*this)(samples, machine, first, balanced, cost, options);
    auto extended = part.train(levers.balanced_data, machine, cost, options);
    return extended_training_plan<batch_of<First, Samples>, decltype(extended)>{
        std::move(levers), std::move(extended)};
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

  template <class Samples, class First, class Balanced, class Cost, class Plan, class Schedule>
  [[nodiscard]] static auto apply(Samples const& samples, pipeline_machine const& machine,
                                  First const& first, Balanced const& balanced, Cost const& cost,
                                  stage_chunks const& chunks, Plan const& plan,
                                  Schedule const& schedule) {
    training_plan<batch_of<First, Samples>> result{
        std::invoke(first, samples), std::invoke(balanced, samples), {}};
    auto const& before = result.first_data;
    auto const& after = result.balanced_data;
    check_batches("first", before.batches.size());
    check_batches("balanced", after.batches.size());
    auto& levers = result.levers;
    auto const simulated = [&](lever_result const& lever, auto const& data) {
      return simulate_training(lever.plan, data, machine, cost, schedule);
    };
    levers[0].plan =
        plan_by_parameters(std::invoke(cost, before.batches[0]), machine.stages, chunks);
    levers[0].estimate = simulated(levers[0], before);
    levers[1].plan = levers[0].plan;
    levers[1].estimate = simulated(levers[1], after);

    auto const layers = shape_costs(after.batches, machine.device, cost);
    levers[2].plan = plan_recomputed(layers, plan);
    levers[3].plan = plan(layers);
    for (std::size_t lever : {std::size_t{2}, std::size_t{3}}) {
      if (levers[lever].plan.status != solve_status::solved) continue;
      levers[lever].estimate = simulated(levers[lever], after);
    }
    return result;
  }

  /// Plans the cuts for layers whose activations are all recomputed.
  template <class Plan>
  [[nodiscard]] static pipeline_plan<std::int64_t> plan_recomputed(std::vector<plan_layer<>> layers,
                                                                   Plan const& plan) {
    constexpr auto full = static_cast<std::size_t>(recompute_choice::full);
    for (auto& layer : layers) layer.choices = {layer.choices[full]};
    pipeline_plan<std::int64_t> result = plan(layers);
    std::fill(result.choices.begin(), result.choices.end(), static_cast<std::uint32_t>(full));
    return result;
  }
};

/// Applies the three levers; see `plan_training_fn`.
inline constexpr plan_training_fn plan_training{};

}  // namespace omnibal::inline v0
