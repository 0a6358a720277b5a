#pragma once

/// \file
/// The kernel of an algorithm whose blocks all run at once.

#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/grid_exchange.hpp>
#include <omnibal/cuda/detail/kernels.cuh>
#include <omnibal/cuda/detail/shared_memory.cuh>
#include <omnibal/cuda/error.hpp>

#include <algorithm>
#include <cstddef>

#include <cuda_runtime.h>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

template <int Threads, class F>
__global__ void __launch_bounds__(Threads) grid_kernel(F const f, unsigned char* exchange) {
  device_grid<Threads> grid(shared_memory(), exchange);
  f(grid);
}

/// Launches as many blocks as `items` indices keep busy and as can run at once.
template <int Threads, class F>
struct grid_launch {
  static void run(cudaStream_t stream, std::size_t items, std::size_t shared_bytes, F f,
                  unsigned char* exchange) {
    static_assert(is_kernel_functor<F>);
    auto* const kernel = &grid_kernel<Threads, F>;
    auto const* const address = reinterpret_cast<void const*>(kernel);
    std::size_t const bytes = shared_bytes + device_block<Threads>::reserved_bytes;
    allow_shared_bytes(address, bytes);
    // A thread with fewer indices than this costs more in barriers than it saves.
    constexpr std::size_t least_indices = 4;
    std::size_t const wanted = items / (Threads * least_indices) + 1;
    std::size_t const blocks =
        wanted == 1 ? 1 : std::min({wanted, resident_blocks(address, bytes), most_grid_blocks});
    void* arguments[] = {&f, &exchange};
    check(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(Threads),
                                      arguments, bytes, stream));
  }

 private:
  /// How many blocks of a kernel run at once on the current device; at least one.
  [[nodiscard]] static std::size_t resident_blocks(void const* kernel, std::size_t shared_bytes) {
    int device = 0;
    int processors = 0;
    int blocks = 0;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, Threads, shared_bytes));
    return std::max<std::size_t>(
        static_cast<std::size_t>(processors) * static_cast<std::size_t>(blocks), 1);
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
