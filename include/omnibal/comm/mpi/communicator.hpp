#pragma once

/// \file
/// A communicator of MPI of our own.

#include <omnibal/comm/mpi/communicator_ref.hpp>
#include <omnibal/comm/mpi/error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <mpi.h>

namespace omnibal::inline v0::mpi {

/// Owns an `MPI_Comm` whose messages meet no others, with errors as exceptions. Models
/// `exchanging_communicator`; see `communicator_ref` for its collectives. An object that has been
/// moved from may only be assigned to or destroyed, and all must be gone before MPI ends.
class communicator {
 public:
  /// A duplicate of `comm`, by default of all processes. A collective call. Errors: `mpi::error`.
  explicit communicator(MPI_Comm comm = MPI_COMM_WORLD) : communicator(taken{}, duplicate(comm)) {}

  communicator(communicator const&) = delete;
  communicator& operator=(communicator const&) = delete;
  communicator(communicator&& other) noexcept
      : ref_(std::move(other.ref_)), owned_(std::exchange(other.owned_, MPI_COMM_NULL)) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap(ref_, other.ref_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~communicator() {
    if (owned_ != MPI_COMM_NULL) MPI_Comm_free(&owned_);
  }

  /// The ranks that give the same `color`, which is not negative, in the order of their present
  /// ranks: data-parallel ranks out of all. A collective call. Errors: `mpi::error`.
  [[nodiscard]] communicator split(int color) const {
    MPI_Comm part = MPI_COMM_NULL;
    detail::check(MPI_Comm_split(owned_, color, static_cast<int>(rank()), &part), "MPI_Comm_split");
    return {taken{}, part};
  }

  /// The ranks on the same node, in the order of their present ranks. A collective call. Errors:
  /// `mpi::error`.
  [[nodiscard]] communicator split_by_node() const {
    MPI_Comm part = MPI_COMM_NULL;
    detail::check(MPI_Comm_split_type(owned_, MPI_COMM_TYPE_SHARED, static_cast<int>(rank()),
                                      MPI_INFO_NULL, &part),
                  "MPI_Comm_split_type");
    return {taken{}, part};
  }

  [[nodiscard]] std::size_t rank() const { return ref_.rank(); }
  [[nodiscard]] std::size_t size() const { return ref_.size(); }
  [[nodiscard]] MPI_Comm get() const { return owned_; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    ref_.all_gather(in, out);
  }
  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    ref_.all_to_all_v(in, send_counts, out, receive_counts);
  }

 private:
  struct taken {};

  communicator(taken, MPI_Comm comm) : ref_(comm), owned_(comm) {
    detail::check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }

  [[nodiscard]] static MPI_Comm duplicate(MPI_Comm comm) {
    MPI_Comm result = MPI_COMM_NULL;
    detail::check(MPI_Comm_dup(comm, &result), "MPI_Comm_dup");
    return result;
  }

  communicator_ref ref_;
  MPI_Comm owned_;
};

}  // namespace omnibal::inline v0::mpi
