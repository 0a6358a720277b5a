// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A block of threads on the device, and its warps, that work in phases.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/detail/shared_memory.cuh>
#include <omnibal/detail/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

// The symbols are hidden; device_backend.cuh gives the reason.
#pragma GCC visibility push(hidden)

#if defined(__CUDA_ARCH__)

/// Returns the value of another lane, shuffled word by word. Every lane of the warp must call it.
template <class T, class Shuffle>
[[nodiscard]] __device__ T shuffle_words(T const& value, Shuffle const& shuffle) {
  static_assert(sizeof(T) % sizeof(unsigned) == 0);
  struct all_words {
    unsigned words[sizeof(T) / sizeof(unsigned)];
  };
  // Copies of bytes would move a value of 128 bits through memory.
  auto copy = __builtin_bit_cast(all_words, value);
  for (unsigned& word : copy.words) word = shuffle(word);
  return __builtin_bit_cast(T, copy);
}

/// Returns the value of the lane `distance` above this one.
template <class T>
[[nodiscard]] __device__ T shuffle_down(T const& value, unsigned distance) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_down_sync(~0u, word, distance); });
}

/// Returns the value of the lane `distance` below this one.
template <class T>
[[nodiscard]] __device__ T shuffle_up(T const& value, unsigned distance) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_up_sync(~0u, word, distance); });
}

/// Returns the value of one lane, in all lanes.
template <class T>
[[nodiscard]] __device__ T shuffle_from(T const& value, unsigned lane) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_sync(~0u, word, lane); });
}

/// Returns a word whose bit k is the argument of lane k.
[[nodiscard]] __device__ inline unsigned ballot(bool says) { return __ballot_sync(~0u, says); }

/// Returns in lane 0 the `op` over the values of the first `count` lanes, `count > 0`.
template <class T, class Op>
[[nodiscard]] __device__ T reduce_warp(T value, unsigned count, Op const& op) {
  unsigned const lane = threadIdx.x % 32;
  // Devices since architecture 8.0 reduce a word in one instruction.
  constexpr bool is_word = __CUDA_ARCH__ >= 800 && std::is_same_v<T, std::uint32_t>;
  if constexpr (is_word && std::is_same_v<Op, add>) {
    return __reduce_add_sync(~0u, lane < count ? value : T{0});
  } else if constexpr (is_word && std::is_same_v<Op, take_larger>) {
    return __reduce_max_sync(~0u, lane < count ? value : T{0});
  } else if constexpr (is_word && std::is_same_v<Op, take_smaller>) {
    return __reduce_min_sync(~0u, lane < count ? value : ~T{0});
  } else if constexpr (__CUDA_ARCH__ >= 800 && std::is_same_v<Op, unite_bits>) {
    return shuffle_words(lane < count ? value : T{0},
                         [](unsigned word) { return __reduce_or_sync(~0u, word); });
  } else {
    // A step requires many instructions for a large value. Therefore only small values are
    // unrolled.
#pragma unroll(sizeof(T) > 8 ? 1 : 5)
    for (unsigned distance = 16; distance != 0; distance /= 2) {
      T const other = shuffle_down(value, distance);
      if (lane + distance < count) value = op(value, other);
    }
    return value;
  }
}

/// Returns in each lane the `op` over the values of the lanes up to this one.
template <class T, class Op>
[[nodiscard]] __device__ T scan_warp(T value, Op const& op) {
  unsigned const lane = threadIdx.x % 32;
  for (unsigned distance = 1; distance != 32; distance *= 2) {
    T const other = shuffle_up(value, distance);
    if (lane >= distance) value = op(other, value);
  }
  return value;
}

#endif

