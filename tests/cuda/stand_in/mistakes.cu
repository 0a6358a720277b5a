// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each, which the stand-in or the thread sanitizer over it must report,
// and the same kernels without it. usage: mistakes NAME wrong|right

#include <omnibal/cuda/detail/integers.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace {

namespace gpu = omnibal::gpu;

constexpr unsigned blocks = 2;
constexpr unsigned threads = 64;
constexpr unsigned half = 16;

__device__ unsigned lane() { return threadIdx.x % 32; }
/// The words of the block that asks.
__device__ unsigned* own(unsigned* words) { return words + blockIdx.x * threads; }

/// Adds one: `+=` loses what others add at once.
__device__ void count(unsigned* word, bool is_right) {
  if (is_right) {
    static_cast<void>(gpu::detail::atomic_add(word, 1u));
  } else {
    *word += 1;
  }
}

/// No barrier at all.
__global__ void update_of_threads(unsigned* words, bool is_right) { count(words, is_right); }

/// The threads of a block wait for each other, but no block for another one.
__global__ void update_of_blocks(unsigned* words, bool is_right) {
  for (int k = 0; k != 3; ++k) __syncthreads();
  if (threadIdx.x == 0) count(words, is_right);
  for (int k = 0; k != 3; ++k) __syncthreads();
}

/// Other barriers before and after it do not help.
__global__ void missing_barrier(unsigned* words, bool is_right) {
  unsigned* const mine = own(words);
  __syncthreads();
  mine[threadIdx.x] = threadIdx.x;
  if (is_right) __syncthreads();
  unsigned const other = mine[threads - 1 - threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = other;
  __syncthreads();
}

__global__ void missing_warp_barrier(unsigned* words, bool is_right) {
  unsigned* const mine = own(words) + (threadIdx.x - lane());
  __syncwarp();
  mine[lane()] = lane();
  if (is_right) __syncwarp();
  unsigned const other = mine[31 - lane()];
  __syncwarp();
  mine[lane()] = other;
}

/// Lanes that have met in a shuffle may not see yet what others have written.
__global__ void shuffle_for_barrier(unsigned* words, bool is_right) {
  unsigned* const mine = own(words) + (threadIdx.x - lane());
  mine[lane()] = lane();
  static_cast<void>(__shfl_sync(~0u, lane(), 0));
  if (is_right) __syncwarp();
  unsigned const other = mine[31 - lane()];
  __syncwarp();
  mine[lane()] = other;
}

/// The last block adds up what the others have written before.
__device__ void add_up(unsigned* words, bool has_first_fence, bool has_last_fence) {
  unsigned* const arrived = words + blocks * threads;
  own(words)[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (has_first_fence) __threadfence();
  bool const is_last = gpu::detail::atomic_add(arrived, 1u) + 1 == blocks;
  if (has_last_fence) __threadfence();
  if (!is_last) return;
  for (unsigned k = 1; k != blocks * threads; ++k) words[0] += words[k];
}
__global__ void missing_first_fence(unsigned* words, bool is_right) {
  add_up(words, is_right, true);
}
__global__ void missing_last_fence(unsigned* words, bool is_right) {
  add_up(words, true, is_right);
}

/// Fences order nothing where no atomic operation is between them.
__global__ void fences_alone(unsigned* words, bool is_right) {
  __threadfence();
  if (threadIdx.x == 0) count(words, is_right);
  __threadfence();
}

__global__ void two_collectives(unsigned* words, bool is_right) {
  if (lane() < half || is_right) {
    own(words)[threadIdx.x] = __ballot_sync(~0u, 1);
  } else {
    __syncwarp();
  }
}

__global__ void two_masks(unsigned* words, bool is_right) {
  unsigned const mask = lane() < half && !is_right ? (1u << half) - 1 : ~0u;
  own(words)[threadIdx.x] = __shfl_sync(mask, lane(), 0);
}

__global__ void unnamed_lane(unsigned* words, bool is_right) {
  own(words)[threadIdx.x] = __shfl_sync(is_right ? ~0u : 1u, lane(), 0);
}

__global__ void unnamed_source(unsigned* words, bool is_right) {
  if (lane() >= half) return;
  unsigned const source = is_right ? lane() ^ 1 : half;
  own(words)[threadIdx.x] = __shfl_sync((1u << half) - 1, lane(), source);
}

struct mistake {
  std::string_view name;
  void (*kernel)(unsigned*, bool);
};
constexpr mistake mistakes[] = {
    {"update_of_threads", update_of_threads},
    {"update_of_blocks", update_of_blocks},
    {"missing_barrier", missing_barrier},
    {"missing_warp_barrier", missing_warp_barrier},
    {"shuffle_for_barrier", shuffle_for_barrier},
    {"missing_first_fence", missing_first_fence},
    {"missing_last_fence", missing_last_fence},
    {"fences_alone", fences_alone},
    {"two_collectives", two_collectives},
    {"two_masks", two_masks},
    {"unnamed_lane", unnamed_lane},
    {"unnamed_source", unnamed_source},
};

void run(mistake const& each, bool is_right) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<unsigned> const words(exec, std::size_t{blocks} * threads + 1);
  unsigned* data = words.data();
  gpu::check(cudaMemsetAsync(data, 0, words.size() * sizeof(unsigned), exec.stream()));
  void* arguments[] = {&data, &is_right};
  gpu::check(
      cudaLaunchKernel(each.kernel, dim3(blocks), dim3(threads), arguments, 0, exec.stream()));
  exec.synchronize();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  for (mistake const& each : mistakes) {
    if (each.name != arguments[1]) continue;
    run(each, arguments[2] == std::string_view("right"));
    std::puts("the kernel has ended");
    return 0;
  }
  return 2;
}
