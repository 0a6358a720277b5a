// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Links of the devices of a pipeline, and plans that keep, recompute or offload activations.

#include <omnibal/check.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/detail/joint_search.hpp>
#include <omnibal/plan/detail/min_memory.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/offload_links/offload_stages.hpp>
#include <omnibal/plan/offload_plan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/simulate_offload.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// A plan with links and its simulated time. If no plan fits, there is no estimate.
struct offload_lever {
  offload_plan plan;
  training_estimate estimate;

  [[nodiscard]] friend bool operator==(offload_lever const&, offload_lever const&) = default;
};

/// The links between the devices of a pipeline and the memory to which they offload, an argument of
/// `plan_pipeline`: `plan_pipeline(layers, machine, offload_links{.bytes_per_time = 25}, options)`.
struct offload_links {
  /// The bytes that a link transfers in one unit of time in each direction, both directions at
  /// once: one number for all links, or a list by link. Zero means no link.
  weight_list<double> bytes_per_time{0.0};
  /// The neighboring stages whose devices share a link: stage s uses link s / stages_per_link.
  std::size_t stages_per_link = 1;
  /// The share of each stage in the rate of its link, relative to the shares of the other stages of
  /// the link. If the list is empty, the shares are equal.
  weight_list<double> shares{};

  /// Returns the link of each stage, with its share of the rate.
  ///
  /// Complexity: linear in the number of stages. Memory: the result. Determinism: portable. Errors:
  /// `std::invalid_argument` if stages_per_link is 0, if lists have the wrong length, and for
  /// numbers that are negative or not finite.
  [[nodiscard]] std::vector<offload_link> of_stages(std::size_t stages) const {
    detail::check_at_least_one(name, "links.stages_per_link", stages_per_link);
    std::size_t const count = (stages - 1) / stages_per_link + 1;
    auto const rates = bytes_per_time.values();
    auto const parts = shares.values();
    check_list("links.bytes_per_time", rates, count, "links");
    if (!parts.empty()) check_list("links.shares", parts, stages, "stages");
    std::vector<offload_link> result(stages);
    for (std::size_t link = 0; link != count; ++link) {
      std::size_t const first = link * stages_per_link;
      std::size_t const last = std::min(stages, first + stages_per_link);
      auto const share = [&](std::size_t s) {
        return parts.empty() ? 1.0 : parts[parts.size() == 1 ? 0 : s];
      };
      double sum = 0;
      for (std::size_t s = first; s != last; ++s) sum += share(s);
      double const rate = rates[rates.size() == 1 ? 0 : link];
      for (std::size_t s = first; s != last && sum > 0; ++s) {
        result[s].bytes_per_time = rate * (share(s) / sum);
      }
    }
    return result;
  }

  /// Plans cuts and the choice for each module with the shortest step: the call of `plan_pipeline`
  /// with links. The time of a step is (micro-batches - 1) times the largest time of a stage plus
  /// the sum of the times. The time of a stage is the times of its layers and the recomputation
  /// times of its recomputed modules. The memory of a stage holds its reserve, the state of its
  /// layers, and the peak that `measure_activations` computes for its layers, its link and its
  /// micro-batches in flight. The sum is never above the memory. A stage without layers fits any
  /// memory.
  ///
  /// The search is the search of `plan_pipeline`. The lower bound of the time of a stage considers
  /// only two limits. The first is its memory for all micro-batches at the end of the forward pass.
  /// The second is the bytes that the link transfers in all its passes. `select_activations` solves
  /// the stages between the cuts, and the search raises their bounds. If stages share a link, the
  /// result is the best one for the given shares.
  ///
  /// Complexity: about 100 steps for each pair of a stage and consecutive layers that the stage can
  /// have in a good plan; each round calls `partition_throughput` and `select_activations`. Memory:
  /// 8 bytes for each of these pairs, 1600 bytes for each layer and module. Determinism: as
  /// `select_activations`. Errors: as `plan_pipeline`, `of_stages` and `select_activations`. If the
  /// memory is too small, the function does not throw; the status is infeasible. A stage has one
  /// chunk.
  [[nodiscard]] offload_plan plan(std::span<offload_layer const> layers,
                                  pipeline_machine const& machine,
                                  plan_pipeline_options const& options) const {
    detail::check_plan_options(name, machine, options);
    detail::check_index_count(name, "layers", layers.size());
    detail::check_stages(name, layers.size(), machine.stages, options.constraints.empty);
    detail::stage_budgets const rooms(name, machine, options);
    auto const links = of_stages(machine.stages);
    detail::offload_stages const stages(name, layers, rooms, links, options);
    if (stages.parts().max_time() == detail::no_time) {
      detail::throw_overflow(name, "the sum of the largest times");
    }
    for (std::int64_t fixed : rooms.reserve) {
      detail::checked_add(name, "the sum of reserve and state bytes", fixed,
                          stages.state_bytes(0, layers.size()));
    }
    detail::joint_search joint(name, stages, options);
    joint.run();
    return joint.has_plan() ? planned(joint, stages, rooms, options)
                            : infeasible(stages, options.constraints);
  }

