// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOT NCCL: a stand-in with its signatures, over that for CUDA in tests/cuda/stand_in. Ranks are
// threads of one process. It is stricter than NCCL: a message of memory of the wrong kind is an
// error. What NCCL leaves undefined, such as counts that differ on both sides, hangs until somebody
// aborts, and so does everything in which NCCL waits.

#include "runtime.hpp"

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include <nccl.h>

namespace stand_in {

/// What a dead rank looks like to the others.
enum class death { is_silent, is_reported };

/// A process that ends without a word.
void kill(ncclComm_t comm, death how);

/// Whether `ncclGetUniqueId` works on this thread.
void set_giving_ids(bool gives);

/// The version that `ncclGetVersion` gives on this thread.
void set_version(int version);

/// The communicators that were not given back.
std::size_t live_communicators();
/// Collectives and groups that ran.
std::size_t operations();

/// Calls `body(rank)` on so many threads; rethrows what the lowest rank has thrown.
template <class Body>
void run_ranks(std::size_t ranks, Body const& body) {
  std::vector<std::exception_ptr> errors(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(rank);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
  }
  for (auto const& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

}  // namespace stand_in
