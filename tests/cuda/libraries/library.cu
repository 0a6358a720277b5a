// A shared library that shuffles and balances on the device. Two of them contain the same kernels;
// LIBRARY_FUNCTION names what each exports.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/outputs.hpp>
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

  // One part for each sample, so that they come out in their order.
  gpu::device_array<std::int64_t> const costs =
      gpu::upload(exec, std::vector<std::int64_t>(order.size(), 1));
  gpu::device_array<std::uint32_t> const offsets(exec, order.size() + 1);
  gpu::device_array<std::uint32_t> const items(exec, order.size());
  gpu::lpt(exec, costs.span(), order.size(), {}, {{offsets.span(), items.span(), {}}});
  std::vector<std::uint32_t> const balanced = gpu::download(exec, items);
  for (std::uint32_t i = 0; i != balanced.size(); ++i) {
    if (balanced[i] != i) order.clear();
  }
}
