#pragma once

/// \file
/// The command line of plan_vlm.

#include "length_options.hpp"
#include "model_file.hpp"
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
  omnibal::workload measured_batch{};
  /// Empty for no files.
  std::filesystem::path output;
  bool wants_sensitivity = false;
  /// A plan to simulate again instead of all else; empty for none.
  std::filesystem::path replayed;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error`.
[[nodiscard]] std::optional<vlm_options> parse_vlm(int count, char const* const* words);

}  // namespace examples
