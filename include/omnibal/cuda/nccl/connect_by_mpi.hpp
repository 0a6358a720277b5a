#pragma once

/// \file
/// A communicator of NCCL for the processes of MPI. Needs MPI too.

#include <omnibal/comm/mpi.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>
#include <omnibal/cuda/nccl/communicator_options.hpp>
#include <omnibal/cuda/nccl/connect.hpp>

#include <mpi.h>

namespace omnibal::inline v0::nccl {

struct connect_by_mpi_fn {
  /// A communicator of NCCL for the processes of `comm`, by default of all, on the current device
  /// of each: `connect_by_comm` over MPI. With `mpi::communicator::split_by_node` a process finds
  /// its device first. Errors: those of `connect_by_comm`, and `mpi::error`.
  [[nodiscard]] communicator operator()(MPI_Comm comm = MPI_COMM_WORLD,
                                        communicator_options const& options = {}) const {
    return connect_by_comm(mpi::communicator_ref(comm), options);
  }
};

/// A communicator for the processes of MPI; see `connect_by_mpi_fn`.
inline constexpr connect_by_mpi_fn connect_by_mpi{};

}  // namespace omnibal::inline v0::nccl
