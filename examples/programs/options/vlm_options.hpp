// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command lines of plan_vlm and plan_as_published.

#include "dataset.hpp"
#include "length_options.hpp"
#include "measured_layers.hpp"
#include "model_file.hpp"
#include "published_plan.hpp"
#include "vlm_scenarios.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

struct vlm_options {
  length_options lengths;
  std::size_t synthetic_samples = 32'768;
  std::uint64_t seed = 1024;
  std::vector<model_description> models;
  std::string machine_name;
  /// What is planned for.
  vlm_scenario scenario{};
  /// Measured times of layers, and the micro-batch they are of; empty for none.
  std::filesystem::path measured;
  omnibal::micro_batch_work measured_batch{};
  /// Empty for no files.
  std::filesystem::path output;
  bool wants_sensitivity = false;
  /// A plan to simulate again instead of all else; empty for none.
  std::filesystem::path replayed;
};

/// The samples of the files, or synthetic ones.
[[nodiscard]] dataset lengths_of(vlm_options const& given);

/// These samples for a model: without a vision tower they are text, with the tokens of their
/// images.
[[nodiscard]] dataset lengths_for(dataset data, model_description const& model);

/// What the measured layers correct of a model; nothing where none were measured.
[[nodiscard]] layer_profile profile_of(vlm_options const& given, model_description const& model,
                                       vlm_scenario const& scenario);

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error`.
[[nodiscard]] std::optional<vlm_options> parse_vlm(int count, char const* const* words);

struct published_options {
  vlm_options common;
  published_method method;
  /// A command of the shell that measures cuts; empty: they are simulated.
  std::string command;
};

/// The same for plan_as_published.
[[nodiscard]] std::optional<published_options> parse_published(int count, char const* const* words);

}  // namespace examples
