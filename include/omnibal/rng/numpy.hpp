// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The shuffle of NumPy's legacy generator, for parity with Python programs.

#include <omnibal/check.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace omnibal::inline v0::rng::detail {

/// The words of `std::mt19937(seed)`, in blocks of 624 words, so that the loops vectorize. Source:
/// Matsumoto, Nishimura, "Mersenne twister", ACM TOMACS 1998.
class mersenne_twister {
 public:
  static constexpr std::size_t block = 624;

  explicit constexpr mersenne_twister(std::uint32_t seed) {
    state_[0] = seed;
    for (std::uint32_t i = 1; i != block; ++i) {
      state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
  }

  /// Writes the next 624 words.
  constexpr void generate(std::uint32_t* words) {
    // Three loops, because word i depends on the words i + 1 and i + 397 of a ring.
    for (std::size_t i = 0; i != block - middle; ++i) {
      state_[i] = state_[i + middle] ^ twist(state_[i], state_[i + 1]);
    }
    for (std::size_t i = block - middle; i != block - 1; ++i) {
      state_[i] = state_[i + middle - block] ^ twist(state_[i], state_[i + 1]);
    }
    state_[block - 1] = state_[middle - 1] ^ twist(state_[block - 1], state_[0]);
    for (std::size_t i = 0; i != block; ++i) {
      std::uint32_t word = state_[i];
      word ^= word >> 11;
      word ^= (word << 7) & 0x9d2c5680u;
      word ^= (word << 15) & 0xefc60000u;
      words[i] = word ^ (word >> 18);
    }
  }

 private:
  static constexpr std::size_t middle = 397;

  [[nodiscard]] static constexpr std::uint32_t twist(std::uint32_t high, std::uint32_t low) {
    std::uint32_t const joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (joined >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
  }

  std::uint32_t state_[block] = {};
};

}  // namespace omnibal::inline v0::rng::detail

namespace omnibal::inline v0::rng {

/// Shuffles as `numpy.random.RandomState(seed + max(round - 1, 0)).shuffle` does. The seeds of the
/// rounds are the seeds in OmniBal's reference implementation, in which rounds 0 and 1 have the
/// same seed.
///
/// Models `shuffler`; accepts elements of any type. Complexity: linear. Allocates nothing.
/// Determinism: portable, equal to NumPy bit for bit. Errors: `std::invalid_argument` if the sum of
/// seed and round is above 2^32 - 1, as in NumPy; `std::length_error` if there are more than 2^32 -
/// 1 elements. Source: NumPy's `legacy-distributions` and `mt19937` (Matsumoto, Nishimura 1998),
/// masked rejection from the back.
struct numpy_shuffle {
  std::uint64_t seed = 0;

  /// True because the order does not depend on the type of the elements.
  static constexpr bool any_element = true;

  template <class T>
  void operator()(std::span<T> items, std::uint64_t round) const {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t const offset = round == 0 ? 0 : round - 1;
    if (seed > largest || offset > largest - seed) {
      omnibal::detail::throw_invalid("rng::numpy_shuffle", "seed ", seed, " in round ", round,
                                     " is above 2^32 - 1");
    }
    if (items.size() > largest) {
      omnibal::detail::throw_length("rng::numpy_shuffle", "items", items.size());
    }
    detail::mersenne_twister twister(static_cast<std::uint32_t>(seed + offset));
    std::uint32_t words[detail::mersenne_twister::block];
    std::size_t used = detail::mersenne_twister::block;
    detail::swap_from_back(items, [&](std::size_t* partners, std::size_t last, std::size_t count) {
      // If a word is rejected, the next word overwrites it. This has no branch, because the
      // processor could not predict the rejections.
      auto bound = static_cast<std::uint32_t>(last);
      for (std::size_t accepted = 0; accepted != count;) {
        if (used == detail::mersenne_twister::block) {
          twister.generate(words);
          used = 0;
        }
        std::uint32_t const mask = ~std::uint32_t{0} >> std::countl_zero(bound);
        std::uint32_t const word = words[used++] & mask;
        partners[accepted] = word;
        std::uint32_t const accept = word <= bound ? 1 : 0;
        accepted += accept;
        bound -= accept;
      }
    });
  }
};

}  // namespace omnibal::inline v0::rng
