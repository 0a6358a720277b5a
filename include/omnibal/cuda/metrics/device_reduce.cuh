#pragma once

/// \file
/// Reductions on the device, by CUB.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/generated.cuh>

#include <cstddef>
#include <cstdint>

#include <cub/device/device_reduce.cuh>

namespace omnibal::inline v0::gpu::detail {

template <class F, class T>
struct device_reduce {
  template <class Op>
  static cudaError_t reduce(void* temporary, std::size_t& bytes, std::uint32_t n, F const& f,
                            T* out, Op const& op, T const& init, cudaStream_t stream) {
    return cub::DeviceReduce::Reduce(temporary, bytes, input_of<T>(f), out, n, op, init, stream);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
