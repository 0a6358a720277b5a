// SPDX-License-Identifier: Apache-2.0
// A shared library that shuffles, packs and balances on the device. Two of them contain the same
// kernels; LIBRARY_FUNCTION names what each exports.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpu = omnibal::gpu;

namespace {

template <class T>
gpu::device_array<T> filled(gpu::execution<> const& exec, std::size_t size, T value) {
  return gpu::upload(exec, std::vector<T>(size, value));
}

/// One part for each sample, so that they come out in their order.
bool balances(gpu::execution<> const& exec, std::size_t size) {
  auto const costs = filled<std::int64_t>(exec, size, 1);
  gpu::device_array<std::uint32_t> const offsets(exec, size + 1);
  gpu::device_array<std::uint32_t> const items(exec, size);
  gpu::lpt(exec, costs.span(), size, {}, {{offsets.span(), items.span(), {}}});
  std::vector<std::uint32_t> const balanced = gpu::download(exec, items);
  for (std::uint32_t i = 0; i != size; ++i) {
    if (balanced[i] != i) return false;
  }
  return true;
}

/// One group for each sample.
bool packs(gpu::execution<> const& exec, std::size_t size) {
  auto const demands = filled<std::int64_t>(exec, size, 1);
  omnibal::resources<1> const capacity{1};
  gpu::device_packing<> const packed(exec, size);
  gpu::isf(exec, demands, capacity, {}, omnibal::reaches_most(capacity), packed.out());
  return packed.download(exec, "isf").groups.size() == size;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void LIBRARY_FUNCTION(
    std::uint64_t seed, std::vector<std::uint32_t>& order) {
  auto const exec = gpu::on(cudaStreamPerThread);
  gpu::device_array<std::uint32_t> const out(exec, order.size());
  gpu::feistel(exec, omnibal::rng::feistel{seed}, 0, out.span());
  order = gpu::download(exec, out);
  if (!balances(exec, order.size()) || !packs(exec, order.size())) order.clear();
}
