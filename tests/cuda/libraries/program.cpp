// SPDX-License-Identifier: Apache-2.0
// Calls two shared libraries with the same kernels, in turns. Returns 77 where there is no device.

#include <omnibal/rng/feistel.hpp>

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>

extern "C" void first_library(std::uint64_t seed, std::vector<std::uint32_t>& order);
extern "C" void second_library(std::uint64_t seed, std::vector<std::uint32_t>& order);

namespace {

bool gives_the_same(void (*library)(std::uint64_t, std::vector<std::uint32_t>&),
                    std::uint64_t seed) {
  std::vector<std::uint32_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0u);
  omnibal::rng::feistel{seed}(std::span(expected), 0);
  std::vector<std::uint32_t> order(expected.size());
  library(seed, order);
  return order == expected;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: linked, but there is no CUDA device to run on");
    return 77;
  }
  int major = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    // The second one is compiled for compute capability 9.0.
    if (gives_the_same(first_library, seed) && (major < 9 || gives_the_same(second_library, seed)))
      continue;
    std::puts("a library differs from the host");
    return 1;
  }
}
