// NCCL of the stand-in: the functions that the library calls.

#include "stand_in.hpp"
#include "streams.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
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

/// The ranks of a communicator.
struct clique {
  explicit clique(int ranks) : size(ranks), is_here(static_cast<std::size_t>(ranks), false) {}

  std::mutex mutex;
  std::condition_variable changed;
  int size;
  int here = 0;
  std::vector<bool> is_here;
  bool is_dead = false;
  ncclResult_t error = ncclSuccess;
  int finalized = 0;
  /// By the number of the call, then by rank.
  std::map<std::uint64_t, std::map<int, std::pair<void const*, std::size_t>>> gathers;
  std::map<std::uint64_t, int> gathered;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<message>>> messages;
  /// By the number of the split and color: who takes part, in which order.
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
  /// The collectives that ran, which all ranks run; messages only some.
  std::uint64_t collectives = 0;
  std::uint64_t splits = 0;
  /// What a group has left to submit: a non-blocking communicator does so later.
  std::vector<std::function<void()>> delayed;
  int polls = 0;
  /// Runs on a stream and uses this: nobody deletes it before.
  std::shared_ptr<ncclComm> self;
};

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
  static state result;
  return result;
}

thread_local int version = NCCL_VERSION_CODE;

struct transfer {
  bool is_send;
  void* address;
  std::size_t bytes;
  int peer;
};

/// The calls between ncclGroupStart and ncclGroupEnd of this thread.
struct group {
  int depth = 0;
  std::map<std::pair<ncclComm*, cudaStream_t>, std::vector<transfer>> transfers;
  std::vector<std::tuple<ncclComm*, cudaStream_t, void const*, void*, std::size_t>> gathers;
};
thread_local group open_group;

void fail(clique& ranks, ncclResult_t code) {
  if (ranks.error == ncclSuccess) ranks.error = code;
  ranks.changed.notify_all();
}

/// Waits for the other ranks; false where this one is aborted or dead meanwhile.
template <class Condition>
bool wait_for(std::unique_lock<std::mutex>& lock, ncclComm& comm, Condition const& condition) {
  comm.ranks->changed.wait(lock, [&] { return comm.is_aborted.load() || condition(); });
  return !comm.is_aborted;
}

/// Runs a call when those before it on this communicator have run.
void submit(ncclComm* comm, cudaStream_t stream, std::function<void()> action) {
  auto const self = comm->self;
  stream_of(stream).push({[self, action = std::move(action)]() -> std::function<void()> {
    std::uint64_t number = 0;
    {
      std::lock_guard const lock(self->ranks->mutex);
      number = self->next++;
    }
    return [self, action, number] {
      {
        std::unique_lock lock(self->ranks->mutex);
        if (!wait_for(lock, *self, [&] { return self->running == number; })) return;
      }
      ++all().operations;
      action();
      {
        std::lock_guard const lock(self->ranks->mutex);
        ++self->running;
      }
      self->ranks->changed.notify_all();
    };
  }});
}

void run_gather(ncclComm& comm, void const* in, void* out, std::size_t bytes) {
  clique& ranks = *comm.ranks;
  auto const size = static_cast<std::size_t>(ranks.size);
  std::unique_lock lock(ranks.mutex);
  std::uint64_t const number = comm.collectives++;
  auto& posted = ranks.gathers[number];
  posted[comm.rank] = {in, bytes};
  ranks.changed.notify_all();
  if (!wait_for(lock, comm, [&] { return posted.size() == size; })) return;
  for (auto const& [rank, sent] : posted) {
    if (sent.second != bytes) return fail(ranks, ncclInvalidUsage);
    std::memmove(static_cast<std::byte*>(out) + static_cast<std::size_t>(rank) * bytes, sent.first,
                 bytes);
  }
  // What was sent stays until all have it.
  ++ranks.gathered[number];
  ranks.changed.notify_all();
  static_cast<void>(wait_for(lock, comm, [&] { return ranks.gathered[number] == ranks.size; }));
}

void run_transfers(ncclComm& comm, std::vector<transfer> const& transfers) {
  clique& ranks = *comm.ranks;
  std::unique_lock lock(ranks.mutex);
  std::vector<std::shared_ptr<message>> sent;
  for (transfer const& one : transfers) {
    if (!one.is_send) continue;
    sent.push_back(std::make_shared<message>(message{one.address, one.bytes}));
    ranks.messages[{comm.rank, one.peer}].push_back(sent.back());
  }
  ranks.changed.notify_all();
  for (transfer const& one : transfers) {
    if (one.is_send) continue;
    auto& box = ranks.messages[{one.peer, comm.rank}];
    if (!wait_for(lock, comm, [&] { return !box.empty(); })) return;
    if (box.front()->bytes != one.bytes) return fail(ranks, ncclInvalidUsage);
    std::memcpy(one.address, box.front()->from, one.bytes);
    box.front()->is_taken = true;
    box.pop_front();
    ranks.changed.notify_all();
  }
  for (auto const& one : sent) {
    if (!wait_for(lock, comm, [&] { return one->is_taken; })) return;
  }
}

bool is_device(void const* address, std::size_t bytes) {
  return bytes == 0 || kind_of(address, bytes) == memory_kind::device;
}

void submit_group(std::vector<ncclComm*>& comms) {
  group const closed = std::exchange(open_group, group{});
  auto const later = [&](ncclComm* comm, std::function<void()> action) {
    if (std::find(comms.begin(), comms.end(), comm) == comms.end()) comms.push_back(comm);
    if (comm->is_blocking) {
      action();
    } else {
      comm->delayed.push_back(std::move(action));
    }
  };
  for (auto const& [comm, stream, in, out, bytes] : closed.gathers) {
    later(comm, [comm = comm, stream = stream, in = in, out = out, bytes = bytes] {
      submit(comm, stream, [=] { run_gather(*comm, in, out, bytes); });
    });
  }
  for (auto const& [where, transfers] : closed.transfers) {
    later(where.first, [where = where, transfers = transfers] {
      submit(where.first, where.second, [=] { run_transfers(*where.first, transfers); });
    });
  }
}

