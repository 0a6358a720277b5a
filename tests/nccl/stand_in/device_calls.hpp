#pragma once

// The calls of cuda/nccl/*.cuh on the stand-in: the same code below the function objects.

#include "queued_backend.hpp"

#include <omnibal/comm/gather_lengths.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/nccl/detail/post_balance_call.hpp>
#include <omnibal/cuda/nccl/detail/stream_calls.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/cuda/nccl/exchange_report.hpp>
#include <omnibal/cuda/nccl/gathered_lengths.hpp>

#include <cstddef>
#include <cstdint>

namespace stand_in {

namespace nccl = omnibal::nccl;
namespace gpu = omnibal::gpu;

struct device_calls {
  queued_runner run{};

  template <class Exec, class Comm, class T>
  void gather_lengths(Exec const& exec, Comm& comm, nccl::local_lengths<T> const& local,
                      nccl::gathered_lengths<T> const& out,
                      omnibal::gather_lengths_options const& options = {}) const {
    nccl::detail::gather_lengths_call{}(run, exec, comm, local, out, options);
  }

  template <class Exec, class Comm, class T>
  void exchange_bounded(Exec const& exec, Comm& comm, nccl::device_plan_view const& plan,
                        nccl::device_rows<T const> const& in, nccl::device_rows<T> const& out,
                        std::size_t slot_bytes,
                        gpu::device_span<nccl::exchange_report> report) const {
    nccl::detail::exchange_bounded_call("nccl::exchange_bounded", run, exec, comm, plan,
                                        nccl::detail::payload_of("exchange", in, out), slot_bytes,
                                        report);
  }
  template <class Exec, class Comm, class T>
  void exchange_bounded(Exec const& exec, Comm& comm, nccl::device_plan_view const& plan,
                        gpu::device_span<std::int64_t const> sizes,
                        nccl::device_payloads<T const> const& in,
                        nccl::device_payloads<T> const& out, std::size_t slot_bytes,
                        gpu::device_span<nccl::exchange_report> report) const {
    nccl::detail::exchange_bounded_call(
        "nccl::exchange_bounded", run, exec, comm, plan,
        nccl::detail::payload_of("exchange", sizes.data(), in, out, plan.most_arrivals), slot_bytes,
        report);
  }

  template <class Exec, class Comm, class T>
  void exchange_exact(Exec const& exec, Comm& comm, nccl::device_plan_view const& plan,
                      nccl::device_rows<T const> const& in, nccl::device_rows<T> const& out,
                      gpu::device_span<nccl::exchange_report> report) const {
    nccl::detail::exchange_exact_call("nccl::exchange_exact", run, exec, comm, plan,
                                      nccl::detail::payload_of("exchange", in, out), report,
                                      nccl::detail::no_step_before{});
  }
  template <class Exec, class Comm, class T>
  void exchange_exact(Exec const& exec, Comm& comm, nccl::device_plan_view const& plan,
                      gpu::device_span<std::int64_t const> sizes,
                      nccl::device_payloads<T const> const& in, nccl::device_payloads<T> const& out,
                      gpu::device_span<nccl::exchange_report> report) const {
    nccl::detail::exchange_exact_call(
        "nccl::exchange_exact", run, exec, comm, plan,
        nccl::detail::payload_of("exchange", sizes.data(), in, out, plan.most_arrivals), report,
        nccl::detail::no_step_before{});
  }

  template <class Exec, class Comm, class In, class Resource, class Out>
  void post_balance(Exec const& exec, Comm& comm, nccl::local_lengths<> const& costs, In const& in,
                    nccl::device_plan<Resource> const& plan, Out const& out,
                    gpu::device_span<nccl::exchange_report> report,
                    nccl::post_balance_options const& options = {}) const {
    nccl::detail::post_balance_call{}(run, nccl::detail::lpt_parts{}, exec, comm, costs, in, plan,
                                      out, report, options);
  }
};

}  // namespace stand_in
