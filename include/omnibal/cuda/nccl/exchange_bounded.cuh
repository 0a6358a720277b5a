#pragma once

/// \file
/// Moving samples as a plan says, in slots of fixed size: all on one stream.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/exchange_calls.cuh>
#include <omnibal/cuda/nccl/detail/exchange_on_stream.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::nccl {

struct exchange_bounded_options {
  /// The most that a rank may send to another, in bytes: a multiple of 16, of which 16 are the
  /// header. Equal on all ranks.
  std::size_t slot_bytes = 0;
};

#pragma GCC visibility push(hidden)

struct exchange_bounded_fn {
  /// Moves samples as the plan says: `in` are those that this rank has before, `out` gets those
  /// that it has afterwards, in the order of their slots. With `plan.inverse()` they go back.
  ///
  /// Every rank sends a slot of `options.slot_bytes` to every other one, full or not, by grouped
  /// sends and receives. So no count comes to the host, nothing synchronises but the first call
  /// with a slot, in which all agree on it, and later calls can be captured in a graph; for tens of
  /// ranks, since the slots of a rank are sent and kept for each. Where a message does not fit,
  /// `report` says so on all ranks and what slot would do, `in` is unchanged, and the exact form
  /// can follow. Of `report`, one element, see also `padding_factor`.
  ///
  /// Complexity: two radix sorts of the samples of this rank and reading and writing the bytes
  /// twice. Memory: twice a slot for each rank, 24 bytes for each sample before and 16 for each
  /// after, and what the sorts take. Determinism: portable among equal ranks. Errors:
  /// `std::invalid_argument` for a plan of another number of ranks, a slot that is no multiple of
  /// 16, rows of different sizes; those of `wait`. Faults on all ranks: `no_room` for a slot or an
  /// output that is too small and a rank with more samples than its plan has room for;
  /// `unknown_index` for a wrong plan.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  device_rows<std::type_identity_t<T> const> const& in,
                  exchange_bounded_options const& options, device_rows<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::exchange_bounded_call(name, exec, comm, plan, detail::payload_of(name, in, out),
                                  options.slot_bytes, report);
  }

  /// The same for samples of different sizes: `sizes` has the elements of each sample of the global
  /// batch, in device memory on all ranks, as `gather_lengths` gives them. In the slot a sample
  /// takes a multiple of 16 bytes. Faults further: `invalid_amount` where the offsets of `in` say
  /// another size.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  gpu::device_span<std::int64_t const> sizes,
                  device_payloads<std::type_identity_t<T> const> const& in,
                  exchange_bounded_options const& options, device_payloads<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::exchange_bounded_call(
        name, exec, comm, plan, detail::payload_of(name, sizes.data(), in, out, plan.most_arrivals),
        options.slot_bytes, report);
  }

  /// The scratch of a call with such a plan, in bytes: that of payloads, rows take less. A
  /// template, so that a program that never asks does not compile the steps for it.
  template <class Meter = gpu::detail::device_meter>
  [[nodiscard]] std::size_t scratch_bytes(device_plan_view const& plan,
                                          exchange_bounded_options const& options) const {
    detail::check_slot(name, options.slot_bytes);
    std::uint64_t offsets = 0;
    detail::payload load;
    load.out_offsets = &offsets;
    exchange_report report;
    Meter meter;
    detail::exchange_in_slots(meter, detail::silent_wire{0, plan.ranks}, plan, load,
                              options.slot_bytes, &report);
    return meter.total_bytes();
  }

 private:
  static constexpr std::string_view name = "nccl::exchange_bounded";
};

/// Moves samples in slots; see `exchange_bounded_fn`.
inline constexpr exchange_bounded_fn exchange_bounded{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl
