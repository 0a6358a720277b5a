#pragma once

/// \file
/// Where and in which order the algorithms of cuda/ run.

#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/memory_resource.hpp>

#include <cstddef>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// A stream and the memory resource for scratch: the first argument of every algorithm of cuda/.
/// All work is submitted to the stream and the call returns; nothing synchronises unless its name
/// or comment says so. A copyable handle: stream and resource must outlive it, and the current
/// device must be that of the stream wherever it is used.
template <device_resource Resource = stream_pool>
class execution {
 public:
  using resource_type = Resource;

  execution(cudaStream_t stream, Resource& resource) : stream_(stream), resource_(&resource) {}

  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  [[nodiscard]] Resource& resource() const noexcept { return *resource_; }

  /// Waits until the work that was submitted to the stream is done. Errors: `error`, also that of
  /// earlier work.
  void synchronise(location where = location::here()) const {
    check(cudaStreamSynchronize(stream_), where);
  }

 private:
  cudaStream_t stream_;
  Resource* resource_;
};

namespace detail {

/// Has no state, so that it serves all threads.
inline stream_pool default_pool;

}  // namespace detail

/// Runs on `stream`, with scratch from the current pool of its device.
[[nodiscard]] inline execution<> on(cudaStream_t stream) { return {stream, detail::default_pool}; }

/// Runs on `stream`, with scratch from `resource`, which must outlive the result.
template <device_resource Resource>
[[nodiscard]] execution<Resource> on(cudaStream_t stream, Resource& resource) {
  return {stream, resource};
}

}  // namespace omnibal::inline v0::gpu
