#pragma once

/// \file
/// MT19937 in blocks.

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::rng::detail {

/// The words of `std::mt19937(seed)`, a block of 624 at a time, so that the loops vectorise.
/// Source: Matsumoto, Nishimura, "Mersenne twister", ACM TOMACS 1998.
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
