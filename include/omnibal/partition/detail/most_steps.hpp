#pragma once

/// \file
/// How far something holds.

#include <algorithm>
#include <cstddef>

namespace omnibal::inline v0::detail {

/// The number of steps from which on a plain binary search is too slow.
inline constexpr std::size_t many_steps = 32;

/// The largest number up to `most` for which `holds`, as it does for all smaller ones and for
/// zero. Looks near `guess` first, in steps that double.
template <class Holds>
[[nodiscard]] std::size_t most_steps(std::size_t most, std::size_t guess, Holds const& holds) {
  std::size_t low = 0;
  std::size_t high = most;
  if (most > many_steps) {
    guess = std::min(guess, most);
    if (holds(guess)) {
      low = guess;
      for (std::size_t step = many_steps / 4; step < high - low; step *= 2) {
        if (!holds(low + step)) {
          high = low + step - 1;
          break;
        }
        low += step;
      }
    } else {
      high = guess - 1;
      for (std::size_t step = many_steps / 4; step < high - low; step *= 2) {
        if (holds(high - step)) {
          low = high - step;
          break;
        }
        high -= step + 1;
      }
    }
  }
  for (std::size_t left = high - low; left != 0;) {
    std::size_t const half = (left + 1) / 2;
    low += holds(low + half) ? half : 0;
    left -= half;
  }
  return low;
}

}  // namespace omnibal::inline v0::detail
