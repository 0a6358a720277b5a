// SPDX-License-Identifier: Apache-2.0
#pragma once

// The best choices by a table of all numbers of bytes.

#include "every_plan.hpp"

#include <omnibal/recompute/recompute_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace test {

inline constexpr std::int64_t no_choices = std::numeric_limits<std::int64_t>::max() / 4;

/// The least time of choices that keep at most `kept_bytes` and have at most `max_transient`.
inline std::int64_t min_time_within(layers_type const& layers, std::int64_t kept_bytes,
                                    std::int64_t max_transient) {
  auto const size = static_cast<std::size_t>(kept_bytes) + 1;
  std::vector<std::int64_t> least(size, 0);
  for (auto const& layer : layers) {
    std::vector<std::int64_t> next(size, no_choices);
    for (auto const& way : layer) {
      if (way.transient_bytes > max_transient) continue;
      auto const bytes = static_cast<std::size_t>(way.bytes);
      for (std::size_t b = bytes; b < size; ++b) {
        next[b] = std::min(next[b], least[b - bytes] + way.time);
      }
    }
    least.swap(next);
  }
  return least.back();
}

/// The least time within a budget, or `no_choices`; meant for a few thousand bytes.
inline std::int64_t min_time_by_bytes(layers_type const& layers, std::int64_t budget,
                                      omnibal::select_recompute_options const& options) {
  std::int64_t max_bytes = 0;
  std::vector<std::int64_t> limits;
  for (auto const& layer : layers) {
    std::int64_t most = 0;
    for (auto const& way : layer) {
      limits.push_back(way.transient_bytes);
      most = std::max(most, way.bytes);
    }
    max_bytes += most;
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::int64_t best = no_choices;
  for (std::int64_t const limit : limits) {
    std::int64_t const left = budget - options.reserve_bytes - limit;
    if (left < 0) continue;
    std::int64_t const kept = std::min(left / options.in_flight, max_bytes);
    best = std::min(best, min_time_within(layers, kept, limit));
  }
  return best;
}

}  // namespace test
