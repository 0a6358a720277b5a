#pragma once

/// \file
/// The begin and the end of MPI.

#include <omnibal/comm/mpi/error.hpp>

#include <mpi.h>

namespace omnibal::inline v0::mpi {

/// Starts MPI, and ends it when the object is destroyed, unless the program has started it before.
/// One object in `main`, before the first communicator. Errors: `mpi::error`.
class environment {
 public:
  environment(int& argc, char**& argv) {
    int has_started = 0;
    detail::check(MPI_Initialized(&has_started), "MPI_Initialized");
    if (has_started != 0) return;
    detail::check(MPI_Init(&argc, &argv), "MPI_Init");
    is_owner_ = true;
  }
  environment(environment const&) = delete;
  environment& operator=(environment const&) = delete;
  ~environment() {
    if (is_owner_) MPI_Finalize();
  }

 private:
  bool is_owner_ = false;
};

}  // namespace omnibal::inline v0::mpi
