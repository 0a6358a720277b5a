// A shared library that shuffles on the device. Two of them contain the same kernels;
// LIBRARY_FUNCTION names what each exports.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/rng/feistel.hpp>

#include <cstdint>
#include <vector>

namespace gpu = omnibal::gpu;

extern "C" __attribute__((visibility("default"))) void LIBRARY_FUNCTION(
    std::uint64_t seed, std::vector<std::uint32_t>& order) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<std::uint32_t> const out(exec, order.size());
  gpu::feistel(exec, omnibal::rng::feistel{seed}, 0, out.span());
  order = gpu::download(exec, out);
}
