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
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline/stage_lower_bounds.hpp>
#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Dynamic programming over the cuts with a lower bound for every stage. The stages of the best
/// cuts are solved and their bounds raised, repeatedly, as long as a shorter step is possible.
class joint_search {
 public:
  joint_search(std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
               plan_pipeline_options const& options)
      : function_(function),
        layers_(layers),
        rooms_(rooms),
        options_(options),
        table_(layers, rooms),
        solved_(rooms.memory.size()) {}

  void run() {
    start_from_least_memory();
    if (is_decided()) return;
    table_.set_limit(longest_stage());
    refine();
  }

  /// False if no plan fits the memory.
  [[nodiscard]] bool has_plan() const { return !boundaries_.empty(); }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return boundaries_; }
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] std::int64_t bound() const { return std::min(bound_, value_); }
  /// A stage of the best plan; valid until the next call.
  [[nodiscard]] recompute_result<std::int64_t> const& solved(stage_range const& range) {
    auto& known = solved_[range.stage];
    for (solved_stage const& one : known) {
      if (one.range.first == range.first && one.range.last == range.last) return one.result;
    }
    ++solved_count_;
    return known.emplace_back(solved_stage{range, solve(range)}).result;
  }

 private:
  struct solved_stage {
    stage_range range;
    recompute_result<std::int64_t> result;
  };

  /// True if no other plan is better by more than `max_gap`. Without a plan the result is true if
  /// no plan exists.
  [[nodiscard]] bool is_decided() const {
    auto const gap = static_cast<double>(value_ - std::min(bound_, value_));
    return gap <= (has_plan() ? options_.max_gap * static_cast<double>(value_) : 0.0);
  }

  [[nodiscard]] recompute_result<std::int64_t> solve(stage_range const& range) const {
    std::vector<std::span<whole_choice const>> stage;
    for (std::size_t l = range.first; l != range.last; ++l) stage.push_back(layers_.by_index(l));
    return select_recompute(stage, table_.room(range),
                            {.in_flight = rooms_.in_flight[range.stage],
                             .effort = options_.effort,
                             .states = options_.states,
                             .max_gap = options_.max_gap});
  }

  /// Balances the layers with the choices that keep the fewest bytes, and solves these stages.
  void start_from_least_memory() {
    std::vector<std::int64_t> before{0};
    std::vector<std::int64_t> times;
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      times.push_back(layers_[l].front().time);
      before.push_back(before.back() + times.back());
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return before[last] - before[first];
    };
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return table_.fits({stage, first, last});
    };
    auto const cuts = cut({cost, fits}, times);
    if (cuts.status == solve_status::solved) try_cuts(cuts.boundaries);
  }

  void refine() {
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != layers_.size(); ++l) least.push_back(layers_.min_time(l, l + 1));
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return table_({stage, first, last}) != no_time;
    };
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      std::int64_t const time = table_({stage, first, last});
      return time != no_time ? time : layers_.min_time(first, last);
    };
    for (std::size_t round = 0; round < max_rounds() || !has_plan(); ++round) {
      auto const cuts = cut({cost, fits}, least);
      bool const is_possible = cuts.status == solve_status::solved;
      bound_ = std::max(bound_, is_possible ? std::min(cuts.objective, value_) : value_);
      if (is_decided()) return;
      std::size_t const known = solved_count_;
      try_cuts(cuts.boundaries);
      // The solutions known for these stages do not let the bound rise.
      if (solved_count_ == known) return;
    }
  }

  [[nodiscard]] std::size_t max_rounds() const {
    constexpr std::size_t levels[]{4, 16, 64};
    return options_.rounds.value_or(levels[static_cast<std::size_t>(options_.effort)]);
  }

  /// The cuts with the shortest step for these times of stages; `least` is the time of each layer.
  [[nodiscard]] partition_result<std::int64_t> cut(stage_functions const& functions,
                                                   std::vector<std::int64_t> const& least) const {
    return stages_for(function_, layers_.size(), stages(), functions, options_.micro_batches, least,
                      options_.constraints);
  }

  /// Solves the stages between these boundaries and keeps them if they are the best so far.
  void try_cuts(std::vector<std::uint32_t> const& boundaries) {
    std::vector<std::int64_t> times;
    bool fits = true;
    for (std::size_t s = 0; s != stages(); ++s) {
      stage_range const range{s, boundaries[s], boundaries[s + 1]};
      if (range.first == range.last) {
        times.push_back(0);
        continue;
      }
      auto const& result = solved(range);
      raise(range, result);
      fits = fits && result.status == solve_status::solved;
      times.push_back(result.time);
    }
    if (!fits) return;
    std::int64_t const value = estimate_makespan(times, options_.micro_batches);
    if (has_plan() && value >= value_) return;
    value_ = value;
    boundaries_ = boundaries;
  }

  void raise(stage_range const& range, recompute_result<std::int64_t> const& result) {
    bool const fits = result.status == solve_status::solved;
    table_.raise(range, fits ? result.lower_bound : no_time);
  }

  /// The longest stage of a plan with a shorter step than the best one.
  [[nodiscard]] std::int64_t longest_stage() const {
    if (!has_plan()) return no_time - 1;
    std::int64_t const most = value_ - 1;
    if (options_.micro_batches == 1) return most;
    auto const others = static_cast<std::int64_t>(options_.micro_batches - 1);
    return (most - layers_.min_time(0, layers_.size())) / others;
  }

  [[nodiscard]] std::size_t stages() const { return rooms_.memory.size(); }

  std::string_view function_;
  integer_layers const& layers_;
  stage_budgets const& rooms_;
  plan_pipeline_options const& options_;
  stage_lower_bounds table_;
  /// The solved stages, for each stage.
  std::vector<std::vector<solved_stage>> solved_;
  std::size_t solved_count_ = 0;
  std::vector<std::uint32_t> boundaries_;
  std::int64_t value_ = no_time;
  std::int64_t bound_ = 0;
};

}  // namespace omnibal::inline v0::detail

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
  /// If plans are equal, the first one found is kept. Floating-point times are compared as whole
  /// numbers of 2^-59 of their sum times the micro-batches. Bound and proof hold up to one of these
  /// units for each layer and micro-batch and up to the rounding of sums. Integers are exact: the
  /// largest times may add up to 2^63 - 2, and the time of a step may be 2^63 - 1.
  ///
  /// Complexity: about 100 steps for each run of layers that can be a stage of a good plan and each
  /// stage that it can be; `partition_throughput` and `select_recompute` for each round. Memory: 8
  /// bytes for each of these runs and stage, 1600 for each layer. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if there are no stages or micro-batches, if lists
  /// have the wrong length, if a layer has no choices, if times are negative or not finite, if
  /// bytes are negative, if micro-batches in flight or states are below 1, and if constraints
  /// contradict each other or have bytes, capacity or devices; `std::overflow_error` if the largest
  /// times, the reserve and state bytes, the time of a step or the missing bytes exceed these
  /// limits; `std::length_error` if there are more than 2^32 - 1 layers or stages. Too little
  /// memory is no error: the status says so. Source: the objective is from Tarnawski, Narayanan,
  /// Phanishayee, "Piper: multidimensional planner for DNN parallelization", NeurIPS 2021; the
  /// bounds are from Fisher, "The Lagrangian relaxation method for solving integer programming
  /// problems", 1981.
  template <plannable_range Layers>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                plan_pipeline_options const& options) const {
    check_options(machine, options);
    check_layers(layers, machine.stages, options);
    detail::stage_budgets const rooms(name, machine, options);
    return with_integers(layers, rooms, options, [&](auto const& table, auto const& whole) {
      detail::joint_search joint(name, whole, rooms, options);
      joint.run();
      using time_type = time_of_layers<Layers>;
      return joint.has_plan() ? planned<time_type>(joint, table, whole, rooms, options)
                              : infeasible<time_type>(whole, rooms, options);
    });
  }

  /// Plans stages that have several chunks of the model each; include
  /// `omnibal/plan/stage_chunks.hpp` to call it. The time of a step is the result of
  /// `estimate_makespan` for the layout of the chunks. A stage keeps the most bytes of any moment:
  /// the sum over its chunks of the units in flight times the bytes of the layers. With one chunk
  /// the plan is the same as without `chunks`.
  ///
  /// A local search finds the cuts and solves the choices of the stages greedily;
  /// `select_recompute` improves them. The search tries all cuts if they are few. The lower bound
  /// is a bound of scheduling on equal machines, the Lagrangian dual of loads and memory, or the
  /// result of the search over all cuts. Plans of more than about 15 layers are seldom proven.
  ///
  /// Complexity: `options.effort` limits the moves, the nodes of the search over all cuts, and the
  /// simulated operations; each move solves the stages that it changes. Memory: the solved stages.
  /// Determinism: portable for integers. Errors: as above, and `std::invalid_argument` if the
  /// placement is bidirectional, if a placement other than looped has no units in flight, if units
  /// are negative or of another number of chunks, and if `options.in_flight` is set for several
  /// chunks or `chunks.in_flight` for one.
  template <plannable_range Layers>
  [[nodiscard]] auto operator()(Layers const& layers, pipeline_machine const& machine,
                                stage_chunks const& chunks,
                                plan_pipeline_options const& options) const;

  /// Plans cuts and choices from the costs of layers, with their times on `machine.device` in
  /// nanoseconds. The choices are the choices of `recompute_choice`.
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

  template <class Layers>
  static void check_layers(Layers const& layers, std::size_t virtual_stages,
                           plan_pipeline_options const& options) {
    detail::check_index_count(name, "layers", std::ranges::size(layers));
    detail::check_stages(name, std::ranges::size(layers), virtual_stages,
                         options.constraints.empty);
  }

  /// Calls `plan` with the choices of the layers and with the same choices in whole numbers.
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

/// Plans cuts and choices together; see `plan_pipeline_fn`.
inline constexpr plan_pipeline_fn plan_pipeline{};

}  // namespace omnibal::inline v0
