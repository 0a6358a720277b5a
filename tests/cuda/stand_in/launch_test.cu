// SPDX-License-Identifier: Apache-2.0
// What launches ask the driver, how many blocks a grid has, and whose errors are reported.

#include "catch.hpp"
#include "launch.hpp"
#include "runtime.hpp"

#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

namespace gpu = omnibal::gpu;

/// Takes more shared memory than a kernel may unasked.
struct take_much {
  static constexpr std::size_t shared_bytes = 60 * 1024;

  template <class Block>
  OMNIBAL_HOST_DEVICE void operator()(Block& block, std::size_t) const {
    static_cast<void>(block.template take<std::byte>(shared_bytes));
  }
};

struct write_blocks {
  unsigned* out;

  template <class Grid>
  OMNIBAL_HOST_DEVICE void operator()(Grid& grid) const {
    grid.once([&] { *out = gridDim.x; });
  }
};

void launch_both(gpu::device_span<unsigned> blocks, std::size_t threads) {
  gpu::detail::run_on_device(gpu::on(cudaStreamPerThread), [&](auto& backend) {
    backend.template for_each_block<64>(2, take_much::shared_bytes, take_much{});
    backend.template for_grid<64>(threads, take_much::shared_bytes, write_blocks{blocks.data()});
  });
}

/// What a driver is asked in one launch of each kind, and in a second one, by a thread of its own:
/// the stream of a thread belongs to the device that was current first.
std::array<unsigned, 2> queries_on(int device) {
  std::array<unsigned, 2> result{};
  std::thread([&] {
    gpu::check(cudaSetDevice(device));
    auto const exec = gpu::on(cudaStreamPerThread);
    gpu::device_array<unsigned> const blocks(exec, 1);
    for (unsigned& count : result) {
      unsigned const before = stand_in::calls().queries;
      launch_both(blocks.span(), 1);
      count = stand_in::calls().queries - before;
    }
    exec.synchronize();
  }).join();
  return result;
}

}  // namespace

TEST_CASE("a driver is asked once for each kernel and device", "[launch]") {
  // The shared memory of a device and that of a kernel, twice, and the multiprocessors.
  CHECK(queries_on(1) == std::array{5u, 0u});
  CHECK(queries_on(2) == std::array{5u, 0u});
  CHECK(queries_on(1) == std::array{0u, 0u});
}

TEST_CASE("threads that launch at once may all ask the driver, and then none does", "[launch]") {
  std::vector<std::thread> threads;
  for (int k = 0; k != 4; ++k) threads.emplace_back([] { static_cast<void>(queries_on(3)); });
  for (auto& thread : threads) thread.join();
  CHECK(queries_on(3) == std::array{0u, 0u});
}

TEST_CASE("a grid has one block for each multiprocessor and no more than it needs", "[launch]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<unsigned> const blocks(exec, 1);
  launch_both(blocks.span(), 63);
  CHECK(gpu::download(exec, blocks)[0] == 1);
  launch_both(blocks.span(), 64);
  CHECK(gpu::download(exec, blocks)[0] == 2);
  launch_both(blocks.span(), 1'000'000);
  CHECK(gpu::download(exec, blocks)[0] == stand_in::multiprocessors());
}

TEST_CASE("an error that the program left is not that of an algorithm", "[launch]") {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<std::uint32_t> const data =
      gpu::upload(exec, std::vector<std::uint32_t>{4, 3, 2, 1, 0, 1, 2, 3});
  CHECK(cudaSetDevice(99) != cudaSuccess);
  CHECK_NOTHROW(gpu::detail::run_on_device(
      exec, [&](auto& backend) { backend.sort_pairs(data.data(), data.data() + 4, 4); }));
  CHECK(gpu::download(exec, data) == std::vector<std::uint32_t>{1, 2, 3, 4, 3, 2, 1, 0});
}
