#pragma once

/// \file
/// Prefix sums on the device, by CUB.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/integers.hpp>

#include <cstddef>
#include <cstdint>

#include <cub/device/device_scan.cuh>

namespace omnibal::inline v0::gpu::detail {

#pragma GCC visibility push(hidden)

template <class F, class T>
struct device_scan {
  static cudaError_t exclusive_sum(void* temporary, std::size_t& bytes, std::uint32_t n, F const& f,
                                   T* out, cudaStream_t stream) {
    return cub::DeviceScan::ExclusiveScan(temporary, bytes, index_iterator<F, T>{f}, out,
                                          add{}, T{}, n, stream);
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
