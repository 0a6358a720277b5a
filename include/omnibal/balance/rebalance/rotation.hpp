// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Rotations of samples among three ranks in `rebalance`.

#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/rebalance/open_rank.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace omnibal::inline v0::detail {

/// A rotation: a sample of the heavy rank moves to rank `next`, a sample of `next` to rank `last`,
/// and a sample of `last` to the heavy rank. All counts stay. `next` and `last` are positions in
/// the list of the other ranks; the samples are positions in the lists of their ranks.
struct rotation : exchange_value {
  std::size_t next = 0;
  std::size_t last = 0;
  std::size_t from_heavy = 0;
  std::size_t from_next = 0;
  std::size_t from_last = 0;
};

/// Returns the position of the smallest sample that costs at least `least`, or the number of
/// samples if there is none.
[[nodiscard]] inline std::size_t smallest_from(open_rank<1> const& rank, std::int64_t least) {
  auto const& samples = rank.samples;
  auto const end = std::partition_point(samples.begin(), samples.end(),
                                        [&](auto const& one) { return one.cost[0] >= least; });
  return end == samples.begin() ? samples.size()
                                : static_cast<std::size_t>(end - samples.begin()) - 1;
}

/// Returns the rotation that lowers the excess of `heavy` most per byte, or a rotation without
/// relief if none is better than `best`. No other rank has an excess before or after the rotation.
/// Each of the other ranks gives the smallest sample with which it stays within the target. The
/// candidates of `heavy` are evenly spaced samples.
[[nodiscard]] inline rotation best_rotation(open_rank<1> const& heavy,
                                            std::span<open_rank<1> const> others,
                                            std::int64_t target, exchange_value const& best) {
  rotation result;
  static_cast<exchange_value&>(result) = best;
  std::int64_t const excess = heavy.load[0] - target;
  bool is_found = false;
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t least_cost = none;
  // The two smallest bytes of samples of the other ranks.
  std::int64_t least_bytes = none;
  std::int64_t next_bytes = none;
  for (open_rank<1> const& other : others) {
    for (movable_sample<1> const& sample : other.samples) {
      least_cost = std::min(least_cost, sample.cost[0]);
      next_bytes = std::min(next_bytes, std::max(least_bytes, sample.bytes));
      least_bytes = std::min(least_bytes, sample.bytes);
    }
  }
  if (next_bytes == none) return {};
  for_each_spaced(heavy.samples.size(), [&](std::size_t i) {
    std::int64_t const leaves = heavy.samples[i].cost[0];
    // No rotation of sample i removes more excess or adds fewer bytes.
    exchange_value at_best{std::min(excess, leaves - least_cost),
                           heavy.samples[i].bytes + least_bytes + next_bytes};
    if (!at_best.is_better_than(result)) return;
    for (std::size_t a = 0; a != others.size(); ++a) {
      std::size_t const j = smallest_from(others[a], others[a].load[0] + leaves - target);
      if (j == others[a].samples.size()) continue;
      movable_sample<1> const& second = others[a].samples[j];
      at_best.bytes = heavy.samples[i].bytes + second.bytes + least_bytes;
      if (!at_best.is_better_than(result)) continue;
      for (std::size_t b = 0; b != others.size(); ++b) {
        if (a == b) continue;
        std::size_t const k = smallest_from(others[b], others[b].load[0] + second.cost[0] - target);
        if (k == others[b].samples.size()) continue;
        movable_sample<1> const& third = others[b].samples[k];
        rotation found{{std::min(excess, leaves - third.cost[0]),
                        heavy.samples[i].bytes + second.bytes + third.bytes},
                       a, b, i, j, k};
        if (found.relief <= 0 || !found.is_better_than(result)) continue;
        result = found;
        is_found = true;
      }
    }
  });
  return is_found ? result : rotation{};
}

}  // namespace omnibal::inline v0::detail
