// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs kernels on the host: each thread of a block is a fiber, and all of them take turns on the
// one thread of the host that runs the stream. A thread runs until it waits at a barrier or ends;
// which one is next is chosen at random from a seed, or in ascending or descending order. So a
// kernel that needs an order shows it, the same way each time. A barrier that not all threads
// reach, or reach together with another one, ends the program with a message, and so do lanes of a
// warp that meet in different collectives or with masks that differ or do not name them. In a
// program that is compiled with the thread sanitizer every thread of a kernel is one for it,
// ordered by barriers, and by fences around atomic operations, alone: it reports what two threads
// of a block, or two blocks of a launch, do to a word at once.

#include <cstddef>
#include <functional>

#include <cuda_runtime_api.h>

namespace stand_in {

constexpr unsigned lanes = 32;

/// Multiprocessors of the device, OMNIBAL_MULTIPROCESSORS or 3, and the blocks that each of them
/// runs at once.
unsigned multiprocessors();
constexpr unsigned blocks_on_each = 2;
/// Shared memory that a kernel may take unasked, and at most.
constexpr std::size_t usual_shared_bytes = 48 * 1024;
constexpr std::size_t max_shared_bytes = 99 * 1024;

struct launch_shape {
  unsigned blocks;
  unsigned threads;
  std::size_t shared_bytes;
  /// Whether the blocks run at once and may wait for each other.
  bool is_cooperative;
};

/// Lets a kernel take more shared memory than all may.
cudaError_t allow_shared_bytes(void const* kernel, std::size_t bytes);

/// Submits a kernel to a stream; `body()` is called once for each thread.
cudaError_t launch(cudaStream_t stream, launch_shape const& shape, void const* kernel,
                   std::function<void()> body);

/// Who asks, in a kernel.
struct thread_position {
  unsigned thread;
  unsigned block;
  unsigned blocks;
};
thread_position position();

/// The dynamic shared memory of the block that asks.
unsigned char* dynamic_shared_memory();

/// Ends the kernel, and with it all that is done with the device: whatever comes after it on any
/// stream does not run, and calls of the runtime say why.
[[noreturn]] void trap();
bool has_trapped();
/// As a new process would find it.
void forget_trap();

void wait_for_block();
void wait_for_grid();
/// A fence: who finds a word changed that this thread changes later, and then calls it, is after
/// what this thread did before it.
void order_memory();
/// Told of each word before an atomic operation changes it.
void change_word(void const* word);

/// What the lanes of a warp do together.
enum class collective {
  sync,
  ballot,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_or,
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor
};

/// Waits for the lanes that the mask names, all of which come to the same collective with the same
/// mask. Gives what the lane `asked` says; of a ballot the lanes that say anything but 0, of a
/// reduction its result.
unsigned meet_lanes(collective what, unsigned mask, unsigned says, unsigned asked);

/// The order in which the threads of a kernel run, for the launches that follow.
enum class thread_order { ascending, descending, random };
void set_thread_order(thread_order order);

}  // namespace stand_in
