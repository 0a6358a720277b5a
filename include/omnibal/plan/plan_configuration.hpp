// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fastest configuration of a training step: degrees, micro-batch, schedule, recomputation,
/// offload and sharding.

#include <omnibal/check.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/plan_configuration/batch_choices.hpp>
#include <omnibal/plan/plan_configuration/configuration_search.hpp>
#include <omnibal/plan/plan_configuration/configuration_space.hpp>

#include <string_view>

namespace omnibal::inline v0 {

struct plan_configuration_fn {
  /// Returns the configuration of a training step with the fewest seconds that `predict_step`
  /// predicts, among all configurations that fit into the memory. A configuration has degrees of
  /// tensor, pipeline, context, expert and data parallelism, micro-batch, 1F1B or interleaved
  /// chunks, cuts, recomputation and sharding of the state. With `offload_bytes_per_second`, it
  /// also has a share of the kept activations that each device offloads to its host. The result
  /// also has the next best configurations with other degrees. For each other value of a choice it
  /// has the best configuration and the reason why that configuration is slower.
  ///
  /// If the data have `lengths`, the data set is packed for each capacity (`best_fit_decreasing`).
  /// Each micro-batch is padded to its capacity in tokens and has the largest number of tiles of
  /// all micro-batches. The memory is computed for the largest micro-batch, the time for a mean
  /// micro-batch. Ranks have equal numbers of micro-batches.
  ///
  /// The search is exact within this space. It is a branch and bound: a branch fixes all choices
  /// except chunks and cuts. The bound of a branch is the work of the mean stage; a branch whose
  /// mean stage exceeds the memory is skipped. The bound of a configuration is the time of its
  /// slowest stage, plus the passes of other stages before the first and after the last micro-batch
  /// of this stage. Only configurations whose bound is below the best step of their families are
  /// simulated.
  ///
  /// Preconditions: `pieces` return no negative times, and equal times for equal arguments.
  /// Complexity: the units of a branch are timed once, and a configuration within the memory costs
  /// a few steps for each layer and each virtual stage; a simulation costs a call of
  /// `predict_step`. A model of 100 layers on 1,024 devices has 200 to 500 thousand configurations,
  /// of which 100 to 300 are simulated. Memory: 200 bytes for each branch, and the queue.
  /// Determinism: portable if the compiler does not contract operations. Errors:
  /// `std::invalid_argument` that names an option or a number of the data, for options that allow
  /// no configuration, and for layers that have no time; the errors of the layers. Source: Land,
  /// Doig, "An automatic method of solving discrete programming problems", 1960; Narayanan et al.,
  /// 2021 (arXiv 2104.04473), for the space.
  template <layered_model Model, class Pieces = step_pieces<>>
  [[nodiscard]] configuration_plan operator()(Model const& model, machine const& on,
                                              step_data const& data,
                                              plan_configuration_options const& options,
                                              Pieces const& pieces = {}) const {
    detail::configuration_space<Model, Pieces> const space(name, model, on, data, options, pieces);
    auto const batches = detail::batch_chooser(name, data, options)(model);
    auto const branches = space.branches(batches.choices);
    configuration_plan const plan =
        detail::configuration_search(space, options, batches.choices, branches).run(batches.flops);
    if (plan.configurations != 0) return plan;
    detail::throw_invalid(name, "options allow no configuration of ", options.devices,
                          " devices for this model and ", data.sequences, " sequences");
  }

 private:
  static constexpr std::string_view name = "plan_configuration";
};

/// Returns the fastest configuration of a training step; see `plan_configuration_fn`.
inline constexpr plan_configuration_fn plan_configuration{};

}  // namespace omnibal::inline v0
