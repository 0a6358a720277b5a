// SPDX-License-Identifier: Apache-2.0
#pragma once

// NOT CUDA: a stand-in with the signatures of its runtime, for tests on machines without a device.
// Device memory is host memory, and a stream is a queue with a thread of its own, so that what is
// submitted runs later, in order. It is stricter than the real runtime: memory is poisoned when it
// is taken and given back, and a copy of memory of the wrong kind is an error.

#include <cstddef>
#include <functional>

#include <cuda_runtime_api.h>

namespace stand_in {

/// Submits work to a stream, as a kernel would be.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Kinds of memory.
enum class memory_kind { pageable, pinned, device };
memory_kind kind_of(void const* address, std::size_t bytes);

/// The device allocations that were not given back.
std::size_t live_allocations();

/// Copies that ran when their target had been given back; they write nothing.
std::size_t late_copies();

/// Whether copies read ordinary memory when they run, as devices do that can, or when they are
/// asked for.
void set_reading_late(bool reads);

/// How often all threads together asked the runtime so far.
struct call_counts {
  /// Copies from or to the host.
  unsigned copies = 0;
  unsigned synchronizations = 0;
  /// What a device has, and what a kernel may take.
  unsigned queries = 0;
};
call_counts calls();

}  // namespace stand_in
