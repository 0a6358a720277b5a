// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Command lines of programs that take a number or length files and nothing else.

#include "dataset.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace examples {

/// What `--help` says of a program.
struct program_words {
  std::string name;
  std::string description;
  /// A command.
  std::string example;
  /// The sentences behind "Exit status:".
  std::string exit_status;
};

/// Samples without a file: how many where the command line does not say, and at least.
struct sample_numbers {
  std::size_t usual = 1;
  std::size_t least = 1;
  std::string description = "Generate a synthetic data set of this number of samples";
};

/// The number that a program may be given, or nothing where it was asked for help, which has been
/// printed then. Errors: `std::runtime_error` that names the value.
[[nodiscard]] std::optional<std::size_t> parse_number(program_words const& program,
                                                      sample_numbers const& samples, int count,
                                                      char const* const* words);

/// The samples of length files, or synthetic ones of a seed. Errors: as `parse_number`, and those
/// of `read_lengths`.
[[nodiscard]] std::optional<dataset> parse_samples(program_words const& program,
                                                   sample_numbers const& samples,
                                                   std::uint64_t seed, int count,
                                                   char const* const* words);

}  // namespace examples
