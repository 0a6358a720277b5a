#pragma once

/// \file
/// A communicator of MPI that belongs to someone else.

#include <omnibal/comm/mpi/detail/byte_block.hpp>
#include <omnibal/comm/mpi/error.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <mpi.h>

namespace omnibal::inline v0::mpi {

/// Borrows an `MPI_Comm`, such as a trainer's process group of data-parallel ranks. Models
/// `exchanging_communicator`. The handle must stay valid; messages use tag 27'721 of it.
///
/// Sizes above 2^31 bytes are legal. Ranks that have nothing for each other exchange no message.
/// Determinism: portable among equal ranks. Errors: `std::invalid_argument` for sizes that do not
/// add up; `mpi::error` where MPI fails, if the error handler of the communicator is
/// `MPI_ERRORS_RETURN`, as that of `mpi::communicator` is; the default handler ends the program. A
/// rank that leaves while others wait for it is noticed by MPI alone, which ends the program when
/// its process dies.
class communicator_ref {
 public:
  explicit communicator_ref(MPI_Comm comm) : comm_(comm) {
    detail::check(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    detail::check(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }

  [[nodiscard]] std::size_t rank() const { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(size_); }
  [[nodiscard]] MPI_Comm get() const { return comm_; }

  void all_gather(std::span<std::byte const> in, std::span<std::byte> out) const {
    omnibal::detail::check_size("mpi::all_gather", "the size of out", out.size(),
                                in.size() * size());
    detail::byte_block const block(in.size());
    detail::check(MPI_Allgather(in.data(), block.count(), block.type(), out.data(), block.count(),
                                block.type(), comm_),
                  "MPI_Allgather");
  }

  void all_to_all_v(std::span<std::byte const> in, std::span<std::uint64_t const> send_counts,
                    std::span<std::byte> out, std::span<std::uint64_t const> receive_counts) {
    constexpr std::string_view name = "mpi::all_to_all_v";
    omnibal::detail::check_counts(name, "send counts", send_counts, size(), in.size());
    omnibal::detail::check_counts(name, "receive counts", receive_counts, size(), out.size());
    requests_.clear();
    requests_.reserve(2 * size());
    post_receives(out, receive_counts);
    post_sends(in, send_counts);
    detail::check(
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
  }

 private:
  static constexpr int tag = 27'721;

  void post_receives(std::span<std::byte> out, std::span<std::uint64_t const> counts) {
    std::byte* next = out.data();
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      if (counts[rank] == 0) continue;
      detail::byte_block const block(counts[rank]);
      detail::check(MPI_Irecv(next, block.count(), block.type(), static_cast<int>(rank), tag, comm_,
                              &requests_.emplace_back(MPI_REQUEST_NULL)),
                    "MPI_Irecv");
      next += counts[rank];
    }
  }

  void post_sends(std::span<std::byte const> in, std::span<std::uint64_t const> counts) {
    std::byte const* next = in.data();
    for (std::size_t rank = 0; rank != counts.size(); ++rank) {
      if (counts[rank] == 0) continue;
      detail::byte_block const block(counts[rank]);
      detail::check(MPI_Isend(next, block.count(), block.type(), static_cast<int>(rank), tag, comm_,
                              &requests_.emplace_back(MPI_REQUEST_NULL)),
                    "MPI_Isend");
      next += counts[rank];
    }
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
  std::vector<MPI_Request> requests_;
};

}  // namespace omnibal::inline v0::mpi
