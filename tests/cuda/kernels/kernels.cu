// SPDX-License-Identifier: Apache-2.0
// Calls every algorithm once, so that its kernels are compiled; nothing here runs.

#include <omnibal/cuda/best_fit_rounds.cuh>
#include <omnibal/cuda/cu_seqlens.cuh>
#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/feistel.cuh>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/metrics.cuh>
#include <omnibal/cuda/refine_parts.cuh>
#include <omnibal/cuda/spill_experts.cuh>
#include <omnibal/cuda/split_experts.cuh>

#include <cstddef>
#include <cstdint>

namespace gpu = omnibal::gpu;

namespace {

template <std::size_t Kinds>
using demand = omnibal::resources<Kinds, std::int64_t>;

template <class T>
using input = gpu::device_span<T const>;

}  // namespace

void balance(gpu::execution<> const& exec, gpu::cost_steps const& steps,
             gpu::part_span const& out) {
  gpu::deal(exec, steps, 8, out);
  gpu::lpt(exec, steps, 8, {}, out);
  gpu::refine_parts(exec, steps, 8, {}, out);
  gpu::refine_parts(exec, steps, gpu::device_groups(out.groups), {}, out);
}

template <std::size_t Kinds>
void pack(gpu::execution<> const& exec, input<demand<Kinds>> demands,
          gpu::packing_span const& out) {
  demand<Kinds> capacity{};
  for (std::size_t kind = 0; kind != Kinds; ++kind) capacity[kind] = 4096;
  gpu::isf(exec, demands, capacity, {}, omnibal::reaches_most(capacity), out);
}
template void pack<1>(gpu::execution<> const&, input<demand<1>>, gpu::packing_span const&);
template void pack<3>(gpu::execution<> const&, input<demand<3>>, gpu::packing_span const&);

void best_fit(gpu::execution<> const& exec, input<std::int64_t> demands,
              gpu::packing_span const& out) {
  gpu::best_fit_rounds(exec, demands, 4096, {}, out);
}

void measure(gpu::execution<> const& exec, gpu::device_groups groups, input<std::int64_t> lengths,
             gpu::device_span<demand<1>> loads, gpu::device_span<double> ratio,
             gpu::sequence_offsets_span const& out) {
  gpu::group_loads(exec, groups, lengths, loads);
  gpu::cu_seqlens(exec, groups, lengths, out);
  gpu::pad_ratio(exec, lengths, ratio);
  gpu::pad_ratio(exec, groups, lengths, ratio);
}

void split(gpu::execution<> const& exec, input<std::int64_t> tokens, input<std::uint32_t> slots,
           gpu::expert_split_span const& out) {
  gpu::split_experts(exec, tokens, slots, 8, {}, out);
}

void spill(gpu::execution<> const& exec, input<std::int64_t> tokens, input<std::uint32_t> home,
           gpu::spill_plan_span const& out) {
  gpu::spill_experts(exec, tokens, home, 8, {}, out);
}
