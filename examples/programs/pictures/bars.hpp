// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A diagram of bars: groups of them, with one of each kind in a group.

#include "chart.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace examples {

struct bar_kind {
  std::string label;
  std::string_view color;
};

/// The heights of a group, one of each kind; a gap where one is not finite.
struct bar_group {
  std::string label;
  std::vector<double> heights;
};

struct bars {
  std::string title;
  /// Of the heights; its largest value is chosen.
  std::string y_title;
  std::vector<bar_kind> kinds;
  std::vector<bar_group> groups;
  /// Behind the point of the numbers above the bars.
  int digits = 1;
  /// What stands where there is no bar.
  std::string gap = "-";
};

/// The diagram, with the height of each bar above it.
[[nodiscard]] chart bar_chart(bars const& content);

}  // namespace examples
