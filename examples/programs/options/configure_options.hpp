// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of configure.

#include "cluster.hpp"
#include "length_options.hpp"
#include "model_file.hpp"

#include <omnibal/plan/configuration_plan.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace examples {

/// The trainers for which a configuration can be written.
enum class trainer { none, megatron, bridge, torchtitan, deepspeed };

struct configure_options {
  model_description model;
  cluster machine;
  length_options lengths;
  /// Sequences, or samples of the files, of a step; the tokens of a sequence.
  std::int64_t batch = 1024;
  std::int64_t tokens = 4096;
  /// What is searched, with devices and memory.
  omnibal::plan_configuration_options space{.devices = 64};
  /// The billions of tokens for which GPU days are printed.
  std::int64_t billion_tokens = 1000;
  trainer flags_for = trainer::none;
  /// The file for a picture of the best step; empty for no picture.
  std::string svg;
  /// The configuration to compare with, as a space of one; its data-parallel ranks follow.
  std::optional<omnibal::plan_configuration_options> compared{};
  /// The heads of the vision tower before they were padded; 0 if they are as the model has them.
  std::int64_t padded_heads = 0;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<configure_options> parse_configure_options(int count,
                                                                       char const* const* words);

}  // namespace examples
