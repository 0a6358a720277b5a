#pragma once

/// \file
/// The memory side of a Fisher-Yates shuffle, shared by the shufflers.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace omnibal::inline v0::rng::detail {

/// Swaps item i with a partner for i = size - 1 down to 1. `draw(partners, last, count)` writes the
/// partners of last, last - 1, ..., last - count + 1. They are drawn in blocks ahead of the swaps;
/// where the items exceed a cache, the misses of a block are started together.
template <class T, class Draw>
void swap_from_back(std::span<T> items, Draw draw) {
  constexpr std::size_t block = 64;
  constexpr std::size_t cached_bytes = std::size_t{1} << 18;
  bool const prefetches = items.size_bytes() > cached_bytes;
  std::size_t partners[block];
  T* const data = items.data();
  std::size_t last = items.size();
  while (last > 1) {
    --last;
    std::size_t const count = std::min(block, last);
    draw(partners, last, count);
    if (prefetches) {
      for (std::size_t k = 0; k != count; ++k) __builtin_prefetch(data + partners[k], 1);
    }
    for (std::size_t k = 0; k != count; ++k) {
      T const moved = data[last - k];
      data[last - k] = data[partners[k]];
      data[partners[k]] = moved;
    }
    last -= count - 1;
  }
}

}  // namespace omnibal::inline v0::rng::detail
