#pragma once

/// \file
/// A scan of one value of each thread of a block.

#include <omnibal/cuda/detail/device_warp.cuh>

#include <type_traits>

namespace omnibal::inline v0::gpu::detail {

/// `op` over the threads up to this one, and over all.
template <class T>
struct tile_scan {
  T up_to;
  T all;
};

#if defined(__CUDA_ARCH__)

/// Scans, and ends with a barrier. `exchange` is shared memory of 32 bytes for each warp.
template <int Threads, class T, class Op>
[[nodiscard]] __device__ tile_scan<T> scan_tile(unsigned char* exchange, T const& value,
                                                Op const& op, T const& neutral) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 32);
  constexpr unsigned warps = Threads / 32;
  unsigned const warp = threadIdx.x / 32;
  unsigned const lane = threadIdx.x % 32;
  T* const of_warps = reinterpret_cast<T*>(exchange);
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

}  // namespace omnibal::inline v0::gpu::detail
