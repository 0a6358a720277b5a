// SPDX-License-Identifier: Apache-2.0
// The collectives of a block beside those of CUB, each in a kernel of its own: what `kernels.sh
// show` counts in them is in docs/dev/gpu_kernels.md. Nothing here runs.

#include <omnibal/cuda/detail/device_block.cuh>

#include <cstddef>
#include <cstdint>

#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

namespace {

constexpr int threads = 512;
constexpr int items = 8;

// No loop is unrolled, here and with CUB.
using block_type = omnibal::gpu::detail::device_block<threads, true>;

struct larger {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return a < b ? b : a;
  }
};

struct less {
  __device__ bool operator()(std::uint64_t a, std::uint64_t b) const { return a < b; }
};

/// The shared memory of a block: what its collectives take, then so many numbers.
__device__ std::uint64_t* numbers_of(unsigned char* shared) {
  return reinterpret_cast<std::uint64_t*>(shared + block_type::reserved_bytes);
}

extern __shared__ __align__(16) unsigned char shared[];

}  // namespace

// The largest of n numbers in shared memory, which all threads get.

extern "C" __global__ void __launch_bounds__(threads)
    own_reduce(std::size_t n, std::uint64_t* out) {
  block_type block(shared);
  auto const* const numbers = numbers_of(shared);
  std::uint64_t const most = block.reduce(
      n, [=](std::size_t i) { return numbers[i]; }, larger{}, std::uint64_t{0});
  out[threadIdx.x] = most;
}

extern "C" __global__ void __launch_bounds__(threads)
    cub_reduce(std::size_t n, std::uint64_t* out) {
  using reduce = cub::BlockReduce<std::uint64_t, threads>;
  __shared__ typename reduce::TempStorage storage;
  __shared__ std::uint64_t most;
  auto const* const numbers = numbers_of(shared);
  std::uint64_t own = 0;
#pragma unroll 1
  for (std::size_t i = threadIdx.x; i < n; i += threads) own = larger{}(own, numbers[i]);
  std::uint64_t const all = reduce(storage).Reduce(own, larger{});
  if (threadIdx.x == 0) most = all;
  __syncthreads();
  out[threadIdx.x] = most;
}

// The sums of the first of n numbers in shared memory, in place.

extern "C" __global__ void __launch_bounds__(threads) own_scan(std::size_t n) {
  block_type block(shared);
  block.exclusive_sum(numbers_of(shared), n);
}

extern "C" __global__ void __launch_bounds__(threads) cub_scan(std::size_t n) {
  using scan = cub::BlockScan<std::uint64_t, threads>;
  __shared__ typename scan::TempStorage storage;
  auto* const numbers = numbers_of(shared);
  std::uint64_t before = 0;
#pragma unroll 1
  for (std::size_t first = 0; first < n; first += threads) {
    std::size_t const i = first + threadIdx.x;
    std::uint64_t value = i < n ? numbers[i] : 0;
    std::uint64_t sum = 0;
    scan(storage).ExclusiveSum(value, value, sum);
    if (i < n) numbers[i] = before + value;
    before += sum;
    __syncthreads();
  }
}

// 4096 numbers in shared memory, sorted stably, with the place that each had.

extern "C" __global__ void __launch_bounds__(threads) own_sort(std::size_t n) {
  block_type block(shared);
  auto* const numbers = numbers_of(shared);
  block.sort_numbered(numbers, reinterpret_cast<std::uint32_t*>(numbers + threads * items), n);
}

extern "C" __global__ void __launch_bounds__(threads) cub_radix_sort(int end_bit) {
  using sort = cub::BlockRadixSort<std::uint64_t, threads, items, std::uint32_t>;
  auto* const numbers = numbers_of(shared);
  auto* const places = reinterpret_cast<std::uint32_t*>(numbers + threads * items);
  auto& storage = *reinterpret_cast<typename sort::TempStorage*>(places + threads * items);
  std::uint64_t key[items];
  std::uint32_t place[items];
  for (int k = 0; k != items; ++k) {
    place[k] = threadIdx.x * items + static_cast<unsigned>(k);
    key[k] = numbers[place[k]];
  }
  sort(storage).Sort(key, place, 0, end_bit);
  for (int k = 0; k != items; ++k) {
    numbers[threadIdx.x * items + static_cast<unsigned>(k)] = key[k];
    places[threadIdx.x * items + static_cast<unsigned>(k)] = place[k];
  }
}

extern "C" __global__ void __launch_bounds__(threads) cub_merge_sort() {
  using sort = cub::BlockMergeSort<std::uint64_t, threads, items, std::uint32_t>;
  auto* const numbers = numbers_of(shared);
  auto* const places = reinterpret_cast<std::uint32_t*>(numbers + threads * items);
  auto& storage = *reinterpret_cast<typename sort::TempStorage*>(places + threads * items);
  std::uint64_t key[items];
  std::uint32_t place[items];
  for (int k = 0; k != items; ++k) {
    place[k] = threadIdx.x * items + static_cast<unsigned>(k);
    key[k] = numbers[place[k]];
  }
  sort(storage).StableSort(key, place, less{});
  for (int k = 0; k != items; ++k) {
    numbers[threadIdx.x * items + static_cast<unsigned>(k)] = key[k];
    places[threadIdx.x * items + static_cast<unsigned>(k)] = place[k];
  }
}
