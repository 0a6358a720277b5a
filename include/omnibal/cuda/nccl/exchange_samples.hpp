// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange of samples on the device by a plan of the host, directly into their places.

#include <omnibal/check.hpp>
#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/error.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/detail/agreement.hpp>
#include <omnibal/detail/sample_routes.hpp>
#include <omnibal/exchange/exchange_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

namespace omnibal::inline v0::nccl::detail {

/// The samples that a rank sends, receives and keeps, in runs of samples that are adjacent both
/// before and after the exchange. The sender and the receiver find the same runs, in the order of
/// their slots.
class coalesced_messages {
 public:
  /// A run of adjacent samples that this rank sends to one rank or receives from one rank. `first`
  /// is the place of the run on this rank.
  struct run {
    std::uint32_t peer;
    std::uint32_t first;
    std::uint32_t count;
  };
  /// A run of adjacent samples that remain on this rank: their first place before the exchange and
  /// after it, and their number.
  struct kept_run {
    std::uint32_t from;
    std::uint32_t to;
    std::uint32_t count;
  };

  coalesced_messages(exchange_plan const& plan, std::size_t rank) {
    omnibal::detail::sample_routes routes;
    routes.prepare(plan, rank);
    auto const departures = plan.departures()[rank];
    auto const arrivals = plan.arrivals(rank);
    sent_ = runs_of(
        routes.send_counts(), [&](std::size_t k) { return routes.leaving(k); },
        [&](std::uint32_t place) { return departures[place]; });
    received_ = runs_of(
        routes.receive_counts(), [&](std::size_t k) { return routes.coming(k); },
        [&](std::uint32_t place) { return arrivals[place]; });
    for (auto const& [from, to] : routes.staying()) {
      bool const is_next = !kept_.empty() && from == kept_.back().from + kept_.back().count &&
                           to == kept_.back().to + kept_.back().count;
      if (is_next) {
        ++kept_.back().count;
      } else {
        kept_.push_back({from, to, 1});
      }
    }
  }

  [[nodiscard]] std::span<run const> sent() const { return sent_; }
  [[nodiscard]] std::span<run const> received() const { return received_; }
  [[nodiscard]] std::span<kept_run const> kept() const { return kept_; }

 private:
  /// Returns the runs: `place(k)` is the place of the k-th sample on this rank, and `other(place)`
  /// returns its place on the other rank.
  template <class Place, class Other>
  [[nodiscard]] static std::vector<run> runs_of(std::span<std::uint64_t const> counts,
                                                Place const& place, Other const& other) {
    std::vector<run> runs;
    std::size_t k = 0;
    for (std::uint32_t peer = 0; peer != counts.size(); ++peer) {
      for (std::uint64_t left = counts[peer]; left != 0; --left, ++k) {
        std::uint32_t const here = place(k);
        bool const is_next =
            left != counts[peer] && here == place(k - 1) + 1 && other(here) == other(here - 1) + 1;
        if (is_next) {
          ++runs.back().count;
        } else {
          runs.push_back({peer, here, 1});
        }
      }
    }
    return runs;
  }

  std::vector<run> sent_;
  std::vector<run> received_;
  std::vector<kept_run> kept_;
};

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

/// A field of samples that `nccl::exchange_samples` moves together with other fields, of any type:
/// rows, or arrays of different sizes. Refers to all of its arguments.
class device_field {
 public:
  /// Creates a field of rows: `in` has the rows of this rank before the exchange, and `out`
  /// receives the rows of this rank after it. Errors: `std::invalid_argument` for rows of different
  /// sizes, and if the arrays overlap.
  template <class T>
  device_field(device_rows<std::type_identity_t<T> const> const& in, device_rows<T> const& out)
      : load_(detail::payload_of(name, in, out)) {}

