#pragma once

/// \file
/// Moving samples as a plan says, in messages of exact size.

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
  /// Moves samples as the plan says, as `exchange_bounded` does, in messages that are as large as
  /// what they carry: ranks that have nothing for each other exchange none. NCCL takes the sizes
  /// from the host, so that one copy of 24 bytes per rank comes to the host and the call *waits*
  /// for it, in the order of the stream; the exchange itself is only submitted.
  ///
  /// Complexity: as `exchange_bounded`, and one collective of 8 bytes by which all ranks learn that
  /// all can go on. Memory: the messages, 32 bytes for each sample before, 24 for each after, 40
  /// per rank, and what the sorts take. Determinism: portable among equal ranks. Errors on all
  /// ranks where there is a fault on one: there `std::invalid_argument` or `std::length_error`,
  /// elsewhere `communication_error`; on one rank those of arguments that the host sees.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  device_rows<std::type_identity_t<T> const> const& in, device_rows<T> const& out,
                  gpu::device_span<exchange_report> report) const {
    detail::payload const load[] = {detail::payload_of(name, in, out)};
    detail::exchange_exact_call(name, exec, comm, plan, load, report, detail::no_step_before);
  }

  /// The same for samples of different sizes; see `exchange_bounded`.
  template <gpu::device_resource Resource, detail::stream_communicator Comm, class T>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  gpu::device_span<std::int64_t const> sizes,
                  device_payloads<std::type_identity_t<T> const> const& in,
                  device_payloads<T> const& out, gpu::device_span<exchange_report> report) const {
    detail::payload const load[] = {
        detail::payload_of(name, sizes.data(), in, out, plan.most_arrivals)};
    detail::exchange_exact_call(name, exec, comm, plan, load, report, detail::no_step_before);
  }

  /// Several fields of the same samples, such as tokens, labels and pixels, in one group and after
  /// one wait. `reports` has an element for each, of which the first has the faults of all.
  template <gpu::device_resource Resource, detail::stream_communicator Comm>
  void operator()(gpu::execution<Resource> const& exec, Comm&& comm, device_plan_view const& plan,
                  std::span<stream_field const> fields,
                  gpu::device_span<exchange_report> reports) const {
    detail::exchange_exact_call(name, exec, comm, plan, loads_of(plan, fields), reports,
                                detail::no_step_before);
  }

  /// The most scratch that a call with these fields takes, in bytes: messages count as if all that
  /// `in` has were sent and all that `out` has room for received. A template, so that a program
  /// that never asks does not compile the steps for it.
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
      if (field.offsets_room_ <= plan.most_arrivals) {
        omnibal::detail::check_size(name, "the size of the offsets", field.offsets_room_,
                                    std::size_t{plan.most_arrivals} + 1);
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
