// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a functor on one block of the device, or on blocks that make one grid, and waits for its
// end.

#include "launch.hpp"

#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/detail/device_block.cuh>
#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/error.hpp>

#include <array>
#include <cstddef>
#include <vector>

#include <cuda_runtime_api.h>

namespace stand_in {

inline constexpr std::array orders{thread_order::ascending, thread_order::descending,
                                   thread_order::random};

/// Calls `body()` on each thread.
template <class Body>
void run_threads(launch_shape const& shape, Body const& body) {
  static constexpr char kernel = 0;
  omnibal::gpu::check(allow_shared_bytes(&kernel, shape.shared_bytes));
  omnibal::gpu::check(launch(cudaStreamPerThread, shape, &kernel, body));
  omnibal::gpu::check(cudaStreamSynchronize(cudaStreamPerThread));
}

/// Calls `f(block)` on `Threads` threads that make one block.
template <int Threads, class F>
void run_block(std::size_t shared_bytes, F const& f) {
  using block_type = omnibal::gpu::detail::device_block<Threads>;
  run_threads({1, Threads, block_type::reserved_bytes + shared_bytes, false}, [&] {
    block_type block(dynamic_shared_memory());
    f(block);
  });
}

/// Calls `f(grid)` on `blocks` blocks of `Threads` threads that make one grid.
template <int Threads, class F>
void run_grid(unsigned blocks, std::size_t shared_bytes, F const& f) {
  using block_type = omnibal::gpu::detail::device_block<Threads>;
  std::vector<unsigned char> exchange(omnibal::gpu::detail::grid_exchange_bytes);
  run_threads({blocks, Threads, block_type::reserved_bytes + shared_bytes, true}, [&] {
    omnibal::gpu::detail::device_grid<Threads> grid(dynamic_shared_memory(), exchange.data());
    f(grid);
  });
}

}  // namespace stand_in
