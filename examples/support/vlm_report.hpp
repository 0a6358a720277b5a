#pragma once

/// \file
/// What a lever gives, in the cells of a table, beside the figures of OmniBal's paper.

#include "vlm_scenarios.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace examples {

/// The GPU days by lever of Yao et al., "OmniBal", ICML 2025, table of the ablation; zero where not
/// told.
[[nodiscard]] std::array<double, 4> published_days(std::string const& model);

/// `2.80x`, or a dash unless both are positive.
[[nodiscard]] std::string times_or_dash(double first, double value);

/// Whole GB, a space between them.
[[nodiscard]] std::string gigabytes(std::vector<std::int64_t> const& bytes);

/// The samples, the capacity and the devices of a plan: two lines.
[[nodiscard]] std::string heading_of(planned_scenario const& planned, std::string const& machine);

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

/// The cells of a lever behind its name, or the name and what it lacks.
[[nodiscard]] std::vector<std::string> lever_cells(std::string const& name,
                                                   planned_scenario const& planned,
                                                   std::size_t lever,
                                                   lever_reference const& reference);

}  // namespace examples
