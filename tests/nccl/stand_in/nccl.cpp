// SPDX-License-Identifier: Apache-2.0
// NCCL of the stand-in: communicators, how they start, split and end.

#include "ranks.hpp"
#include "stand_in.hpp"

#include <omnibal/cuda/nccl/library.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace stand_in {
namespace {

struct state {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<clique>> cliques;
  std::atomic<std::uint64_t> ids = 0;
  std::atomic<std::size_t> communicators = 0;
  std::atomic<std::size_t> operations = 0;
};

state& all() {
  // Never destroyed: at the end of the program a thread that hangs may still wait in it.
  static auto& result = *new state;
  return result;
}

thread_local int version = NCCL_VERSION_CODE;
thread_local bool gives_ids = true;

/// Like NCCL that is linked statically: the process cannot find its functions by name.
[[maybe_unused]] bool const is_used = [] {
  omnibal::nccl::use_library(omnibal::nccl::linked_functions());
  return true;
}();

/// Adds a rank, which is the only owner of its communicator until it is dropped.
ncclComm_t join(std::shared_ptr<clique> ranks, int rank, int device, bool is_blocking) {
  auto comm = std::make_shared<ncclComm>();
  comm->ranks = std::move(ranks);
  comm->rank = rank;
  comm->device = device;
  comm->is_blocking = is_blocking;
  std::lock_guard const lock(comm->ranks->mutex);
  auto const place = static_cast<std::size_t>(rank);
  if (comm->ranks->is_here[place]) comm->ranks->fail(ncclInvalidUsage);
  comm->ranks->is_here[place] = true;
  if (++comm->ranks->here == comm->ranks->size) comm->ranks->wake_all();
  ++all().communicators;
  comm->self = comm;
  return comm.get();
}

void drop(ncclComm_t comm) {
  --all().communicators;
  auto const last = std::move(comm->self);
}

/// Waits for others that a start or an end needs, shortly; true where they have come.
bool is_settled(ncclComm& comm, std::unique_lock<std::mutex>& lock) {
  clique const& ranks = *comm.ranks;
  return comm.wait_shortly(lock, [&] {
    bool const is_waiting =
        ranks.here != ranks.size ||
        (comm.is_finalizing && (ranks.finalized != ranks.size || comm.used.use_count() > 1));
    return ranks.error != ncclSuccess || !is_waiting;
  });
}

/// The part of a split to which this rank belongs, when all have said theirs.
ncclComm_t join_part(ncclComm& comm, std::uint64_t number) {
  clique& ranks = *comm.ranks;
  std::unique_lock lock(ranks.mutex);
  auto const& keys = ranks.splits[number];
  auto const [color, key] = keys.at(comm.rank);
  if (color == NCCL_SPLIT_NOCOLOR) return nullptr;
  int before = 0;
  int members = 0;
  for (auto const& [rank, of] : keys) {
    if (of.first != color) continue;
    ++members;
    if (std::pair(of.second, rank) < std::pair(key, comm.rank)) ++before;
  }
  auto& made = ranks.parts[{number, color}];
  if (made == nullptr) made = std::make_shared<clique>(members);
  auto const joined = made;
  lock.unlock();
  return join(joined, before, comm.device, comm.is_blocking);
}

}  // namespace

bool is_ready(ncclComm& comm) {
  std::lock_guard const lock(comm.ranks->mutex);
  return comm.ranks->here == comm.ranks->size && !comm.is_finalizing && comm.delayed.empty() &&
         !comm.split;
}

void count_operation() { ++all().operations; }

void end(ncclComm_t comm) {
  // NCCL gives what it was about to make to its owner all the same.
  if (comm->split) static_cast<void>(comm->split(true));
  comm->split = nullptr;
  {
    std::lock_guard const lock(comm->ranks->mutex);
    comm->is_aborted = true;
  }
  comm->ranks->wake(comm->rank);
}

void give_back(ncclComm_t comm) {
  while (comm->used.use_count() > 1) std::this_thread::sleep_for(std::chrono::microseconds(100));
  drop(comm);
}

void kill(ncclComm_t comm, death how) {
  end(comm);
  if (how == death::is_reported) {
    std::lock_guard const lock(comm->ranks->mutex);
    comm->ranks->fail(ncclRemoteError);
  }
  drop(comm);
}

