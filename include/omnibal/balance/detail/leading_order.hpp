#pragma once

/// \file
/// An order that is good enough for a heuristic, in memory that is kept.

#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The indices 0 .. count - 1 from the largest to the smallest `key(index)`, as the leading 32 bits
/// below those of the largest key say; equal ones by index. Keys are integers that are not negative
/// and not all zero. `words` and `spare` are scratch.
template <class Key>
void order_by_leading_bits(std::size_t count, Key const& key, std::vector<std::uint64_t>& words,
                           std::vector<std::uint64_t>& spare, std::vector<std::uint32_t>& order) {
  std::uint64_t largest = 0;
  for (std::uint32_t i = 0; i != count; ++i) {
    largest = std::max(largest, static_cast<std::uint64_t>(key(i)));
  }
  int const shift = static_cast<int>(std::countl_zero(largest));
  words.resize(count);
  for (std::uint32_t i = 0; i != count; ++i) {
    words[i] = ~(static_cast<std::uint64_t>(key(i)) << shift) >> 32 << 32 | i;
  }
  radix_sort(words, spare, 32, 32);
  order.resize(count);
  for (std::size_t i = 0; i != count; ++i) order[i] = static_cast<std::uint32_t>(words[i]);
}

}  // namespace omnibal::inline v0::detail
