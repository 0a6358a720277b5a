// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// NCCL on a stream for the algorithms of this folder.

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/nccl/error.hpp>
#include <omnibal/cuda/nccl/library.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <nccl.h>

namespace omnibal::inline v0::nccl::detail {

// The symbols are hidden, because their callers are hidden.
#pragma GCC visibility push(hidden)

/// Calls `post(send, receive)` in a group that the caller has opened: `send(peer, from, bytes)` and
/// `receive(peer, to, bytes)`. Both do nothing if there are no bytes.
template <class Post>
void post_messages(Post post, ncclComm_t comm, cudaStream_t stream) {
  auto const by = [&](auto call) {
    return [=](std::size_t peer, auto* at, std::size_t bytes) {
      if (bytes == 0) return;
      check(call(at, bytes, ncclUint8, static_cast<int>(peer), comm, stream), comm);
    };
  };
  post(by(calls().send), by(calls().recv));
}

/// Returns a function for `post_messages`, with a message to each peer and from each peer. The sent
/// messages are one after the other in `from`, and the received messages in `to`.
[[nodiscard]] inline auto messages_in_rows(std::byte const* from,
                                           std::span<std::uint64_t const> sent, std::byte* to,
                                           std::span<std::uint64_t const> received) {
  return [=](auto const& send, auto const& receive) mutable {
    for (std::size_t peer = 0; peer != sent.size(); ++peer) {
      send(peer, from, sent[peer]);
      receive(peer, to, received[peer]);
      from += sent[peer];
      to += received[peer];
    }
  };
}

/// A connection to the other ranks that submits messages of NCCL to a stream. `Comm` is a
/// communicator or a reference to one.
template <class Comm>
class stream_wire {
 public:
  stream_wire(Comm& comm, cudaStream_t stream) : comm_(&comm), stream_(stream) {}

  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(comm_->rank()); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(comm_->size()); }

  /// Gathers `bytes` bytes of every rank, in the order of the ranks.
  void all_gather(void const* in, void* out, std::size_t bytes) const {
    comm_->submit([&] {
      check(calls().all_gather(in, out, bytes, ncclUint8, comm_->get(), stream_), comm_->get());
    });
  }

  /// Runs a group of messages; see `post_messages`.
  template <class Post>
  void exchange(Post const& post) const {
    comm_->submit([&] { post_messages(post, comm_->get(), stream_); });
  }

 private:
  Comm* comm_;
  cudaStream_t stream_;
};

/// A connection that sends nothing, for calls that only measure scratch.
struct silent_wire {
  std::uint32_t own;
  std::uint32_t ranks;

  [[nodiscard]] std::uint32_t rank() const { return own; }
  [[nodiscard]] std::uint32_t size() const { return ranks; }
  void all_gather(void const*, void*, std::size_t) const {}
  template <class Post>
  void exchange(Post const&) const {}
};

/// Returns the wire for a backend: a silent one if the backend only measures.
template <class Backend, class Comm>
[[nodiscard]] auto wire_for(Backend const&, Comm& comm, cudaStream_t stream) {
  if constexpr (std::derived_from<Backend, gpu::detail::scratch_meter>) {
    return silent_wire{static_cast<std::uint32_t>(comm.rank()),
                       static_cast<std::uint32_t>(comm.size())};
  } else {
    return stream_wire<Comm>(comm, stream);
  }
}

#pragma GCC visibility pop

/// A communicator that can submit work of NCCL to a stream: `communicator` and `communicator_ref`.
template <class Comm>
concept stream_communicator = requires(Comm& comm, cudaStream_t stream) {
  { comm.get() } -> std::convertible_to<ncclComm_t>;
  { comm.rank() } -> std::integral;
  { comm.size() } -> std::integral;
  comm.agree(std::string_view(), std::string_view(), std::uint64_t{});
  comm.submit(static_cast<void (*)()>(nullptr));
  comm.wait(stream);
  comm.fetch(nullptr, std::size_t{}, stream);
};

}  // namespace omnibal::inline v0::nccl::detail
