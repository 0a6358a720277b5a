// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Balance of the loads of all ranks, while samples are on the device.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/lpt.cuh>
#include <omnibal/cuda/nccl/detail/exchange_calls.cuh>
#include <omnibal/cuda/nccl/detail/exchange_on_stream.hpp>
#include <omnibal/cuda/nccl/detail/length_blocks.hpp>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/gather_lengths.cuh>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace omnibal::inline v0::nccl::detail {

#pragma GCC visibility push(hidden)

/// The arrays of a plan that the device computes, and the costs and sizes from which it computes
/// them.
struct plan_arrays {
  std::uint32_t* home_offsets;
  std::uint32_t* arrival_offsets;
  std::uint32_t* item_at;
  std::uint32_t* slot_of;
  std::uint32_t ranks;
  std::uint32_t max_home;
  std::uint32_t max_samples;
  /// The costs of all samples, followed by their sizes, if there are any.
  std::int64_t* columns;
};

/// Writes the offsets of a single step that contains all samples, for `lpt`.
struct write_step_offsets {
  std::uint32_t const* home_offsets;
  std::uint32_t ranks;
  std::uint32_t* step;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t) const {
    step[0] = 0;
    step[1] = home_offsets[ranks];
  }
};

/// Writes the slot of each sample.
struct write_slots {
  plan_arrays plan;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t slot) const {
    std::uint32_t const samples = plan.home_offsets[plan.ranks];
    if (slot >= samples) return;
    std::uint32_t const sample = plan.item_at[slot];
    if (sample < samples) plan.slot_of[sample] = static_cast<std::uint32_t>(slot);
  }
};

/// Gathers the columns of `local`, makes a part for each rank, and writes the plan by which rank r
/// receives part r.
template <gpu::detail::kernel_backend Backend, class Wire>
void make_plan_on_stream(Backend& b, Wire const& wire, local_columns const& local,
                         plan_arrays const& plan, gpu::fault* faults) {
  std::size_t const samples = plan.max_samples;
  gather_columns(b, wire, local, plan.max_home, plan.home_offsets,
                 {plan.columns, 1, samples, samples}, faults);
  auto* const step = b.template scratch<std::uint32_t>(2);
  b.for_each(1, write_step_offsets{plan.home_offsets, plan.ranks, step});
  gpu::cost_steps const costs({plan.columns, samples}, {step, 2}, samples);
  gpu::part_span const parts{
      {{plan.arrival_offsets, std::size_t{plan.ranks} + 1}, {plan.item_at, samples}, {}},
      {},
      {faults, 1}};
  gpu::detail::lpt(b, costs, plan.ranks, count_policy::any, parts);
  b.for_each(samples, write_slots{plan});
}

template <class Resource>
[[nodiscard]] plan_arrays arrays_of(device_plan<Resource> const& plan, std::int64_t* columns) {
  device_plan_view const view = plan.view();
  return {plan.home_offsets().data(),
          plan.arrival_offsets().data(),
          plan.item_at().data(),
          plan.slot_of().data(),
          view.ranks,
          view.max_home,
          view.max_samples,
          columns};
}

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl::detail

namespace omnibal::inline v0::nccl {

struct post_balance_options {
  /// The largest number of bytes that a rank may send to another in the bounded form: a multiple of
  /// 16, of which 16 are the header. Equal on all ranks. If it is not set, the exact form is used.
  std::optional<std::size_t> slot_bytes;
};

#pragma GCC visibility push(hidden)

struct post_balance_fn {
  /// Balances the loads of all ranks by moving samples: every rank receives samples of about the
  /// same cost. The call gathers the costs of all samples, makes a part for each rank by longest
  /// processing time first, and writes the plan. Then it collects, sends and reorders the samples.
  /// All work is on one stream. The range `costs` has the costs of the samples of this rank, and
  /// `in` is their payload. `out` receives the samples that are trained on this rank. `plan`
  /// receives the plan; `plan.view().inverse()` moves results back. Rank r receives part r, with
  /// its samples in ascending order of index.
  ///
  /// `options.slot_bytes` selects the bounded form, which does not synchronize. After one call that
  /// was not captured it can be captured in a graph, with scratch of the caller. In this first call
  /// NCCL connects, and ranks agree on the slot and the room of the plan. Otherwise the exact form
  /// runs, which *waits* for one small copy; see `exchange_bounded` and `exchange_exact`, also for
  /// `report`, complexity and errors. Payloads of different sizes are gathered with the costs.
  /// Further faults: `invalid_amount` for a negative cost, `overflow` for a sum above 2^63 - 1,
  /// `no_room` for a rank with more samples than `plan` has room for.
  ///
  /// Additional memory: 16 bytes for each sample that `plan` has room for, 32 with payloads of
  /// different sizes, and the memory of `gpu::lpt`. Determinism: portable; the plan is the plan of
  /// `omnibal::lpt` of the gathered costs.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class In,
            gpu::device_resource OfPlan, class Out>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  local_lengths<std::int64_t> const& costs, In const& in,
                  post_balance_options const& options, device_plan<OfPlan> const& plan,
                  Out const& out, gpu::device_span<exchange_report> report) const {
    detail::check_plan(name, comm, plan.view());
    detail::check_report(name, report);
    if (options.slot_bytes) detail::check_slot(name, *options.slot_bytes);
    device_plan_view const view = plan.view();
    comm.agree(name, "the most samples of a rank in the plan", view.max_home);
    comm.agree(name, "options.slot_bytes", options.slot_bytes.value_or(0));
    detail::local_columns local = detail::columns_of(name, costs);
    if constexpr (has_sizes<In>) local.offsets = in.offsets.data();
    auto const load_at = [&](std::int64_t* columns) { return load_of(view, columns, in, out); };
    if (options.slot_bytes) {
      gpu::detail::run_on_device(exec, [&](auto& b) {
        in_slots(b, detail::wire_for(b, comm, exec.stream()), local,
                 detail::arrays_of(plan, nullptr), view, load_at, report.data(),
                 *options.slot_bytes);
      });
      return;
    }
    gpu::device_array<std::int64_t, Resource> const columns(
        exec, std::size_t{view.max_samples} * local.columns());
    detail::plan_arrays const arrays = detail::arrays_of(plan, columns.data());
    detail::payload const load[] = {load_at(columns.data())};
    detail::exchange_exact_call(name, exec, comm, view, load, report,
                                [&](auto& b, auto const& wire, gpu::fault* faults) {
                                  detail::make_plan_on_stream(b, wire, local, arrays, faults);
                                });
  }

