#pragma once

/// \file
/// The command line of pack_long_context.

#include "long_context_mix.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace examples {

struct long_context_options {
  std::vector<std::filesystem::path> inputs;
  std::string token_field = "token_num";
  length_mix mix = length_mix::two_sources;
  std::size_t synthetic_samples = 100'000;
  std::uint64_t seed = 1024;
  std::int64_t ranks = 32;
  /// The file of the picture; empty for none.
  std::filesystem::path svg;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<long_context_options> parse_long_context(int count,
                                                                     char const* const* words);

}  // namespace examples
