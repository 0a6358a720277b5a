#pragma once

// NOT NCCL and not CUDA: a stand-in with the signatures of both, for tests on machines without a
// device. Ranks are threads of one process, device memory is host memory, and a stream is a queue
// with a thread of its own, so that what is submitted runs later, in order. It is stricter than the
// real libraries: memory is poisoned when it is taken and given back, a copy or a message of memory
// of the wrong kind is an error, and so is one whose counts differ on both sides.

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace stand_in {

/// Submits work to a stream, as a kernel would be.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// What a dead rank looks like to the others.
enum class death { is_silent, is_reported };

/// A process that ends without a word.
void kill(ncclComm_t comm, death how);

/// Whether `ncclGetUniqueId` works on this thread.
void set_giving_ids(bool gives);

/// The version that `ncclGetVersion` gives on this thread.
void set_version(int version);

/// The device allocations, and the communicators, that were not given back.
std::size_t live_allocations();
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
