#pragma once

/// \file
/// A block of threads on the device that works in phases; `serial_block` is its twin.

#include <omnibal/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

#if defined(__CUDA_ARCH__)

/// The value of another lane, word by word; every lane of the warp takes part.
template <class T, class Shuffle>
[[nodiscard]] __device__ T shuffle_words(T const& value, Shuffle const& shuffle) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  unsigned copy[words] = {};
  __builtin_memcpy(copy, &value, sizeof(T));
  for (unsigned k = 0; k != words; ++k) copy[k] = shuffle(copy[k]);
  T result;
  __builtin_memcpy(&result, copy, sizeof(T));
  return result;
}

/// Of the lane `distance` above this one.
template <class T>
[[nodiscard]] __device__ T shuffle_down(T const& value, unsigned distance) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_down_sync(~0u, word, distance); });
}

/// Of the lane `distance` below this one.
template <class T>
[[nodiscard]] __device__ T shuffle_up(T const& value, unsigned distance) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_up_sync(~0u, word, distance); });
}

/// Of one lane, for all.
template <class T>
[[nodiscard]] __device__ T shuffle_from(T const& value, unsigned lane) {
  return shuffle_words(value, [=](unsigned word) { return __shfl_sync(~0u, word, lane); });
}

/// In lane 0: `op` over the values of the first `count` lanes, `count > 0`.
template <class T, class Op>
[[nodiscard]] __device__ T reduce_warp(T value, unsigned count, Op const& op) {
  unsigned const lane = threadIdx.x % 32;
  for (unsigned distance = 16; distance != 0; distance /= 2) {
    T const other = shuffle_down(value, distance);
    if (lane + distance < count) value = op(value, other);
  }
  return value;
}

/// In each lane: `op` over the lanes up to this one.
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

/// The 32 threads of one warp; `serial_warp` is the twin.
class device_warp {
 public:
  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr unsigned threads() { return 32; }

