#pragma once

/// \file
/// Stable selection on the device, by CUB.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/generated.cuh>

#include <cstddef>
#include <cstdint>

#include <cub/device/device_select.cuh>

namespace omnibal::inline v0::gpu::detail {

template <class F, class Keep, class T>
struct device_select {
  static cudaError_t select(void* temporary, std::size_t& bytes, std::uint32_t n, F const& f,
                            Keep const& keep, T* out, std::uint32_t* count, cudaStream_t stream) {
    return cub::DeviceSelect::Flagged(temporary, bytes, input_of<T>(f), generated<Keep, bool>{keep},
                                      out, count, n, stream);
  }
};

}  // namespace omnibal::inline v0::gpu::detail
