// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Many values as a curve of few steps: how often they occur, in falling order, in their order.

#include "chart.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace examples {

/// Intervals of whole numbers, open below and closed above, so that `anchor` is the last number of
/// one: what reaches it is on one side of an edge and what exceeds it on the other.
struct whole_bins {
  double anchor;
  double width;
  /// Bin k ends at anchor + k * width.
  std::ptrdiff_t first;
  std::ptrdiff_t last;

  /// Where the drawn bins begin and end: half-way between the whole numbers.
  [[nodiscard]] double begin() const { return -0.5; }
  [[nodiscard]] double end() const { return anchor + static_cast<double>(last) * width + 0.5; }
};

/// Bins from zero to `most`, about fifty.
[[nodiscard]] whole_bins bins_up_to(double most, double anchor);

/// The share of the values in each bin, in percent of all of them. Those above the bins are left
/// out.
[[nodiscard]] step_curve histogram(std::span<double const> whole_values, whole_bins const& bins);

/// Many values as at most 100 steps over their numbers, the first value from zero to one.
struct summary {
  /// The mean of the values of each step.
  step_curve means;
  /// Between these lie eight in ten of them, or more; both empty where each step is one value.
  std::vector<double> lows;
  std::vector<double> highs;
};

[[nodiscard]] summary summarized(std::span<double const> values);

}  // namespace examples
