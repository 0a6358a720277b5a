// SPDX-License-Identifier: Apache-2.0
// NCCL of the stand-in: groups, gathers and messages.

#include "ranks.hpp"
#include "stand_in.hpp"
#include "streams.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <nccl.h>

namespace stand_in {
namespace {

struct transfer {
  bool is_send;
  void* address;
  std::size_t bytes;
  int peer;
};

/// The calls between ncclGroupStart and ncclGroupEnd of this thread.
struct group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::map<std::pair<ncclComm*, cudaStream_t>, std::vector<transfer>> transfers;
  std::vector<std::tuple<ncclComm*, cudaStream_t, void const*, void*, std::size_t>> gathers;
  std::vector<ncclComm*> aborted;
};
thread_local group open_group;

/// Runs a call when those before it on this communicator have run.
void submit(ncclComm* comm, cudaStream_t stream, std::function<void()> action) {
  auto const self = comm->self;
  // A graph keeps this, and so does what is queued.
  stream_of(stream).push(
      {[self, used = self->used, action = std::move(action)]() -> std::function<void()> {
        std::uint64_t number = 0;
        {
          std::lock_guard const lock(self->ranks->mutex);
          number = self->next++;
        }
        return [self, used, action, number] {
          {
            std::unique_lock lock(self->ranks->mutex);
            if (!self->wait_for(lock, [&] { return self->running == number; })) return;
          }
          count_operation();
          action();
          {
            std::lock_guard const lock(self->ranks->mutex);
            ++self->running;
          }
          self->ranks->wake(self->rank);
        };
      }});
}

void run_gather(ncclComm& comm, void const* in, void* out, std::size_t bytes) {
  clique& ranks = *comm.ranks;
  auto const size = static_cast<std::size_t>(ranks.size);
  std::unique_lock lock(ranks.mutex);
  std::uint64_t const number = comm.gathers++;
  gather& call = ranks.gathers[number];
  call.posted[comm.rank] = {in, bytes};
  if (call.posted.size() == size) ranks.wake_all();
  // Nobody copies from a rank that is gone.
  auto const withdraw = [&] { call.posted.erase(comm.rank); };
  if (!comm.wait_for(lock, [&] { return call.posted.size() == size; })) return withdraw();
  bool const is_match = std::all_of(call.posted.begin(), call.posted.end(),
                                    [&](auto const& one) { return one.second.second == bytes; });
  // What NCCL does is undefined; it may hang.
  if (!is_match) {
    static_cast<void>(comm.wait_for(lock, [] { return false; }));
    return withdraw();
  }
  for (auto const& [rank, sent] : call.posted) {
    std::memmove(static_cast<std::byte*>(out) + static_cast<std::size_t>(rank) * bytes, sent.first,
                 bytes);
  }
  // What was sent stays until all have it.
  if (++call.ended == ranks.size) ranks.wake_all();
  if (!comm.wait_for(lock, [&] { return call.ended >= ranks.size; })) return withdraw();
  if (++call.ended == 2 * ranks.size) ranks.gathers.erase(number);
}

void run_transfers(ncclComm& comm, std::vector<transfer> const& transfers) {
  clique& ranks = *comm.ranks;
  std::unique_lock lock(ranks.mutex);
  std::vector<std::shared_ptr<message>> sent;
  std::set<int> peers;
  for (transfer const& one : transfers) {
    if (!one.is_send) continue;
    sent.push_back(std::make_shared<message>(message{one.address, one.bytes}));
    ranks.messages[{comm.rank, one.peer}].push_back(sent.back());
    peers.insert(one.peer);
  }
  for (int const peer : std::exchange(peers, {})) ranks.wake(peer);
  auto const withdraw = [&] {
    for (transfer const& one : transfers) {
      if (!one.is_send) continue;
      auto& box = ranks.messages[{comm.rank, one.peer}];
      for (auto const& mine : sent) box.erase(std::remove(box.begin(), box.end(), mine), box.end());
    }
  };
  for (transfer const& one : transfers) {
    if (one.is_send) continue;
    auto& box = ranks.messages[{one.peer, comm.rank}];
    if (box.empty()) {
      // Those that wait for what was taken so far go on.
      for (int const peer : std::exchange(peers, {})) ranks.wake(peer);
      if (!comm.wait_for(lock, [&] { return !box.empty(); })) return withdraw();
    }
    if (box.front()->bytes != one.bytes) {
      static_cast<void>(comm.wait_for(lock, [] { return false; }));
      return withdraw();
    }
    std::memcpy(one.address, box.front()->from, one.bytes);
    box.front()->is_taken = true;
    box.pop_front();
    peers.insert(one.peer);
  }
  for (int const peer : peers) ranks.wake(peer);
  for (auto const& one : sent) {
    if (!comm.wait_for(lock, [&] { return one->is_taken; })) return withdraw();
  }
}

bool is_device(void const* address, std::size_t bytes) {
  return bytes == 0 || kind_of(address, bytes) == memory_kind::device;
}

/// Gathers and messages of a group; returns its communicators.
std::set<ncclComm*> submit_group(group const& closed) {
  std::set<ncclComm*> comms;
  auto const later = [&](ncclComm* comm, cudaStream_t stream, std::function<void()> action) {
    comms.insert(comm);
    auto run = [comm, stream, action = std::move(action)] {
      submit(comm, stream, action);
      stream_of(stream).start();
    };
    if (comm->is_blocking) {
      run();
    } else {
      comm->delayed.push_back(std::move(run));
    }
  };
  for (auto const& [comm, stream, in, out, bytes] : closed.gathers) {
    later(comm, stream,
          [comm = comm, in = in, out = out, bytes = bytes] { run_gather(*comm, in, out, bytes); });
  }
  for (auto const& [where, transfers] : closed.transfers) {
    later(where.first, where.second,
          [comm = where.first, transfers = transfers] { run_transfers(*comm, transfers); });
  }
  return comms;
}

/// Adds a call to the group that is open, or to one of its own.
template <class Add>
ncclResult_t add_call(ncclComm& comm, cudaStream_t stream, bool is_sound, Add const& add) {
  ncclGroupStart();
  if (is_sound && is_ready(comm) && stream_of(stream).device() == comm.device) {
    add();
  } else {
    open_group.error = ncclInvalidArgument;
  }
  ncclResult_t const added = open_group.error;
  ncclResult_t const ended = ncclGroupEnd();
  return added != ncclSuccess ? added : ended;
}

ncclResult_t post(transfer const& one, ncclComm& comm, cudaStream_t stream) {
  bool const is_sound =
      is_device(one.address, one.bytes) && one.peer >= 0 && one.peer < comm.ranks->size;
  return add_call(comm, stream, is_sound, [&] {
    open_group.transfers[{&comm, stream}].push_back(one);
  });
}

}  // namespace
}  // namespace stand_in

