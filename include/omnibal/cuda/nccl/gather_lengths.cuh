#pragma once

/// \file
/// The lengths of all samples of a global batch, on the stream of every rank.

#include <omnibal/check.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/device_runner.cuh>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/detail/stream_calls.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/gather_lengths/call.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::nccl {

struct gather_lengths_fn {
  /// The lengths of the samples of all ranks one after the other, and where each rank begins: the
  /// twin of `omnibal::gather_lengths` for lengths that are on the device and stay there. Ranks may
  /// have different numbers of samples, also none; how many may be known by the device alone.
  ///
  /// A collective call. Where `options.most_samples` is given, which is equal on all ranks, it is
  /// one collective of blocks padded to it, and synchronises nothing: it can be captured in a
  /// graph. Where it is not, the numbers of samples are gathered first, which *waits*. Two launches
  /// follow. Memory: 8 bytes for each length of `most_samples` samples of all ranks. Determinism:
  /// portable. Errors: `std::invalid_argument` for another number of offsets, on all ranks where
  /// the numbers are gathered first; those of `wait`. Faults on all ranks: those that a rank had
  /// before, `invalid_amount` for a negative length, `no_room` where a rank has more than
  /// `most_samples` or `out.lengths` is too small for all.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
    requires detail::device_length<T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  std::type_identity_t<local_lengths<T>> const& local,
                  gather_lengths_options const& options, gathered_lengths<T> const& out) const {
    detail::gather_lengths_call{}(detail::device_runner{}, exec, comm, local, out, options);
  }

  /// The same where nobody knows the most samples of a rank.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
    requires detail::device_length<T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  std::type_identity_t<local_lengths<T>> const& local,
                  gathered_lengths<T> const& out) const {
    (*this)(exec, comm, local, {}, out);
  }

  /// The scratch of such a call with `most_samples`, for `kinds` lengths of a sample, in bytes.
  [[nodiscard]] std::size_t scratch_bytes(std::size_t ranks, std::size_t most_samples,
                                          std::size_t kinds = 1) const {
    detail::check_most_samples("nccl::gather_lengths", "most_samples", most_samples, ranks);
    detail::local_columns local;
    local.kinds = static_cast<std::uint32_t>(kinds);
    return gpu::detail::device_scratch_bytes([&](auto& b) {
      detail::gather_columns(b, detail::silent_wire(0, static_cast<std::uint32_t>(ranks)), local,
                             static_cast<std::uint32_t>(most_samples), nullptr, {}, nullptr);
    });
  }
};

/// The lengths of all samples of a global batch; see `gather_lengths_fn`.
inline constexpr gather_lengths_fn gather_lengths{};

}  // namespace omnibal::inline v0::nccl
