#pragma once

/// \file
/// A communicator of NCCL that belongs to someone else.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/error.hpp>
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

namespace omnibal::inline v0::nccl {

/// Borrows an `ncclComm_t`, such as that of a trainer's data-parallel ranks, whether its calls
/// block or not. Models `exchanging_communicator`, so that everything of comm/ and exchange/ runs
/// on it: its collectives of host memory go through pinned and device memory on a stream of their
/// own, and return when that stream is done.
///
/// The communicator must stay valid, and calls on it are made by one thread at a time, in the same
/// order on all ranks. A copy refers to the same communicator and has staging memory of its own,
/// taken at its first collective of host memory: twice the largest message in device memory and at
/// most 16 MiB pinned.
///
/// Determinism: portable among equal ranks. Errors: `std::invalid_argument` for sizes that do not
/// add up; `nccl::error` and `gpu::error` where a call fails or NCCL reports an asynchronous error;
/// `nccl::timeout` where the others do not come in time. After an error other than
/// `std::invalid_argument` the communicator is unusable: its owner aborts it (`ncclCommAbort`),
/// which also ends what hangs on its streams. A `nccl::communicator` does that itself.
class communicator_ref {
 public:
  /// `timeout` is the longest that a collective of host memory, and NCCL's own submitting, waits; a
  /// call of NCCL on a communicator that blocks cannot be ended.
  explicit communicator_ref(ncclComm_t comm,
                            std::chrono::milliseconds timeout = communicator_options{}.timeout)
      : communicator_ref(comm, timeout, nullptr) {}

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(alive().rank_); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(alive().size_); }
  [[nodiscard]] ncclComm_t get() const { return alive().comm_; }
  /// The device that NCCL uses.
  [[nodiscard]] int device() const { return alive().device_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return alive().timeout_; }

  /// Throws the error that NCCL has met in the background, where there is one.
  void check_health(gpu::location where = gpu::location::here()) {
    guarded([&] { static_cast<void>(state_of(comm_, where)); });
  }

  /// Waits until the work on `stream` is done, and looks after NCCL while it waits: what a rank
  /// that has died leaves behind is an asynchronous error or a stream that never ends, and this is
  /// the only way of waiting that notices. Not for a stream that is captured. Errors:
  /// `nccl::error`, `gpu::error`, `nccl::timeout`; `std::invalid_argument` for a time that is not
  /// positive.
  void wait(cudaStream_t stream, gpu::location where = gpu::location::here()) {
    wait(stream, timeout_, where);
  }
  void wait(cudaStream_t stream, std::chrono::milliseconds timeout,
            gpu::location where = gpu::location::here()) {
    guarded([&] { wait_for(stream, timeout, where); });
  }

  /// Calls `calls()` between `ncclGroupStart` and `ncclGroupEnd`, and returns when NCCL has
  /// submitted them all to their streams, which it may do in the background. Not within a group of
  /// the caller, whose end alone submits. Errors: those of `wait`, and what `calls` throws; what it
  /// has called before is submitted then, unless it was NCCL that failed. A `communicator` is
  /// aborted where `calls` throws anything at all, since some of it may be on its way.
  template <class Calls>
  void submit(Calls const& calls, gpu::location where = gpu::location::here()) {
    static_cast<void>(alive());
    try {
      submit_group(calls, where);
    } catch (...) {
      fail();
      throw;
    }
  }

  /// Waits until NCCL no longer works in the background on this communicator.
  void settle(gpu::location where = gpu::location::here()) {
    guarded([&] { wait_for_nccl(where); });
  }