using stand_in::open_group;

extern "C" {

ncclResult_t ncclGroupStart() {
  ++open_group.depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (open_group.depth == 0) return ncclInvalidUsage;
  if (--open_group.depth != 0) return ncclSuccess;
  auto const closed = std::exchange(open_group, {});
  for (ncclComm* const comm : closed.aborted) stand_in::give_back(comm);
  // A group in which a call has failed does nothing.
  if (closed.error != ncclSuccess) return closed.error;
  auto const comms = stand_in::submit_group(closed);
  bool const is_blocking =
      std::all_of(comms.begin(), comms.end(), [](ncclComm* comm) { return comm->is_blocking; });
  return is_blocking ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ncclGroupStart();
  stand_in::end(comm);
  open_group.aborted.push_back(comm);
  return ncclGroupEnd();
}

ncclResult_t ncclAllGather(void const* in, void* out, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  std::size_t const bytes = count * (type == ncclUint8 ? 1 : 8);
  auto const ranks = static_cast<std::size_t>(comm->ranks->size);
  bool const is_sound = stand_in::is_device(in, bytes) && stand_in::is_device(out, bytes * ranks);
  return stand_in::add_call(*comm, stream, is_sound,
                            [&] { open_group.gathers.emplace_back(comm, stream, in, out, bytes); });
}
ncclResult_t ncclSend(void const* from, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return stand_in::post({true, const_cast<void*>(from), count, peer}, *comm, stream);
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return stand_in::post({false, to, count, peer}, *comm, stream);
}

}  // extern "C"
