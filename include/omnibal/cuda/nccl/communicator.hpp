// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// An owning communicator of NCCL.

#include <omnibal/check.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/communicator_ref.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/cuda/nccl/library.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <nccl.h>

namespace omnibal::inline v0::nccl {

/// An owner of an `ncclComm_t` that starts it without blocking and aborts it if it fails. Models
/// `exchanging_communicator`; see `communicator_ref` for its collectives, their memory and errors.
///
/// After an error of NCCL or CUDA, or a timeout, the communicator is aborted. Therefore no work
/// hangs on a stream, and every further call throws `communication_error`. The destructor finalizes
/// and destroys the communicator, which is a collective call. If the destructor runs because of an
/// exception, or if the other ranks do not arrive within the timeout, it aborts the communicator
/// instead. The destructor never throws. An object that has been moved from may only be assigned to
/// or destroyed.
class communicator : private communicator_ref {
 public:
  /// Joins the ranks that have the same id, on the current device. A collective call: rank 0 makes
  /// the id and shares it by `share_id_by_file`, `share_id_by_comm` or a method of the program.
  /// Errors: `std::invalid_argument` for a place that is not in the world; `nccl::error` if NCCL
  /// fails, also if there is no driver or device. Further errors: `nccl::library_error` if there is
  /// no NCCL; `nccl::timeout` if not all ranks arrive in time.
  communicator(world const& place, ncclUniqueId const& id, communicator_options const& options = {})
      : communicator(start(place, id, options), options) {}

  /// Takes ownership of a communicator that is ready. The object destroys the communicator at its
  /// end.
  [[nodiscard]] static communicator adopt(ncclComm_t comm,
                                          communicator_options const& options = {}) {
    return {comm, options};
  }

  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  communicator(communicator&& other) noexcept
      : communicator_ref(static_cast<communicator_ref&&>(other)), exceptions_(other.exceptions_) {
    other.forget();
  }
  communicator& operator=(communicator&& other) noexcept {
    std::swap(static_cast<communicator_ref&>(*this), static_cast<communicator_ref&>(other));
    std::swap(exceptions_, other.exceptions_);
    return *this;
  }
  ~communicator() {
    if (!is_alive()) return;
    if (std::uncaught_exceptions() > exceptions_ || !finalize()) {
      abort();
    } else {
      static_cast<void>(detail::calls().comm_destroy(forget()));
    }
  }

  using communicator_ref::agree;
  using communicator_ref::all_gather;
  using communicator_ref::all_to_all_v;
  using communicator_ref::check_health;
  using communicator_ref::device;
  using communicator_ref::fetch;
  using communicator_ref::get;
  using communicator_ref::rank;
  using communicator_ref::settle;
  using communicator_ref::size;
  using communicator_ref::submit;
  using communicator_ref::timeout;
  using communicator_ref::wait;

  /// Returns true if the communicator was aborted, for example after an error. Then only the
  /// destructor may be called.
  [[nodiscard]] bool is_aborted() const { return !is_alive(); }

  /// Aborts the communicator and ends its work, on this rank only; see
  /// `communicator_options::abort`.
  void abort() noexcept {
    if (is_alive()) abort_alive();
  }

  /// Joins the ranks that pass the same `color`, which is not negative, into a new communicator.
  /// The ranks are in the order of `key`. Ranks with equal keys or without a key are in the order
  /// of their present ranks. For example, one call selects the data-parallel ranks, and another
  /// call with the keys of `node_map::order_of` places the ranks of each node one after the other.
  /// A rank that passes `NCCL_SPLIT_NOCOLOR` joins no communicator, and receives an object in the
  /// state of a moved-from object. A collective call. Errors: the errors of the constructor.
  [[nodiscard]] communicator split(int color, std::optional<int> key = {},
                                   gpu::location caller = gpu::location::here()) {
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
      omnibal::detail::throw_invalid("nccl::split", "the color is ", color,
                                     ", must not be negative, or be NCCL_SPLIT_NOCOLOR");
    }
    communicator_options const options{.timeout = timeout(), .abort = how_to_abort()};
    int const order = key.value_or(static_cast<int>(rank()));
    auto const part = std::make_shared<ncclComm_t>(nullptr);
    try {
      check(detail::calls().comm_split(get(), color, order, part.get(), nullptr), get(), caller);
      wait_for_nccl(caller);
    } catch (...) {
      abort_alive(part);
      throw;
    }
    if (color == NCCL_SPLIT_NOCOLOR) return {};
    return {finish_start(*part, options, "split", caller), options};
  }

 private:
  /// Creates an object in the state of a moved-from object.
  communicator() = default;
  communicator(ncclComm_t comm, communicator_options const& options)
      : communicator_ref(comm, options.timeout, options.abort),
        exceptions_(std::uncaught_exceptions()) {}

  [[nodiscard]] static ncclComm_t start(world const& place, ncclUniqueId const& id,
                                        communicator_options const& options) {
    constexpr std::string_view name = "nccl::communicator";
    detail::check_world(name, place);
    detail::check_timeout(name, "options.timeout", options.timeout);
    ncclConfig_t config = options.config;
    if (config.blocking == NCCL_CONFIG_UNDEF_INT) config.blocking = 0;
    ncclComm_t comm = nullptr;
    check(detail::calls().comm_init_rank_config(&comm, static_cast<int>(place.size), id,
                                                static_cast<int>(place.rank), &config),
          comm);
    return finish_start(comm, options, "communicator", gpu::location::here());
  }

  /// Waits until a new communicator is ready and returns it. Aborts it and throws after an error or
  /// the timeout.
  [[nodiscard]] static ncclComm_t finish_start(ncclComm_t comm, communicator_options const& options,
                                               std::string_view function, gpu::location caller) {
    detail::deadline limit(options.timeout);
    try {
      while (state_of(comm, caller) == ncclInProgress) {
        if (limit.has_passed()) {
          throw nccl::timeout(omnibal::detail::message(
              std::string("nccl::").append(function), "not all ranks have come within ",
              limit.text(), "; one is missing, or two have the same rank or device"));
        }
        limit.pause();
      }
      return comm;
    } catch (...) {
      if (comm != nullptr) detail::call_apart(options.timeout, [=] { options.abort(comm); });
      throw;
    }
  }

  /// Finalizes the communicator. Returns false if the other ranks do not arrive in time.
  [[nodiscard]] bool finalize() noexcept {
    try {
      check(detail::calls().comm_finalize(get()), get());
      wait_for_nccl(gpu::location::here());
      return true;
    } catch (...) {
      return false;
    }
  }

  int exceptions_ = 0;
};

}  // namespace omnibal::inline v0::nccl
