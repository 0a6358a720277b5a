// SPDX-License-Identifier: Apache-2.0
#pragma once

// What nvcc gives to device code, for a compiler of the host. Programs for a device are compiled
// with this file before all others (-include): then their kernels are functions that `launch` of
// launch.hpp runs on threads of a block as a device does.

// Headers that must not see __CUDA_ARCH__.
#include "device_atomics.hpp"
#include "launch.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <chrono>
#include <cmath>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <cuda_runtime.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace stand_in {

inline unsigned lane() { return position().thread % lanes; }

struct one_dimension {
  unsigned x;
};

template <class... A, std::size_t... I>
cudaError_t launch_kernel(launch_shape const& shape, void (*kernel)(A...), void** arguments,
                          cudaStream_t stream, std::index_sequence<I...>) {
  // The values when the call returns, as a launch takes them.
  std::tuple<A...> const values(*static_cast<A*>(arguments[I])...);
  return launch(stream, shape, reinterpret_cast<void const*>(kernel),
                [kernel, values] { std::apply(kernel, values); });
}

}  // namespace stand_in

template <class... A>
cudaError_t cudaLaunchKernel(void (*kernel)(A...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return stand_in::launch_kernel({grid.x, block.x, shared_bytes, false}, kernel, arguments, stream,
                                 std::index_sequence_for<A...>{});
}
template <class... A>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(A...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  return stand_in::launch_kernel({grid.x, block.x, shared_bytes, true}, kernel, arguments, stream,
                                 std::index_sequence_for<A...>{});
}

inline unsigned __shfl_sync(unsigned mask, unsigned value, unsigned from) {
  return stand_in::meet_lanes(stand_in::collective::shuffle, mask, value, from % stand_in::lanes);
}
inline unsigned __shfl_down_sync(unsigned mask, unsigned value, unsigned distance) {
  unsigned const lane = stand_in::lane();
  unsigned const from = lane + distance < stand_in::lanes ? lane + distance : lane;
  return stand_in::meet_lanes(stand_in::collective::shuffle_down, mask, value, from);
}
inline unsigned __shfl_up_sync(unsigned mask, unsigned value, unsigned distance) {
  unsigned const lane = stand_in::lane();
  unsigned const from = lane >= distance ? lane - distance : lane;
  return stand_in::meet_lanes(stand_in::collective::shuffle_up, mask, value, from);
}
inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, unsigned other) {
  unsigned const from = (stand_in::lane() ^ other) % stand_in::lanes;
  return stand_in::meet_lanes(stand_in::collective::shuffle_xor, mask, value, from);
}
inline unsigned __ballot_sync(unsigned mask, int says) {
  return stand_in::meet_lanes(stand_in::collective::ballot, mask, says != 0 ? 1 : 0,
                              stand_in::lane());
}
inline void __syncwarp(unsigned mask = ~0u) {
  stand_in::meet_lanes(stand_in::collective::sync, mask, 0, stand_in::lane());
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return stand_in::meet_lanes(stand_in::collective::reduce_add, mask, value, stand_in::lane());
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
  return stand_in::meet_lanes(stand_in::collective::reduce_min, mask, value, stand_in::lane());
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return stand_in::meet_lanes(stand_in::collective::reduce_max, mask, value, stand_in::lane());
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return stand_in::meet_lanes(stand_in::collective::reduce_or, mask, value, stand_in::lane());
}
inline void __syncthreads() { stand_in::wait_for_block(); }
inline std::size_t __cvta_generic_to_shared(void const* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
inline void* __cvta_shared_to_generic(std::size_t address) {
  return reinterpret_cast<void*>(address);
}
[[noreturn]] inline void __trap() { stand_in::trap(); }
inline void __threadfence() { stand_in::order_memory(); }

namespace cooperative_groups {

struct grid_group {
  void sync() const { stand_in::wait_for_grid(); }
};
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups

#define __launch_bounds__(...)
#define __CUDA_ARCH__ 800
#define threadIdx (stand_in::one_dimension{stand_in::position().thread})
#define blockIdx (stand_in::one_dimension{stand_in::position().block})
#define gridDim (stand_in::one_dimension{stand_in::position().blocks})
