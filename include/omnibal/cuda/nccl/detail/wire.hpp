#pragma once

/// \file
/// NCCL on a stream, as the algorithms of this folder use it.

#include <omnibal/cuda/detail/arena.hpp>
#include <omnibal/cuda/nccl/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nccl.h>

namespace omnibal::inline v0::nccl::detail {

// Hidden like what it sends for.
#pragma GCC visibility push(hidden)

/// Sends on a stream. `Comm` is a communicator or a reference to one.
template <class Comm>
class stream_wire {
 public:
  stream_wire(Comm& comm, cudaStream_t stream) : comm_(&comm), stream_(stream) {}

  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(comm_->rank()); }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(comm_->size()); }

  /// `bytes` of every rank, by rank.
  void all_gather(void const* in, void* out, std::size_t bytes) const {
    comm_->submit([&] {
      check(ncclAllGather(in, out, bytes, ncclUint8, comm_->get(), stream_), comm_->get());
    });
  }

  /// Calls `post(send, receive)` in a group: `send(peer, from, bytes)` and `receive(peer, to,
  /// bytes)`. Nothing is sent where there are no bytes.
  template <class Post>
  void exchange(Post const& post) const {
    comm_->submit([&] {
      post(
          [&](std::size_t peer, void const* from, std::size_t bytes) {
            if (bytes == 0) return;
            check(ncclSend(from, bytes, ncclUint8, static_cast<int>(peer), comm_->get(), stream_),
                  comm_->get());
          },
          [&](std::size_t peer, void* to, std::size_t bytes) {
            if (bytes == 0) return;
            check(ncclRecv(to, bytes, ncclUint8, static_cast<int>(peer), comm_->get(), stream_),
                  comm_->get());
          });
    });
  }

 private:
  Comm* comm_;
  cudaStream_t stream_;
};

/// Sends nothing, while scratch is measured.
class silent_wire {
 public:
  silent_wire(std::uint32_t rank, std::uint32_t size) : rank_(rank), size_(size) {}

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  void all_gather(void const*, void*, std::size_t) const {}
  template <class Post>
  void exchange(Post const&) const {}

 private:
  std::uint32_t rank_;
  std::uint32_t size_;
};

/// The wire for a backend: a silent one where the backend only measures.
template <class Backend, class Comm>
[[nodiscard]] auto wire_for(Backend const&, Comm& comm, cudaStream_t stream) {
  if constexpr (std::derived_from<Backend, gpu::detail::scratch_meter>) {
    return silent_wire(static_cast<std::uint32_t>(comm.rank()),
                       static_cast<std::uint32_t>(comm.size()));
  } else {
    return stream_wire<Comm>(comm, stream);
  }
}

#pragma GCC visibility pop

struct no_calls {
  void operator()() const {}
};

/// What can submit work of NCCL to a stream: `communicator` and `communicator_ref`.
template <class Comm>
concept stream_communicator = requires(Comm& comm, cudaStream_t stream) {
  { comm.get() } -> std::convertible_to<ncclComm_t>;
  { comm.rank() } -> std::integral;
  { comm.size() } -> std::integral;
  comm.agree(std::string_view(), std::string_view(), std::uint64_t{});
  comm.submit(no_calls{});
  comm.wait(stream);
  comm.fetch(nullptr, std::size_t{}, stream);
};

}  // namespace omnibal::inline v0::nccl::detail
