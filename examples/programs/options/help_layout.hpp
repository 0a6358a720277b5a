// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The layout of what `--help` prints. For the sources that parse a command line.

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace examples {

/// Prints usage, description, options and footer in at most 80 columns. Texts of options need no
/// line breaks; defaults, alternatives and other options that an option needs or excludes are added.
class help_layout : public CLI::FormatterBase {
 public:
  std::string make_help(CLI::App const* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

/// Words with commas between them.
[[nodiscard]] std::string joined(std::vector<std::string> const& words);

/// The footer of a help text. `command` shows how the program is called, on one line.
[[nodiscard]] std::string example_and_status(std::string const& command, std::string const& status);

}  // namespace examples
