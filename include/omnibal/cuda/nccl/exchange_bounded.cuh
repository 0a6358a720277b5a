// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange of samples by a plan in slots of fixed size, all on one stream.

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
  /// The largest number of bytes that a rank may send to another rank, including a header of 16
  /// bytes. The value is a multiple of 16 and equal on all ranks.
  std::size_t slot_bytes = 0;
};

#pragma GCC visibility push(hidden)

struct exchange_bounded_fn {
  /// Moves samples by the plan in slots of fixed size. The samples of this rank before the exchange
  /// are in `in`. The samples of this rank afterwards are written to `out`, in the order of their
  /// slots. `plan.inverse()` moves the samples back.
  ///
  /// Every rank sends a slot of `options.slot_bytes` to every other rank, full or not, by grouped
  /// sends and receives. Therefore no count is copied to the host. Only the first call with a slot
  /// size synchronizes, because all ranks agree on the size in that call. Later calls can be
  /// captured in a graph. This form suits tens of ranks, because a rank sends and stores a slot for
  /// each rank. If a message does not fit, `report` contains the fault `no_room` and the sufficient
  /// size of a slot on all ranks. Then `in` is unchanged, and the exact form can do the exchange.
  /// `report` has one element; see also `padding_factor`.
  ///
  /// Complexity: two radix sorts of the samples of this rank; all bytes are read and written twice.
  /// Memory: twice a slot for each rank, 24 bytes for each sample before and 16 for each after, and
  /// the memory of the sorts. Determinism: portable among equal ranks. Errors:
  /// `std::invalid_argument` for a plan of another number of ranks, a slot that is no multiple of
  /// 16, rows of different sizes; the errors of `wait`. Faults on all ranks: `no_room` for a slot
  /// or an output that is too small and a rank with more samples than its plan has room for;
  /// `unknown_index` for a wrong plan.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  device_rows<std::type_identity_t<T> const> const& in,
                  exchange_bounded_options const& options, device_rows<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::exchange_bounded_call(name, exec, comm, plan, detail::payload_of(name, in, out),
                                  options.slot_bytes, report);
  }

  /// Moves samples of different sizes by the plan: `sizes` has the elements of each sample of the
  /// global batch, in device memory on all ranks, as `gather_lengths` writes them. A sample
  /// occupies a multiple of 16 bytes of the slot. Further faults: `invalid_amount` if the offsets
  /// of `in` imply another size.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  gpu::device_span<std::int64_t const> sizes,
                  device_payloads<std::type_identity_t<T> const> const& in,
                  exchange_bounded_options const& options, device_payloads<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::exchange_bounded_call(
        name, exec, comm, plan, detail::payload_of(name, sizes.data(), in, out, plan.max_arrivals),
        options.slot_bytes, report);
  }

  /// Returns the scratch of a call with this plan, in bytes. The result is for payloads of
  /// different sizes; rows require less. The function is a template, so that a program that does
  /// not call it does not compile its steps.
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
