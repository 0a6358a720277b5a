// SPDX-License-Identifier: Apache-2.0
#include "step_curves.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace examples {

namespace {

/// The number of the bin that a value is in.
std::ptrdiff_t bin_of(double value, double anchor, double width) {
  return static_cast<std::ptrdiff_t>(std::ceil((value - anchor) / width));
}

}  // namespace

whole_bins bins_up_to(double most, double anchor) {
  constexpr int max_bins = 64;
  double const width = nice_step(most, max_bins, number_kind::whole);
  return {anchor, width, bin_of(0, anchor, width), bin_of(most, anchor, width)};
}

step_curve histogram(std::span<double const> whole_values, whole_bins const& bins) {
  step_curve result;
  result.edges.push_back(bins.begin());
  for (std::ptrdiff_t k = bins.first; k <= bins.last; ++k) {
    result.edges.push_back(bins.anchor + static_cast<double>(k) * bins.width + 0.5);
  }
  result.heights.assign(result.edges.size() - 1, 0.0);
  for (double const value : whole_values) {
    std::ptrdiff_t const k = bin_of(value, bins.anchor, bins.width);
    if (k <= bins.last) result.heights[static_cast<std::size_t>(k - bins.first)] += 1;
  }
  if (whole_values.empty()) return result;
  for (double& height : result.heights) height *= 100 / static_cast<double>(whole_values.size());
  return result;
}

summary summarized(std::span<double const> values) {
  constexpr std::size_t max_steps = 100;
  std::size_t const steps = std::min(values.size(), max_steps);
  summary result;
  if (steps == 0) return result;
  result.means.edges.push_back(0);
  for (std::size_t s = 0; s != steps; ++s) {
    std::size_t const first = s * values.size() / steps;
    std::size_t const last = (s + 1) * values.size() / steps;
    std::vector<double> part(values.begin() + static_cast<std::ptrdiff_t>(first),
                             values.begin() + static_cast<std::ptrdiff_t>(last));
    result.means.edges.push_back(static_cast<double>(last));
    result.means.heights.push_back(std::accumulate(part.begin(), part.end(), 0.0) /
                                   static_cast<double>(part.size()));
    if (steps == values.size()) continue;
    std::ranges::sort(part);
    std::size_t const tenth = part.size() / 10;
    result.lows.push_back(part[tenth]);
    result.highs.push_back(part[part.size() - 1 - tenth]);
  }
  return result;
}

}  // namespace examples
