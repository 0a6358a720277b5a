// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Counts of the values of one integer resource.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Counts how often each value from zero to the capacity occurs.
template <class Value>
[[nodiscard]] std::vector<std::uint32_t> count_values(std::size_t count, Value const& value,
                                                      std::int64_t capacity) {
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(capacity) + 1, 0);
  for (std::size_t i = 0; i != count; ++i) ++counts[static_cast<std::size_t>(value(i))];
  return counts;
}

/// Returns true if counting the values is cheaper than sorting them. Both ways lead to the same
/// packings.
[[nodiscard]] inline bool is_countable(std::size_t count, std::int64_t capacity) {
  return static_cast<std::uint64_t>(capacity) < std::max<std::uint64_t>(512, count);
}

}  // namespace omnibal::inline v0::detail
