// SPDX-License-Identifier: Apache-2.0
// What CCCL calls a stream, a span and a vector goes into the algorithms as it is; nothing here
// runs.

#include <omnibal/cuda/deal.cuh>
#include <omnibal/cuda/group_loads.cuh>
#include <omnibal/cuda/isf.cuh>

#include <cstdint>

#include <cuda/std/span>
#include <cuda/stream_ref>
#include <thrust/device_vector.h>
#if CCCL_VERSION >= 3005000
#include <cuda/std/execution>
#include <cuda/stream>
#endif

namespace gpu = omnibal::gpu;

void call(cuda::stream_ref stream, thrust::device_vector<std::int64_t>& demands,
          cuda::std::span<std::int64_t const> costs, thrust::device_vector<std::uint32_t>& items,
          cuda::std::span<std::uint32_t> offsets) {
  gpu::grouping_span const groups{offsets, items, {}};
  gpu::deal(stream, costs, 8, gpu::part_span{groups});
  gpu::deal(gpu::on(stream), demands, 8, gpu::part_span{groups});
  gpu::isf(stream, demands, 4096, {}, omnibal::reaches_any{omnibal::resources{4000}},
           gpu::packing_span{groups});
  thrust::device_vector<omnibal::resources<1, std::int64_t>> loads(8);
  gpu::group_loads(stream, groups, demands, loads);
}

#if CCCL_VERSION >= 3005000
void call_with_environment(cuda::stream_ref stream, cuda::std::span<std::int64_t const> costs,
                           gpu::part_span const& parts) {
  cuda::std::execution::env const environment{
      cuda::std::execution::prop{cuda::get_stream, stream}};
  gpu::deal(cuda::get_stream(environment), costs, 8, parts);
}
#endif
