#pragma once

/// \file
/// What the algorithms of this folder run on.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/execution.hpp>

namespace omnibal::inline v0::nccl::detail {

/// Runs on the device.
struct device_runner {
  template <gpu::device_resource Resource, class Algorithm>
  void operator()(gpu::execution<Resource> const& exec, Algorithm const& algorithm) const {
    gpu::detail::run_on_device(exec, algorithm);
  }
};

}  // namespace omnibal::inline v0::nccl::detail
