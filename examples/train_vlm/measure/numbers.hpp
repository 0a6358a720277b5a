// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// How measured numbers are written down.

#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace train_vlm {

[[nodiscard]] inline std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

[[nodiscard]] inline std::string mean_and_spread(std::vector<double> const& values) {
  auto const count = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (double const value : values) mean += value / count;
  for (double const value : values) squares += (value - mean) * (value - mean);
  double const spread = std::sqrt(squares / std::max(1.0, count - 1));
  return examples::fixed(mean, 4) + " ± " + examples::fixed(spread, 4);
}

}  // namespace train_vlm