std::unique_ptr<ncclComm> join(std::shared_ptr<clique> ranks, int rank, bool is_blocking) {
  auto comm = std::make_unique<ncclComm>();
  comm->ranks = std::move(ranks);
  comm->rank = rank;
  cudaGetDevice(&comm->device);
  comm->is_blocking = is_blocking;
  std::lock_guard const lock(comm->ranks->mutex);
  auto const place = static_cast<std::size_t>(rank);
  if (comm->ranks->is_here[place]) fail(*comm->ranks, ncclInvalidUsage);
  comm->ranks->is_here[place] = true;
  ++comm->ranks->here;
  comm->ranks->changed.notify_all();
  ++all().communicators;
  return comm;
}

ncclComm_t own(std::unique_ptr<ncclComm> comm) {
  ncclComm_t const result = comm.get();
  result->self = std::move(comm);
  return result;
}

void drop(ncclComm_t comm) {
  --all().communicators;
  auto const last = std::move(comm->self);
}

}  // namespace

void kill(ncclComm_t comm, death how) {
  {
    std::lock_guard const lock(comm->ranks->mutex);
    comm->is_aborted = true;
    if (how == death::is_reported) fail(*comm->ranks, ncclRemoteError);
  }
  comm->ranks->changed.notify_all();
  drop(comm);
}

void set_version(int other) { version = other; }
std::size_t live_communicators() { return all().communicators; }
std::size_t operations() { return all().operations; }

}  // namespace stand_in

using stand_in::all;
using stand_in::open_group;

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
  *comm = stand_in::own(stand_in::join(std::move(found), rank, is_blocking));
  if (!is_blocking) return ncclInProgress;
  std::unique_lock lock((*comm)->ranks->mutex);
  (*comm)->ranks->changed.wait(lock, [&] { return (*comm)->ranks->here == ranks; });
  return (*comm)->ranks->error;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  stand_in::clique& ranks = *comm->ranks;
  {
    std::lock_guard const lock(ranks.mutex);
    *error = ranks.error;
    if (*error != ncclSuccess) return ncclSuccess;
    bool const is_waiting =
        ranks.here != ranks.size || (comm->is_finalizing && ranks.finalized != ranks.size);
    if (is_waiting) {
      *error = ncclInProgress;
      return ncclSuccess;
    }
  }
  if (!comm->delayed.empty()) {
    // Who does not ask until nothing is in progress finds nothing on the stream.
    constexpr int polls_until_submitted = 3;
    if (++comm->polls < polls_until_submitted) {
      *error = ncclInProgress;
      return ncclSuccess;
    }
    comm->polls = 0;
    auto const delayed = std::exchange(comm->delayed, {});
    for (auto const& action : delayed) action();
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  std::lock_guard const lock(comm->ranks->mutex);
  comm->is_finalizing = true;
  ++comm->ranks->finalized;
  comm->ranks->changed.notify_all();
  return comm->is_blocking ? ncclSuccess : ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  stand_in::drop(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    std::lock_guard const lock(comm->ranks->mutex);
    comm->is_aborted = true;
  }
  comm->ranks->changed.notify_all();
  stand_in::drop(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  stand_in::clique& ranks = *comm->ranks;
  std::unique_lock lock(ranks.mutex);
  std::uint64_t const number = comm->splits++;
  auto& keys = ranks.splits[number];
  keys[comm->rank] = {color, key};
  ranks.changed.notify_all();
  ranks.changed.wait(lock, [&] { return keys.size() == static_cast<std::size_t>(ranks.size); });
  int before = 0;
  int members = 0;
  for (auto const& [rank, of] : keys) {
    if (of.first != color) continue;
    ++members;
    if (std::pair(of.second, rank) < std::pair(key, comm->rank)) ++before;
  }
  auto& made = ranks.parts[{number, color}];
  if (made == nullptr) made = std::make_shared<stand_in::clique>(members);
  auto const joined = made;
  lock.unlock();
  *part = stand_in::own(stand_in::join(joined, before, comm->is_blocking));
  return comm->is_blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  *count = comm->ranks->size;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  *device = comm->device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++open_group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (open_group.depth == 0) return ncclInvalidUsage;
  if (--open_group.depth != 0) return ncclSuccess;
  std::vector<ncclComm*> comms;
  stand_in::submit_group(comms);
  for (ncclComm const* const comm : comms) {
    if (!comm->is_blocking) return ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclAllGather(void const* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  std::size_t const bytes = count * (type == ncclUint8 ? 1 : 8);
  auto const ranks = static_cast<std::size_t>(comm->ranks->size);
  if (!stand_in::is_device(in, bytes) || !stand_in::is_device(out, bytes * ranks)) {
    return ncclInvalidArgument;
  }
  ncclGroupStart();
  open_group.gathers.emplace_back(comm, stream, in, out, bytes);
  return ncclGroupEnd();
}

namespace {

ncclResult_t post(bool is_send, void* address, std::size_t bytes, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  if (!stand_in::is_device(address, bytes) || peer < 0 || peer >= comm->ranks->size) {
    return ncclInvalidArgument;
  }
  ncclGroupStart();
  open_group.transfers[{comm, stream}].push_back({is_send, address, bytes, peer});
  return ncclGroupEnd();
}

}  // namespace

ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return post(true, const_cast<void*>(from), count, peer, comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return post(false, to, count, peer, comm, stream);
}

}  // extern "C"
