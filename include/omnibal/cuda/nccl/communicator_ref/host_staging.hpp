#pragma once

/// \file
/// Memory and a stream for collectives of host memory.

#include <omnibal/cuda/error.hpp>

#include <algorithm>
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

/// Host memory that the device can copy from and to. Allocates only beyond the largest size so far.
class pinned_buffer {
 public:
  pinned_buffer() = default;
  pinned_buffer(pinned_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  pinned_buffer& operator=(pinned_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~pinned_buffer() { release(); }

  [[nodiscard]] std::byte* take(std::size_t bytes) {
    if (bytes > capacity_) {
      std::size_t const larger = std::max({bytes, 2 * capacity_, std::size_t{4096}});
      release();
      void* memory = nullptr;
      gpu::check(cudaMallocHost(&memory, larger));
      data_ = static_cast<std::byte*>(memory);
      capacity_ = larger;
    }
    return data_;
  }

  /// Gives the memory up without a call of CUDA, which would wait for work that never ends.
  void leak() noexcept {
    data_ = nullptr;
    capacity_ = 0;
  }

 private:
  void release() noexcept {
    if (data_ != nullptr) static_cast<void>(cudaFreeHost(data_));
    leak();
  }

  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// What a collective of host memory goes through: a stream of its own, and pinned and device memory
/// for what is sent and received. Made at the first use; a copy of the owner starts without.
class host_staging {
 public:
  enum class hang { no, possible };

  /// Up to so many bytes go through pinned memory, more straight from and to the caller's.
  static constexpr std::size_t most_pinned = std::size_t{8} << 20;

  host_staging() = default;
  host_staging(host_staging const&) noexcept {}
  host_staging(host_staging&& other) noexcept { swap(other); }
  host_staging& operator=(host_staging other) noexcept {
    swap(other);
    return *this;
  }
  ~host_staging() { release(); }

  [[nodiscard]] cudaStream_t stream() {
    if (stream_ == nullptr) {
      gpu::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    }
    return stream_;
  }

  /// Device memory for `sent` and for so many bytes that come, and the copy of `sent` on its way.
  void send(std::span<std::byte const> sent, std::size_t received) {
    reserve(sent_, sent_capacity_, sent.size());
    reserve(received_, received_capacity_, received);
    if (sent.empty()) return;
    std::byte const* from = sent.data();
    if (sent.size() <= most_pinned) {
      std::byte* const pinned = pinned_sent_.take(sent.size());
      std::memcpy(pinned, sent.data(), sent.size());
      from = pinned;
    }
    gpu::check(cudaMemcpyAsync(sent_, from, sent.size(), cudaMemcpyHostToDevice, stream()));
  }

  [[nodiscard]] std::byte const* sent() const { return sent_; }
  [[nodiscard]] std::byte* received() const { return received_; }

  /// Copies what has come to `out`. `wait` waits for the stream and throws where it must not be
  /// waited for any longer.
  template <class Wait>
  void receive(std::span<std::byte> out, Wait const& wait) {
    if (out.size() <= most_pinned) {
      std::byte* const pinned = pinned_received_.take(out.size());
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
  [[nodiscard]] std::byte* pinned(std::size_t bytes) { return pinned_received_.take(bytes); }

  /// Says whether the stream may never end: to give memory back would wait for it then, so that the
  /// destructor does not.
  void set_hanging(hang state) noexcept { state_ = state; }

 private:
  void reserve(std::byte*& memory, std::size_t& capacity, std::size_t bytes) {
    if (bytes <= capacity) return;
    std::size_t const larger = std::max({bytes, 2 * capacity, std::size_t{4096}});
    if (memory != nullptr) static_cast<void>(cudaFreeAsync(memory, stream()));
    memory = nullptr;
    capacity = 0;
    void* taken = nullptr;
    gpu::check(cudaMallocAsync(&taken, larger, stream()));
    memory = static_cast<std::byte*>(taken);
    capacity = larger;
  }

  void copy_back(void* to, std::size_t bytes) {
    gpu::check(cudaMemcpyAsync(to, received_, bytes, cudaMemcpyDeviceToHost, stream()));
  }

  void release() noexcept {
    if (state_ == hang::possible) {
      pinned_sent_.leak();
      pinned_received_.leak();
      return;
    }
    if (stream_ == nullptr) return;
    if (sent_ != nullptr) static_cast<void>(cudaFreeAsync(sent_, stream_));
    if (received_ != nullptr) static_cast<void>(cudaFreeAsync(received_, stream_));
    static_cast<void>(cudaStreamDestroy(stream_));
    stream_ = nullptr;
  }

  void swap(host_staging& other) noexcept {
    std::swap(state_, other.state_);
    std::swap(stream_, other.stream_);
    std::swap(sent_, other.sent_);
    std::swap(received_, other.received_);
    std::swap(sent_capacity_, other.sent_capacity_);
    std::swap(received_capacity_, other.received_capacity_);
    std::swap(pinned_sent_, other.pinned_sent_);
    std::swap(pinned_received_, other.pinned_received_);
  }

  hang state_ = hang::no;
  cudaStream_t stream_ = nullptr;
  std::byte* sent_ = nullptr;
  std::byte* received_ = nullptr;
  std::size_t sent_capacity_ = 0;
  std::size_t received_capacity_ = 0;
  pinned_buffer pinned_sent_;
  pinned_buffer pinned_received_;
};

}  // namespace omnibal::inline v0::nccl::detail
