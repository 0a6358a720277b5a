// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cuts of a model and activations to keep, decided together.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/joint_search.hpp>
#include <omnibal/plan/detail/min_memory.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline/recompute_stages.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct stage_chunks;

struct plan_pipeline_fn {
  /// Plans cuts and choices, one for each layer, with the shortest step. The time of a step is
  /// (micro-batches - 1) times the largest time of a stage plus the sum of the times. The memory of
  /// a stage holds four parts: its reserve, the state of its layers, the bytes that the layers keep
  /// for each micro-batch in flight, and the largest transient bytes of a layer. The sum is never
  /// above the memory. A stage without layers fits any memory. For micro-batches of several shapes
  /// see `combine_shapes`.
  ///
  /// The search decides cuts and choices together, because layers that keep fewer bytes run longer,
  /// and the first stages of 1F1B keep more micro-batches. It bounds from below the least time of
  /// every run of layers that can be a stage, for the memory of every stage. The bound is the cost
  /// of the layers at several prices of a byte. The best cuts for these bounds are found exactly.
  /// `select_recompute` solves the stages between the cuts, and the search raises their bounds. The
  /// search ends when the bound proves the best plan or after `options.rounds` rounds.
  ///
  /// If plans are equal, the first one found is kept. Floating-point times are rounded to whole
  /// numbers of a unit: 2^-59 of their sum times the micro-batches. The bound and the proof are
  /// exact except for one unit for each layer and micro-batch and for the rounding of sums.
  /// Integers are exact: the largest times may add up to 2^63 - 2, and the time of a step may be
  /// 2^63 - 1.
  ///
  /// Complexity: about 100 steps for each pair of a stage and consecutive layers that the stage can
  /// have in a good plan; each round calls `partition_throughput` and `select_recompute`. Memory: 8
  /// bytes for each of these pairs, 1600 bytes for each layer. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` if there are no stages or micro-batches, if lists have the
  /// wrong length, if a layer has no choices, and if micro-batches in flight or states are below 1.
  /// It is also thrown if times are negative or not finite, if bytes are negative, and if
  /// constraints contradict each other or have bytes, capacity or devices. Further errors:
  /// `std::overflow_error` if the largest times, the reserve and state bytes, the time of a step or
  /// the missing bytes exceed these limits; `std::length_error` above 2^32 - 1 layers or stages. If
  /// the memory is too small, the function does not throw; the status is infeasible. Source: the
  /// objective is from Tarnawski, Narayanan, Phanishayee, "Piper: multidimensional planner for DNN
  /// parallelization", NeurIPS 2021; the bounds are from Fisher, "The Lagrangian relaxation method
  /// for solving integer programming problems", 1981.
  template <plannable_range Layers>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                plan_pipeline_options const& options) const {
    detail::check_plan_options(name, machine, options);
    check_layers(layers, machine.stages, options);
    detail::stage_budgets const rooms(name, machine, options);
    return with_integers(layers, rooms, options, [&](auto const& table, auto const& whole) {
      detail::recompute_stages const stages(whole, rooms, options);
      detail::joint_search joint(name, stages, options);
      joint.run();
      using time_type = time_of_layers<Layers>;
      return joint.has_plan() ? planned<time_type>(joint, table, whole, rooms, options)
                              : infeasible<time_type>(whole, rooms, options);
    });
  }

  /// Plans stages that have several chunks of the model each; include
  /// `omnibal/plan/stage_chunks.hpp` to call it. The time of a step is the result of
  /// `estimate_makespan` for the layout of the chunks. The bytes of a stage are the largest of any
  /// moment: the sum over its chunks of the units in flight times the bytes of the layers. With one
  /// chunk the plan is the same as without `chunks`.
  ///
  /// A local search finds the cuts and solves the choices of the stages greedily;
  /// `select_recompute` improves them. The search tries all cuts if they are few. The lower bound
  /// is a bound of scheduling on equal machines, the Lagrangian dual of loads and memory, or the
  /// result of the search over all cuts. Plans of more than about 15 layers are seldom proven.
  ///
  /// Complexity: `options.effort` limits the moves, the nodes of the search over all cuts, and the
  /// simulated operations; each move solves the stages that it changes. Memory: the solved stages.
  /// Determinism: portable for integers. Errors: as above, and `std::invalid_argument` if the
  /// placement is bidirectional, or if a placement other than looped has no units in flight. It is
  /// also thrown if units are negative or belong to another number of chunks, and if
  /// `options.in_flight` is set for several chunks or `chunks.in_flight` for one.
  template <plannable_range Layers>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                stage_chunks const& chunks,
                                plan_pipeline_options const& options) const;

  /// Plans layers by the rules of an additional part of the machine, such as `offload_links`; see
  /// the member `plan` of the part.
  template <class Layers, pipeline_part<Layers> Part>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                Part const& part, plan_pipeline_options const& options) const {
    return part.plan(layers, machine, options);
  }

  /// Rejects chunks together with an additional part of the machine. With chunks, bytes can stay on
  /// the device for a link while passes of other chunks run, and no plan limits these bytes. Plan
  /// with one of the two arguments.
  template <class Layers, pipeline_part<Layers> Part>
  void operator()(Layers const& layers, pipeline_machine const& machine, stage_chunks const& chunks,
                  Part const& part, plan_pipeline_options const& options) const = delete;

  /// Plans cuts and choices from the costs of layers. The times are nanoseconds on
  /// `machine.device`. The choices are the choices of `recompute_choice`.
  template <layer_cost_range Costs>
  [[nodiscard]] pipeline_plan<std::int64_t> operator()(Costs const& costs,
                                                       pipeline_machine const& machine,
                                                       plan_pipeline_options const& options) const {
    return (*this)(timed_layers(costs, machine.device), machine, options);
  }
  template <layer_cost_range Costs>
  [[nodiscard]] pipeline_plan<std::int64_t> operator()(Costs const& costs,
                                                       pipeline_machine const& machine,
                                                       stage_chunks const& chunks,
                                                       plan_pipeline_options const& options) const {
    return (*this)(timed_layers(costs, machine.device), machine, chunks, options);
  }

 private:
  static constexpr std::string_view name = "plan_pipeline";

  template <class Layers>
  using time_of_layers = detail::time_of<
      decltype(std::declval<std::ranges::range_value_t<Layers const> const&>().choices)>;

  template <class Layers>
  static void check_layers(Layers const& layers, std::size_t virtual_stages,
                           plan_pipeline_options const& options) {
    detail::check_index_count(name, "layers", std::ranges::size(layers));
    detail::check_stages(name, std::ranges::size(layers), virtual_stages,
                         options.constraints.empty);
  }

  /// Calls `plan` with the choices of the layers and with the same choices as whole numbers.
  template <class Layers, class Plan>
  [[nodiscard]] static auto with_integers(Layers const& layers, detail::stage_budgets const& rooms,
                                          plan_pipeline_options const& options, Plan const& plan) {
    detail::choice_table<time_of_layers<Layers>> table(name);
    std::vector<std::int64_t> state_bytes;
    for (auto const& layer : layers) {
      table.push_layer(layer.choices);
      state_bytes.push_back(detail::to_working<std::int64_t>(
          {name, "state_bytes", state_bytes.size()}, layer.state_bytes));
      detail::check_weight(name, "state_bytes", state_bytes.size() - 1, state_bytes.back());
    }
    detail::integer_layers const whole(name, table, state_bytes, options.micro_batches);
    if (whole.max_time() == detail::no_time) {
      detail::throw_overflow(name, "the sum of the largest times");
    }
    for (std::int64_t fixed : rooms.reserve) {
      detail::checked_add(name, "the sum of reserve and state bytes", fixed,
                          whole.state_bytes(0, whole.size()));
    }
    return plan(table, whole);
  }

  template <class Time>
  [[nodiscard]] static pipeline_plan<Time> planned(
      detail::joint_search<detail::recompute_stages>& joint,
      detail::choice_table<Time> const& table, detail::integer_layers const& whole,
      detail::stage_budgets const& rooms, plan_pipeline_options const& options) {
    pipeline_plan<Time> result;
    result.boundaries = joint.boundaries();
    for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
      detail::stage_range const range{s, result.boundaries[s], result.boundaries[s + 1]};
      auto& stage = result.stages.emplace_back();
      stage.in_flight = rooms.in_flight[s];
      stage.bytes = rooms.reserve[s] + whole.state_bytes(range.first, range.last);
      if (range.first == range.last) continue;
      auto const& solved = joint.solved(range);
      stage.bytes += solved.bytes;
      for (std::size_t i = 0; i != solved.choices.size(); ++i) {
        auto const& way = whole.by_index(range.first + i)[solved.choices[i]];
        result.choices.push_back(way.index);
        stage.time += table.choice(range.first + i, way.index).time;
      }
    }
    result.step_time =
        estimate_makespan(result.stages, options.micro_batches, &planned_stage<Time>::time);
    result.proven = joint.bound() == joint.value();
    auto const gap = whole.original(table, joint.value() - joint.bound());
    result.lower_bound = std::max(Time{}, result.step_time - gap);
    return result;
  }

  template <class Time>
  [[nodiscard]] static pipeline_plan<Time> infeasible(detail::integer_layers const& whole,
                                                      detail::stage_budgets const& rooms,
                                                      plan_pipeline_options const& options) {
    auto const missing = detail::find_missing_memory(name, whole, rooms, options.constraints);
    pipeline_plan<Time> result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.stage = missing.stage;
    result.missing_bytes = missing.missing_bytes;
    return result;
  }
};

/// Plans cuts and choices together; see `plan_pipeline_fn`.
inline constexpr plan_pipeline_fn plan_pipeline{};

}  // namespace omnibal::inline v0
