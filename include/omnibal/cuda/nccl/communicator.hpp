#pragma once

/// \file
/// A communicator of NCCL of our own.

#include <omnibal/check.hpp>
#include <omnibal/comm/communication_error.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>
#include <omnibal/cuda/nccl/detail/deadline.hpp>
#include <omnibal/cuda/nccl/error.hpp>

#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

/// Owns an `ncclComm_t`, which it makes without blocking and aborts where it fails. Models
/// `exchanging_communicator`; see `communicator_ref` for its collectives, their memory and errors.
///
/// After an error of NCCL or CUDA, or a timeout, the communicator is aborted, so that nothing hangs
/// on a stream, and every further call throws `communication_error`. The destructor flushes and
/// destroys, which is a call that all ranks make; where an exception unwinds or the others do not
/// come within the timeout it aborts instead, and it never throws. An object that has been moved
/// from may only be assigned to or destroyed.
class communicator {
 public:
  /// Joins the ranks that have the same id, on the current device. A collective call: ids come from
  /// rank 0, by `share_id_by_file`, `share_id_by_comm` or a way of the program's own. Errors: `std::invalid_argument` for a place that is not in the world;
  /// `nccl::error` where NCCL fails, also where there is no driver or device; `nccl::timeout` where
  /// not all ranks come in time.
  communicator(world const& place, ncclUniqueId const& id, communicator_options const& options = {})
      : communicator(start(place, id, options), options) {}