  /// Creates a field of samples of different sizes. The number of elements of each sample of the
  /// global batch is in `sizes`, in host memory, in the order before the exchange. The function
  /// `gather_lengths` returns this order for the plan itself, and `permuted` by the plan for its
  /// inverse. `in` and `out` contain only the samples, one after the other; `elements_after`
  /// returns the size of `out`.
  template <class T>
  device_field(std::span<std::int64_t const> sizes, gpu::device_span<T const> in,
               gpu::device_span<T> out)
      : is_sized_(true), sizes_(sizes) {
    detail::check_apart(name, "", in, out);
    load_.in = reinterpret_cast<std::byte const*>(in.data());
    load_.out = reinterpret_cast<std::byte*>(out.data());
    load_.element_bytes = sizeof(T);
    load_.in_room = in.size();
    load_.out_room = out.size();
  }

 private:
  friend struct exchange_samples_fn;

  static constexpr std::string_view name = "nccl::exchange_samples";

  /// The position of each sample in elements, followed by the end of the last sample; empty for
  /// rows.
  using offsets = std::vector<std::uint64_t>;

  /// Finds the positions of the samples of this rank.
  void place(exchange_plan const& plan, std::size_t rank) {
    std::size_t const home = plan.home_count(rank);
    auto const arrivals = plan.arrivals(rank);
    if (!is_sized_) {
      check_room("the rows to send", load_.in_room, home);
      check_room("the rows to receive", load_.out_room, arrivals.size());
      return;
    }
    omnibal::detail::check_size(name, "the number of sizes", sizes_.size(), plan.sample_count());
    std::uint32_t const first = plan.home_offsets()[rank];
    before_ = offsets_of(home, [&](std::size_t i) { return sizes_[first + i]; });
    after_ = offsets_of(arrivals.size(), [&](std::size_t i) { return sizes_[arrivals[i]]; });
    omnibal::detail::check_size(name, "the number of elements to send", load_.in_room,
                                before_.back());
    check_room("the elements to receive", load_.out_room, after_.back());
  }

  /// Returns the bytes of `count` adjacent samples from place `first` on. `bytes_in` is for places
  /// before the exchange, `bytes_out` for places after it.
  [[nodiscard]] std::span<std::byte const> bytes_in(std::uint32_t first,
                                                    std::uint32_t count) const {
    return bytes_of(load_.in, before_, first, count);
  }
  [[nodiscard]] std::span<std::byte> bytes_out(std::uint32_t first, std::uint32_t count) const {
    return bytes_of(load_.out, after_, first, count);
  }
  template <class Byte>
  [[nodiscard]] std::span<Byte> bytes_of(Byte* values, offsets const& at, std::uint32_t first,
                                         std::uint32_t count) const {
    std::uint64_t const begin = is_sized_ ? at[first] : first;
    std::uint64_t const end = is_sized_ ? at[first + count] : begin + count;
    return {values + begin * load_.element_bytes, (end - begin) * load_.element_bytes};
  }

  static void check_room(std::string_view what, std::uint64_t room, std::uint64_t needed) {
    if (room >= needed) return;
    omnibal::detail::throw_invalid(name, what, " are ", room, ", must be ", needed);
  }

  template <class SizeOf>
  [[nodiscard]] static offsets offsets_of(std::size_t count, SizeOf const& size_of) {
    offsets result{0};
    result.reserve(count + 1);
    for (std::size_t i = 0; i != count; ++i) {
      std::int64_t const size = size_of(i);
      omnibal::detail::check_weight(name, "size", i, size);
      std::uint64_t sum = result.back();
      omnibal::detail::checked_add(name, "the sum of the sizes", sum,
                                   static_cast<std::uint64_t>(size));
      result.push_back(sum);
    }
    return result;
  }

