// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A random permutation as a function without an array.

#include <omnibal/config.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstdint>

namespace omnibal::inline v0::rng {

/// A pseudorandom permutation of [0, n) and its inverse, in constant time and memory.
///
/// The permutation is a Feistel network on pairs (high, low). The number of values of the low half
/// is a power of two, and the high half has enough values to cover n. If the network maps an
/// element to a value of n or above, it is applied again. Only about one in sqrt(n) values is not
/// below n, so a second application is rare. With fewer than 64 elements about 64 / n applications
/// are required. Complexity: constant. Allocates nothing. Determinism: portable, the same on host
/// and device; golden values pin it. Not for cryptography. Sources: Black, Rogaway, "Ciphers with
/// arbitrary finite domains", CT-RSA 2002; Mitchell, Stokes, Frank, Holmes, "Bandwidth-optimal
/// random shuffling for GPUs", 2021.
class permutation {
 public:
  OMNIBAL_HOST_DEVICE constexpr permutation(std::uint64_t n, std::uint64_t seed) : size_(n) {
    // A network over few pairs favors some orders. Therefore small permutations use a larger
    // domain.
    std::uint64_t const last = n < smallest_domain ? smallest_domain - 1 : n - 1;
    unsigned bits = 2;
    while (bits < 64 && (last >> bits) != 0) ++bits;
    low_bits_ = bits / 2;
    high_size_ = (last >> low_bits_) + 1;
    engine words(seed, n);
    for (std::uint64_t& key : keys_) key = words();
  }

  /// Returns n, the number of elements.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t size() const { return size_; }

  /// Returns the element at position i. Precondition: `i < size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t operator()(std::uint64_t i) const {
    do {
      i = encrypt(i);
    } while (i >= size_);
    return i;
  }

  /// Returns the position of element j. Precondition: `j < size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t inverse(std::uint64_t j) const {
    do {
      j = decrypt(j);
    } while (j >= size_);
    return j;
  }

 private:
  static constexpr unsigned round_pairs = 4;
  static constexpr std::uint64_t smallest_domain = 64;

  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::uint64_t scramble(std::uint64_t half,
                                                                            std::uint64_t key) {
    return (half + key) * (key | 1);
  }
  /// Returns a pseudorandom value of the high half for a value of the low half.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t high_shift(std::uint64_t low,
                                                                       unsigned round) const {
    return (scramble(low, keys_[round]) >> 32) * high_size_ >> 32;
  }
  /// Returns a pseudorandom value of the low half for a value of the high half.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t low_mask(std::uint64_t high,
                                                                     unsigned round) const {
    return scramble(high, keys_[round]) >> (64 - low_bits_);
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t encrypt(std::uint64_t value) const {
    std::uint64_t low = value & ((std::uint64_t{1} << low_bits_) - 1);
    std::uint64_t high = value >> low_bits_;
    for (unsigned pair = 0; pair != round_pairs; ++pair) {
      high += high_shift(low, 2 * pair);
      if (high >= high_size_) high -= high_size_;
      low ^= low_mask(high, 2 * pair + 1);
    }
    return high << low_bits_ | low;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t decrypt(std::uint64_t value) const {
    std::uint64_t low = value & ((std::uint64_t{1} << low_bits_) - 1);
    std::uint64_t high = value >> low_bits_;
    for (unsigned pair = round_pairs; pair-- != 0;) {
      low ^= low_mask(high, 2 * pair + 1);
      std::uint64_t const shift = high_shift(low, 2 * pair);
      high = high >= shift ? high - shift : high + high_size_ - shift;
    }
    return high << low_bits_ | low;
  }

  std::uint64_t size_;
  std::uint64_t high_size_ = 1;
  unsigned low_bits_ = 1;
  std::uint64_t keys_[2 * round_pairs] = {};
};

}  // namespace omnibal::inline v0::rng
