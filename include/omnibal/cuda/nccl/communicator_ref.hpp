// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A non-owning communicator of NCCL.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/cuda/nccl/library.hpp>
#include <omnibal/detail/agreement.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace omnibal::inline v0::nccl::detail {

/// Makes a device the current device during the lifetime of this object.
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

/// The staging memory for collectives of host memory: a separate stream, and pinned and device
/// memory for sent and received bytes. The memory is allocated at the first use. A copy of this
/// object starts without memory.
class host_staging {
 public:
  /// The largest number of bytes that go through pinned memory. Larger messages are copied directly
  /// from and to the memory of the caller.
  static constexpr std::size_t max_pinned = std::size_t{8} << 20;

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

  /// Allocates device memory for `sent` and for `received` bytes, and starts the copy of `sent`.
  void send(std::span<std::byte const> sent, std::size_t received) {
    std::byte* const to = take(held_.sent, sent.size());
    take(held_.received, received);
    if (sent.empty()) return;
    std::byte const* from = sent.data();
    if (sent.size() <= max_pinned) {
      std::byte* const pinned = take(held_.pinned_sent, sent.size());
      std::memcpy(pinned, sent.data(), sent.size());
      from = pinned;
    }
    gpu::check(cudaMemcpyAsync(to, from, sent.size(), cudaMemcpyHostToDevice, stream()));
  }

  [[nodiscard]] std::byte const* sent() const { return held_.sent.data; }
  [[nodiscard]] std::byte* received() const { return held_.received.data; }

  /// Copies the received bytes to `out`. `wait()` waits for the stream, and throws after an error
  /// or the timeout.
  template <class Wait>
  void receive(std::span<std::byte> out, Wait const& wait) {
    if (out.size() <= max_pinned) {
      std::byte* const pinned = take(held_.pinned_received, out.size());
      if (!out.empty()) copy_back(pinned, out.size());
      wait();
      if (!out.empty()) std::memcpy(out.data(), pinned, out.size());
      return;
    }
    // A copy to pageable memory blocks the caller. Therefore it starts after the wait, which may
    // throw.
    wait();
    copy_back(out.data(), out.size());
    gpu::check(cudaStreamSynchronize(stream()));
  }

  /// Returns pinned memory for a copy of `bytes` from the device.
  [[nodiscard]] std::byte* pinned(std::size_t bytes) { return take(held_.pinned_received, bytes); }

  /// Gives up all memory after an error without freeing it, unless the work on `stream` ends within
  /// a second. Queued copies may still use the memory, and a call that frees it could wait forever.
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

  /// Returns at least `bytes` bytes of memory. Allocates only if all earlier calls required fewer
  /// bytes, with a margin, so that slow growth requires few allocations.
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

namespace omnibal::inline v0::nccl {

/// A reference to a borrowed `ncclComm_t`, such as a communicator of a trainer's data-parallel
/// ranks, whether its calls block or not. Models `exchanging_communicator`, so that everything of
/// comm/ and exchange/ runs on it. Its collectives of host memory go through pinned and device
/// memory on a separate stream, and return when this stream is done.
///
/// The communicator must stay valid. One thread at a time calls it, in the same order on all ranks.
/// A copy refers to the same communicator and has separate staging memory, allocated at its first
/// collective of host memory: twice the largest message in device memory and at most 16 MiB pinned.
///
/// Determinism: portable among equal ranks. Errors: `std::invalid_argument` for sizes that do not
/// add up; `nccl::error` and `gpu::error` if a call fails or NCCL reports an asynchronous error;
/// `nccl::timeout` if the other ranks do not arrive in time. After an error other than
/// `std::invalid_argument` the communicator is unusable: its owner aborts it (`ncclCommAbort`),
/// which also ends the work that hangs on its streams. A `nccl::communicator` aborts itself.
class communicator_ref {
 public:
  /// Refers to `comm`. `timeout` is the longest time that a collective of host memory, and NCCL's
  /// own submission, waits. If calls on the communicator block, a call of NCCL that has started
  /// cannot be ended.
  explicit communicator_ref(ncclComm_t comm,
                            std::chrono::milliseconds timeout = communicator_options{}.timeout)
      : communicator_ref(comm, timeout, nullptr) {}

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(alive().rank_); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(alive().size_); }
  [[nodiscard]] ncclComm_t get() const { return alive().comm_; }
  /// Returns the device that NCCL uses.
  [[nodiscard]] int device() const { return alive().device_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return alive().timeout_; }

  /// Throws the error that NCCL has found in the background, if there is one.
  void check_health(gpu::location caller = gpu::location::here()) {
    guarded([&] { static_cast<void>(state_of(comm_, caller)); });
  }

