// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The options for the clips of models with an audio tower.

#include "model_file.hpp"
#include "option_checks.hpp"

#include <omnibal/cost/layer_cost.hpp>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

/// Adds --clips, which `count_text` explains, and --clip-length.
inline void add_clip_options(CLI::App& group, omnibal::repeated_length& clips,
                             std::string const& count_text) {
  group.add_option("--clips", clips.count, count_text)
      ->type_name("COUNT")
      ->check(integer_between<std::int64_t>(0, 1 << 16))
      ->capture_default_str();
  group
      .add_option("--clip-length", clips.length,
                  "Set the tokens that the audio tower has of a clip. A second is 50 tokens in "
                  "Whisper, Qwen2.5-Omni and Voxtral, 12.5 in Qwen3-Omni")
      ->type_name("TOKENS")
      ->check(integer_between<std::int64_t>(1, 1 << 20))
      ->capture_default_str();
}

/// Errors: `std::runtime_error` if clips were typed and no model has an audio tower.
inline void check_clip_options(CLI::App const& app, std::vector<model_description> const& models) {
  bool const has_audio = std::ranges::any_of(
      models, [](model_description const& model) { return model.audio.has_value(); });
  for (char const* const option : {"--clips", "--clip-length"}) {
    if (app.count(option) == 0 || has_audio || app[option]->as<std::int64_t>() == 0) continue;
    throw std::runtime_error(std::string(option) + ": is " + app[option]->as<std::string>() +
                             ", but no model has an audio tower");
  }
}

/// `4 clips of 1500 tokens of the audio tower`.
inline std::string text_of(omnibal::repeated_length const& clips) {
  return std::to_string(clips.count) + (clips.count == 1 ? " clip of " : " clips of ") +
         std::to_string(clips.length) + " tokens of the audio tower";
}

}  // namespace examples
