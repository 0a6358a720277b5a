#pragma once

/// \file
/// Even loads on all ranks, while samples are on the device.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_scan.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/device_runner.cuh>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>
#include <omnibal/cuda/nccl/post_balance/call.hpp>
#include <omnibal/cuda/nccl/post_balance/launches.hpp>
#include <omnibal/cuda/nccl/post_balance_options.hpp>

#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0::nccl {

struct post_balance_fn {
  /// Gives every rank samples of about the same cost: gathers the costs of all samples, makes a
  /// part for each rank by longest processing time first, writes the plan, collects, sends and puts
  /// into place, all on one stream. `costs` are those of the samples of this rank, `in` what they
  /// carry; `out` gets the samples that are trained here, and `plan` by which to bring back what
  /// becomes of them, with `plan.view().inverse()`. Rank r gets part r, its samples by ascending
  /// index.
  ///
  /// With `options.slot_bytes` the bounded form: nothing synchronises, and after one call that was
  /// not captured (in which NCCL connects) it can be captured in a graph, with scratch that the
  /// caller gives. Else the exact form, which *waits* for one small copy; see `exchange_bounded`
  /// and `exchange_exact`, also for `report`, complexity and errors. Payloads of different sizes
  /// are gathered with the costs. Faults further: `invalid_amount` for a negative cost, `overflow`
  /// for a sum above 2^63 - 1, `no_room` for a rank with more samples than `plan` has room for.
  ///
  /// Memory besides: 16 bytes for each sample of all ranks, with payloads 32. Determinism:
  /// portable; the plan is that of `omnibal::lpt` of the gathered costs.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class In,
            gpu::device_resource OfPlan, class Out>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  local_lengths<std::int64_t> const& costs, In const& in,
                  post_balance_options const& options, device_plan<OfPlan> const& plan,
                  Out const& out, gpu::device_span<exchange_report> report) const {
    detail::post_balance_call{}(detail::device_runner{}, detail::lpt_parts{}, exec, comm, costs, in,
                                plan, out, report, options);
  }

  /// The same in the exact form.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class In,
            gpu::device_resource OfPlan, class Out>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  local_lengths<std::int64_t> const& costs, In const& in,
                  device_plan<OfPlan> const& plan, Out const& out,
                  gpu::device_span<exchange_report> report) const {
    (*this)(exec, comm, costs, in, {}, plan, out, report);
  }

  /// The scratch of the bounded form for such a plan, in bytes. A template, so that a program that
  /// never asks does not compile the steps for it.
  template <class Meter = gpu::detail::device_meter>
  [[nodiscard]] std::size_t scratch_bytes(device_plan_view const& plan,
                                          std::size_t slot_bytes) const {
    detail::check_slot(detail::post_balance_call::name, slot_bytes, "slot_bytes");
    std::uint64_t offsets = 0;
    exchange_report report;
    detail::local_columns local;
    local.offsets = &offsets;
    detail::payload load;
    load.out_offsets = &offsets;
    detail::plan_arrays const arrays{nullptr,    nullptr,        nullptr,           nullptr,
                                     plan.ranks, plan.most_home, plan.most_samples, nullptr};
    Meter meter;
    detail::post_balance_call::in_slots(
        meter, detail::silent_wire(0, plan.ranks), detail::lpt_parts{}, local, arrays, plan,
        [&](std::int64_t*) { return load; }, &report, slot_bytes);
    return meter.total_bytes();
  }
};

/// Even loads on all ranks; see `post_balance_fn`.
inline constexpr post_balance_fn post_balance{};

}  // namespace omnibal::inline v0::nccl
