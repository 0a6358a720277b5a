// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plans of plan_vlm, read back from their files, and what they give in a simulation.

#include "vlm_training.hpp"

#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/simulate_training.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace examples {

/// What `NAME.plan.json`, `NAME.recompute.csv` and `NAME.steps.jsonl` hold. The choices of the plan
/// are those of the recompute list.
struct exported_plan {
  vlm_cost cost;
  omnibal::pipeline_machine machine;
  omnibal::pipeline_plan<std::int64_t> plan;
  vlm_data data;
  /// What plan_vlm printed.
  omnibal::training_estimate printed;
};

/// Reads a plan with the files beside it that its `files` name. Errors: `input_error` that names
/// the file, the record or field, and the value, also for a recompute list that leaves out a layer
/// or has one twice, that says other stages than the plan or other choices, and for steps that run
/// a sample twice.
[[nodiscard]] exported_plan read_plan(std::filesystem::path const& path);

/// The steps of the plan on its machine.
[[nodiscard]] omnibal::training_estimate simulate_plan(exported_plan const& given);

/// The choices of all layers that a recompute list has. `boundaries` are those of the stages.
/// Errors: `input_error`, as `read_plan`.
[[nodiscard]] std::vector<std::uint32_t> read_recompute_list(
    std::filesystem::path const& path, std::vector<std::uint32_t> const& boundaries);

}  // namespace examples
