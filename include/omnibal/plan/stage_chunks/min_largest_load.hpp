// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A lower bound of the largest load of stages.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns a lower bound of the largest load of `stages` stages with these layers. The bound is a
/// pigeonhole argument: one stage has at least k + 1 of any stages * k + 1 layers.
[[nodiscard]] inline std::int64_t min_largest_load(std::vector<std::int64_t> times,
                                                   std::size_t stages) {
  std::sort(times.begin(), times.end(), std::greater<>());
  std::vector<int128> before{0};
  for (std::int64_t const time : times) before.push_back(before.back() + time);
  auto const count = static_cast<int128>(stages);
  int128 least = ceiled_quotient(before.back(), count);
  for (std::size_t k = 1; k * stages < times.size(); ++k) {
    std::size_t const last = k * stages + 1;
    least = std::max(least, before[last] - before[last - k - 1]);
  }
  return static_cast<std::int64_t>(least);
}

}  // namespace omnibal::inline v0::detail
