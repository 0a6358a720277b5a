#pragma once

/// \file
/// Prefix sums on the device, by CUB.

#include <omnibal/cuda/detail/device_backend.cuh>

#include <cstddef>
#include <cstdint>

#include <cub/device/device_scan.cuh>

namespace omnibal::inline v0::gpu::detail {

template <class T>
struct device_plus {
  OMNIBAL_HOST_DEVICE T operator()(T const& left, T const& right) const {
    return static_cast<T>(left + right);
  }
};

#pragma GCC visibility push(hidden)

template <class F, class T>
struct device_scan {
  static cudaError_t exclusive_sum(void* temporary, std::size_t& bytes, std::uint32_t n, F const& f,
                                   T* out, cudaStream_t stream) {
    return cub::DeviceScan::ExclusiveScan(temporary, bytes, index_iterator<F, T>{f}, out,
                                          device_plus<T>{}, T{}, n, stream);
  }
};

template <class T>
struct device_inclusive_scan {
  template <class Op>
  static cudaError_t run(void* temporary, std::size_t& bytes, std::uint32_t n, T const* in, T* out,
                         Op const& op, cudaStream_t stream) {
    return cub::DeviceScan::InclusiveScan(temporary, bytes, in, out, op, n, stream);
  }
};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu::detail
