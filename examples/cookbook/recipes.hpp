// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the programs of docs/cookbook share: they run their recipes one after the other, and the
/// page shows the body of each with what it prints.

#include <omnibal/grouping.hpp>

#include <initializer_list>
#include <iostream>

namespace cookbook {

struct recipe {
  char const* name;
  void (*run)();
};

/// Prints a line with its name before each recipe, by which the check of the page finds its output.
inline void run(std::initializer_list<recipe> recipes) {
  for (recipe const& given : recipes) {
    std::cout << "== " << given.name << '\n';
    given.run();
  }
}

/// {3} {0 2 1} {7}
inline void print(omnibal::grouping const& groups) {
  for (std::size_t g = 0; g != groups.size(); ++g) {
    std::cout << (g == 0 ? "{" : " {");
    char const* gap = "";
    for (auto const index : groups[g]) {
      std::cout << gap << index;
      gap = " ";
    }
    std::cout << '}';
  }
  std::cout << '\n';
}

}  // namespace cookbook
