#pragma once

/// \file
/// Post-balancing on a stream, for any backend.

#include <omnibal/comm/communicator.hpp>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/exchange_on_stream.hpp>
#include <omnibal/cuda/nccl/detail/stream_calls.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>
#include <omnibal/cuda/nccl/post_balance/launches.hpp>
#include <omnibal/cuda/nccl/post_balance_options.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::nccl::detail {

template <class Resource>
[[nodiscard]] plan_arrays arrays_of(device_plan<Resource> const& plan, std::int64_t* columns) {
  device_plan_view const view = plan.view();
  return {plan.home_offsets().data(),
          plan.arrival_offsets().data(),
          plan.item_at().data(),
          plan.slot_of().data(),
          view.ranks,
          view.most_home,
          view.most_samples,
          columns};
}

struct post_balance_call {
  static constexpr std::string_view name = "nccl::post_balance";

  /// `In` and `Out` are rows or payloads.
  template <class Run, class Balance, class Resource, class Comm, class In, class OfPlan, class Out>
  void operator()(Run const& run, Balance const& balance, gpu::execution<Resource> const& exec,
                  Comm& comm, local_lengths<std::int64_t> const& costs, In const& in,
                  device_plan<OfPlan> const& plan, Out const& out,
                  gpu::device_span<exchange_report> report,
                  post_balance_options const& options) const {
    check_plan(name, comm, plan.view());
    check_report(name, report);
    if (options.slot_bytes) check_slot(name, *options.slot_bytes);
    device_plan_view const view = plan.view();
    local_columns local = columns_of(name, costs);
    local.offsets = offsets_of(in);
    auto const arguments = [&](std::int64_t* columns) {
      return load_of(in, out, columns + view.most_samples, view);
    };
    if (options.slot_bytes) {
      bounded(run, balance, exec, comm, local, plan, arguments, report, *options.slot_bytes);
    } else {
      exact(run, balance, exec, comm, local, plan, arguments, report);
    }
  }

  /// The steps of the bounded form; also for measuring its scratch.
  template <class Backend, class Wire, class Balance, class Arguments>
  static void in_slots(Backend& b, Wire const& wire, Balance const& balance,
                       local_columns const& local, plan_arrays arrays, device_plan_view const& view,
                       Arguments const& arguments, exchange_report* report,
                       std::size_t slot_bytes) {
    arrays.columns =
        b.template scratch<std::int64_t>(std::size_t{view.most_samples} * local.columns());
    b.fill_zero(report, 1);
    make_plan_on_stream(b, wire, local, arrays, balance, &report->faults);
    exchange_in_slots(b, wire, view, arguments(arrays.columns), slot_bytes, report);
  }

 private:
  template <class T>
  [[nodiscard]] static std::uint64_t const* offsets_of(device_rows<T> const&) {
    return nullptr;
  }
  template <class T>
  [[nodiscard]] static std::uint64_t const* offsets_of(device_payloads<T> const& in) {
    return in.offsets.data();
  }

  template <class T>
  [[nodiscard]] static payload load_of(device_rows<T const> const& in, device_rows<T> const& out,
                                       std::int64_t const*, device_plan_view const&) {
    return payload_of(name, in, out);
  }
  template <class T>
  [[nodiscard]] static payload load_of(device_payloads<T const> const& in,
                                       device_payloads<T> const& out, std::int64_t const* sizes,
                                       device_plan_view const& view) {
    return payload_of(name, sizes, in, out, view.most_arrivals);
  }

  template <class Run, class Balance, class Resource, class Comm, class OfPlan, class Arguments>
  static void bounded(Run const& run, Balance const& balance, gpu::execution<Resource> const& exec,
                      Comm& comm, local_columns const& local, device_plan<OfPlan> const& plan,
                      Arguments const& arguments, gpu::device_span<exchange_report> report,
                      std::size_t slot_bytes) {
    run(exec, [&](auto& b) {
      in_slots(b, wire_for(b, comm, exec.stream()), balance, local, arrays_of(plan, nullptr),
               plan.view(), arguments, report.data(), slot_bytes);
    });
  }

  template <class Run, class Balance, class Resource, class Comm, class OfPlan, class Arguments>
  static void exact(Run const& run, Balance const& balance, gpu::execution<Resource> const& exec,
                    Comm& comm, local_columns const& local, device_plan<OfPlan> const& plan,
                    Arguments const& arguments, gpu::device_span<exchange_report> report) {
    gpu::device_array<std::int64_t, Resource> const columns(
        exec, std::size_t{plan.view().most_samples} * local.columns());
    plan_arrays const arrays = arrays_of(plan, columns.data());
    exchange_exact_call(name, run, exec, comm, plan.view(), arguments(columns.data()), report,
                        [&](auto& b, auto const& wire, gpu::fault* faults) {
                          make_plan_on_stream(b, wire, local, arrays, balance, faults);
                        });
  }
};

}  // namespace omnibal::inline v0::nccl::detail
