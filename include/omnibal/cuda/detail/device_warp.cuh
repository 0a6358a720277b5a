#pragma once

/// \file
/// The threads of one warp: values that pass between lanes, and the warp as algorithms see it.

#include <omnibal/config.hpp>

#include <cstddef>

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

/// Bit k: what lane k says.
[[nodiscard]] __device__ inline unsigned ballot(bool says) { return __ballot_sync(~0u, says); }

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

/// The 32 threads of one warp, with members as a block has them.
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

}  // namespace omnibal::inline v0::gpu::detail
