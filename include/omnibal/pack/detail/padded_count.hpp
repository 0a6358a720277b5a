// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The number of samples of a size that a padded group may have.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>

namespace omnibal::inline v0::detail {

/// Returns the largest number of samples that a capacity holds if each has this amount, at most
/// `max_count`. Preconditions: the amount is not negative and at most the capacity.
template <class T>
[[nodiscard]] std::size_t padded_count(T amount, T capacity, std::size_t max_count) {
  if (!(amount > 0)) return max_count;
  if constexpr (std::integral<T>) {
    return std::min(max_count, static_cast<std::size_t>(capacity / amount));
  } else {
    T const quotient = std::floor(capacity / amount);
    if (!(quotient <= static_cast<T>(max_count))) return max_count;
    // The quotient may be rounded up to the next whole number.
    return static_cast<std::size_t>(quotient * amount > capacity ? quotient - 1 : quotient);
  }
}

}  // namespace omnibal::inline v0::detail
