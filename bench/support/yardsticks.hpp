// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What the algorithms are timed against: plain, well-written code for tasks that everybody knows.
///
/// A yardstick has `prepare()`, which is not timed, a call operator, which is, and `items()`, the
/// number of items that one call handles.

#include "samples.hpp"

#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace bench {

/// One pass over the data: the sum of the demands.
class one_pass {
 public:
  explicit one_pass(std::span<sample const> samples) : samples_(samples) {}

  void prepare() {}
  void operator()() {
    omnibal::resources<2> sum{};
    for (sample const& s : samples_) sum += images_and_tokens(s);
    benchmark::DoNotOptimize(sum);
  }
  [[nodiscard]] std::size_t items() const { return samples_.size(); }

 private:
  std::span<sample const> samples_;
};

/// The Fisher-Yates shuffle of 64-bit items as in a textbook.
class plain_shuffle {
 public:
  explicit plain_shuffle(std::size_t count) : items_(count) {
    std::iota(items_.begin(), items_.end(), std::uint64_t{0});
  }

  /// Shuffles once, so that the timed call finds in the caches what fits there.
  void prepare() { (*this)(); }
  void operator()() {
    for (std::size_t left = items_.size(); left > 1; --left) {
      std::swap(items_[left - 1], items_[omnibal::rng::below(words_, left)]);
    }
    benchmark::DoNotOptimize(items_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return items_.size(); }

 private:
  std::vector<std::uint64_t> items_;
  omnibal::rng::engine words_{0};
};

/// MT19937 as in NumPy's C code: 32-bit words, made 624 at a time and tempered one at a time.
/// libstdc++'s `std::mt19937` takes nearly twice as long, because g++ does not vectorize its 64-bit
/// words.
class numpy_mt19937 {
 public:
  [[nodiscard]] std::uint32_t operator()() {
    if (position_ == state_.size()) refill();
    std::uint32_t word = state_[position_++];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680u;
    word ^= (word << 15) & 0xefc60000u;
    return word ^ (word >> 18);
  }

 private:
  static constexpr std::size_t size = 624;
  static constexpr std::size_t middle = 397;

  [[nodiscard]] static std::array<std::uint32_t, size> seeded() {
    std::array<std::uint32_t, size> state{};
    for (std::uint32_t i = 1; i != size; ++i) {
      state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + i;
    }
    return state;
  }
  [[nodiscard]] static std::uint32_t twist(std::uint32_t high, std::uint32_t low) {
    std::uint32_t const joined = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (joined >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
  }
  void refill() {
    std::size_t i = 0;
    for (; i != size - middle; ++i)
      state_[i] = state_[i + middle] ^ twist(state_[i], state_[i + 1]);
    for (; i != size - 1; ++i) {
      state_[i] = state_[i + middle - size] ^ twist(state_[i], state_[i + 1]);
    }
    state_[size - 1] = state_[middle - 1] ^ twist(state_[size - 1], state_[0]);
    position_ = 0;
  }

  std::array<std::uint32_t, size> state_ = seeded();
  std::size_t position_ = size;
};

/// `numpy.random.RandomState(0).shuffle` of 64-bit items: masked rejection from the back.
class numpy_plain_shuffle {
 public:
  explicit numpy_plain_shuffle(std::size_t count) : items_(count) {
    std::iota(items_.begin(), items_.end(), std::uint64_t{0});
  }

  /// Shuffles once, so that the timed call finds in the caches what fits there.
  void prepare() { (*this)(); }
  void operator()() {
    for (std::size_t last = items_.size(); last-- > 1;) {
      std::swap(items_[last], items_[draw(static_cast<std::uint32_t>(last))]);
    }
    benchmark::DoNotOptimize(items_.data());
    benchmark::ClobberMemory();
  }
  [[nodiscard]] std::size_t items() const { return items_.size(); }

 private:
  /// A uniform integer in [0, largest].
  [[nodiscard]] std::uint32_t draw(std::uint32_t largest) {
    std::uint32_t const mask = ~std::uint32_t{0} >> std::countl_zero(largest);
    std::uint32_t value = 0;
    do {
      value = words_() & mask;
    } while (value > largest);
    return value;
  }

  std::vector<std::uint64_t> items_;
  numpy_mt19937 words_;
};

/// The stable radix sort of pairs of a key and a 32-bit index, least significant digit first:
/// digits of 8 bits, one pass that counts all digits, and a pass for every digit of the key's type.
template <class Key>
class radix_sort {
 public:
  explicit radix_sort(std::span<sample const> samples)
      : samples_(samples), pairs_(samples.size()), spare_(samples.size()) {}

  void prepare() {
    make_pairs(samples_, spare_);
    make_pairs(samples_, pairs_);
  }
  void operator()() { sort(pairs_, spare_); }
  [[nodiscard]] std::size_t items() const { return samples_.size(); }

 protected:
  struct pair {
    Key key;
    std::uint32_t index;
  };

  static void make_pairs(std::span<sample const> samples, std::span<pair> pairs) {
    for (std::size_t i = 0; i != samples.size(); ++i) {
      pairs[i] = {static_cast<Key>(samples[i].tokens), static_cast<std::uint32_t>(i)};
    }
  }

  static void sort(std::vector<pair>& pairs, std::vector<pair>& spare) {
    constexpr std::size_t digits = sizeof(Key);
    std::array<std::array<std::uint32_t, 256>, digits> starts{};
    for (pair const& p : pairs) {
      for (std::size_t d = 0; d != digits; ++d) ++starts[d][digit(p, d)];
    }
    for (std::size_t d = 0; d != digits; ++d) {
      std::uint32_t position = 0;
      for (std::uint32_t& start : starts[d]) position += std::exchange(start, position);
      for (pair const& p : pairs) spare[starts[d][digit(p, d)]++] = p;
      pairs.swap(spare);
    }
    benchmark::DoNotOptimize(pairs.data());
    benchmark::ClobberMemory();
  }

  std::span<sample const> samples_;

 private:
  [[nodiscard]] static std::size_t digit(pair const& p, std::size_t d) {
    return static_cast<std::size_t>(p.key >> (8 * d) & 0xff);
  }

  std::vector<pair> pairs_;
  std::vector<pair> spare_;
};

/// The same from samples to a new array of sorted pairs, as a function that is called by others has
/// to do it: with the allocation of both arrays.
template <class Key>
class allocating_radix_sort : radix_sort<Key> {
 public:
  using radix_sort<Key>::radix_sort;
  using radix_sort<Key>::items;

  void prepare() {}
  void operator()() {
    std::vector<typename radix_sort<Key>::pair> pairs(items());
    std::vector<typename radix_sort<Key>::pair> spare(items());
    radix_sort<Key>::make_pairs(this->samples_, pairs);
    radix_sort<Key>::sort(pairs, spare);
  }
};

}  // namespace bench
