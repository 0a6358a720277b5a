// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Exchange of samples by a plan in messages of exact size.

#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/detail/exchange_calls.cuh>
#include <omnibal/cuda/nccl/detail/wire.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::nccl {

#pragma GCC visibility push(hidden)

struct exchange_exact_fn {
  /// Moves samples by the plan, as `exchange_bounded` does, in messages of exact size. Ranks
  /// without samples for each other exchange no message. NCCL requires the sizes on the host.
  /// Therefore one copy of 24 bytes per rank goes to the host and the call *waits* for it, in the
  /// order of the stream. The exchange itself is only submitted.
  ///
  /// Complexity: as for `exchange_bounded`, and one collective of 8 bytes by which every rank
  /// learns whether another rank has a fault. Memory: the messages, 32 bytes for each sample
  /// before, 24 for each after, 40 per rank, and the memory of the sorts. Determinism: portable
  /// among equal ranks. Errors on all ranks if there is a fault on one: on this rank
  /// `std::invalid_argument` or `std::length_error`, on the others `communication_error`; Errors on
  /// one rank only: wrong arguments that the host finds.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  device_rows<std::type_identity_t<T> const> const& in, device_rows<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::payload const load[] = {detail::payload_of(name, in, out)};
    detail::exchange_exact_call(name, exec, comm, plan, load, report, detail::no_step_before);
  }

  /// Moves samples of different sizes; see `exchange_bounded`.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  gpu::device_span<std::int64_t const> sizes,
                  device_payloads<std::type_identity_t<T> const> const& in,
                  device_payloads<T> const& out, gpu::device_span<exchange_report> report) const {
    detail::payload const load[] = {
        detail::payload_of(name, sizes.data(), in, out, plan.max_arrivals)};
    detail::exchange_exact_call(name, exec, comm, plan, load, report, detail::no_step_before);
  }

  /// Moves several fields of the same samples, such as tokens, labels and pixels, in one group and
  /// after one wait. Each field has an element of `reports`, and the first element has the faults
  /// of all fields.
  template <gpu::device_resource Resource, detail::stream_communicator Comm>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  std::span<stream_field const> fields,
                  gpu::device_span<exchange_report> reports) const {
    detail::exchange_exact_call(name, exec, comm, plan, loads_of(plan, fields), reports,
                                detail::no_step_before);
  }

  /// Returns the largest scratch of a call with these fields, in bytes. Messages count as if all
  /// elements of `in` were sent and the whole room of `out` were received. The function is a
  /// template, so that a program that does not call it does not compile its steps.
  template <class Meter = gpu::detail::device_meter>
  [[nodiscard]] std::size_t scratch_bytes(device_plan_view const& plan,
                                          std::span<stream_field const> fields) const {
    return detail::exact_scratch_bytes<Meter>(plan, loads_of(plan, fields), detail::no_step_before);
  }

 private:
  static constexpr std::string_view name = "nccl::exchange_exact";

  [[nodiscard]] static std::vector<detail::payload> loads_of(device_plan_view const& plan,
                                                             std::span<stream_field const> fields) {
    omnibal::detail::check_positive(name, "the number of fields", fields.size());
    std::vector<detail::payload> loads;
    for (stream_field const& field : fields) {
      if (field.offsets_room_ <= plan.max_arrivals) {
        omnibal::detail::check_size(name, "the size of the offsets", field.offsets_room_,
                                    std::size_t{plan.max_arrivals} + 1);
      }
      loads.push_back(field.load_);
    }
    return loads;
  }
};

/// Moves samples in messages of exact size; see `exchange_exact_fn`.
inline constexpr exchange_exact_fn exchange_exact{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl
