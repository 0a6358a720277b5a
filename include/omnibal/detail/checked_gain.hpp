// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Comparison of the gain that a local search claims for a move with the real gain.

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace omnibal::inline v0::detail {

/// Whether searches compare claimed gains with real ones. All sources of a program must agree on
/// the macro `OMNIBAL_CHECK_GAINS`, which builds with sanitizers define.
#if defined(OMNIBAL_CHECK_GAINS)
inline constexpr bool checks_gains = true;
#else
inline constexpr bool checks_gains = false;
#endif

/// The name of a move in the message about a wrong gain.
struct move_name {
  char const* search;
  char const* move;
};

/// Aborts the program if a claimed gain differs from the real gain by more than the tolerance.
inline void check_gain(move_name const& name, int128 claimed, int128 real, int128 tolerance = 0) {
  if (claimed - real <= tolerance && real - claimed <= tolerance) return;
  auto const number = [](int128 value) {
    return static_cast<long long>(saturate_cast<std::int64_t>(value));
  };
  std::fprintf(stderr, "omnibal: %s: %s: the claimed gain is %lld, but the real gain is %lld\n",
               name.search, name.move, number(claimed), number(real));
  std::abort();
}

/// Applies a move. If gains are checked, `objective()` must decrease by `gain`, within the
/// tolerance; the objective is computed before and after the move.
template <class Objective, class Apply>
void apply_checked([[maybe_unused]] move_name const& name, [[maybe_unused]] int128 gain,
                   [[maybe_unused]] Objective const& objective, Apply const& apply,
                   [[maybe_unused]] int128 tolerance = 0) {
  if constexpr (checks_gains) {
    int128 const before = objective();
    apply();
    check_gain(name, gain, before - int128{objective()}, tolerance);
  } else {
    apply();
  }
}

}  // namespace omnibal::inline v0::detail
