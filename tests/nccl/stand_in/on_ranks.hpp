// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ranks that are threads, with communicators of the stand-in.

#include "catch.hpp"
#include "stand_in.hpp"
#include "watchdog.hpp"

#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/nccl/communicator.hpp>

#include <chrono>
#include <cstddef>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace stand_in {

/// Calls `body(comm)` on ranks that are threads, each with a device of its own and a communicator
/// whose calls do not block.
template <class Body>
void on_ranks(std::size_t ranks, Body const& body,
              std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  test::watchdog const limit(std::chrono::seconds(600));
  std::size_t const allocations = stand_in::live_allocations();
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  stand_in::run_ranks(ranks, [&](std::size_t rank) {
    omnibal::gpu::check(cudaSetDevice(static_cast<int>(rank)));
    omnibal::nccl::communicator_options options;
    options.timeout = timeout;
    omnibal::nccl::communicator comm({.rank = rank, .size = ranks}, id, options);
    body(comm);
  });
  CHECK(stand_in::live_allocations() == allocations);
  CHECK(stand_in::live_communicators() == 0);
}

}  // namespace stand_in
