// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of describe_model.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

struct describe_options {
  /// Names and files of models.
  std::vector<std::string> models;
  /// Whose rules read public configurations; empty: those of `model_type`.
  std::string family;
  /// The tokens of the document for FLOPs and kept bytes.
  std::int64_t length = 4096;
  /// One row for each model in place of its layers.
  bool is_table = false;
  /// The file of published totals for the table; empty: those of the models themselves.
  std::filesystem::path published;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<describe_options> parse_describe_options(int count,
                                                                     char const* const* words);

}  // namespace examples