  /// Takes over a communicator that is ready, with its duty to be destroyed.
  [[nodiscard]] static communicator adopt(ncclComm_t comm,
                                          communicator_options const& options = {}) {
    return {comm, options};
  }

  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  communicator(communicator&& other) noexcept
      : ref_(std::exchange(other.ref_, std::nullopt)), exceptions_(other.exceptions_) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap(ref_, other.ref_);
    std::swap(exceptions_, other.exceptions_);
    return *this;
  }
  ~communicator() {
    if (!ref_) return;
    if (std::uncaught_exceptions() > exceptions_ || !finalize()) {
      abort();
    } else {
      ncclComm_t const comm = ref_->get();
      ref_.reset();
      static_cast<void>(ncclCommDestroy(comm));
    }
  }

  [[nodiscard]] std::size_t rank() const { return alive().rank(); }
  [[nodiscard]] std::size_t size() const { return alive().size(); }
  [[nodiscard]] ncclComm_t get() const { return alive().get(); }
  [[nodiscard]] int device() const { return alive().device(); }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return alive().timeout(); }

  /// True after an error, when only the destructor may be called.
  [[nodiscard]] bool is_aborted() const { return !ref_; }

  /// Ends everything that runs on this communicator, on this rank alone.
  void abort() noexcept {
    if (!ref_) return;
    ncclComm_t const comm = ref_->get();
    // What hangs is ended first, so that its memory can be given back.
    static_cast<void>(ncclCommAbort(comm));
    ref_->set_aborted();
    ref_.reset();
  }

  /// As `communicator_ref`, but aborts where it throws.
  void check_health(gpu::location where = gpu::location::here()) {
    guarded([&](communicator_ref& ref) { ref.check_health(where); });
  }
  void wait(cudaStream_t stream, gpu::location where = gpu::location::here()) {
    guarded([&](communicator_ref& ref) { ref.wait(stream, where); });
  }
  void wait(cudaStream_t stream, std::chrono::milliseconds timeout,
            gpu::location where = gpu::location::here()) {
    guarded([&](communicator_ref& ref) { ref.wait(stream, timeout, where); });
  }
  /// The same; aborts where `calls` throws anything at all, since some of it may be on its way.
  template <class Calls>
  void submit(Calls const& calls, gpu::location where = gpu::location::here()) {
    if (!ref_) throw_aborted();
    try {
      ref_->submit(calls, where);
    } catch (...) {
      abort();
      throw;
    }
  }
  void settle(gpu::location where = gpu::location::here()) {
    guarded([&](communicator_ref& ref) { ref.settle(where); });
  }

  [[nodiscard]] std::byte const* fetch(void const* from, std::size_t bytes, cudaStream_t stream,
                                       gpu::location where = gpu::location::here()) {
    std::byte const* result = nullptr;
    guarded([&](communicator_ref& ref) { result = ref.fetch(from, bytes, stream, where); });
    return result;
  }

  /// The ranks that give the same `color`, which is not negative, in the order of their present
  /// ranks: data-parallel ranks out of all. A collective call. Errors: those of the constructor.
  [[nodiscard]] communicator split(int color, gpu::location where = gpu::location::here()) {
    return split(color, static_cast<int>(rank()), where);
  }
  /// The same in the order of `key`, equal ones by present rank: with `node_map::order_of` the
  /// ranks of a node come one after the other.
  [[nodiscard]] communicator split(int color, int key,
                                   gpu::location where = gpu::location::here()) {
    if (color < 0) {
      omnibal::detail::throw_invalid(
          "nccl::split",
          "the color is " + omnibal::detail::to_text(color) + ", must not be negative");
    }
    communicator_options options;
    options.timeout = timeout();
    ncclComm_t part = nullptr;
    try {
      // NCCL writes `part` in the background, at the latest while this communicator is aborted.
      guarded([&](communicator_ref& ref) {
        check(ncclCommSplit(ref.get(), color, key, &part, nullptr), ref.get(), where);
        ref.settle(where);
      });
    } catch (...) {
      if (part != nullptr) static_cast<void>(ncclCommAbort(part));
      throw;
    }
    return {finish_start(part, options, "split", where), options};
  }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) {
    guarded([&](communicator_ref& ref) { ref.all_gather(in, out); });
  }
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    guarded([&](communicator_ref& ref) { ref.all_to_all_v(in, send_counts, out, receive_counts); });
  }

 private:
  communicator(ncclComm_t comm, communicator_options const& options)
      : ref_(std::in_place, comm, options.timeout), exceptions_(std::uncaught_exceptions()) {}

  [[nodiscard]] static ncclComm_t start(world const& place, ncclUniqueId const& id,
                                        communicator_options const& options) {
    constexpr std::string_view name = "nccl::communicator";
    detail::check_world(name, place);
    detail::check_timeout(name, "options.timeout", options.timeout);
    ncclConfig_t config = options.config;
    if (config.blocking == NCCL_CONFIG_UNDEF_INT) config.blocking = 0;
    ncclComm_t comm = nullptr;
    check(ncclCommInitRankConfig(&comm, static_cast<int>(place.size), id,
                                 static_cast<int>(place.rank), &config),
          comm);
    return finish_start(comm, options, "communicator", gpu::location::here());
  }

  /// Waits until a new communicator is ready, or aborts it.
  [[nodiscard]] static ncclComm_t finish_start(ncclComm_t comm, communicator_options const& options,
                                               std::string_view function, gpu::location where) {
    detail::deadline limit(options.timeout);
    try {
      for (;;) {
        ncclResult_t state = ncclSuccess;
        check(ncclCommGetAsyncError(comm, &state), comm, where);
        check(state, comm, where);
        if (state == ncclSuccess) return comm;
        if (limit.has_passed()) {
          throw nccl::timeout(omnibal::detail::message(std::string("nccl::").append(function),
                                                       "not all ranks have come within " +
                                                           limit.text() +
                                                           "; one is missing, or two have "
                                                           "the same rank or device"));
        }
        limit.pause();
      }
    } catch (...) {
      if (comm != nullptr) static_cast<void>(ncclCommAbort(comm));
      throw;
    }
  }

  [[nodiscard]] communicator_ref const& alive() const {
    if (!ref_) throw_aborted();
    return *ref_;
  }

  [[noreturn]] static void throw_aborted() {
    throw communication_error(omnibal::detail::message(
        "nccl::communicator", "was aborted after an error, or moved from"));
  }

  /// Aborts where NCCL or CUDA has failed or others did not come.
  template <class Call>
  void guarded(Call const& call) {
    if (!ref_) throw_aborted();
    try {
      call(*ref_);
    } catch (nccl::error const&) {
      abort();
      throw;
    } catch (gpu::error const&) {
      abort();
      throw;
    } catch (nccl::timeout const&) {
      abort();
      throw;
    }
  }

  /// Flushes; false where the others do not come in time.
  [[nodiscard]] bool finalize() noexcept {
    try {
      check(ncclCommFinalize(ref_->get()), ref_->get());
      ref_->settle();
      return true;
    } catch (...) {
      return false;
    }
  }

  std::optional<communicator_ref> ref_;
  int exceptions_ = 0;
};

}  // namespace omnibal::inline v0::nccl
