#pragma once

/// \file
/// Where to cut a model and which activations to keep, decided together.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/pipeline_machine.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline/integer_layers.hpp>
#include <omnibal/plan/plan_pipeline/joint_search.hpp>
#include <omnibal/plan/plan_pipeline/stage_lower_bounds.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

struct plan_pipeline_fn {
  /// Cuts and choices, one for each layer, with the shortest step: (micro-batches - 1) times the
  /// largest time of a stage plus the sum of the times. The memory of a stage holds its reserve,
  /// the state of its layers, what they keep for each micro-batch in flight and the largest
  /// transient bytes of a layer; it is never exceeded. A stage without layers fits any memory. For
  /// micro-batches of several shapes see `combine_shapes`.
  ///
  /// Layers that keep less run longer, and the first stages of 1F1B keep more micro-batches: to
  /// balance first and choose then is up to a fifth slower. So the least time of every run of
  /// layers that can be a stage is bounded from below for the memory of every stage, by what the
  /// layers cost at several prices of a byte, and the best cuts for these bounds are found exactly.
  /// The stages between them are solved by `select_recompute` and their bounds raised, until the
  /// bound proves the best plan or `options.rounds` are over. The gap is seldom above a tenth of a
  /// percent then, and zero for most models.
  ///
  /// Of equal plans the first one found is kept. Floating-point times are compared as whole numbers
  /// of 2^-59 of their sum times the micro-batches: bound and proof hold up to one of these for
  /// each layer and micro-batch and to the rounding of sums. Integers are exact: the largest times
  /// may add up to 2^63 - 2, and a step may take 2^63 - 1.
  ///
  /// Complexity: about 100 steps for each run of layers that can be a stage of a good plan and each
  /// stage that it can be; `partition_throughput` and `select_recompute` for each round. Memory: 8
  /// bytes for each of these runs and stage, 1600 for each layer. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` for no stages or micro-batches, lists of the wrong
  /// length, layers without choices, times that are negative or not finite, bytes that are
  /// negative, micro-batches in flight or states below 1, constraints that contradict each other or
  /// have bytes, capacity or devices; `std::overflow_error` where the largest times, reserve and
  /// state bytes, the time of a step or the missing bytes exceed that; `std::length_error` above
  /// 2^32 - 1 layers or stages. Too little memory is no error: the status says so. Source: the
  /// objective after Tarnawski, Narayanan, Phanishayee, "Piper: multidimensional planner for DNN
  /// parallelization", NeurIPS 2021; the bounds after Fisher, "The Lagrangian relaxation method for
  /// solving integer programming problems", 1981.
  template <plannable_range Layers>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                plan_pipeline_options const& options) const {
    using time_type = detail::time_of<
        decltype(std::declval<std::ranges::range_value_t<Layers const> const&>().choices)>;
    check_options(machine, options);
    detail::check_index_count(name, "layers", std::ranges::size(layers));
    detail::check_stages(name, std::ranges::size(layers), machine.stages,
                         options.constraints.empty);
    detail::stage_budgets const rooms(name, machine, options);
    detail::choice_table<time_type> table(name);
    std::vector<std::int64_t> state_bytes;
    for (auto const& layer : layers) {
      table.push_layer(layer.choices);
      state_bytes.push_back(detail::to_working<std::int64_t>(
          {name, "state_bytes", state_bytes.size()}, layer.state_bytes));
      detail::check_weight(name, "state_bytes", state_bytes.size() - 1, state_bytes.back());
    }
    detail::integer_layers const whole(name, table, state_bytes, options.micro_batches);
    if (whole.most_time() == detail::no_time) {
      detail::throw_overflow(name, "the sum of the largest times");
    }
    for (std::int64_t fixed : rooms.reserve) {
      detail::checked_add(name, "the sum of reserve and state bytes", fixed,
                          whole.state_bytes(0, whole.size()));
    }
    detail::joint_search joint(name, whole, rooms, options);
    joint.run();
    return joint.has_plan() ? planned(joint, table, whole, rooms, options)
                            : infeasible<time_type>(whole, rooms, options);
  }

  /// The same for the costs of layers, with the nanoseconds of `machine.device`. The choices are
  /// those of `recompute_choice`.
  template <layer_cost_range Costs>
  [[nodiscard]] pipeline_plan<std::int64_t> operator()(Costs const& costs,
                                                       pipeline_machine const& machine,
                                                       plan_pipeline_options const& options) const {
    return (*this)(timed_layers(costs, machine.device), machine, options);
  }

 private:
  static constexpr std::string_view name = "plan_pipeline";

  static void check_options(pipeline_machine const& machine, plan_pipeline_options const& options) {
    detail::check_number(name, "machine.stages", machine.stages);
    auto const check = [](std::string_view argument, std::size_t value) {
      if (value != 0 && value <= max_index_count) return;
      detail::throw_invalid(name, std::string(argument) + " is " + detail::to_text(value) +
                                      ", must be positive and below 2^32");
    };
    check("options.micro_batches", options.micro_batches);
    check("options.states", options.states.value_or(1));
    if (!(options.max_gap >= 0 && options.max_gap < 1)) {
      detail::throw_invalid(name, "options.max_gap is " + detail::to_text(options.max_gap) +
                                      ", must be from 0 to below 1");
    }
    auto const& given = options.constraints;
    if (given.bytes.empty() && given.capacity.empty() && given.devices == 0) return;
    detail::throw_invalid(
        name,
        "options.constraints must have no bytes, capacity or devices: the memory is that "
        "of the machine");
  }

  template <class Time>
  [[nodiscard]] static pipeline_plan<Time> planned(detail::joint_search& joint,
                                                   detail::choice_table<Time> const& table,
                                                   detail::integer_layers const& whole,
                                                   detail::stage_budgets const& rooms,
                                                   plan_pipeline_options const& options) {
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

/// Cuts and choices together; see `plan_pipeline_fn`.
inline constexpr plan_pipeline_fn plan_pipeline{};

}  // namespace omnibal::inline v0
