// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The random engine of the library, and bounded random integers.

#include <omnibal/config.hpp>

#include <cstdint>

namespace omnibal::inline v0::rng {

/// Mixes the bits of a 64-bit word by a bijection in which every input bit affects every output bit
/// (Stafford's variant 13 of the MurmurHash3 finalizer). Callable from host and device.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t word) {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

/// A counter-based uniform random bit generator: the i-th word is a function of seed, stream and i.
/// Therefore any word can be computed in constant time, and threads or ranks can use different
/// streams without coordination.
///
/// Models `std::uniform_random_bit_generator`. Not for cryptography. Determinism: portable, the
/// same on host and device; golden values pin it. Source: Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014 (the counter form of SplitMix64).
class engine {
 public:
  using result_type = std::uint64_t;

  /// Constructs an engine at word 0 of one of the 2^64 streams of a seed.
  OMNIBAL_HOST_DEVICE explicit constexpr engine(std::uint64_t seed, std::uint64_t stream = 0)
      : key_(mix(mix(seed + increment) + stream * 0xd1342543de82ef95u)) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::uint64_t min() { return 0; }
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr std::uint64_t max() {
    return ~std::uint64_t{0};
  }

  /// Returns the next word.
  OMNIBAL_HOST_DEVICE constexpr std::uint64_t operator()() { return word(position_++); }

  /// Returns the word at `position`. The result does not depend on the words drawn before, and the
  /// position of the engine does not change.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t word(std::uint64_t position) const {
    return mix(key_ + (position + 1) * increment);
  }

  /// Returns the position of the next word: the number of words drawn or skipped.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t position() const { return position_; }
  OMNIBAL_HOST_DEVICE constexpr void seek(std::uint64_t position) { position_ = position; }
  OMNIBAL_HOST_DEVICE constexpr void discard(std::uint64_t count) { position_ += count; }

  [[nodiscard]] OMNIBAL_HOST_DEVICE friend constexpr bool operator==(engine const& left,
                                                                     engine const& right) {
    return left.key_ == right.key_ && left.position_ == right.position_;
  }

 private:
  static constexpr std::uint64_t increment = 0x9e3779b97f4a7c15u;

  std::uint64_t key_;
  std::uint64_t position_ = 0;
};

namespace detail {

struct wide_product {
  std::uint64_t high;
  std::uint64_t low;
};

/// Returns the 128-bit product of two words.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr wide_product multiply_wide(std::uint64_t left,
                                                                       std::uint64_t right) {
  auto const product = static_cast<omnibal::detail::uint128>(left) * right;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

}  // namespace detail

/// Draws a uniform integer in [0, n), without bias.
///
/// `generator` returns uniform 64-bit words. Precondition: `n > 0`. Complexity: constant on
/// average; draws one word with probability at least 1 - n / 2^64. Determinism: portable, the same
/// on host and device. Source: Lemire, "Fast random integer generation in an interval", ACM TOMACS
/// 2019.
template <class Generator>
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint64_t below(Generator& generator,
                                                                std::uint64_t n) {
  static_assert(sizeof(typename Generator::result_type) == 8, "the engine must give 64-bit words");
  auto product = detail::multiply_wide(generator(), n);
  if (product.low < n) {
    std::uint64_t const threshold = (0 - n) % n;
    while (product.low < threshold) product = detail::multiply_wide(generator(), n);
  }
  return product.high;
}

}  // namespace omnibal::inline v0::rng
