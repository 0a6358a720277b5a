// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stages with the shortest step of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/function_ref.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/solve_stages.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

/// The functors for the cost and for the possible stages of a chain, with their types erased.
struct stage_functions {
  function_ref<std::int64_t(std::size_t, std::size_t, std::size_t)> cost;
  function_ref<bool(std::size_t, std::size_t, std::size_t)> fits;
};

/// Returns the allowed boundaries of a chain under these constraints. Other functions call it;
/// `function` is the name that begins error messages.
[[nodiscard]] inline chain_rules rules_for(std::string_view function, std::size_t layers,
                                           std::size_t stages,
                                           partition_constraints const& constraints) {
  return rule_book(function, layers, stages, constraints).rules();
}

/// Returns the stages of `partition_throughput`, or of `partition_layers` if `micro_batches` is
/// zero. Other functions call it; `function` is the name that begins error messages. The caller
/// checks the memory in `functions.fits`, and the result does not state why no stages exist.
[[nodiscard]] inline partition_result<std::int64_t> stages_for(
    std::string_view function, std::size_t layers, std::size_t stages,
    stage_functions const& functions, std::size_t micro_batches, std::span<std::int64_t const> base,
    partition_constraints const& constraints) {
  chain_rules const rules = rules_for(function, layers, stages, constraints);
  stage_bound<std::int64_t> const bound(function, layers, stages, base, {});
  stage_memory const memory(function, layers, stages, constraints);
  stage_costs const chain(function, rules, bound, memory, functions.cost, functions.fits);
  step_time<std::int64_t> time;
  if (micro_batches != 0) time = {micro_batches - 1, 1};
  partition_result<std::int64_t> result;
  if (find_stages(chain, time, result) == infinite_cost<std::int64_t>) {
    result.status = solve_status::infeasible;
  }
  return result;
}

}  // namespace detail

struct partition_throughput_fn {
  /// Partitions a chain into stages with the shortest step of a pipeline. The time of a step is
  /// (micro-batches - 1) times the largest cost of a stage plus the sum of all costs. Among several
  /// such partitions the result has the smallest bottleneck, and among these the leftmost cuts, as
  /// in `partition_layers`. All other rules are the rules of `partition_layers`. `objective` is the
  /// time of the step. Floating-point costs are added from the last stage to the first.
  ///
  /// If `options.constraints.devices` is less than `stages`, devices run several stages each by the
  /// interleaved 1F1B schedule. The member `objective` is then an estimate from the load of the
  /// busiest device. It is micro-batches times this load, plus (sum - load) / (stages of a device)
  /// to fill the pipeline, rounded up. No step is shorter than micro-batches times this load. The
  /// schedule requires a multiple of the devices; the search rounds other numbers of micro-batches
  /// up, and `objective` uses the given number. A local search selects the stages with the shortest
  /// simulated step; the backward pass is two thirds of each cost. The search starts, among others,
  /// from equal counts of layers if memory and rules allow them, with the longer stages spread,
  /// first or last. The member `lower_bound` holds for `objective` and all cuts, and `proven` is
  /// false if the stages with the shortest step do not have the smallest objective.
  ///
  /// The search first finds the smallest bottleneck. Then it finds the smallest sum under limits on
  /// the bottleneck, from higher to lower ones, as long as a smaller sum can still shorten the
  /// step.
  ///
  /// Complexity: as `partition_layers`, plus a pass over the same windows for each bottleneck that
  /// is tried. A pass examines every end of a stage that the lower bound leaves. Determinism:
  /// portable for integers. Errors: as `partition_layers`, and `std::invalid_argument` for no
  /// micro-batches or more than 2^32 - 1. Further errors: `std::overflow_error` if the sum of the
  /// stages or the time of a step exceeds its type, or if the sum is the largest value of its type.
  template <layer_chain Layers, stage_cost Cost, stage_predicate Fits = fits_always>
  [[nodiscard]] auto operator()(
      Layers const& layers, std::size_t stages, Cost const& cost, Fits const& fits = {},
      partition_throughput_options<detail::stage_weight_of<Cost>> const& options = {}) const {
    std::size_t const count = options.micro_batches;
    if (count == 0 || count > max_index_count) {
      detail::throw_invalid(name, "options.micro_batches is " + detail::to_text(count) +
                                      ", must be positive and below 2^32");
    }
    detail::step_time<detail::stage_weight_of<Cost>> const time{count - 1, 1};
    return detail::solve_stages(name, detail::count_layers(name, layers), stages, cost, fits,
                                options, time);
  }

 private:
  static constexpr std::string_view name = "partition_throughput";
};

/// Partitions a chain into the stages with the shortest step; see `partition_throughput_fn`.
inline constexpr partition_throughput_fn partition_throughput{};

}  // namespace omnibal::inline v0
