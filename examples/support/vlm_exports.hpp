#pragma once

/// \file
/// The plans of plan_vlm as files, and as a layout for Megatron-LM.

#include "vlm_scenarios.hpp"

#include <omnibal/plan/pipeline_plan.hpp>

#include <filesystem>
#include <string>

namespace examples {

/// Stages of the language model in Megatron-LM's letters.
struct megatron_export {
  /// The argument of --pipeline-model-parallel-layout; empty where there is none.
  std::string layout;
  /// What the layout is for, or why there is none. A sentence.
  std::string remark;
};

/// Megatron-LM's layout has letters for a language model: embedding, layers, loss. It can say where
/// a plan cuts if no stage has layers of both the tower and the language model; the stages of the
/// tower are then those before. Where the best plan has such a stage, the best one without is taken
/// instead, and the remark says what it costs.
[[nodiscard]] megatron_export export_to_megatron(planned_scenario const& planned);

/// Writes trace, picture, recompute lists, layout and plan of the last lever into a directory, all
/// of them or none. Errors: `std::runtime_error`.
void write_plan_files(std::string const& name, planned_scenario const& planned,
                      megatron_export const& megatron, std::filesystem::path const& directory);

}  // namespace examples