/// The 32 threads of one warp, a `thread_team`.
class device_warp {
 public:
  template <class F, class Op, class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T reduce([[maybe_unused]] std::size_t n,
                                             [[maybe_unused]] F const& f,
                                             [[maybe_unused]] Op const& op, T init) {
#if defined(__CUDA_ARCH__)
    if (n == 0) {
      __syncwarp();
      return init;
    }
    unsigned const active = n < 32 ? static_cast<unsigned>(n) : 32;
    unsigned const lane = threadIdx.x % 32;
    // The values of idle lanes are never used.
    T value = init;
    if (lane < active) {
      value = f(std::size_t{lane});
      for (std::size_t i = std::size_t{lane} + 32; i < n; i += 32) value = op(value, f(i));
    }
    value = shuffle_from(reduce_warp(value, active, op), 0);
    __syncwarp();
    return op(init, value);
#else
    return init;
#endif
  }

  template <class F>
  OMNIBAL_HOST_DEVICE void once([[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x % 32 == 0) f();
    __syncwarp();
#endif
  }
};

#if defined(__CUDA_ARCH__)

/// Calls `f(i)` for the indices of a thread: i and every `Threads`-th index after i, below n.
template <int Threads, bool IsCompact, class F>
__device__ void for_own(std::size_t i, std::size_t n, F const& f) {
  if constexpr (IsCompact) {
#pragma unroll 1
    for (; i < n; i += Threads) f(i);
  } else {
    for (; i < n; i += Threads) f(i);
  }
}

/// Returns in all threads of a block the `op` over the values of the first `active` threads.
/// `of_warps_at` is the address of shared memory for a value of each warp. The parameter is an
/// address, because a function that is not inlined cannot see that a pointer points to shared
/// memory. The function is not inlined, because kernels with many reductions would otherwise exceed
/// the instruction cache.
template <class T, class Op>
[[nodiscard, gnu::noinline]] __device__ T reduce_block(std::size_t of_warps_at, T value,
                                                       unsigned active, Op op) {
  T* const of_warps = static_cast<T*>(__cvta_shared_to_generic(of_warps_at));
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  if (warp * 32 < active) {
    value = reduce_warp(value, active - warp * 32 < 32 ? active - warp * 32 : 32, op);
    if (lane == 0) of_warps[warp] = value;
  }
  __syncthreads();
  // Every warp repeats this reduction, which avoids another barrier.
  unsigned const active_warps = (active + 31) / 32;
  T const total = of_warps[lane < active_warps ? lane : 0];
  return shuffle_from(reduce_warp(total, active_warps, op), 0);
}

/// Calls `write(i, f(i), r)` for all `i < n`, in a block. r is the `op` over `carry` and `f` of the
/// indices up to i. Returns the `op` over `carry` and `f` of all indices. A warp processes
/// neighboring rows of 32 indices. `f` is called twice for each index. `of_warps` is shared memory
/// for a value of each warp.
template <int Threads, class T, class F, class Op, class Write>
__device__ T scan_block(T* of_warps, std::size_t n, F const& f, Op const& op, T const& neutral,
                        T const& carry, Write const& write) {
  constexpr unsigned warps = Threads / 32;
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  std::size_t const rows = (n + Threads - 1) / Threads;
  std::size_t const begin = warp * rows * 32 + lane;
  auto const value = [&](std::size_t i) { return i < n ? f(i) : neutral; };

  T sum = neutral;
#pragma unroll 1
  for (std::size_t row = 0; row != rows; ++row) sum = op(sum, value(begin + 32 * row));
  sum = reduce_warp(sum, 32, op);
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  // Every warp repeats this scan, which avoids another barrier.
  T const warps_up_to = scan_warp(lane < warps ? of_warps[lane] : neutral, op);
  T const others = shuffle_from(warps_up_to, warp == 0 ? 0 : warp - 1);
  T before = warp == 0 ? carry : op(carry, others);
#pragma unroll 1
  for (std::size_t row = 0; row != rows; ++row) {
    std::size_t const i = begin + 32 * row;
    T const own = value(i);
    T const up_to = op(before, scan_warp(own, op));
    if (i < n) write(i, own, up_to);
    before = shuffle_from(up_to, 31);
  }
  __syncthreads();
  return op(carry, shuffle_from(warps_up_to, warps - 1));
}

#endif

/// A radix sort of keys and their numbers by a block. It sorts the numbers by one digit of the keys
/// after the other, and then permutes the keys. A key has one or two words of 32 bits. A warp ranks
/// the digits of 32 keys at a time, by ballots.
template <int Threads>
struct digit_sort {
  static constexpr unsigned warps = Threads / 32;
  static constexpr unsigned digit_bits = warps <= 16 ? 6 : 5;
  static constexpr unsigned digits = 1u << digit_bits;
  /// The distance from the counters of a warp to the counters of the next warp, in elements. It
  /// places them in different banks of the shared memory.
  static constexpr unsigned digit_stride = warps <= 16 ? digits + 2 : digits;
  static constexpr std::size_t counter_bytes =
      (warps * digit_stride * sizeof(std::uint16_t) + 15) / 16 * 16;
  /// The largest number of keys that one thread sorts, and that the block sorts.
  static constexpr unsigned sorted_of_thread = 16;
  static constexpr unsigned sorted_keys = sorted_of_thread * Threads;

