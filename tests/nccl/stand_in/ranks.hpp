// SPDX-License-Identifier: Apache-2.0
#pragma once

// Communicators of the stand-in.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <nccl.h>

namespace stand_in {

/// A message that waits for the one who takes it.
struct message {
  void const* from;
  std::size_t bytes;
  bool is_taken = false;
};

/// A gather, which all ranks run.
struct gather {
  /// By rank: what it sends.
  std::map<int, std::pair<void const*, std::size_t>> posted;
  int ended = 0;
};

/// The ranks of a communicator.
struct clique {
  explicit clique(int ranks)
      : size(ranks),
        changed(static_cast<std::size_t>(ranks)),
        is_here(static_cast<std::size_t>(ranks), false) {}

  /// Wakes what waits on a rank, on all.
  void wake(int rank) { changed[static_cast<std::size_t>(rank)].notify_all(); }
  void wake_all() {
    for (auto& of_rank : changed) of_rank.notify_all();
  }
  void fail(ncclResult_t code) {
    if (error == ncclSuccess) error = code;
    wake_all();
  }

  std::mutex mutex;
  int size;
  std::vector<std::condition_variable> changed;
  int here = 0;
  std::vector<bool> is_here;
  ncclResult_t error = ncclSuccess;
  int finalized = 0;
  /// By the number of the call.
  std::map<std::uint64_t, gather> gathers;
  /// By sender and receiver.
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<message>>> messages;
  /// By the number of the split, then by rank: color and key.
  std::map<std::uint64_t, std::map<int, std::pair<int, int>>> splits;
  std::map<std::pair<std::uint64_t, int>, std::shared_ptr<clique>> parts;
};

}  // namespace stand_in

struct ncclComm {
  std::shared_ptr<stand_in::clique> ranks;
  int rank = 0;
  int device = 0;
  bool is_blocking = false;
  std::atomic<bool> is_aborted = false;
  std::atomic<bool> is_finalizing = false;
  /// The next call to be submitted, and the next to run.
  std::uint64_t next = 0;
  std::uint64_t running = 0;
  /// The gathers that ran, which all ranks run; messages only some.
  std::uint64_t gathers = 0;
  std::uint64_t splits = 0;
  /// What a group has left to submit: a non-blocking communicator does so later.
  std::vector<std::function<void()>> delayed;
  int polls = 0;
  /// Completes a split that is in progress, or gives it up; false where others have not come.
  std::function<bool(bool is_given_up)> split;
  /// Runs on a stream and uses this: nobody deletes it before.
  std::shared_ptr<ncclComm> self;
  /// Shared by what is queued on streams and by the graphs that have captured calls, for all of
  /// which NCCL waits before it ends a communicator.
  std::shared_ptr<int> used = std::make_shared<int>();

  /// Waits for the other ranks; false where this one is aborted or dead meanwhile.
  template <class Condition>
  bool wait_for(std::unique_lock<std::mutex>& lock, Condition const& condition) {
    ranks->changed[static_cast<std::size_t>(rank)].wait(
        lock, [&] { return is_aborted.load() || condition(); });
    return !is_aborted;
  }
  /// The same for some time, so that who asks in a loop leaves the processor to others.
  template <class Condition>
  bool wait_shortly(std::unique_lock<std::mutex>& lock, Condition const& condition) {
    return ranks->changed[static_cast<std::size_t>(rank)].wait_for(
        lock, std::chrono::microseconds(500), condition);
  }
};

namespace stand_in {

/// Whether calls may use the communicator: NCCL refuses one that is still in progress.
bool is_ready(ncclComm& comm);

/// Counts a collective or a group that runs.
void count_operation();

/// Ends what runs, without waiting for it.
void end(ncclComm_t comm);

/// Waits until nothing uses a communicator, as NCCL does, and gives it back.
void give_back(ncclComm_t comm);

}  // namespace stand_in
