// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The default shuffler, and concepts for additional properties of shufflers.

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace omnibal::inline v0::rng::detail {

/// Swaps item i with a partner for i = size - 1 down to 1. `draw(partners, last, count)` writes the
/// partners of last, last - 1, ..., last - count + 1. The partners are drawn in blocks before the
/// swaps. If the items exceed the cache, the partners of a block are prefetched, so that their
/// cache misses overlap.
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

namespace omnibal::inline v0::rng {

/// A shuffler with `static constexpr bool any_element = true`. It permutes elements of every type
/// in the same order, so that an algorithm may shuffle its records instead of their indices.
template <class Shuffle>
concept any_element_shuffler = Shuffle::any_element;

/// A shuffler whose order is a function: `order(n, round)(i)` is the position before the shuffle of
/// the element that moves to position i.
template <class Shuffle>
concept random_access_shuffler = requires(Shuffle const& shuffle, std::uint64_t n) {
  { shuffle.order(n, n)(n) } -> std::convertible_to<std::uint64_t>;
};

/// Shuffles in place with words of `engine{seed, round}`: every order is equally likely.
///
/// Models `shuffler`; accepts elements of any type. Complexity: linear; prefetching hides most of
/// the cost of arrays larger than the caches. Allocates nothing. Determinism: portable, and the
/// order does not depend on the type of the elements. Source: Fisher, Yates 1938; Durstenfeld,
/// 1964.
struct fisher_yates {
  std::uint64_t seed = 0;

  /// True because the order does not depend on the type of the elements.
  static constexpr bool any_element = true;

  template <class T>
  void operator()(std::span<T> items, std::uint64_t round) const {
    engine words(seed, round);
    detail::swap_from_back(
        items, [&words](std::size_t* partners, std::size_t last, std::size_t count) {
          if (last > 0xffffffffu - 1) {
            for (std::size_t k = 0; k != count; ++k) {
              partners[k] = static_cast<std::size_t>(below(words, last - k + 1));
            }
            return;
          }
          // One word of 64 bits is enough for two partners below 2^32.
          auto bound = static_cast<std::uint32_t>(last + 1);
          std::size_t k = 0;
          for (; k + 1 < count; k += 2, bound -= 2) {
            std::uint64_t const word = words();
            partners[k] = half_below(words, static_cast<std::uint32_t>(word), bound);
            partners[k + 1] = half_below(words, static_cast<std::uint32_t>(word >> 32), bound - 1);
          }
          if (k != count) {
            partners[k] = half_below(words, static_cast<std::uint32_t>(words()), bound);
          }
        });
  }

 private:
  /// Returns a uniform integer below n, as `below` does, from the 32 bits of `half`. Draws a word
  /// only if these bits are rejected.
  [[nodiscard]] static std::size_t half_below(engine& words, std::uint32_t half, std::uint32_t n) {
    std::uint64_t product = std::uint64_t{half} * n;
    if (static_cast<std::uint32_t>(product) < n) [[unlikely]] {
      std::uint32_t const threshold = (0u - n) % n;
      while (static_cast<std::uint32_t>(product) < threshold) {
        product = std::uint64_t{static_cast<std::uint32_t>(words())} * n;
      }
    }
    return static_cast<std::size_t>(product >> 32);
  }
};

}  // namespace omnibal::inline v0::rng