  /// The shared memory: a word for each warp, and counters in `counter_bytes` bytes.
  unsigned* of_warps;
  std::uint16_t* counters;

#if defined(__CUDA_ARCH__)
  /// Sorts keys that differ in the bits `differing`, and their numbers. The parameters are
  /// addresses in shared memory, because a function that is not inlined cannot see that a pointer
  /// points there.
  [[gnu::noinline]] __device__ static void sort(std::size_t keys_at, unsigned key_words,
                                                std::size_t numbers_at, std::size_t reserved_at,
                                                unsigned n, std::uint64_t differing) {
    auto* const keys = static_cast<std::uint32_t*>(__cvta_shared_to_generic(keys_at));
    auto* const numbers = static_cast<std::uint32_t*>(__cvta_shared_to_generic(numbers_at));
    auto* const reserved = static_cast<unsigned char*>(__cvta_shared_to_generic(reserved_at));
    digit_sort const by_digits{reinterpret_cast<unsigned*>(reserved),
                               reinterpret_cast<std::uint16_t*>(reserved + Threads)};
    auto const low =
        static_cast<unsigned>(omnibal::detail::bit_width(differing & (0 - differing)) - 1);
    auto const high = static_cast<unsigned>(omnibal::detail::bit_width(differing));
    unsigned const passes = (high - low + digit_bits - 1) / digit_bits;
    unsigned const width = (high - low + passes - 1) / passes;
    for (unsigned bit = low; bit < high; bit += width) {
      by_digits.sort_digit(keys, key_words, numbers, n, bit, (1u << width) - 1);
    }
    for (unsigned word = 0; word != key_words; ++word) permute(keys + word, key_words, numbers, n);
  }

