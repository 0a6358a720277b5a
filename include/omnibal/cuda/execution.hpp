// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stream and the scratch memory of the algorithms of cuda/.

#include <omnibal/check.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::gpu {

/// A source of device memory in the order of a stream. Work that is submitted to the stream after
/// `allocate` may use the returned memory. A call of `deallocate` takes effect after the work that
/// was submitted before. `allocate` throws if there is not enough memory; `deallocate` does not
/// throw. The resources of CCCL 3.1 and RMM have this order of arguments and are accepted
/// unchanged.
template <class Resource>
concept device_resource = requires(Resource& resource, std::size_t size, void* memory,
                                   cudaStream_t stream) {
  { resource.allocate(stream, size, size) } -> std::same_as<void*>;
  resource.deallocate(stream, memory, size, size);
};

/// The alignment of scratch and of every array in it, in bytes.
inline constexpr std::size_t scratch_alignment = 256;

/// Memory from a stream-ordered pool of the CUDA driver: the given pool, or otherwise the current
/// pool of the device of the stream. Such a pool returns its memory to the system whenever a stream
/// synchronizes. A program that calls algorithms repeatedly should raise the release threshold of
/// its pool (`cudaMemPoolAttrReleaseThreshold`). Errors: `error`.
class stream_pool {
 public:
  stream_pool() = default;
  explicit stream_pool(cudaMemPool_t pool) : pool_(pool) {}

  [[nodiscard]] void* allocate(cudaStream_t stream, std::size_t bytes,
                               std::size_t /*alignment*/) const {
    if (bytes == 0) return nullptr;
    void* memory = nullptr;
    check(pool_ == nullptr ? cudaMallocAsync(&memory, bytes, stream)
                           : cudaMallocFromPoolAsync(&memory, bytes, pool_, stream));
    return memory;
  }

  void deallocate(cudaStream_t stream, void* memory, std::size_t /*bytes*/,
                  std::size_t /*alignment*/) const noexcept {
    if (memory == nullptr) return;
    // This call fails only if the device has failed already. The next call reports that error.
    static_cast<void>(cudaFreeAsync(memory, stream));
  }

 private:
  cudaMemPool_t pool_ = nullptr;
};

/// Memory of the caller, assigned from front to back without any allocation. Therefore a call can
/// be captured in a graph and spends no time on allocation. Only the most recently assigned memory
/// becomes free again when it is returned. An algorithm returns all of its memory, so one scratch
/// serves a sequence of calls on one stream. Two streams or two threads must not use one scratch at
/// the same time. Errors: `std::length_error` if the memory is too small; the text contains the
/// bytes that are needed and given.
class given_scratch {
 public:
  explicit given_scratch(device_span<std::byte> memory) : memory_(memory) {}

  [[nodiscard]] void* allocate(cudaStream_t /*stream*/, std::size_t bytes, std::size_t alignment) {
    auto const address = reinterpret_cast<std::uintptr_t>(memory_.data()) + used_;
    std::size_t const padding = static_cast<std::size_t>(0 - address) & (alignment - 1);
    std::size_t const free = memory_.size() - used_;
    if (padding > free || bytes > free - padding) {
      throw std::length_error(omnibal::detail::message(
          "gpu::given_scratch", omnibal::detail::to_text(used_ + padding + bytes) +
                                    " bytes are needed, " +
                                    omnibal::detail::to_text(memory_.size()) + " are given"));
    }
    std::byte* const memory = memory_.data() + used_ + padding;
    used_ += padding + bytes;
    return memory;
  }

  void deallocate(cudaStream_t /*stream*/, void* memory, std::size_t bytes,
                  std::size_t /*alignment*/) noexcept {
    auto* const first = static_cast<std::byte*>(memory);
    if (first + bytes == memory_.data() + used_) {
      used_ = static_cast<std::size_t>(first - memory_.data());
    }
  }

  /// Returns the number of bytes in use.
  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  device_span<std::byte> memory_;
  std::size_t used_ = 0;
};

/// A stream: a stream of CUDA, an owner that converts to it, or a reference with a member `get`,
/// such as `cuda::stream_ref`.
class stream_handle {
 public:
  stream_handle(cudaStream_t stream) : stream_(stream) {}
  template <class Stream>
    requires std::convertible_to<Stream const&, cudaStream_t> stream_handle(Stream const& stream)
        : stream_(stream) {}
    template <class Stream>
      requires(!std::convertible_to<Stream const&, cudaStream_t>)
    &&requires(Stream const& stream) {
      { stream.get() } -> std::convertible_to<cudaStream_t>;
    }
    stream_handle(Stream const& stream) : stream_(stream.get()) {}

    operator cudaStream_t() const noexcept { return stream_; }

   private:
    cudaStream_t stream_;
};

/// A stream and the memory resource for scratch, the first argument of every algorithm of cuda/. An
/// algorithm submits all of its work to the stream and returns. It synchronizes only if its name or
/// comment says so. A copyable handle: stream and resource must outlive it, and the device of the
/// stream must be current whenever the handle is used.
template <device_resource Resource = stream_pool>
class execution {
 public:
  using resource_type = Resource;

  execution(stream_handle stream, Resource& resource) : stream_(stream), resource_(&resource) {}

  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }
  [[nodiscard]] Resource& resource() const noexcept { return *resource_; }

  /// Waits until the work that was submitted to the stream is done. Errors: `error`, also for
  /// earlier work.
  void synchronize(location caller = location::here()) const {
    check(cudaStreamSynchronize(stream_), caller);
  }

 private:
  cudaStream_t stream_;
  Resource* resource_;
};

namespace detail {

#pragma GCC visibility push(hidden)

/// The resource of an execution that is made from a stream alone. It has no state, so all threads
/// may use it.
inline stream_pool default_pool;

#pragma GCC visibility pop

}  // namespace detail

/// Returns an execution on `stream`, with scratch from the current pool of its device.
[[nodiscard]] inline execution<> on(stream_handle stream) { return {stream, detail::default_pool}; }

/// Returns an execution on `stream`, with scratch from `resource`, which must outlive the result.
template <device_resource Resource>
[[nodiscard]] execution<Resource> on(stream_handle stream, Resource& resource) {
  return {stream, resource};
}

template <device_resource Resource>
[[nodiscard]] execution<Resource> on(execution<Resource> const& exec) {
  return exec;
}

namespace detail {

/// The first argument of a call that submits nothing and only writes the size of its scratch to
/// `*bytes`.
struct scratch_count {
  std::size_t* bytes;
};

}  // namespace detail

/// The first argument of algorithms: an execution, or only a stream, which is the same as
/// `on(stream)`.
template <class T>
concept executor = requires(T const& exec) {
  gpu::on(exec);
}
|| std::same_as<T, detail::scratch_count>;

}  // namespace omnibal::inline v0::gpu
