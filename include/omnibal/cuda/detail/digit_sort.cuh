#pragma once

/// \file
/// Passes of a radix sort within a block.

#include <omnibal/cuda/detail/block_scan.cuh>
#include <omnibal/cuda/detail/device_warp.cuh>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace omnibal::inline v0::gpu::detail {

/// Sorts the numbers of keys by a digit of these, and then the keys. A warp ranks the digits of 32
/// keys at a time, by ballots.
template <int Threads>
struct digit_sort {
  static constexpr unsigned warps = Threads / 32;
  static constexpr unsigned digit_bits = warps <= 16 ? 6 : 5;
  static constexpr unsigned digits = 1u << digit_bits;
  /// Counters from a warp to the next, which lie in other banks.
  static constexpr unsigned digit_stride = warps <= 16 ? digits + 2 : digits;
  static constexpr std::size_t counter_bytes =
      (warps * digit_stride * sizeof(std::uint16_t) + 15) / 16 * 16;
  /// Keys of a thread at most, and of all.
  static constexpr unsigned sorted_of_thread = 16;
  static constexpr unsigned sorted_keys = sorted_of_thread * Threads;

  /// Shared memory: 32 bytes for each warp, and `counter_bytes`.
  unsigned char* exchange;
  std::uint16_t* counters;

#if defined(__CUDA_ARCH__)
  /// Sorts the numbers of keys by one digit of these, stably. Beside its number a word gets its digit
  /// and how many of its warp come before.
  template <class Key>
  __device__ void sort_digit(Key const* keys, std::uint32_t* words, unsigned n, unsigned bit,
                             unsigned mask) const {
    constexpr unsigned number_bits = 14;
    static_assert(sorted_keys <= 1u << number_bits);
    constexpr unsigned rank_bit = number_bits + digit_bits;
    unsigned const warp = threadIdx.x / 32;
    unsigned const lane = threadIdx.x % 32;
    std::uint16_t* const own = counters + warp * digit_stride;
    unsigned const rows = (n + Threads - 1) / Threads;
    unsigned const begin = warp * rows * 32 + lane;

    for (unsigned digit = lane; digit < digits; digit += 32) own[digit] = 0;
    __syncwarp();
    for (unsigned i = begin; i - begin != rows * 32; i += 32) {
      unsigned const number = i < n ? words[i] : 0;
      // Behind the last key all digits are largest: what is there stays there.
      unsigned const digit = i < n ? static_cast<unsigned>(keys[number] >> bit) & mask : digits - 1;
      unsigned equal = ~0u;
      for (unsigned k = 0; k != digit_bits; ++k) {
        bool const is_set = (digit & 1u << k) != 0;
        unsigned const others = ballot(is_set);
        equal &= others ^ (is_set ? 0u : ~0u);
      }
      unsigned const before = own[digit];
      unsigned const below = count_bits(equal & ((1u << lane) - 1));
      __syncwarp();
      if (below == 0) own[digit] = static_cast<std::uint16_t>(before + count_bits(equal));
      __syncwarp();
      if (i < n) words[i] = number | digit << number_bits | (before + below) << rank_bit;
    }

    std::uint32_t moved[sorted_of_thread];
    for_rows([&](unsigned j) {
      unsigned const i = begin + 32 * j;
      moved[j] = j < rows && i < n ? words[i] : 0;
    });
    __syncthreads();
    count_digits_before();
    for_rows([&](unsigned j) {
      if (j >= rows || begin + 32 * j >= n) return;
      unsigned const digit = moved[j] >> number_bits & (digits - 1);
      words[own[digit] + (moved[j] >> rank_bit)] = moved[j] & ((1u << number_bits) - 1);
    });
    __syncthreads();
  }

  /// Brings the keys into the order of the numbers.
  template <class Key>
  __device__ static void permute(Key* keys, std::uint32_t const* numbers, unsigned n) {
    Key moved[sorted_of_thread];
    for_rows([&](unsigned j) {
      unsigned const i = threadIdx.x + j * Threads;
      moved[j] = i < n ? keys[numbers[i]] : Key{0};
    });
    __syncthreads();
    for_rows([&](unsigned j) {
      unsigned const i = threadIdx.x + j * Threads;
      if (i < n) keys[i] = moved[j];
    });
    __syncthreads();
  }

 private:
  /// `f(j)` for what a thread sorts, written out, so that arrays of as many are registers.
  template <class F>
  __device__ static void for_rows(F const& f) {
    [&]<unsigned... J>(std::integer_sequence<unsigned, J...>) { (f(J), ...); }
    (std::make_integer_sequence<unsigned, sorted_of_thread>{});
  }

  /// Makes of the counters of digits how many keys come before: those with a lower digit, and those
  /// with the same one in the warps before.
  __device__ void count_digits_before() const {
    constexpr unsigned of_thread = digits / 32;
    unsigned counts[of_thread];
    unsigned sum = 0;
    for (unsigned k = 0; k != of_thread; ++k) {
      counts[k] = *counter_at(of_thread * threadIdx.x + k);
      sum += counts[k];
    }
    tile_scan<unsigned> const digits_before = scan_tile<Threads>(exchange, sum, add{}, 0u);
    unsigned before = digits_before.up_to - sum;
    for (unsigned k = 0; k != of_thread; ++k) {
      *counter_at(of_thread * threadIdx.x + k) = static_cast<std::uint16_t>(before);
      before += counts[k];
    }
    __syncthreads();
  }
  /// All counters of a digit, then those of the next.
  [[nodiscard]] __device__ std::uint16_t* counter_at(unsigned k) const {
    return counters + k % warps * digit_stride + k / warps;
  }
#endif
};

}  // namespace omnibal::inline v0::gpu::detail
