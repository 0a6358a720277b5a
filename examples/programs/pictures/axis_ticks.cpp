// SPDX-License-Identifier: Apache-2.0
#include "axis_ticks.hpp"

#include "table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace examples {

namespace {

struct prefix {
  double factor;
  std::string_view letter;
};

/// What stands behind numbers that would be long with all their zeros.
constexpr prefix prefixes[]{{1e18, " E"}, {1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}};

/// The digits behind the point that tell multiples of `step` apart.
int digits_of(double step) {
  return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
}

}  // namespace

double nice_step(double length, int max_parts, number_kind kind) {
  double const least = std::max(length / max_parts, kind == number_kind::whole ? 1.0 : 1e-9);
  double const power = std::pow(10.0, std::floor(std::log10(least) + 1e-9));
  for (double const factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<double> multiples(double least, double most, double step) {
  double const slack = 1e-9 * (most - least) / step;
  auto const first = static_cast<std::int64_t>(std::ceil(least / step - slack));
  auto const last = static_cast<std::int64_t>(std::floor(most / step + slack));
  std::vector<double> result;
  for (std::int64_t i = first; i <= last; ++i) result.push_back(static_cast<double>(i) * step);
  return result;
}

std::string tick_text(double value, double step) {
  for (prefix const& one : prefixes) {
    if (std::abs(value) < one.factor) continue;
    double const scaled_step = step / one.factor;
    return fixed(value / one.factor, digits_of(scaled_step)) + std::string(one.letter);
  }
  int const digits = digits_of(step);
  if (digits > 0 || value < 0) return fixed(value, digits);
  return counted(static_cast<std::uint64_t>(std::llround(value)));
}

}  // namespace examples
