// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order of the Feistel shuffler in 32-bit arithmetic for GPUs.

#include <omnibal/config.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// The same permutation as `rng::permutation{n, seed}`, for `n < 2^32`. Both halves of a pair have
/// at most 16 bits, and a round uses only the upper half of a 64-bit product. Therefore a Feistel
/// round requires two 32-bit multiplications instead of two 64-bit multiplications.
class narrow_permutation {
 public:
  narrow_permutation() = default;

  OMNIBAL_HOST_DEVICE constexpr narrow_permutation(std::uint32_t n, std::uint64_t seed) : size_(n) {
    std::uint32_t const last = n < smallest_domain ? smallest_domain - 1 : n - 1;
    std::uint32_t bits = 2;
    while (bits < 32 && (last >> bits) != 0) ++bits;
    low_bits_ = bits / 2;
    low_mask_ = (std::uint32_t{1} << low_bits_) - 1;
    high_size_ = (last >> low_bits_) + 1;
    rng::engine words(seed, n);
    for (int round = 0; round != rounds; ++round) {
      std::uint64_t const key = words();
      factors_[round] = key | 1;
      // `(half + key) * factor` is `half * factor` plus this product.
      addends_[round] = key * (key | 1);
    }
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t size() const { return size_; }

  /// Returns the element at position i. Precondition: `i < size()`.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t operator()(std::uint32_t i) const {
    do {
      i = encrypt(i);
    } while (i >= size_);
    return i;
  }

 private:
  static constexpr int rounds = 8;
  static constexpr std::uint32_t smallest_domain = 64;

  /// Returns the upper 32 bits of the product of a Feistel round.
  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t scramble(std::uint32_t half,
                                                                     int round) const {
    auto const low_factor = static_cast<std::uint32_t>(factors_[round]);
    auto const high_factor = static_cast<std::uint32_t>(factors_[round] >> 32);
    std::uint64_t const low_product = std::uint64_t{half} * low_factor + addends_[round];
    return static_cast<std::uint32_t>(low_product >> 32) + half * high_factor;
  }

  [[nodiscard]] OMNIBAL_HOST_DEVICE constexpr std::uint32_t encrypt(std::uint32_t value) const {
    std::uint32_t low = value & low_mask_;
    std::uint32_t high = value >> low_bits_;
    for (int round = 0; round != rounds; round += 2) {
      high += static_cast<std::uint32_t>(std::uint64_t{scramble(low, round)} * high_size_ >> 32);
      if (high >= high_size_) high -= high_size_;
      low ^= scramble(high, round + 1) >> (32 - low_bits_);
    }
    return high << low_bits_ | low;
  }

  std::uint64_t factors_[rounds] = {};
  std::uint64_t addends_[rounds] = {};
  std::uint32_t size_ = 0;
  std::uint32_t high_size_ = 1;
  std::uint32_t low_bits_ = 1;
  std::uint32_t low_mask_ = 1;
};

/// Returns the permutation of `shuffle.order(n, round)`. Precondition: `n < 2^32`.
[[nodiscard]] OMNIBAL_HOST_DEVICE constexpr narrow_permutation order_of(rng::feistel const& shuffle,
                                                                        std::uint32_t n,
                                                                        std::uint64_t round) {
  return {n, rng::engine(shuffle.seed, round).word(0)};
}

struct write_order {
  narrow_permutation order;
  std::uint32_t* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = order(static_cast<std::uint32_t>(i));
  }
};

template <class T>
struct write_shuffled {
  narrow_permutation order;
  T const* in;
  T* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t i) const {
    out[i] = in[order(static_cast<std::uint32_t>(i))];
  }
};

template <class Backend>
void write_feistel_order(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                         std::uint32_t* out, std::size_t n) {
  backend.for_each(n, write_order{order_of(shuffle, static_cast<std::uint32_t>(n), round), out});
}

template <class Backend, class T>
void feistel_shuffle(Backend& backend, rng::feistel const& shuffle, std::uint64_t round,
                     T const* in, T* out, std::size_t n) {
  backend.for_each(
      n, write_shuffled<T>{order_of(shuffle, static_cast<std::uint32_t>(n), round), in, out});
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
