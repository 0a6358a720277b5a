// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A grid of blocks on the device that run at the same time in phases, and its kernel.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_block.cuh>
#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/error.hpp>

#if defined(__CUDACC__)
#include <cooperative_groups.h>
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <cuda_runtime.h>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

/// A `thread_group` of blocks that run at the same time. Every phase ends with a barrier for all
/// blocks. Every thread executes the code between phases for itself. This code may read the results
/// of a phase, and no phase may change them before the next barrier but one. Host code may name the
/// members, but only device code may call them.
template <int Threads>
class device_grid {
 public:
  OMNIBAL_HOST_DEVICE device_grid(unsigned char* shared, unsigned char* exchange)
      : block_(shared), exchange_(exchange) {}

  /// Calls `f(i)` for all `i < n`, in any order, concurrently.
  template <class F>
  OMNIBAL_HOST_DEVICE void for_each([[maybe_unused]] std::size_t n, [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for (std::size_t i = std::size_t{blockIdx.x} * Threads + threadIdx.x; i < n;
         i += std::size_t{gridDim.x} * Threads) {
      f(i);
    }
    barrier();
#endif
  }

  /// Calls `f(block, i)` for all `i < n`, in any order, concurrently. A whole block runs each call,
  /// with its own shared memory.
  template <class F>
  OMNIBAL_HOST_DEVICE void for_each_block([[maybe_unused]] std::size_t n,
                                          [[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    for (std::size_t i = blockIdx.x; i < n; i += gridDim.x) {
      device_block<Threads> block = block_;
      f(block, i);
      __syncthreads();
    }
    barrier();
#endif
  }

  /// Returns the `op` over `init` and `f(i)` for all `i < n`. `op` is associative and commutative.
  template <class F, class Op, class T>
  [[nodiscard]] OMNIBAL_HOST_DEVICE T reduce([[maybe_unused]] std::size_t n,
                                             [[maybe_unused]] F const& f,
                                             [[maybe_unused]] Op const& op, T init) {
#if defined(__CUDA_ARCH__)
    part const mine = part_of(n);
    T* const of_blocks = next_exchange<T>();
    if (mine.first < mine.last) {
      T const first = f(mine.first);
      T const value = block_.reduce(
          mine.last - mine.first - 1, [&](std::size_t i) { return f(mine.first + 1 + i); }, op,
          first);
      if (threadIdx.x == 0) of_blocks[blockIdx.x] = value;
    }
    barrier();
    return block_.reduce(
        mine.used, [&](std::size_t b) { return of_blocks[b]; }, op, init);
#else
    return init;
#endif
  }

  /// Writes to `out[i]` the `op` over `f(j)` for all `j <= i`. Returns the last result, or
  /// `neutral` if there is none. `op` is associative and commutative, and `neutral` is its neutral
  /// element. `f(i)` is called three times, and may read `out[i]`.
  template <class F, class T, class Op>
  OMNIBAL_HOST_DEVICE T inclusive_scan_of([[maybe_unused]] std::size_t n,
                                          [[maybe_unused]] F const& f, [[maybe_unused]] T* out,
                                          [[maybe_unused]] Op const& op,
                                          std::type_identity_t<T> neutral) {
#if defined(__CUDA_ARCH__)
    part const mine = part_of(n);
    T* const of_blocks = next_exchange<T>();
    std::size_t const size = mine.first < mine.last ? mine.last - mine.first : 0;
    T const sum = block_.reduce(
        size, [&](std::size_t i) { return f(mine.first + i); }, op, neutral);
    if (threadIdx.x == 0) of_blocks[blockIdx.x] = sum;
    barrier();
    auto const of_block = [&](std::size_t b) { return of_blocks[b]; };
    T const before =
        block_.reduce(smaller_of<std::size_t>(blockIdx.x, mine.used), of_block, op, neutral);
    T const all = block_.reduce(mine.used, of_block, op, neutral);
    if (size != 0) {
      block_.inclusive_scan_of(
          size, [&](std::size_t i) { return f(mine.first + i); }, out + mine.first, op, neutral,
          before);
    }
    barrier();
    return all;
#else
    return neutral;
#endif
  }

  /// Returns the number of indices below `n` before the first one for which `holds` is false.
  /// `holds` must be false for all later indices too. Each block computes the result by itself,
  /// without a barrier for the other blocks. Therefore the function may be called on a copy of the
  /// grid.
  template <class Predicate>
  [[nodiscard]] OMNIBAL_HOST_DEVICE std::size_t partition_point(
      [[maybe_unused]] std::size_t n, [[maybe_unused]] Predicate const& holds) {
    std::size_t first = 0;
#if defined(__CUDA_ARCH__)
    // In each turn every thread tests one index, and the answer is between two neighboring tested
    // indices.
    while (n != 0) {
      std::size_t const step = (n + Threads - 1) / Threads;
      std::size_t const probes = (n - 1) / step;
      std::uint32_t const true_probes = block_.reduce(
          probes, [&](std::size_t k) { return holds(first + (k + 1) * step - 1) ? 1u : 0u; }, add{},
          0u);
      first += true_probes * step;
      n = true_probes == probes ? n - probes * step : step - 1;
      if (step == 1) {
        // All of these indices except the last one were probes.
        if (true_probes == probes && holds(first)) ++first;
        break;
      }
    }
    // If this object is a copy, the original does not know which half of the exchange memory was
    // used last. After this barrier, both halves are free.
    __syncthreads();
#endif
    return first;
  }

  /// Calls `f()` in one thread of the grid.
  template <class F>
  OMNIBAL_HOST_DEVICE void once([[maybe_unused]] F const& f) {
#if defined(__CUDA_ARCH__)
    if (blockIdx.x == 0 && threadIdx.x == 0) f();
    barrier();
#endif
  }

 private:
#if defined(__CUDA_ARCH__)
  /// The indices [first, last) that a block processes, and the number of blocks with indices.
  struct part {
    std::size_t first;
    std::size_t last;
    std::size_t used;
  };

  [[nodiscard]] __device__ static part part_of(std::size_t n) {
    // Blocks process whole tiles, so that neighboring threads read neighboring elements.
    std::size_t const tiles = parts_of(n, Threads);
    std::size_t const size = parts_of(tiles, gridDim.x) * Threads;
    std::size_t const first = blockIdx.x * size;
    return {smaller_of(first, n), smaller_of(first + size, n), n == 0 ? 0 : parts_of(n, size)};
  }

  template <class T>
  [[nodiscard]] __device__ T* next_exchange() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 48);
    turn_ = 1 - turn_;
    return reinterpret_cast<T*>(exchange_ + turn_ * (grid_exchange_bytes / 2));
  }

  [[gnu::noinline]] __device__ static void barrier() {
    if (gridDim.x == 1) {
      __syncthreads();
    } else {
      cooperative_groups::this_grid().sync();
    }
  }
#endif

  device_block<Threads> block_;
  unsigned char* exchange_;
  unsigned turn_ = 0;
};

template <int Threads, class F>
__global__ void __launch_bounds__(Threads, min_blocks_of<F>())
    grid_kernel(__grid_constant__ F const f, unsigned char* exchange) {
  device_grid<Threads> grid(shared_memory(), exchange);
  f(grid);
}

/// Launches blocks with `threads` threads in all, at most one for each multiprocessor. The grid
/// starts only when all of its blocks have room next to the work of other streams. It should
/// therefore not request all multiprocessors.
template <int Threads, class F>
struct grid_launch {
  static void run(cudaStream_t stream, std::size_t threads, std::size_t shared_bytes, F f,
                  unsigned char* exchange) {
    static_assert(is_kernel_functor<F>);
    static device_attribute_cache processors;
    static device_attribute_cache allowed;
    auto* const kernel = &grid_kernel<Threads, F>;
    std::size_t const bytes = shared_bytes + device_block<Threads>::reserved_bytes;
    allow_shared_bytes(reinterpret_cast<void const*>(kernel), bytes, allowed);
    int const most =
        processors([](int device) { return attribute(device, cudaDevAttrMultiProcessorCount); });
    std::size_t const blocks =
        std::min({threads / Threads + 1, static_cast<std::size_t>(most), max_grid_blocks});
    void* arguments[] = {&f, &exchange};
    check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(Threads),
                                      arguments, bytes, stream));
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
