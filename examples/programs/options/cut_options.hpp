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
  /// Without the clips, of which every model has its own number.
  training_setting training;
  /// The clips of a micro-batch of a model with an audio tower.
  omnibal::repeated_length clips;
  bool has_given_clips = false;
  pipeline_machine machine;
  /// Measured times and bytes of layers; empty for none.
  std::filesystem::path measured;
  /// The file of the picture; empty for none.
  std::filesystem::path svg;
  /// The directory of layouts; empty for none.
  std::filesystem::path output;
};

/// The clips of a micro-batch of a model: none without an audio tower. If they are a default, as many
/// as the documents have room for, at least one.
[[nodiscard]] omnibal::repeated_length clips_of(model_description const& model,
                                                cut_options const& options);

/// The tiles of a micro-batch of a model, at most as many as the documents have room for beside the
/// clips.
[[nodiscard]] std::int64_t tiles_of(model_description const& model, cut_options const& options);

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<cut_options> parse_cut_options(int count, char const* const* words);

}  // namespace examples
