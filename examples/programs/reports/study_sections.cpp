// SPDX-License-Identifier: Apache-2.0
#include "study_sections.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace examples {

namespace {

study_section const& find(std::span<study_section const> sections, int count,
                          char const* const* words, study_page const& page) {
  std::string names;
  for (study_section const& one : sections) {
    if (count == 2 && one.name == words[1]) return one;
    names.append(names.empty() ? "" : ", ").append(one.name);
  }
  throw std::runtime_error("takes the name of a section of " + std::string(page.name) + ": " +
                           names);
}

void explain(std::string_view program, std::span<study_section const> sections,
             study_page const& page) {
  std::cout << "Usage: " << program << " SECTION\n\n"
            << "Prints tables or a picture of " << page.name << ", a page that\n"
            << "scripts/study.sh writes.\n\nSections:\n";
  for (study_section const& one : sections) std::cout << "  " << one.name << '\n';
  if (!page.notes.empty()) std::cout << '\n' << page.notes << '\n';
  std::cout << "\nExample:\n  " << program << ' ' << sections.front().name
            << "\n\nExit status: 0 if the section is complete; otherwise 1.\n";
}

}  // namespace

int print_section(std::string_view program, std::span<study_section const> sections, int count,
                  char const* const* words, study_page const& page) {
  try {
    bool const asks = count == 2 && (std::string_view(words[1]) == "--help" ||
                                     std::string_view(words[1]) == "-h");
    if (asks) {
      explain(program, sections, page);
    } else {
      find(sections, count, words, page).print(std::cout);
    }
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write to the standard output");
    return 0;
  } catch (std::exception const& error) {
    std::cerr << program << ": error: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace examples
