// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The plans of pack_long_context, read back from their files.

#include "long_context_options.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

/// Ranks that share samples.
struct exported_group {
  std::uint32_t first_rank = 0;
  std::uint32_t degree = 0;
  double seconds = 0;
  std::int64_t tokens = 0;
  /// Of the mean loss of its tokens.
  double weight = 0;
  std::vector<std::uint32_t> samples;
};

struct exported_step {
  /// Of plans with levels.
  std::optional<std::size_t> level;
  double seconds = 0;
  /// What every rank multiplies the losses of its tokens by before the mean over the ranks.
  double loss_normalizer = 0;
  std::vector<std::vector<exported_group>> micro_steps;
};

/// One of the files that `plan.json` names.
struct exported_steps {
  std::string name;
  std::vector<exported_step> steps;
};

struct exported_step_plan {
  std::uint32_t ranks = 0;
  loss_weights weights{};
  std::vector<exported_steps> plans;
};

/// Reads `plan.json` and the files beside it. Errors: `input_error` that names the file, the line,
/// the field and the value, also where ranks are in two groups of a micro-step, where a sample runs
/// twice, and where weights are not what `weights` says: those of a step add to 1, or to its tokens
/// over those of a mean step.
[[nodiscard]] exported_step_plan read_step_plan(std::filesystem::path const& path);

}  // namespace examples
