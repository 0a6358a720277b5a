// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Programs that print the tables and pictures of a page in docs/evidence, one at a time.

#include <ostream>
#include <span>
#include <string_view>

namespace examples {

/// A table of Markdown, or a picture.
struct study_section {
  std::string_view name;
  void (*print)(std::ostream& out);
};

/// The page that shows the sections.
struct study_page {
  std::string_view name = "docs/evidence/study.md";
  /// Lines of the help behind the list of the sections; none if empty.
  std::string_view notes{};
};

/// The main function of such a program: prints the section that its only argument names, to the
/// standard output, or the help. Returns the exit status, 1 with a message where there is no such
/// section.
[[nodiscard]] int print_section(std::string_view program, std::span<study_section const> sections,
                                int count, char const* const* words, study_page const& page = {});

}  // namespace examples