  bool is_sized_ = false;
  detail::payload load_;
  std::span<std::int64_t const> sizes_;
  offsets before_;
  offsets after_;
};

struct exchange_samples_fn {
  /// Moves rows of device memory by `plan`: `in` has the samples of this rank before, and `out`
  /// receives the samples of this rank afterwards, in the order of `plan.arrivals(rank)`.
  /// Corresponds to `omnibal::exchange_samples` for samples on the device.
  ///
  /// Grouped sends and receives of exact size move samples from their places directly to their new
  /// places. No sample is collected before or reordered afterwards, and no kernel is needed.
  /// Samples that remain adjacent go in one message. This form suits samples of some kilobytes or
  /// more. For smaller samples `exchange_exact` sends fewer messages.
  ///
  /// A collective call that only submits. `plan` must be equal on all ranks, which `all_equal` of
  /// its digest checks. Complexity: n log n in the samples of this rank. Memory: 24 bytes for each
  /// of these samples on the host, none on the device. Determinism: portable among equal ranks.
  /// Errors: `std::invalid_argument` for a plan of another number of ranks, and rows that are too
  /// few or of different sizes; the errors of `wait`. If a rank throws, the other ranks end by
  /// their timeout.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, exchange_plan const& plan,
                  device_rows<std::type_identity_t<T> const> const& in,
                  device_rows<T> const& out) const {
    device_field field(in, out);
    move(exec, comm, plan, std::span(&field, 1));
  }

  /// Moves samples of different sizes; see `device_field`. Returns the position of each arrival,
  /// followed by the end of the last arrival. Further errors: `std::invalid_argument` if there is
  /// not a size for each sample, or if `in` has another number of elements than the samples of this
  /// rank; `std::overflow_error` if a sum of sizes overflows.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  std::vector<std::uint64_t> operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                                        exchange_plan const& plan,
                                        std::span<std::int64_t const> sizes,
                                        gpu::device_span<T const> in,
                                        gpu::device_span<T> out) const {
    device_field field(sizes, in, out);
    move(exec, comm, plan, std::span(&field, 1));
    return std::move(field.after_);
  }

  /// Moves several fields of the same samples, such as tokens, labels and pixels, in one group,
  /// each of its own type and sizes. The result has an element for each field: empty for rows, and
  /// otherwise the positions of the arrivals followed by the end of the last arrival. Nothing is
  /// submitted if a field is rejected. Memory: 16 bytes more for each sample of this rank and each
  /// field with sizes.
  template <gpu::device_resource Resource, detail::stream_communicator Comm>
  std::vector<std::vector<std::uint64_t>> operator()(gpu::execution<Resource> const& exec,
                                                     Comm&& comm, exchange_plan const& plan,
                                                     std::span<device_field const> fields) const {
    std::vector<device_field> placed(fields.begin(), fields.end());
    move(exec, comm, plan, placed);
    std::vector<std::vector<std::uint64_t>> result;
    for (device_field& field : placed) result.push_back(std::move(field.after_));
    return result;
  }

 private:
  template <class Resource, class Comm>
  static void move(gpu::execution<Resource> const& exec, Comm& comm, exchange_plan const& plan,
                   std::span<device_field> fields) {
    omnibal::detail::check_size(device_field::name, "the number of ranks of the plan", plan.ranks(),
                                omnibal::detail::rank_count(comm));
    std::size_t const rank = omnibal::detail::own_rank(comm);
    for (device_field& field : fields) field.place(plan, rank);
    detail::coalesced_messages const runs(plan, rank);
    for (auto const& run : runs.kept()) {
      for (device_field const& field : fields) {
        auto const from = field.bytes_in(run.from, run.count);
        if (from.empty()) continue;
        gpu::check(cudaMemcpyAsync(field.bytes_out(run.to, run.count).data(), from.data(),
                                   from.size(), cudaMemcpyDeviceToDevice, exec.stream()));
      }
    }
    if (runs.sent().empty() && runs.received().empty()) return;
    detail::stream_wire<Comm>(comm, exec.stream())
        .exchange([&](auto const& send, auto const& receive) {
          for (auto const& run : runs.sent()) {
            for (device_field const& field : fields) {
              auto const from = field.bytes_in(run.first, run.count);
              send(run.peer, from.data(), from.size());
            }
          }
          for (auto const& run : runs.received()) {
            for (device_field const& field : fields) {
              auto const to = field.bytes_out(run.first, run.count);
              receive(run.peer, to.data(), to.size());
            }
          }
        });
  }
};

/// Moves samples on the device; see `exchange_samples_fn`.
inline constexpr exchange_samples_fn exchange_samples{};

}  // namespace omnibal::inline v0::nccl
