// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Values of samples in the order after an exchange, on the device.

#include <omnibal/config.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/nccl/device_payload.hpp>
#include <omnibal/cuda/nccl/device_plan.hpp>
#include <omnibal/detail/agreement.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::nccl {

#pragma GCC visibility push(hidden)

namespace detail {

template <class T>
struct take_item_of_slot {
  device_plan_view plan;
  gpu::device_span<T const> values;
  T* out;

  OMNIBAL_HOST_DEVICE void operator()(std::size_t slot) const {
    if (slot >= plan.home_offsets[plan.ranks]) return;
    std::uint32_t const item = plan.item_at[slot];
    if (item < values.size()) out[slot] = values.data()[item];
  }
};

}  // namespace detail

struct permuted_fn {
  /// Permutes values of all samples from the order before an exchange into the order after it, as
  /// `exchange_plan::permuted` on the host. The permuted sizes of payloads are the sizes for the
  /// exchange by `plan.inverse()`, which moves the payloads back. Elements beyond the samples of
  /// the plan are not written.
  ///
  /// Only submits, and can be captured in a graph. Complexity: linear, one kernel. Memory: none.
  /// Determinism: portable. Errors: `std::invalid_argument` if `out` has another size than
  /// `values`, and if they overlap.
  template <gpu::device_resource Resource, class T>
  void operator()(gpu::execution<Resource> const& exec, device_plan_view const& plan,
                  gpu::device_span<std::type_identity_t<T> const> values,
                  gpu::device_span<T> out) const {
    constexpr std::string_view name = "nccl::permuted";
    omnibal::detail::check_size(name, "the size of out", out.size(), values.size());
    detail::check_apart(name, "", values, out);
    gpu::detail::run_on_device(exec, [&](auto& b) {
      b.for_each(values.size(), detail::take_item_of_slot<T>{plan, values, out.data()});
    });
  }
};

/// Permutes values into the order after an exchange, on the device; see `permuted_fn`.
inline constexpr permuted_fn permuted{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::nccl
