// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Lower bound on the number of groups for one floating-point resource.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace omnibal::inline v0::detail {

/// Returns the larger of two bounds for one floating-point resource: the volume, reduced by an
/// allowance for rounding, and the number of values above half of the capacity.
template <class Value>
[[nodiscard]] std::size_t rounded_volume_bound(std::size_t count, Value const& value,
                                               double capacity) {
  double const unit = std::numeric_limits<double>::epsilon();
  double const half = capacity / 2 * (1 + 4 * unit);
  double shares = 0.0;
  std::size_t large = 0;
  for (std::size_t i = 0; i != count; ++i) {
    shares += value(i) / capacity;
    if (value(i) > half) ++large;
  }
  double const allowance = 4 * unit * (static_cast<double>(count) + 4);
  double const volume = std::ceil(shares * (1 - std::min(1.0, allowance)));
  return std::max(large, static_cast<std::size_t>(volume));
}

}  // namespace omnibal::inline v0::detail
