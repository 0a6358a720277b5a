// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sets of lists in an order of their own. The order of `std::vector` is wrong for unsigned numbers
/// on a processor that stores the high byte first (libstdc++ before 13.3, PR 113960), and then a set
/// loses elements.

#include <algorithm>
#include <set>
#include <vector>

namespace test {

/// Compares numbers by `<`, and lists of them element by element.
struct list_order {
  template <class T>
  [[nodiscard]] bool operator()(T const& left, T const& right) const {
    if constexpr (requires { left.begin(); }) {
      return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(),
                                          list_order{});
    } else {
      return left < right;
    }
  }
};

/// A set of lists of numbers, or of sets of them.
template <class List>
using list_set = std::set<List, list_order>;

}  // namespace test