void set_version(int other) { version = other; }
void set_giving_ids(bool gives) { gives_ids = gives; }
std::size_t live_communicators() { return all().communicators; }
std::size_t operations() { return all().operations; }

}  // namespace stand_in

using stand_in::all;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = stand_in::version;
  return ncclSuccess;
}
char const* ncclGetErrorString(ncclResult_t code) {
  switch (code) {
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclInvalidArgument: return "invalid argument";
    default: return "an error of the stand-in";
  }
}
char const* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (!stand_in::gives_ids) return ncclSystemError;
  std::memset(id, 0, sizeof(*id));
  std::uint64_t const number = ++all().ids;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  std::shared_ptr<stand_in::clique> found;
  {
    std::lock_guard const lock(all().mutex);
    auto& known = all().cliques[std::string(id.internal, sizeof(id.internal))];
    if (known == nullptr) known = std::make_shared<stand_in::clique>(ranks);
    found = known;
  }
  if (found->size != ranks) return ncclInvalidArgument;
  bool const is_blocking = config == nullptr || config->blocking != 0;
  int device = 0;
  cudaGetDevice(&device);
  *comm = stand_in::join(found, rank, device, is_blocking);
  if (!is_blocking) return ncclInProgress;
  std::unique_lock lock(found->mutex);
  while (!stand_in::is_settled(**comm, lock)) {
  }
  ncclResult_t const result = found->error;
  lock.unlock();
  if (result != ncclSuccess) ncclCommAbort(std::exchange(*comm, nullptr));
  return result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  {
    std::unique_lock lock(comm->ranks->mutex);
    bool const is_settled = stand_in::is_settled(*comm, lock);
    *error = comm->ranks->error;
    if (*error != ncclSuccess) return ncclSuccess;
    *error = ncclInProgress;
    if (!is_settled) return ncclSuccess;
  }
  if (comm->split) {
    if (!comm->split(false)) return ncclSuccess;
    comm->split = nullptr;
  }
  if (!comm->delayed.empty()) {
    // Who does not ask until nothing is in progress finds nothing on the stream.
    constexpr int polls_until_submitted = 3;
    if (++comm->polls < polls_until_submitted) return ncclSuccess;
    comm->polls = 0;
    auto const delayed = std::exchange(comm->delayed, {});
    for (auto const& action : delayed) action();
  }
  *error = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!stand_in::is_ready(*comm)) return ncclInvalidArgument;
  std::lock_guard const lock(comm->ranks->mutex);
  comm->is_finalizing = true;
  if (++comm->ranks->finalized == comm->ranks->size) comm->ranks->wake_all();
  return comm->is_blocking ? ncclSuccess : ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  stand_in::give_back(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  if (!stand_in::is_ready(*comm)) return ncclInvalidArgument;
  stand_in::clique& ranks = *comm->ranks;
  std::uint64_t const number = comm->splits++;
  {
    std::lock_guard const lock(ranks.mutex);
    ranks.splits[number][comm->rank] = {color, key};
    ranks.wake_all();
  }
  auto const all_are_here = [&ranks, number] {
    return ranks.splits[number].size() == static_cast<std::size_t>(ranks.size);
  };
  // `part` is written when the others have come, which may be long after the call.
  comm->split = [comm, part, number, &ranks, all_are_here](bool is_given_up) {
    if (is_given_up) {
      *part = stand_in::join(std::make_shared<stand_in::clique>(2), 0, comm->device, false);
      return true;
    }
    {
      std::unique_lock lock(ranks.mutex);
      if (!comm->wait_shortly(lock, all_are_here)) return false;
    }
    *part = stand_in::join_part(*comm, number);
    return true;
  };
  if (!comm->is_blocking) return ncclInProgress;
  while (!comm->split(false)) {
  }
  comm->split = nullptr;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  if (!stand_in::is_ready(*comm)) return ncclInvalidArgument;
  *count = comm->ranks->size;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  if (!stand_in::is_ready(*comm)) return ncclInvalidArgument;
  *device = comm->device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  if (!stand_in::is_ready(*comm)) return ncclInvalidArgument;
  *rank = comm->rank;
  return ncclSuccess;
}

}  // extern "C"
