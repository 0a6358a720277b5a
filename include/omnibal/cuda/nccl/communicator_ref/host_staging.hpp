#pragma once

/// \file
/// Memory and a stream for collectives of host memory.

#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::nccl::detail {

/// Makes a device the current one while the object lives.
class current_device {
 public:
  explicit current_device(int device) {
    gpu::check(cudaGetDevice(&before_));
    if (before_ == device) return;
    gpu::check(cudaSetDevice(device));
    has_changed_ = true;
  }
  current_device(current_device const&) = delete;
  current_device& operator=(current_device const&) = delete;
  ~current_device() {
    if (has_changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool has_changed_ = false;
};

/// What a collective of host memory goes through: a stream of its own, and pinned and device memory
/// for what is sent and received. Made at the first use; a copy of the owner starts without.
class host_staging {
 public:
  /// Up to so many bytes go through pinned memory, more straight from and to the caller's.
  static constexpr std::size_t most_pinned = std::size_t{8} << 20;

  host_staging() = default;
  host_staging(host_staging const&) noexcept {}
  host_staging(host_staging&& other) noexcept : held_(std::exchange(other.held_, {})) {}
  host_staging& operator=(host_staging other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~host_staging() {
    for (buffer* const each :
         {&held_.sent, &held_.received, &held_.pinned_sent, &held_.pinned_received}) {
      give_back(*each);
    }
    if (held_.stream != nullptr) static_cast<void>(cudaStreamDestroy(held_.stream));
  }

  [[nodiscard]] cudaStream_t stream() {
    if (held_.stream == nullptr) {
      gpu::check(cudaStreamCreateWithFlags(&held_.stream, cudaStreamNonBlocking));
    }
    return held_.stream;
  }

  /// Device memory for `sent` and for so many bytes that come, and the copy of `sent` on its way.
  void send(std::span<std::byte const> sent, std::size_t received) {
    std::byte* const to = take(held_.sent, sent.size());
    take(held_.received, received);
    if (sent.empty()) return;
    std::byte const* from = sent.data();
    if (sent.size() <= most_pinned) {
      std::byte* const pinned = take(held_.pinned_sent, sent.size());
      std::memcpy(pinned, sent.data(), sent.size());
      from = pinned;
    }
    gpu::check(cudaMemcpyAsync(to, from, sent.size(), cudaMemcpyHostToDevice, stream()));
  }

  [[nodiscard]] std::byte const* sent() const { return held_.sent.data; }
  [[nodiscard]] std::byte* received() const { return held_.received.data; }

  /// Copies what has come to `out`. `wait` waits for the stream and throws where it must not be
  /// waited for any longer.
  template <class Wait>
  void receive(std::span<std::byte> out, Wait const& wait) {
    if (out.size() <= most_pinned) {
      std::byte* const pinned = take(held_.pinned_received, out.size());
      if (!out.empty()) copy_back(pinned, out.size());
      wait();
      if (!out.empty()) std::memcpy(out.data(), pinned, out.size());
      return;
    }
    // A copy to pageable memory waits by itself, so it is asked for when nothing is left to fail.
    wait();
    copy_back(out.data(), out.size());
    gpu::check(cudaStreamSynchronize(stream()));
  }

  /// Pinned memory for a copy of `bytes` from the device.
  [[nodiscard]] std::byte* pinned(std::size_t bytes) { return take(held_.pinned_received, bytes); }

  /// After an error: gives all memory up, to which copies may be queued, unless `stream`, on which
  /// it was used, ends within a second. To free it would be too early, or wait for ever.
  void abandon_unless_idle(cudaStream_t stream) noexcept {
    for (deadline limit(std::chrono::seconds(1)); cudaStreamQuery(stream) != cudaSuccess;) {
      static_cast<void>(cudaGetLastError());
      if (limit.has_passed()) {
        held_ = {};
        return;
      }
      limit.pause();
    }
  }

 private:
  struct buffer {
    bool is_pinned;
    std::byte* data = nullptr;
    std::size_t capacity = 0;
  };
  struct memory {
    cudaStream_t stream = nullptr;
    buffer sent{.is_pinned = false};
    buffer received{.is_pinned = false};
    buffer pinned_sent{.is_pinned = true};
    buffer pinned_received{.is_pinned = true};
  };

  /// Allocates only beyond the largest size so far, and then some more, so that slow growth takes
  /// few steps.
  std::byte* take(buffer& place, std::size_t bytes) {
    if (bytes <= place.capacity) return place.data;
    std::size_t const larger = std::max(bytes + bytes / 8, std::size_t{4096});
    give_back(place);
    void* taken = nullptr;
    gpu::check(place.is_pinned ? cudaMallocHost(&taken, larger)
                               : cudaMallocAsync(&taken, larger, stream()));
    place.data = static_cast<std::byte*>(taken);
    place.capacity = larger;
    return place.data;
  }
  void give_back(buffer& place) noexcept {
    if (place.data == nullptr) return;
    static_cast<void>(place.is_pinned ? cudaFreeHost(place.data)
                                      : cudaFreeAsync(place.data, held_.stream));
    place.data = nullptr;
    place.capacity = 0;
  }

  void copy_back(void* to, std::size_t bytes) {
    gpu::check(cudaMemcpyAsync(to, held_.received.data, bytes, cudaMemcpyDeviceToHost, stream()));
  }

  memory held_;
};

}  // namespace omnibal::inline v0::nccl::detail