  /// Waits until the work on `stream` is done, and checks the state of NCCL meanwhile. A rank that
  /// has died leaves an asynchronous error or a stream that never ends, and only this wait notices
  /// either. Not for a stream that is captured. Errors: `nccl::error`, `gpu::error`,
  /// `nccl::timeout`; `std::invalid_argument` for a time that is not positive.
  void wait(cudaStream_t stream, gpu::location caller = gpu::location::here()) {
    wait(stream, timeout_, caller);
  }
  void wait(cudaStream_t stream, std::chrono::milliseconds timeout,
            gpu::location caller = gpu::location::here()) {
    guarded([&] { wait_for(stream, timeout, caller); });
  }

  /// Calls `calls()` between `ncclGroupStart` and `ncclGroupEnd`, and returns when NCCL has
  /// submitted all calls to their streams, possibly in the background. Not within a group of the
  /// caller, because only the end of this group submits. Errors: the errors of `wait`, and every
  /// exception of `calls`. The calls before this exception are submitted, unless NCCL failed. A
  /// `communicator` is aborted if `calls` throws anything, because some calls may be submitted
  /// already.
  template <class Calls>
  void submit(Calls const& calls, gpu::location caller = gpu::location::here()) {
    static_cast<void>(alive());
    try {
      submit_group(calls, caller);
    } catch (...) {
      fail();
      throw;
    }
  }

  /// Waits until NCCL no longer works in the background on this communicator.
  void settle(gpu::location caller = gpu::location::here()) {
    guarded([&] { wait_for_nccl(caller); });
  }

