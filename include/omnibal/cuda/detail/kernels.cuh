#pragma once

/// \file
/// The kernels that the algorithms of cuda/ are made of.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/device_block.cuh>
#include <omnibal/cuda/detail/shared_memory.cuh>
#include <omnibal/cuda/error.hpp>

#include <cstddef>
#include <type_traits>

#include <cuda_runtime.h>

namespace omnibal::inline v0::gpu::detail {

/// The threads of a block of `for_each_kernel`.
inline constexpr unsigned for_each_threads = 256;

// Hidden, so that of two shared libraries with the same kernels each launches its own. (As an
// attribute of a kernel this would be refused for functors in unnamed namespaces.)
#pragma GCC visibility push(hidden)

template <class F>
__global__ void __launch_bounds__(for_each_threads) for_each_kernel(std::size_t n, F const f) {
  std::size_t const i = std::size_t{blockIdx.x} * for_each_threads + threadIdx.x;
  if (i < n) f(i);
}

template <int Threads, class F>
__global__ void __launch_bounds__(Threads) for_each_block_kernel(F const f) {
  device_block<Threads> block(shared_memory());
  f(block, std::size_t{blockIdx.x});
}

/// What a launch may take as an argument.
template <class F>
inline constexpr bool is_kernel_functor = std::is_trivially_copyable_v<F> && sizeof(F) <= 4000;

template <class F>
void launch_for_each(cudaStream_t stream, std::size_t n, F f) {
  static_assert(is_kernel_functor<F>);
  if (n == 0) return;
  std::size_t const blocks = (n + for_each_threads - 1) / for_each_threads;
  if (blocks > 0x7fffffffu) omnibal::detail::throw_length("gpu", "a launch", n);
  void* arguments[] = {&n, &f};
  check(cudaLaunchKernel(&for_each_kernel<F>, dim3(static_cast<unsigned>(blocks)),
                         dim3(for_each_threads), arguments, 0, stream));
}

/// Lets a kernel take more shared memory than every kernel may: as much as the device has, so that of
/// two threads that launch it with different amounts none takes away what the other has asked for.
inline void allow_shared_bytes(void const* kernel, std::size_t bytes) {
  constexpr std::size_t usual_bytes = 48 * 1024;
  if (bytes <= usual_bytes) return;
  int device = 0;
  int most = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
}

template <int Threads, class F>
void launch_for_each_block(cudaStream_t stream, std::size_t blocks, std::size_t shared_bytes, F f) {
  static_assert(is_kernel_functor<F>);
  static_assert(Threads % 32 == 0 && Threads >= 32 && Threads <= 1024);
  if (blocks == 0) return;
  if (blocks > 0x7fffffffu) omnibal::detail::throw_length("gpu", "a launch of blocks", blocks);
  auto* const kernel = &for_each_block_kernel<Threads, F>;
  std::size_t const bytes = shared_bytes + device_block<Threads>::reserved_bytes;
  allow_shared_bytes(reinterpret_cast<void const*>(kernel), bytes);
  void* arguments[] = {&f};
  check(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(Threads), arguments,
                         bytes, stream));
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
