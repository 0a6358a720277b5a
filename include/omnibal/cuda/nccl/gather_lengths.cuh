// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The lengths of all samples of a global batch, on the stream of every rank.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/nccl/detail/exchange_calls.cuh>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::nccl {

/// The lengths of the samples of this rank. `T` is `std::int64_t`, or `resources` of it if a sample
/// has several lengths.
template <class T = std::int64_t>
struct local_lengths {
  local_lengths() = default;
  /// Uses a length for each sample.
  template <std::convertible_to<gpu::device_span<T const>> Values>
  local_lengths(Values const& of_samples) : values(of_samples) {}
  /// Uses the first `*number` of the values, if only the device knows the number.
  local_lengths(gpu::device_span<T const> of_samples, gpu::device_span<std::uint32_t const> number)
      : values(of_samples), count(number) {}

  gpu::device_span<T const> values;
  /// An array of one element with the number of values, or an empty span if all values are used. A
  /// number above the size of `values` is the fault `unknown_index`.
  gpu::device_span<std::uint32_t const> count;
};

/// Output arrays of the caller for the lengths of all ranks.
template <class T = std::int64_t>
struct gathered_lengths {
  /// The position of the lengths of each rank: rank r has the lengths [offsets[r], offsets[r + 1]).
  /// There is one more element than there are ranks.
  gpu::device_span<std::uint32_t> offsets;
  gpu::device_span<T> lengths;
  /// The faults, one word. If the span is empty, a fault traps; see `gpu::fault`. Every rank
  /// receives the faults in the words of all ranks, including faults of earlier calls.
  gpu::device_span<gpu::fault> faults;
};

namespace detail {

/// The number of 64-bit integers in a length.
template <class T>
inline constexpr std::size_t kinds_of_length = sizeof(T) / sizeof(std::int64_t);

template <class T>
concept device_length = std::is_trivially_copyable_v<T> &&
    (std::same_as<T, std::int64_t> || std::same_as<T, resources<kinds_of_length<T>, std::int64_t>>);

/// Returns the lengths as columns of 64-bit integers. Throws if `local` has too many values or a
/// `count` of several elements.
template <class T>
[[nodiscard]] local_columns columns_of(std::string_view function, local_lengths<T> const& local) {
  omnibal::detail::check_index_count(function, "local", local.values.size());
  if (local.count.size() > 1) {
    omnibal::detail::throw_invalid(function, "the count of the samples must be one element");
  }
  local_columns columns;
  columns.values = reinterpret_cast<std::int64_t const*>(local.values.data());
  columns.kinds = static_cast<std::uint32_t>(kinds_of_length<T>);
  columns.count = local.count.data();
  columns.given_count = static_cast<std::uint32_t>(local.values.size());
  return columns;
}

}  // namespace detail

#pragma GCC visibility push(hidden)

struct gather_lengths_fn {
  /// Gathers the lengths of the samples of all ranks one after the other, and the position of each
  /// rank, on the device. Corresponds to `omnibal::gather_lengths` for lengths that are on the
  /// device and remain there. Ranks may have different numbers of samples, also none, and only the
  /// device may know these numbers.
  ///
  /// A collective call. If `options.max_samples` is given, which is equal on all ranks, the call is
  /// one collective of blocks padded to this number. Only the first call with this number
  /// synchronizes, because the ranks agree on it. Later calls can be captured in a graph. If the
  /// number is not given, the numbers of samples are gathered first, which *waits*. There is one
  /// launch before the collective of blocks, and two launches follow it. Memory: a block for each
  /// rank and one more, each with 8 bytes for each length of `max_samples` samples and 8 bytes
  /// more. Determinism: portable. Errors: `std::invalid_argument` for another number of offsets or
  /// several words of faults, on all ranks if the numbers are gathered first. It is also thrown for
  /// several elements of `local.count`, and on all ranks for different `options.max_samples`.
  /// Further errors: `std::length_error` if all ranks could have more than 2^32 - 1 samples; the
  /// errors of `wait`. Faults on all ranks: the faults that a rank had before, `invalid_amount` for
  /// a negative length, `unknown_index` for a `local.count` above the number of values, `no_room`
  /// if a rank has more than `max_samples`. A rank with too small `out.lengths` also has `no_room`.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
    requires detail::device_length<T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  std::type_identity_t<local_lengths<T>> const& local,
                  gather_lengths_options const& options, gathered_lengths<T> const& out) const {
    std::size_t const ranks = omnibal::detail::rank_count(comm);
    auto const check = [&] {
      omnibal::detail::check_size(name, "the size of the offsets", out.offsets.size(), ranks + 1);
      if (out.faults.size() > 1) {
        omnibal::detail::throw_invalid(name, "the faults are more than one word");
      }
    };
    std::size_t most = 0;
    if (options.max_samples) {
      check();
      most = *options.max_samples;
      comm.agree(name, "options.max_samples", most);
    } else {
      omnibal::detail::agreement<std::uint64_t> on_counts;
      auto const reports = on_counts.run({name, "collective calls"}, comm, [&](auto& report) {
        check();
        report.facts = local.values.size();
      });
      for (auto const& report : reports) most = std::max<std::size_t>(most, report.facts);
    }
    detail::check_most_samples(name, "options.max_samples", most, ranks);
    detail::local_columns const columns = detail::columns_of(name, local);
    constexpr std::size_t kinds = detail::kinds_of_length<T>;
    detail::length_columns const to{reinterpret_cast<std::int64_t*>(out.lengths.data()), kinds, 1,
                                    out.lengths.size()};
    gpu::detail::run_on_device(exec, [&](auto& b) {
      detail::gather_columns(b, detail::wire_for(b, comm, exec.stream()), columns,
                             static_cast<std::uint32_t>(most), out.offsets.data(), to,
                             out.faults.data());
    });
  }

  /// Gathers the lengths without an upper bound on the number of samples of a rank.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
    requires detail::device_length<T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  std::type_identity_t<local_lengths<T>> const& local,
                  gathered_lengths<T> const& out) const {
    (*this)(exec, comm, local, {}, out);
  }

  /// Returns the scratch of a call with the option `max_samples`, in bytes. Each sample has `kinds`
  /// lengths.
  [[nodiscard]] std::size_t scratch_bytes(std::size_t ranks, std::size_t max_samples,
                                          std::size_t kinds = 1) const {
    detail::check_most_samples(name, "max_samples", max_samples, ranks);
    detail::local_columns local;
    local.kinds = static_cast<std::uint32_t>(kinds);
    return gpu::detail::device_scratch_bytes([&](auto& b) {
      detail::gather_columns(b, detail::silent_wire{0, static_cast<std::uint32_t>(ranks)}, local,
                             static_cast<std::uint32_t>(max_samples), nullptr, {}, nullptr);
    });
  }

 private:
  static constexpr std::string_view name = "nccl::gather_lengths";
};

/// Gathers the lengths of all samples of a global batch; see `gather_lengths_fn`.
inline constexpr gather_lengths_fn gather_lengths{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl
