// SPDX-License-Identifier: Apache-2.0
// The stand-in does what a device does, and shows what would be wrong on one.

#include "catch.hpp"
#include "launch.hpp"

#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;
using stand_in::thread_order;

constexpr std::array orders{thread_order::ascending, thread_order::descending,
                            thread_order::random};
constexpr unsigned threads = 96;

std::vector<unsigned> run(void (*kernel)(unsigned*), unsigned blocks, bool is_cooperative = false) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<unsigned> const out(exec, std::size_t{blocks} * threads);
  unsigned* data = out.data();
  void* arguments[] = {&data};
  std::size_t const bytes = threads * sizeof(unsigned);
  gpu::check(is_cooperative ? cudaLaunchCooperativeKernel(kernel, dim3(blocks), dim3(threads),
                                                          arguments, bytes, exec.stream())
                            : cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments,
                                               bytes, exec.stream()));
  return gpu::download(exec, out);
}

unsigned* shared() { return reinterpret_cast<unsigned*>(stand_in::dynamic_shared_memory()); }

__global__ void write_index(unsigned* out) {
  unsigned const index = blockIdx.x * threads + threadIdx.x;
  out[index] = index;
}

__global__ void turn_around(unsigned* out) {
  shared()[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[blockIdx.x * threads + threadIdx.x] = shared()[threads - 1 - threadIdx.x];
}

/// With accesses that no sanitizer complains of.
__global__ void turn_around_without_barrier(unsigned* out) {
  __atomic_store_n(shared() + threadIdx.x, threadIdx.x, __ATOMIC_RELAXED);
  out[blockIdx.x * threads + threadIdx.x] =
      __atomic_load_n(shared() + threads - 1 - threadIdx.x, __ATOMIC_RELAXED);
}

__global__ void shuffle_around(unsigned* out) {
  unsigned const lane = threadIdx.x % 32;
  unsigned const from = __shfl_sync(~0u, threadIdx.x, 31 - lane);
  unsigned const up = __shfl_up_sync(~0u, from, 1);
  unsigned const down = __shfl_down_sync(~0u, up, 2);
  unsigned const other = __shfl_xor_sync(~0u, down, 16);
  out[threadIdx.x] = other + __ballot_sync(~0u, lane % 3 == 0 ? 1 : 0);
}

__global__ void pass_between_blocks(unsigned* out) {
  out[blockIdx.x * threads + threadIdx.x] = blockIdx.x * threads + threadIdx.x;
  cooperative_groups::this_grid().sync();
  unsigned const from = (blockIdx.x + 1) % gridDim.x;
  unsigned const value = out[from * threads + threadIdx.x];
  cooperative_groups::this_grid().sync();
  out[blockIdx.x * threads + threadIdx.x] = value;
}

TEST_CASE("a kernel runs every thread once", "[stand_in]") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  auto const out = run(write_index, 7);
  for (unsigned i = 0; i != out.size(); ++i) REQUIRE(out[i] == i);
}

TEST_CASE("a barrier puts what comes before it first", "[stand_in]") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  auto const out = run(turn_around, 2);
  for (unsigned i = 0; i != out.size(); ++i) REQUIRE(out[i] == threads - 1 - i % threads);
}

TEST_CASE("without a barrier the order of the threads shows", "[stand_in]") {
  stand_in::set_thread_order(thread_order::ascending);
  auto const ascending = run(turn_around_without_barrier, 1);
  stand_in::set_thread_order(thread_order::descending);
  auto const descending = run(turn_around_without_barrier, 1);
  CHECK(ascending != descending);
  CHECK(ascending != run(turn_around, 1));
}

TEST_CASE("lanes see each other's values", "[stand_in]") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  auto const out = run(shuffle_around, 1);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; lane += 3) ballot |= 1u << lane;
  for (unsigned i = 0; i != threads; ++i) {
    unsigned const first = i / 32 * 32;
    auto const from = [&](unsigned lane) { return first + 31 - lane; };
    auto const up = [&](unsigned lane) { return from(lane == 0 ? 0 : lane - 1); };
    auto const down = [&](unsigned lane) { return up(lane + 2 < 32 ? lane + 2 : lane); };
    REQUIRE(out[i] == down(i % 32 ^ 16) + ballot);
  }
}

TEST_CASE("blocks of a cooperative grid wait for each other", "[stand_in]") {
  stand_in::set_thread_order(GENERATE(from_range(orders)));
  auto const out = run(pass_between_blocks, 3, true);
  for (unsigned i = 0; i != out.size(); ++i) REQUIRE(out[i] == (i + threads) % out.size());
}

TEST_CASE("a launch that a device refuses is refused", "[stand_in]") {
  unsigned* none = nullptr;
  void* arguments[] = {&none};
  auto const launch = [&](unsigned blocks, unsigned block, std::size_t bytes) {
    return cudaLaunchKernel(write_index, dim3(blocks), dim3(block), arguments, bytes, nullptr);
  };
  CHECK(launch(0, 32, 0) == cudaErrorInvalidValue);
  CHECK(launch(1, 2048, 0) == cudaErrorInvalidValue);
  CHECK(launch(1, 32, stand_in::usual_shared_bytes + 1) == cudaErrorInvalidValue);
  CHECK(cudaLaunchCooperativeKernel(write_index, dim3(1000), dim3(32), arguments, 0, nullptr) ==
        cudaErrorCooperativeLaunchTooLarge);
}

TEST_CASE("the sort of the stand-in is stable and looks at the bits it is told", "[stand_in]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  std::vector<std::uint32_t> keys;
  for (std::uint32_t i = 0; i != 1000; ++i) keys.push_back(i * 2654435761u);
  std::vector<std::uint32_t> values(keys.size());
  std::iota(values.begin(), values.end(), 0u);
  int const bits = GENERATE(0, 5, 8, 13, 16, 24);
  auto const on_device = gpu::upload(exec, keys);
  auto const moved = gpu::upload(exec, values);
  gpu::detail::run_on_device(exec, [&](auto& backend) {
    backend.sort_pairs(on_device.data(), moved.data(), keys.size(), 4, 4 + bits);
  });
  auto const digits = [&](std::uint32_t i) { return keys[i] >> 4 & ((1u << bits) - 1); };
  std::stable_sort(values.begin(), values.end(),
                   [&](auto left, auto right) { return digits(left) < digits(right); });
  CHECK(gpu::download(exec, moved) == values);
}

TEST_CASE("a step with too little temporary memory is refused", "[stand_in]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<std::uint32_t> const data(exec, 100);
  gpu::device_array<std::byte> const temporary(exec, 4096);
  using sort = gpu::detail::device_sort<std::uint32_t, std::uint32_t>;
  bool in_place = true;
  auto const run = [&](void* memory, std::size_t& bytes) {
    return sort::pairs(memory, bytes, 20, data.data(), data.data() + 20, data.data() + 40,
                       data.data() + 60, 0, 32, exec.stream(), in_place);
  };
  std::size_t bytes = 0;
  gpu::check(run(nullptr, bytes));
  CHECK(bytes != 0);
  --bytes;
  CHECK(run(temporary.data(), bytes) != cudaSuccess);
}

}  // namespace
