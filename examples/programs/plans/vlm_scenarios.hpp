// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What plan_vlm plans for: its assumptions, and others, one changed at a time.

#include "dataset.hpp"
#include "machine_file.hpp"
#include "measured_layers.hpp"
#include "model_file.hpp"
#include "vlm_assumptions.hpp"
#include "vlm_training.hpp"

#include <omnibal/plan/offload_links.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_training.hpp>
#include <omnibal/plan/simulate_training.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// How many tiles the samples have.
enum class tile_mix { as_given, at_most_one, halved, doubled, no_text_alone };

struct vlm_scenario {
  std::string name;
  vlm_assumptions assumed{};
  tile_mix tiles = tile_mix::as_given;
  /// Images and tokens of a group. Zero: chosen for the samples of a random micro-batch; else a
  /// random micro-batch has the mean number of samples of a group.
  omnibal::resources<2> capacity{};
  text_padding padding = text_padding::to_longest;
  /// The most clips of a sample, for models with an audio tower.
  omnibal::repeated_length clips{.count = 1, .length = 1500};
  /// Between neighboring stages; the default takes no time.
  std::int64_t link_bytes_per_second = std::numeric_limits<std::int64_t>::max();
  /// Of the link to the memory of the host in each direction; 0: nothing is offloaded.
  std::int64_t offload_bytes_per_second = 0;
  /// The neighboring stages whose devices share this link.
  std::size_t offload_stages = 1;

  /// The links of the stages, with times in nanoseconds.
  [[nodiscard]] omnibal::offload_links offload_links() const;
};

/// The assumptions on a machine.
[[nodiscard]] vlm_scenario scenario_on(std::string name, machine_description const& machine);

/// The assumptions of `base` alone, then each with one of them changed.
[[nodiscard]] std::vector<vlm_scenario> vlm_scenarios(vlm_scenario const& base = {"as assumed"});

using vlm_plan = omnibal::training_plan<vlm_batch>;

/// What the levers give for a model.
struct planned_scenario {
  vlm_assumptions assumed;
  vlm_samples samples;
  vlm_cost cost;
  omnibal::pipeline_machine machine;
  vlm_plan plan;
  /// The last lever with offloaded activations, if there is a link.
  std::optional<omnibal::offload_lever> offloaded;
  omnibal::offload_links links;

  /// GPU seconds for a sample, or zero where no plan fits the memory.
  [[nodiscard]] double gpu_seconds(std::size_t lever) const;
  /// For the samples of the assumptions.
  [[nodiscard]] double gpu_days(std::size_t lever) const;
  /// The samples of all steps that the estimate of a lever is for.
  [[nodiscard]] double samples_of_lever(std::size_t lever) const;

  /// What the steps of some data take with a plan.
  [[nodiscard]] omnibal::training_estimate simulate(
      omnibal::pipeline_plan<std::int64_t> const& plan, vlm_data const& data) const;
  /// The GPU days of that.
  [[nodiscard]] double gpu_days(omnibal::pipeline_plan<std::int64_t> const& plan,
                                vlm_data const& data) const;
  /// The layers for a plan of some data.
  [[nodiscard]] std::vector<omnibal::plan_layer<>> layers_for(vlm_data const& data) const;
  /// The best cuts and choices for some data among those allowed, by `recompute_choice`.
  [[nodiscard]] omnibal::pipeline_plan<std::int64_t> best_plan(
      vlm_data const& data, std::array<bool, 3> const& allowed) const;
};

/// The samples, the model and the machine of a scenario without a plan.
[[nodiscard]] planned_scenario unplanned(vlm_samples samples, vlm_scenario const& scenario,
                                         model_description const& model,
                                         layer_profile profile = {});

/// Plans a model, with layers corrected by what was measured of them. `profile` has the costs of
/// the model on the ranks and the device of the scenario.
[[nodiscard]] planned_scenario plan_scenario(dataset const& data, vlm_scenario const& scenario,
                                             model_description const& model, std::uint64_t seed,
                                             layer_profile profile = {});

}  // namespace examples
