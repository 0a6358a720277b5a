// SPDX-License-Identifier: Apache-2.0
// Memory resources of CCCL and RMM go into the algorithms as they are; nothing here runs.

#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/isf.cuh>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/keep.hpp>

#include <cstddef>
#include <cstdint>

#include <cuda/memory_resource>
#include <cuda_runtime_api.h>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <rmm/resource_ref.hpp>

namespace gpu = omnibal::gpu;

template <class Resource>
void call_with(cudaStream_t stream, Resource& resource) {
  static_assert(gpu::device_resource<Resource>);
  auto const exec = gpu::on(stream, resource);
  gpu::device_array<std::int64_t, Resource> const demands(exec, 1000);
  gpu::isf(exec, demands, 4096, {}, omnibal::reaches_any{omnibal::resources{4000}},
           gpu::packing_span{});
}

template void call_with(cudaStream_t, cuda::device_memory_pool_ref&);
template void call_with(cudaStream_t, cuda::device_memory_pool&);
template void call_with(cudaStream_t, cuda::mr::any_resource<cuda::mr::device_accessible>&);
template void call_with(cudaStream_t, rmm::mr::cuda_async_memory_resource&);
template void call_with(cudaStream_t, rmm::mr::pool_memory_resource&);
template void call_with(cudaStream_t, rmm::mr::statistics_resource_adaptor&);
template void call_with(cudaStream_t, rmm::device_async_resource_ref&);
