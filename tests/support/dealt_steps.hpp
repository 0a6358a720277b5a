// SPDX-License-Identifier: Apache-2.0
#pragma once

// Schedules for tests.

#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace test {

/// One group per cell, in random order.
inline omnibal::steps dealt_at_random(std::size_t groups, std::size_t ranks, std::uint64_t seed) {
  std::vector<std::uint32_t> order(groups);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  omnibal::rng::fisher_yates{seed}(std::span(order), 0);
  return omnibal::make_steps(order, ranks);
}

}  // namespace test
