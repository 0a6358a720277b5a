// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The command line of pack_prefixes.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace examples {

struct prefix_options {
  /// JSON lines of token ids.
  std::filesystem::path file;
  /// The maximum number of tokens of a group.
  std::uint64_t capacity = 32768;
  /// The divisor of the number of groups.
  std::uint64_t multiple = 1;
  /// The tokens that a group less is worth; nothing: the capacity.
  std::optional<std::uint64_t> group_price;
  /// Print the sequences of each group.
  bool prints_groups = false;
  std::uint64_t seed = 0;
};

/// The options of a command line, or nothing where it asked for help, which has been printed then.
/// Errors: `std::runtime_error` that names the option and the value.
[[nodiscard]] std::optional<prefix_options> parse_prefix_options(int count,
                                                                 char const* const* words);

}  // namespace examples
