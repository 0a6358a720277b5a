// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of cut_vlm.

#include "model_file.hpp"
#include "vlm_cuts.hpp"
#include "vlm_layers.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

namespace examples {

struct cut_options {
  std::vector<model_description> models;
  std::size_t min_stages = 4;
  std::size_t max_stages = 16;
  training_setting training;
  pipeline_machine machine;
  /// Measured times and bytes of layers; empty for none.
  std::filesystem::path measured;
  /// The file of the picture; empty for none.
  std::filesystem::path svg;
  /// The directory of layouts; empty for none.
  std::filesystem::path output;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<cut_options> parse_cut_options(int count, char const* const* words);

}  // namespace examples