  /// Plans the layers of all micro-batches with links and simulates the plan. This is the last
  /// lever of `plan_training` with links. The modules are the modules of `offload_layers`, and the
  /// plan never exceeds the memory for any micro-batch of the data.
  ///
  /// Complexity, memory and determinism: as `plan` and `simulate_offload`. Errors: as
  /// `offload_shape_costs`, `plan` and `simulate_offload`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost>
  [[nodiscard]] offload_lever train(training_data<MicroBatch> const& data,
                                    pipeline_machine const& machine, Cost const& cost,
                                    plan_pipeline_options const& options) const {
    offload_lever result;
    result.plan = plan(offload_shape_costs(data.batches, machine.device, cost), machine, options);
    if (result.plan.status != solve_status::solved) return result;
    result.estimate = simulate_offload(result.plan, data, machine, of_stages(machine.stages), cost);
    return result;
  }

 private:
  static constexpr std::string_view name = "plan_pipeline";

  static void check_list(std::string_view argument, std::span<double const> values,
                         std::size_t count, std::string_view what) {
    if (values.size() != 1 && values.size() != count) {
      detail::throw_invalid(name, argument, " has ", values.size(), " values, must have 1 or ",
                            count, ", the number of ", what);
    }
    for (std::size_t i = 0; i != values.size(); ++i) {
      detail::check_weight(name, argument, i, values[i]);
    }
  }

  [[nodiscard]] static offload_plan planned(detail::joint_search<detail::offload_stages>& joint,
                                            detail::offload_stages const& stages,
                                            detail::stage_budgets const& rooms,
                                            plan_pipeline_options const& options) {
    offload_plan result;
    result.boundaries = joint.boundaries();
    for (std::size_t s = 0; s + 1 < result.boundaries.size(); ++s) {
      detail::stage_range const range{s, result.boundaries[s], result.boundaries[s + 1]};
      auto& stage = result.stages.emplace_back();
      stage.in_flight = rooms.in_flight[s];
      stage.bytes = rooms.reserve[s] + stages.state_bytes(range.first, range.last);
      if (range.first == range.last) continue;
      auto const& solved = joint.solved(range);
      stage.time = solved.time;
      stage.bytes += solved.activations.peak_bytes;
      stage.offloaded_bytes = solved.activations.offloaded_bytes;
      auto const& choices = solved.activations.choices;
      result.choices.insert(result.choices.end(), choices.begin(), choices.end());
    }
    result.step_time =
        estimate_makespan(result.stages, options.micro_batches, &offload_stage::time);
    result.lower_bound = joint.bound();
    result.proven = joint.bound() == joint.value();
    return result;
  }

  [[nodiscard]] static offload_plan infeasible(detail::offload_stages const& stages,
                                               partition_constraints const& constraints) {
    auto const shortfall = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return stages.shortfall({stage, first, last});
    };
    auto const missing = detail::find_least_shortfall(name, stages.layers_size(), stages.size(),
                                                      shortfall, constraints);
    offload_plan result;
    result.status = solve_status::infeasible;
    result.proven = true;
    result.stage = missing.stage;
    result.missing_bytes = missing.missing_bytes;
    return result;
  }
};

}  // namespace omnibal::inline v0
