// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Binary searches.

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// Returns the first index of [first, last) for which `holds` is false, or `last`. Precondition:
/// `holds` is false for all later indices too.
template <class Index, class Condition>
[[nodiscard]] constexpr Index first_false(std::type_identity_t<Index> first, Index last,
                                          Condition const& holds) {
  // The loop has no branches, because the processor could not predict them.
  for (Index left = last - first; left != 0;) {
    Index const half = left - left / 2;
    first += holds(first + half - 1) ? half : 0;
    left -= half;
  }
  return first;
}

/// Returns the same index as `first_false`, in time logarithmic in the distance from `guess`: each
/// step away from the guess is twice as wide as the step before.
template <class Condition>
[[nodiscard]] std::size_t first_false_near(std::size_t guess, std::size_t first, std::size_t last,
                                           Condition const& holds) {
  std::size_t step = 16;
  if (last - first <= step) return first_false(first, last, holds);
  guess = std::clamp(guess, first, last - 1);
  if (holds(guess)) {
    first = guess + 1;
    for (; last - first > step && holds(first + step - 1); step *= 2) first += step;
    last = std::min(last, first + step);
  } else {
    last = guess;
    for (; last - first > step && !holds(last - step); step *= 2) last -= step;
    first = last - std::min(last - first, step);
  }
  return first_false(first, last, holds);
}

}  // namespace omnibal::inline v0::detail
