// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Ranks that exist. For programs that are linked to what their ranks need.

#include "post_balance_options.hpp"

#include <omnibal/comm/thread_communicator.hpp>

#include <stdexcept>
#include <string>

#if defined(OMNIBAL_EXAMPLE_HAS_MPI)
#include <omnibal/comm/mpi.hpp>

#include <cstdio>
#include <exception>
#endif

#if defined(OMNIBAL_EXAMPLE_HAS_NCCL)
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/connect.hpp>
#include <omnibal/cuda/nccl/library.hpp>
#endif

namespace examples {

/// What `run_on_ranks` throws where ranks need a GPU and there is none.
class no_device : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Calls `body(comm)` on the ranks that MPI started. A failure of one rank ends all.
template <class Body>
void run_on_mpi([[maybe_unused]] Body const& body) {
#if defined(OMNIBAL_EXAMPLE_HAS_MPI)
  int count = 0;
  char** words = nullptr;
  omnibal::mpi::environment const environment(count, words);
  try {
    omnibal::mpi::communicator comm;
    body(comm);
  } catch (std::exception const& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
#else
  throw std::runtime_error("--mpi: this program was built without MPI");
#endif
}

/// Calls `body(comm)` on the processes that a launcher started, through staging memory of NCCL. A
/// failure of one rank is an error of the others within NCCL's timeout.
template <class Body>
void run_on_nccl([[maybe_unused]] Body const& body) {
#if defined(OMNIBAL_EXAMPLE_HAS_NCCL)
  try {
    auto comm = omnibal::nccl::connect_by_environment();
    body(comm);
  } catch (omnibal::gpu::error const& error) {
    bool const is_missing =
        error.code() == cudaErrorInsufficientDriver || error.code() == cudaErrorNoDevice;
    if (is_missing) throw no_device(std::string("--nccl: there is no GPU: ") + error.what());
    throw;
  } catch (omnibal::nccl::library_error const& error) {
    throw std::runtime_error(std::string("--nccl: ") + error.what());
  }
#else
  throw std::runtime_error("--nccl: this program was built without NCCL");
#endif
}

template <class Body>
void run_on_ranks(post_balance_options const& options, Body const& body) {
  switch (options.engine) {
    case rank_engine::threads: omnibal::thread_communicator::run(options.ranks, body); return;
    case rank_engine::mpi: run_on_mpi(body); return;
    case rank_engine::nccl: run_on_nccl(body); return;
    case rank_engine::simulated: throw std::logic_error("simulated ranks run nothing");
  }
}

}  // namespace examples
