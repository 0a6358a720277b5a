// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plans of plan_vlm as files, as a layout for Megatron-LM, and in the cells of a table, beside
/// the figures of OmniBal's paper.

#include "dataset.hpp"
#include "pipeline_layout.hpp"
#include "staged_files.hpp"
#include "vlm_scenarios.hpp"

#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/offload_plan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_training.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Megatron-LM's layout has letters for a language model: embedding, layers, multi-token
/// prediction, losses. It can say where a plan cuts if there is no `megatron_obstacle`; the stages
/// of the tower are then those before. If the best plan has one, the best plan without is taken
/// instead, and the remark says what it costs.
[[nodiscard]] megatron_export export_to_megatron(planned_scenario const& planned);

/// What stands in a plan file as its `format`.
inline constexpr std::string_view vlm_plan_format = "omnibal pipeline plan";

/// By `omnibal::norm_regions` and `omnibal::sharded_state`.
inline constexpr std::array<std::string_view, 2> norm_region_names{"replicated", "split"};
inline constexpr std::array<std::string_view, 4> sharded_state_names{"nothing", "optimizer",
                                                                     "gradients", "parameters"};

/// A line for each layer: its stage, kind and choice, the bytes of a micro-batch that it keeps and
/// saves, and the nanoseconds that it takes for that. `layers` are those of `shape_costs`. Errors:
/// `std::invalid_argument` unless the plan has a choice and a stage for every layer, and there are
/// layers.
void write_recompute_list(omnibal::pipeline_plan<std::int64_t> const& plan,
                          std::span<omnibal::plan_layer<> const> layers,
                          std::span<std::string_view const> kinds, std::ostream& out);

/// By `omnibal::cost_module`.
inline constexpr std::array<std::string_view, 3> cost_module_names{"input", "selective", "rest"};

/// The first step of the first rank, as it runs under the plan of a lever.
[[nodiscard]] omnibal::simulation<std::int64_t> first_step(planned_scenario const& planned,
                                                           omnibal::training_lever lever);

/// What a model was planned for.
struct vlm_inputs {
  dataset const& data;
  std::uint64_t seed;
};

/// Writes trace, picture, recompute list, steps, layouts and plan of the last lever for a
/// directory, where they appear when the files are committed; docs/reference/files.md describes
/// them. Errors: `std::runtime_error`, also where no plan fits the memory.
void write_plan_files(staged_files& files, std::string const& name, planned_scenario const& planned,
                      megatron_export const& megatron, vlm_inputs const& inputs,
                      std::filesystem::path const& directory);

/// The GPU days by lever of Yao et al., "OmniBal", ICML 2025, table of the ablation; zero where not
/// told.
[[nodiscard]] std::array<double, 4> published_days(std::string const& model);

/// `2.80x`, or a dash unless both are positive.
[[nodiscard]] std::string times_or_dash(double first, double value);

/// Whole GB, a space between them.
[[nodiscard]] std::string gigabytes(std::vector<std::int64_t> const& bytes);

/// The samples, the capacity and the devices of a plan, and that times are estimates: three lines.
[[nodiscard]] std::string heading_of(planned_scenario const& planned, std::string const& machine);

/// A line for a model with an audio tower: the clips of its samples; else nothing.
[[nodiscard]] std::string clips_text(planned_scenario const& planned);

/// A line if the samples are planned as text although they have images; else nothing.
[[nodiscard]] std::string remark_on(dataset const& given, dataset const& planned);

/// What the rows of a table are compared with.
struct lever_reference {
  /// Without padding and recomputation.
  double flops_per_sample = 0;
  /// Of the first row.
  double gpu_seconds = 0;
  std::array<double, 4> paper_days{};
};

/// The first lever of the plan of a model, and the work of its packed samples, without heads that
/// were added.
[[nodiscard]] lever_reference reference_of(planned_scenario const& planned,
                                           model_description const& model);

/// Seconds of a step, share of the peak, waiting, GPU seconds for a sample, GPU days, speed-up,
/// that of the paper, GB of each stage.
inline constexpr std::array<char const*, 8> lever_columns{
    "s/step", "MFU", "waiting", "GPU s/sample", "GPU days", "speed-up", "paper", "GB per stage"};

/// The cells of the lever with offloading, in the same columns. Precondition: it was planned.
[[nodiscard]] std::vector<std::string> offload_cells(std::string const& name,
                                                     planned_scenario const& planned,
                                                     lever_reference const& reference);

/// Lines on the plan with offloading: the links, the cuts, the modules that are kept, recomputed
/// and offloaded, and the flags of Megatron-LM. Precondition: it was planned.
[[nodiscard]] std::string offload_text(planned_scenario const& planned);

/// A line for each layer: its stage, its kind, and the bytes and the choice of each module.
void write_offload_list(omnibal::offload_plan const& plan,
                        std::span<omnibal::offload_layer const> layers,
                        std::span<std::string_view const> kinds, std::ostream& out);

/// The cells of a lever behind its name, or the name and what it lacks.
[[nodiscard]] std::vector<std::string> lever_cells(std::string const& name,
                                                   planned_scenario const& planned,
                                                   std::size_t lever,
                                                   lever_reference const& reference);

}  // namespace examples