  /// Copies bytes from the device in the order of `stream`, waits as `wait` does, and returns the
  /// bytes in pinned memory that is valid until the next call on this object.
  [[nodiscard]] std::byte const* fetch(void const* from, std::size_t bytes, cudaStream_t stream,
                                       gpu::location caller = gpu::location::here()) {
    std::byte* to = nullptr;
    staged(stream, [&] {
      to = staging_.pinned(bytes);
      gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), caller);
      wait_for(stream, timeout_, caller);
    });
    return to;
  }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    omnibal::detail::check_size("nccl::all_gather", "the size of out", out.size(),
                                in.size() * size());
    if (in.empty()) return;
    std::size_t const own = rank() * in.size();
    std::byte const sent = in[0];
    run(in, out, out.size(), [&](cudaStream_t stream) {
      // Writes a byte that differs from the own byte. It remains if NCCL has not run the
      // collective.
      gpu::check(cudaMemsetAsync(staging_.received() + own, static_cast<int>(~sent), 1, stream));
      check(detail::calls().all_gather(staging_.sent(), staging_.received(), in.size(), ncclUint8,
                                       comm_, stream),
            comm_);
    });
    if (out[own] == sent) return;
    omnibal::detail::throw_invalid("nccl::all_gather",
                                   "was called between the caller's ncclGroupStart and "
                                   "ncclGroupEnd, which alone submits it");
  }

  /// Checks that all ranks pass the same number, such as a slot. If neither this object nor the
  /// object that it was copied from has seen the number in this argument before, the check is a
  /// collective of host memory. Otherwise the call does nothing. Therefore all ranks must make the
  /// same calls on their objects. Both texts must stay valid. Errors: `std::invalid_argument` on
  /// all ranks for different numbers.
  void agree(std::string_view function, std::string_view argument, std::uint64_t number) {
    std::tuple const asked(function, argument, number);
    if (std::find(agreed_.begin(), agreed_.end(), asked) != agreed_.end()) return;
    omnibal::detail::agreement<std::uint64_t>().run({function, argument, true}, *this,
                                                    [&](auto& report) { report.digest = number; });
    agreed_.push_back(asked);
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    constexpr std::string_view name = "nccl::all_to_all_v";
    omnibal::detail::check_counts(name, "send counts", send_counts, size(), in.size());
    omnibal::detail::check_counts(name, "receive counts", receive_counts, size(), out.size());
    omnibal::detail::check_size(name, "what this rank gets from itself", receive_counts[rank()],
                                send_counts[rank()]);
    // The message of a rank to itself uses the same path, because its order does not matter.
    run(in, out, out.size(), [&](cudaStream_t stream) {
      detail::post_messages(detail::messages_in_rows(staging_.sent(), send_counts,
                                                     staging_.received(), receive_counts),
                            comm_, stream);
    });
  }

 protected:
  /// Creates a reference to no communicator.
  communicator_ref() = default;
  /// Refers to `comm`. `abort` ends the communicator after an error; it is empty if `comm` is
  /// borrowed.
  communicator_ref(ncclComm_t comm, std::chrono::milliseconds timeout,
                   std::function<void(ncclComm_t)> abort)
      : comm_(comm), timeout_(timeout), abort_(std::move(abort)) {
    constexpr std::string_view name = "nccl::communicator_ref";
    if (comm == nullptr) omnibal::detail::throw_invalid(name, "the communicator is null");
    detail::check_timeout(name, "timeout", timeout);
    check(detail::calls().comm_user_rank(comm, &rank_), comm);
    check(detail::calls().comm_count(comm, &size_), comm);
    check(detail::calls().comm_cu_device(comm, &device_), comm);
  }

  [[nodiscard]] bool is_alive() const { return comm_ != nullptr; }
  /// Returns the communicator and forgets it: the object is not alive afterwards.
  ncclComm_t forget() noexcept { return std::exchange(comm_, nullptr); }

  [[nodiscard]] std::function<void(ncclComm_t)> const& how_to_abort() const { return abort_; }

  /// Aborts the communicator and forgets it. Also aborts `*part`, the new communicator of a split,
  /// if NCCL has already written it.
  void abort_alive(std::shared_ptr<ncclComm_t> const& part = {}) noexcept {
    detail::call_apart(timeout_, [abort = abort_, comm = forget(), part] {
      abort(comm);
      if (part != nullptr && *part != nullptr) abort(*part);
    });
  }

  /// Runs `call`. If it throws anything except `std::invalid_argument`, aborts an owned
  /// communicator and throws the exception again.
  template <class Call>
  void guarded(Call const& call) {
    static_cast<void>(alive());
    try {
      call();
    } catch (std::invalid_argument const&) {
      throw;
    } catch (...) {
      fail();
      throw;
    }
  }

  /// Returns `ncclSuccess` or `ncclInProgress`, and throws for any other state of the communicator.
  [[nodiscard]] static ncclResult_t state_of(ncclComm_t comm, gpu::location caller) {
    ncclResult_t result = ncclSuccess;
    check(detail::calls().comm_get_async_error(comm, &result), comm, caller);
    check(result, comm, caller);
    return result;
  }

  void wait_for_nccl(gpu::location caller) const {
    detail::deadline limit(timeout_);
    while (state_of(comm_, caller) == ncclInProgress) {
      if (limit.has_passed()) throw_timeout("settle", limit, "NCCL", caller);
      limit.pause();
    }
  }

 private:
  [[nodiscard]] communicator_ref const& alive() const {
    if (is_alive()) return *this;
    throw communication_error(omnibal::detail::message(
        "nccl::communicator", "was aborted after an error, or moved from"));
  }

  void fail() noexcept {
    if (abort_) abort_alive();
  }

  void wait_for(cudaStream_t stream, std::chrono::milliseconds timeout,
                gpu::location caller) const {
    detail::check_timeout("nccl::wait", "timeout", timeout);
    detail::deadline limit(timeout);
    for (;;) {
      cudaError_t const found = cudaStreamQuery(stream);
      static_cast<void>(state_of(comm_, caller));
      if (found == cudaSuccess) return;
      // "Not ready" is not an error, but CUDA remembers it like one.
      static_cast<void>(cudaGetLastError());
      if (found != cudaErrorNotReady) gpu::check(found, caller);
      if (limit.has_passed()) throw_timeout("wait", limit, "the work on the stream", caller);
      limit.pause();
    }
  }

  template <class Calls>
  void submit_group(Calls const& calls, gpu::location caller) const {
    check(detail::calls().group_start(), comm_, caller);
    try {
      calls();
    } catch (...) {
      static_cast<void>(detail::calls().group_end());
      throw;
    }
    check(detail::calls().group_end(), comm_, caller);
    wait_for_nccl(caller);
  }

  /// Runs a call like `guarded`, for a call that uses staging memory on `stream`.
  template <class Call>
  void staged(cudaStream_t const& stream, Call const& call) {
    try {
      guarded(call);
    } catch (...) {
      // The abort has ended the hanging work if possible. Then the memory can be kept.
      staging_.abandon_unless_idle(stream);
      throw;
    }
  }

  /// Runs a collective of host memory; `collective(stream)` calls NCCL.
  template <class Collective>
  void run(std::span<std::byte const> in, std::span<std::byte> out, std::size_t received,
           Collective const& collective) {
    detail::current_device const on_device(device_);
    cudaStream_t stream = nullptr;
    staged(stream, [&] {
      stream = staging_.stream();
      staging_.send(in, received);
      submit_group([&] { collective(stream); }, gpu::location::here());
      staging_.receive(out, [&] { wait_for(stream, timeout_, gpu::location::here()); });
    });
  }

  [[noreturn]] void throw_timeout(std::string_view function, detail::deadline const& limit,
                                  std::string_view awaited, gpu::location caller) const {
    throw nccl::timeout(omnibal::detail::message(
        std::string("nccl::").append(function), "rank ", rank_, " of ", size_, " has waited ",
        limit.text(), " for ", awaited, "; another rank has left, hangs or is late [", caller.file,
        ":", caller.line, "]"));
  }

  ncclComm_t comm_ = nullptr;
  std::chrono::milliseconds timeout_{};
  std::function<void(ncclComm_t)> abort_;
  int rank_ = 0;
  int size_ = 0;
  int device_ = 0;
  detail::host_staging staging_;
  std::vector<std::tuple<std::string_view, std::string_view, std::uint64_t>> agreed_;
};

}  // namespace omnibal::inline v0::nccl