 private:
  /// Sorts the numbers of keys by one digit of the keys, stably. A word contains, above its number,
  /// the digit and the count of earlier keys of its warp with this digit.
  __device__ void sort_digit(std::uint32_t const* keys, unsigned key_words, std::uint32_t* words,
                             unsigned n, unsigned bit, unsigned mask) const {
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
      // Rows behind the last key have the largest digit. They follow all keys and do not change the
      // rank of a key.
      std::uint64_t const key =
          key_words == 1 ? keys[number] : reinterpret_cast<std::uint64_t const*>(keys)[number];
      unsigned const digit = i < n ? static_cast<unsigned>(key >> bit) & mask : digits - 1;
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

  /// Permutes one word of each key into the order of the numbers.
  __device__ static void permute(std::uint32_t* keys, unsigned key_words,
                                 std::uint32_t const* numbers, unsigned n) {
    std::uint32_t moved[sorted_of_thread];
    for_rows([&](unsigned j) {
      unsigned const i = threadIdx.x + j * Threads;
      moved[j] = i < n ? keys[numbers[i] * key_words] : 0;
    });
    __syncthreads();
    for_rows([&](unsigned j) {
      unsigned const i = threadIdx.x + j * Threads;
      if (i < n) keys[i * key_words] = moved[j];
    });
    __syncthreads();
  }

  /// Calls `f(j)` for each key of a thread, unrolled, so that arrays of `sorted_of_thread` elements
  /// are registers.
  template <class F>
  __device__ static void for_rows(F const& f) {
    [&]<unsigned... J>(std::integer_sequence<unsigned, J...>) { (f(J), ...); }
    (std::make_integer_sequence<unsigned, sorted_of_thread>{});
  }

  /// Replaces the counters of digits by the number of keys before: the keys with a lower digit, and
  /// the keys with the same digit in earlier warps.
  __device__ void count_digits_before() const {
    constexpr unsigned of_thread = digits / 32;
    unsigned counts[of_thread];
    unsigned sum = 0;
    for (unsigned k = 0; k != of_thread; ++k) {
      counts[k] = *counter_at(of_thread * threadIdx.x + k);
      sum += counts[k];
    }
    scan_block<Threads>(
        of_warps, Threads, [&](std::size_t) { return sum; }, add{}, 0u, 0u,
        [&](std::size_t, unsigned, unsigned up_to) {
          unsigned before = up_to - sum;
          for (unsigned k = 0; k != of_thread; ++k) {
            *counter_at(of_thread * threadIdx.x + k) = static_cast<std::uint16_t>(before);
            before += counts[k];
          }
        });
  }
  /// Returns counter k, in the order of the digits and, within a digit, of the warps.
  [[nodiscard]] __device__ std::uint16_t* counter_at(unsigned k) const {
    return counters + k % warps * digit_stride + k / warps;
  }
#endif
};

/// A `thread_block` on the device: `Threads` threads with their dynamic shared memory, of which the
/// first `reserved_bytes` belong to the class. Every phase ends with a barrier. Every thread
/// executes the code between phases for itself. Host code may name the members, but only device
/// code may call them. If `IsCompact` is true, `for_each` and `reduce` do not unroll their loops
/// over indices.
template <int Threads, bool IsCompact = false>
class device_block {
  /// The number of bytes for values that warps exchange during a sort. The sort counts digits in
  /// the reserved memory behind these bytes.
  static constexpr std::size_t exchange_bytes = std::size_t{Threads};

 public:
  static constexpr std::size_t reserved_bytes = exchange_bytes + digit_sort<Threads>::counter_bytes;
  /// The number of bytes for values that warps exchange in one phase, except during a sort: half of
  /// the reserved memory, at least 48 bytes for each warp. Consecutive phases use different halves.
  static constexpr std::size_t turn_bytes = reserved_bytes / 2 / arena_alignment * arena_alignment;

  OMNIBAL_HOST_DEVICE explicit device_block(unsigned char* shared)
      : exchange_(shared), free_(shared + reserved_bytes) {}

  /// Calls `f(i)` for all `i < n`, in any order, concurrently.
  template <class F>
  OMNIBAL_HOST_DEVICE void for_each([[maybe_unused]] std::size_t n, [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for_own<Threads, IsCompact>(threadIdx.x, n, f);
    __syncthreads();
#endif
  }

  /// Calls `f(i)` for all `i < n`, in any order, concurrently, if `f` does little except load from
  /// device memory. Several loads of a thread are in flight at once.
  template <class F>
  OMNIBAL_HOST_DEVICE void for_each_load([[maybe_unused]] std::size_t n,
                                         [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for_own<Threads, false>(threadIdx.x, n, f);
    __syncthreads();
#endif
  }

  /// Calls `f(warp, i)` for all `i < n`, in any order, concurrently. A whole warp runs each call.
  template <class F>
  OMNIBAL_HOST_DEVICE void for_each_warp([[maybe_unused]] std::size_t n,
                                         [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for (std::size_t i = threadIdx.x / 32; i < n; i += Threads / 32) {
      device_warp warp;
      f(warp, i);
    }
    __syncthreads();
#endif
  }

  /// Returns the `op` over `init` and `f(i)` for all `i < n`. `op` is associative and commutative.
  template <class F, class Op, class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T reduce([[maybe_unused]] std::size_t n,
                                             [[maybe_unused]] F const& f,
                                             [[maybe_unused]] Op const& op, T init) {
#if defined(__CUDA_ARCH__)
    if (n == 0) {
      __syncthreads();
      return init;
    }
    unsigned const active = n < Threads ? static_cast<unsigned>(n) : Threads;
    // The values of idle threads are never used.
    T value = init;
    if (threadIdx.x < active) {
      value = f(std::size_t{threadIdx.x});
      for_own<Threads, IsCompact>(threadIdx.x + Threads, n,
                                  [&](std::size_t i) { value = op(value, f(i)); });
    }
    return op(init, reduce_block(__cvta_generic_to_shared(next_exchange<T>()), value, active, op));
#else
    return init;
#endif
  }

  /// Calls `done(i, r)` for all `i < n`, in any order, concurrently. The value r is the `op` over
  /// `f(i, j)` for all `j < m`. `op` is associative and commutative, and `neutral` is its neutral
  /// element. `f` must not read the values that `done` writes.
  template <class F, class Op, class T, class Done>
  OMNIBAL_HOST_DEVICE void reduce_each([[maybe_unused]] std::size_t n,
                                       [[maybe_unused]] std::size_t m, [[maybe_unused]] F const& f,
                                       [[maybe_unused]] Op const& op, [[maybe_unused]] T neutral,
                                       [[maybe_unused]] Done const& done) {
#if defined(__CUDA_ARCH__)
    // Several neighboring lanes share one i. Their number is the largest power of two, at most 32,
    // for which one pass covers all i, or 1 if there is none.
    unsigned lane_bits = 5;
    while (lane_bits != 0 && n << lane_bits > Threads) --lane_bits;
    unsigned const lanes = 1u << lane_bits;
    unsigned const lane = threadIdx.x & (lanes - 1);
    for (std::size_t first = 0; first < n; first += std::size_t{Threads} >> lane_bits) {
      std::size_t const i = first + (threadIdx.x >> lane_bits);
      T value = neutral;
      if (i < n) {
        for (std::size_t j = lane; j < m; j += lanes) value = op(value, f(i, j));
      }
      for (unsigned distance = lanes / 2; distance != 0; distance /= 2) {
        value = op(value, shuffle_down(value, distance));
      }
      if (i < n && lane == 0) done(i, value);
    }
    __syncthreads();
#endif
  }

  /// Replaces each element by the sum of the elements before it. Returns the sum of all elements.
  template <class T>
  OMNIBAL_HOST_DEVICE T exclusive_sum(T* data, std::size_t n) {
    return exclusive_sum_of(
        n, [=](std::size_t i) { return data[i]; }, data);
  }

  /// Writes to `out[i]` the sum of `f(j)` for all `j < i`. Returns the sum for all `i < n`. `f(i)`
  /// may read `out[i]`, and is called twice.
  template <class F, class T>
  OMNIBAL_HOST_DEVICE T exclusive_sum_of([[maybe_unused]] std::size_t n,
                                         [[maybe_unused]] F const& f, [[maybe_unused]] T* out) {
#if defined(__CUDA_ARCH__)
    return scan_block<Threads>(
        next_exchange<T>(), n, [&](std::size_t i) { return static_cast<T>(f(i)); }, add{}, T{}, T{},
        [&](std::size_t i, T value, T up_to) { out[i] = static_cast<T>(up_to - value); });
#else
    return T{};
#endif
  }

  /// Writes to `out[i]` the `op` over `carry` and `f(j)` for all `j <= i`. Returns the `op` over
  /// `carry` and `f(i)` for all `i < n`. `f(i)` may read `out[i]`, and is called twice. `op` is
  /// associative and commutative, and `neutral` is its neutral element.
  template <class F, class T, class Op>
  OMNIBAL_HOST_DEVICE T inclusive_scan_of([[maybe_unused]] std::size_t n,
                                          [[maybe_unused]] F const& f, [[maybe_unused]] T* out,
                                          [[maybe_unused]] Op const& op,
                                          [[maybe_unused]] std::type_identity_t<T> neutral,
                                          std::type_identity_t<T> carry) {
#if defined(__CUDA_ARCH__)
    return scan_block<Threads>(
        next_exchange<T>(), n, [&](std::size_t i) { return static_cast<T>(f(i)); }, op, neutral,
        carry, [&](std::size_t i, T const& /*value*/, T const& up_to) { out[i] = up_to; });
#else
    return carry;
#endif
  }

  /// Calls `f()` in one thread.
  template <class F>
  OMNIBAL_HOST_DEVICE void once([[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x == 0) f();
    __syncthreads();
#endif
  }

  /// Returns true in the last of the `blocks` blocks of a launch that call the function, and false
  /// in the other blocks. The last block sees all earlier writes of the other blocks. `*arrived`
  /// must be zero before the launch, and is zero again after it.
  [[nodiscard]] OMNIBAL_HOST_DEVICE bool is_last_of([[maybe_unused]] std::size_t blocks,
                                                    [[maybe_unused]] std::uint32_t* arrived) {
#if defined(__CUDA_ARCH__)
    __syncthreads();
    bool* const is_last = next_exchange<bool>();
    if (threadIdx.x == 0) {
      auto const all = static_cast<std::uint32_t>(blocks);
      __threadfence();
      *is_last = atomic_add(arrived, 1) + 1 == all;
      if (*is_last) static_cast<void>(atomic_add(arrived, 0 - all));
      __threadfence();
    }
    __syncthreads();
    return *is_last;
#else
    return false;
#endif
  }

  /// Returns the next `count` elements of the shared memory of the block, uninitialized.
  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* take(std::size_t count) {
    return free_.take<T>(count);
  }

  /// Sorts keys in shared memory in ascending order. Writes to `numbers`, also in shared memory,
  /// the position that each key had before the sort. Equal keys keep their order. A thread sorts at
  /// most 16 keys.
  ///
  /// The sort proceeds by digits from the lowest to the highest bit in which keys differ. Only the
  /// numbers move until all digits are sorted.
  template <class Key>
  OMNIBAL_HOST_DEVICE void sort_numbered([[maybe_unused]] Key* keys,
                                         [[maybe_unused]] std::uint32_t* numbers,
                                         [[maybe_unused]] std::size_t n) {
#if defined(__CUDA_ARCH__)
    if (n == 0) return;
    Key const first = keys[0];
    std::uint64_t const differing = reduce(
        n,
        [&](std::size_t i) {
          numbers[i] = static_cast<std::uint32_t>(i);
          return std::uint64_t{keys[i] ^ first};
        },
        unite_bits{}, std::uint64_t{0});
    // The sort overwrites the memory in which the reduction exchanged values.
    __syncthreads();
    if (differing == 0) return;
    digit_sort<Threads>::sort(__cvta_generic_to_shared(keys), sizeof(Key) / sizeof(std::uint32_t),
                              __cvta_generic_to_shared(numbers),
                              __cvta_generic_to_shared(exchange_), static_cast<unsigned>(n),
                              differing);
#endif
  }

 private:
#if defined(__CUDA_ARCH__)
  /// Returns memory for a value of each warp. This is not the memory of the last call, which a slow
  /// thread may still read.
  template <class T>
  [[nodiscard]] __device__ T* next_exchange() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) * (Threads / 32) <= turn_bytes);
    turn_ ^= 1;
    return reinterpret_cast<T*>(exchange_ + turn_ * turn_bytes);
  }
#endif

  unsigned char* exchange_;
  memory_arena free_;
  unsigned turn_ = 0;
};

static_assert(thread_block<device_block<512>> && thread_team<device_warp>);

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