  template <class F>
  OMNIBAL_HOST_DEVICE void for_each([[maybe_unused]] std::size_t n, [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for (std::size_t i = threadIdx.x % 32; i < n; i += 32) f(i);
    __syncwarp();
#endif
  }

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
    // What idle lanes hold is never looked at.
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

/// `Threads` threads with their dynamic shared memory, of which the first `reserved_bytes` are the
/// block's own. Host code may name the members, only device code may call them. What they take and
/// give is said in `serial_block`.
template <int Threads>
class device_block {
 public:
  /// Values that pass from warp to warp lie here, at most 32 bytes for each of at most 32 warps.
  static constexpr std::size_t reserved_bytes = 1024;
  static constexpr std::size_t alignment = 16;

  OMNIBAL_HOST_DEVICE explicit device_block(unsigned char* shared)
      : exchange_(shared), free_(shared + reserved_bytes) {}

  [[nodiscard]] OMNIBAL_HOST_DEVICE static constexpr unsigned threads() { return Threads; }

  template <class F>
  OMNIBAL_HOST_DEVICE void for_each([[maybe_unused]] std::size_t n, [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for (std::size_t i = threadIdx.x; i < n; i += Threads) f(i);
    __syncthreads();
#endif
  }

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

  template <class F, class Op, class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T reduce([[maybe_unused]] std::size_t n,
                                             [[maybe_unused]] F const& f,
                                             [[maybe_unused]] Op const& op, T init) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32);
#if defined(__CUDA_ARCH__)
    if (n == 0) {
      __syncthreads();
      return init;
    }
    unsigned const active = n < Threads ? static_cast<unsigned>(n) : Threads;
    unsigned const warp = threadIdx.x / 32;
    unsigned const lane = threadIdx.x % 32;
    // What idle threads hold is never looked at.
    T value = init;
    if (threadIdx.x < active) {
      value = f(std::size_t{threadIdx.x});
      for (std::size_t i = std::size_t{threadIdx.x} + Threads; i < n; i += Threads) {
        value = op(value, f(i));
      }
    }
    T* const of_warps = reinterpret_cast<T*>(exchange_);
    if (warp * 32 < active) {
      value = reduce_warp(value, active - warp * 32 < 32 ? active - warp * 32 : 32, op);
      if (lane == 0) of_warps[warp] = value;
    }
    __syncthreads();
    // Every warp does the same, which costs no further barrier.
    unsigned const warps = (active + 31) / 32;
    T total = of_warps[lane < warps ? lane : 0];
    total = shuffle_from(reduce_warp(total, warps, op), 0);
    __syncthreads();
    return op(init, total);
#else
    return init;
#endif
  }

  template <class T>
  OMNIBAL_HOST_DEVICE T exclusive_sum([[maybe_unused]] T* data, [[maybe_unused]] std::size_t n) {
    T sum{};
#if defined(__CUDA_ARCH__)
    auto const plus = [](T const& left, T const& right) { return static_cast<T>(left + right); };
    for (std::size_t first = 0; first < n; first += Threads) {
      std::size_t const i = first + threadIdx.x;
      T const value = i < n ? data[i] : T{};
      tile_scan<T> const tile = scan_tile(value, plus, T{});
      if (i < n) data[i] = plus(sum, static_cast<T>(tile.up_to - value));
      sum = plus(sum, tile.all);
    }
    __syncthreads();
#endif
    return sum;
  }

  template <class T, class Op>
  OMNIBAL_HOST_DEVICE T inclusive_scan([[maybe_unused]] T* data, [[maybe_unused]] std::size_t n,
                                       [[maybe_unused]] Op const& op,
                                       [[maybe_unused]] std::type_identity_t<T> neutral,
                                       std::type_identity_t<T> carry) {
#if defined(__CUDA_ARCH__)
    for (std::size_t first = 0; first < n; first += Threads) {
      std::size_t const i = first + threadIdx.x;
      tile_scan<T> const tile = scan_tile(i < n ? data[i] : neutral, op, neutral);
      if (i < n) data[i] = op(carry, tile.up_to);
      carry = op(carry, tile.all);
    }
    __syncthreads();
#endif
    return carry;
  }

  template <class F>
  OMNIBAL_HOST_DEVICE void once([[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    if (threadIdx.x == 0) f();
    __syncthreads();
#endif
  }

  template <class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T* shared(std::size_t count) {
    T* const result = reinterpret_cast<T*>(free_);
    free_ += (count * sizeof(T) + alignment - 1) / alignment * alignment;
    return result;
  }

  /// A bitonic network in which every comparison puts the smaller pair first, so that the pairs that
  /// are missing at the end of a power of two need no place. Source: Batcher, 1968.
  template <class Key, class Value>
  OMNIBAL_HOST_DEVICE void sort_pairs([[maybe_unused]] Key* keys, [[maybe_unused]] Value* values,
                                      [[maybe_unused]] std::size_t n) {
#if defined(__CUDA_ARCH__)
    for (std::size_t width = 2; width / 2 < n; width *= 2) {
      for_each(n, [&](std::size_t i) {
        std::size_t const partner = i ^ (width - 1);
        if (partner > i && partner < n) order_pair(keys, values, i, partner);
      });
      for (std::size_t distance = width / 4; distance != 0; distance /= 2) {
        for_each(n, [&](std::size_t i) {
          std::size_t const partner = i ^ distance;
          if (partner > i && partner < n) order_pair(keys, values, i, partner);
        });
      }
    }
#endif
  }

 private:
  /// `op` over the threads up to this one, and over all.
  template <class T>
  struct tile_scan {
    T up_to;
    T all;
  };

#if defined(__CUDA_ARCH__)
  /// Scans one value of each thread, and ends with a barrier.
  template <class T, class Op>
  [[nodiscard]] __device__ tile_scan<T> scan_tile(T const& value, Op const& op, T const& neutral) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32);
    constexpr unsigned warps = Threads / 32;
    unsigned const warp = threadIdx.x / 32;
    unsigned const lane = threadIdx.x % 32;
    T* const of_warps = reinterpret_cast<T*>(exchange_);
    T const up_to = scan_warp(value, op);
    if (lane == 31) of_warps[warp] = up_to;
    __syncthreads();
    T const warps_up_to = scan_warp(lane < warps ? of_warps[lane] : neutral, op);
    T const before = shuffle_from(warps_up_to, warp == 0 ? 0 : warp - 1);
    T const all = shuffle_from(warps_up_to, warps - 1);
    __syncthreads();
    return {warp == 0 ? up_to : op(before, up_to), all};
  }
#endif

  template <class Key, class Value>
  OMNIBAL_HOST_DEVICE static void order_pair(Key* keys, Value* values, std::size_t i,
                                             std::size_t j) {
    Key const left = keys[i];
    Key const right = keys[j];
    if (left < right || (left == right && !(values[j] < values[i]))) return;
    keys[i] = right;
    keys[j] = left;
    Value const value = values[i];
    values[i] = values[j];
    values[j] = value;
  }

  unsigned char* exchange_;
  unsigned char* free_;
};

}  // namespace omnibal::inline v0::gpu::detail
