// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The load of a step, and the idle time of ranks in the step.
///
/// The input is the levels of what each rank runs in the step, a bundle or the groups of the last
/// step. The output is the idle time.

#include <omnibal/balance/schedule_steps/load_levels.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::detail {

/// The idle time of a step in which all ranks are idle from beginning to end. The sum over 2^32
/// such steps fits 64 bits.
inline constexpr std::int64_t whole_step = std::int64_t{1} << 30;

/// Returns the idle time of a step: the mean share of the step for which a rank is idle, times
/// `whole_step`, rounded down. A rank without a group is idle for the whole step. The idle time is
/// zero if the largest level is zero.
[[nodiscard]] constexpr std::int64_t waiting_of_step(load_level largest, std::uint64_t sum,
                                                     std::uint64_t ranks) {
  if (largest == 0) return 0;
  std::uint64_t const whole = largest * ranks;
  double const share = static_cast<double>(whole - sum) / static_cast<double>(whole);
  return static_cast<std::int64_t>(share * static_cast<double>(whole_step));
}

/// The idle time of a step, or the sum over several steps, in each kind. The unit is 1 /
/// `whole_step` of a step.
template <std::size_t R>
using waiting_times = std::array<std::int64_t, R>;

/// The maximum and the sum of the loads of the ranks in a step.
template <std::size_t R>
struct step_load {
  load_levels<R> max{};
  load_levels<R> sum{};

  /// Adds the load of a rank.
  void add(load_levels<R> const& levels) {
    for (std::size_t r = 0; r != R; ++r) {
      max[r] = std::max(max[r], levels[r]);
      sum[r] += levels[r];
    }
  }
  [[nodiscard]] waiting_times<R> waiting(std::size_t ranks) const {
    waiting_times<R> result;
    for (std::size_t r = 0; r != R; ++r) result[r] = waiting_of_step(max[r], sum[r], ranks);
    return result;
  }
};

}  // namespace omnibal::inline v0::detail