  /// Balances the loads of all ranks in the exact form.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class In,
            gpu::device_resource OfPlan, class Out>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm,
                  local_lengths<std::int64_t> const& costs, In const& in,
                  device_plan<OfPlan> const& plan, Out const& out,
                  gpu::device_span<exchange_report> report) const {
    (*this)(exec, comm, costs, in, {}, plan, out, report);
  }

  /// Returns the scratch of the bounded form for this plan, in bytes. The function is a template,
  /// so that a program that does not call it does not compile its steps.
  template <class Meter = gpu::detail::device_meter>
  [[nodiscard]] std::size_t scratch_bytes(device_plan_view const& plan,
                                          std::size_t slot_bytes) const {
    detail::check_slot(name, slot_bytes, "slot_bytes");
    std::uint64_t offsets = 0;
    exchange_report report;
    detail::local_columns local;
    local.offsets = &offsets;
    detail::payload load;
    load.out_offsets = &offsets;
    Meter meter;
    in_slots(
        meter, detail::silent_wire{0, plan.ranks}, local, sizes_of(plan), plan,
        [&](std::int64_t*) { return load; }, &report, slot_bytes);
    return meter.total_bytes();
  }

  /// Returns the largest scratch of the exact form, in bytes. Messages count as if all elements of
  /// `in` were sent and the whole room of `out` were received. This function is a template for the
  /// same reason as the other overload.
  template <class Meter = gpu::detail::device_meter, class In, class Out>
    requires requires(In const& in) { in.values; }
  [[nodiscard]] std::size_t scratch_bytes(device_plan_view const& plan, In const& in,
                                          Out const& out) const {
    std::uint64_t const offsets = 0;
    std::int64_t column = 0;
    detail::local_columns local;
    if constexpr (has_sizes<In>) local.offsets = &offsets;
    detail::payload const load[] = {load_of(plan, &column, in, out)};
    std::size_t const columns =
        std::size_t{plan.max_samples} * local.columns() * sizeof(std::int64_t);
    return gpu::detail::device_meter::padded(columns) +
           detail::exact_scratch_bytes<Meter>(
               plan, load, [&](auto& b, auto const& wire, gpu::fault* faults) {
                 detail::make_plan_on_stream(b, wire, local, sizes_of(plan), faults);
               });
  }

 private:
  static constexpr std::string_view name = "nccl::post_balance";

  template <class In>
  static constexpr bool has_sizes = requires(In const& in) {
    in.offsets;
  };

  /// Returns the payload of samples; payloads have their sizes behind the costs in `columns`.
  template <class In, class Out>
  [[nodiscard]] static detail::payload load_of(device_plan_view const& plan, std::int64_t* columns,
                                               In const& in, Out const& out) {
    if constexpr (has_sizes<In>) {
      return detail::payload_of(name, columns + plan.max_samples, in, out, plan.max_arrivals);
    } else {
      return detail::payload_of(name, in, out);
    }
  }

  /// Returns only the sizes of a plan whose scratch is measured.
  [[nodiscard]] static detail::plan_arrays sizes_of(device_plan_view const& plan) {
    return {nullptr,    nullptr,       nullptr,          nullptr,
            plan.ranks, plan.max_home, plan.max_samples, nullptr};
  }

  /// Runs the steps of the bounded form. With a meter as the backend, the function measures their
  /// scratch.
  template <gpu::detail::kernel_backend Backend, class Wire, class LoadAt>
  static void in_slots(Backend& b, Wire const& wire, detail::local_columns const& local,
                       detail::plan_arrays arrays, device_plan_view const& view,
                       LoadAt const& load_at, exchange_report* report, std::size_t slot_bytes) {
    arrays.columns =
        b.template scratch<std::int64_t>(std::size_t{view.max_samples} * local.columns());
    b.fill_zero(report, 1);
    detail::make_plan_on_stream(b, wire, local, arrays, &report->faults);
    detail::exchange_in_slots(b, wire, view, load_at(arrays.columns), slot_bytes, report);
  }
};

/// Balances the loads of all ranks; see `post_balance_fn`.
inline constexpr post_balance_fn post_balance{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl
