// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Programs that print the tables and pictures of docs/evidence/study.md, one at a time.

#include <ostream>
#include <span>
#include <string_view>

namespace examples {

/// A table of Markdown, or a picture.
struct study_section {
  std::string_view name;
  void (*print)(std::ostream& out);
};

/// The main function of such a program: prints the section that its only argument names, to the
/// standard output, or the help. Returns the exit status, 1 with a message where there is no such
/// section.
[[nodiscard]] int print_section(std::string_view program, std::span<study_section const> sections,
                                int count, char const* const* words);

}  // namespace examples