  /// Copies bytes from the device in the order of `stream`, waits as `wait` does, and returns them
  /// in pinned memory that is valid until the next call on this object.
  [[nodiscard]] std::byte const* fetch(void const* from, std::size_t bytes, cudaStream_t stream,
                                       gpu::location where = gpu::location::here()) {
    std::byte* to = nullptr;
    staged(stream, [&] {
      to = staging_.pinned(bytes);
      gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), where);
      wait_for(stream, timeout_, where);
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
      // Something else, which stays there where nothing comes.
      gpu::check(cudaMemsetAsync(staging_.received() + own, static_cast<int>(~sent), 1, stream));
      check(
          ncclAllGather(staging_.sent(), staging_.received(), in.size(), ncclUint8, comm_, stream),
          comm_);
    });
    if (out[own] == sent) return;
    omnibal::detail::throw_invalid("nccl::all_gather",
                                   "was called between the caller's ncclGroupStart and "
                                   "ncclGroupEnd, which alone submits it");
  }

  /// Agrees with the others on a number that must be equal on all ranks, such as a slot: a
  /// collective of host memory where this object, or the one that it is a copy of, has not seen it
  /// in this argument before, and nothing else. All ranks use an object alike therefore. Both texts
  /// stay valid. Errors: `std::invalid_argument` on all ranks for different numbers.
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
    // What a rank sends to itself takes the same way: its order does not matter.
    run(in, out, out.size(), [&](cudaStream_t stream) {
      detail::post_messages(detail::messages_in_rows(staging_.sent(), send_counts,
                                                     staging_.received(), receive_counts),
                            comm_, stream);
    });
  }

 protected:
  /// Refers to none.
  communicator_ref() = default;
  /// `abort` ends the communicator after an error; it is empty where it is borrowed.
  communicator_ref(ncclComm_t comm, std::chrono::milliseconds timeout,
                   std::function<void(ncclComm_t)> abort)
      : comm_(comm), timeout_(timeout), abort_(std::move(abort)) {
    constexpr std::string_view name = "nccl::communicator_ref";
    if (comm == nullptr) omnibal::detail::throw_invalid(name, "the communicator is null");
    detail::check_timeout(name, "timeout", timeout);
    check(ncclCommUserRank(comm, &rank_), comm);
    check(ncclCommCount(comm, &size_), comm);
    check(ncclCommCuDevice(comm, &device_), comm);
  }

  [[nodiscard]] bool is_alive() const { return comm_ != nullptr; }
  /// Gives the communicator up; returns it.
  ncclComm_t forget() noexcept { return std::exchange(comm_, nullptr); }

  [[nodiscard]] std::function<void(ncclComm_t)> const& how_to_abort() const { return abort_; }

  /// Ends everything that runs, and gives the communicator up, with the part of a split that NCCL
  /// may write until then.
  void abort_alive(std::shared_ptr<ncclComm_t> const& part = {}) noexcept {
    detail::call_apart(timeout_, [abort = abort_, comm = forget(), part] {
      abort(comm);
      if (part != nullptr && *part != nullptr) abort(*part);
    });
  }

  /// Aborts what is owned where NCCL or CUDA has failed or others did not come.
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

  /// Success, or in progress.
  [[nodiscard]] static ncclResult_t state_of(ncclComm_t comm, gpu::location where) {
    ncclResult_t result = ncclSuccess;
    check(ncclCommGetAsyncError(comm, &result), comm, where);
    check(result, comm, where);
    return result;
  }

  void wait_for_nccl(gpu::location where) const {
    detail::deadline limit(timeout_);
    while (state_of(comm_, where) == ncclInProgress) {
      if (limit.has_passed()) throw_timeout("settle", limit, "NCCL", where);
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

  void wait_for(cudaStream_t stream, std::chrono::milliseconds timeout, gpu::location where) const {
    detail::check_timeout("nccl::wait", "timeout", timeout);
    detail::deadline limit(timeout);
    for (;;) {
      cudaError_t const found = cudaStreamQuery(stream);
      static_cast<void>(state_of(comm_, where));
      if (found == cudaSuccess) return;
      // Not an error, but remembered like one.
      static_cast<void>(cudaGetLastError());
      if (found != cudaErrorNotReady) gpu::check(found, where);
      if (limit.has_passed()) throw_timeout("wait", limit, "the work on the stream", where);
      limit.pause();
    }
  }

  template <class Calls>
  void submit_group(Calls const& calls, gpu::location where) const {
    check(ncclGroupStart(), comm_, where);
    try {
      calls();
    } catch (...) {
      static_cast<void>(ncclGroupEnd());
      throw;
    }
    check(ncclGroupEnd(), comm_, where);
    wait_for_nccl(where);
  }

  /// The same for a call that uses staging memory on `stream`.
  template <class Call>
  void staged(cudaStream_t const& stream, Call const& call) {
    try {
      guarded(call);
    } catch (...) {
      // What hangs has been ended, where it could be, so that memory need not be left.
      staging_.abandon_unless_idle(stream);
      throw;
    }
  }

  /// A collective of host memory; `collective(stream)` calls NCCL.
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
                                  std::string_view awaited, gpu::location where) const {
    throw nccl::timeout(omnibal::detail::message(
        std::string("nccl::").append(function),
        "rank " + omnibal::detail::to_text(rank_) + " of " + omnibal::detail::to_text(size_) +
            " has waited " + limit.text() + " for " + std::string(awaited) +
            "; another rank has left, hangs or is late [" + where.file + ":" +
            omnibal::detail::to_text(where.line) + "]"));
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
