// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Iterative sampling and filtering on the device.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/isf/isf_kernels.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/feistel.hpp>

#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct isf_fn : detail::scratch_counted<isf_fn> {
  /// Packs samples by iterative sampling and filtering, with the same groups, order and oversized
  /// samples as `omnibal::isf` with the shuffler `rng::feistel`. All rounds are submitted at once.
  /// The device decides when to stop, and launches beyond this point do nothing.
  ///
  /// `demands` are resources of integers, or integers, in device memory; `keep(load)` is called in
  /// device code with `resources<R, std::int64_t>`. The report is equal to the report of the host
  /// except for the lower bound, which counts only volumes and samples above half of the capacity.
  ///
  /// Complexity: linear in `report.item_rounds`; 5 launches, and 4 more for each of the
  /// `options.rounds` rounds. Memory: 19 + 8R bytes of scratch per sample. Determinism: portable.
  /// Errors on the host: the errors of `omnibal::isf` for capacity, options, keep rule and number
  /// of samples, and `std::invalid_argument` for an output that is too small for every packing.
  /// Faults on the device with an empty result: `invalid_amount` for a demand that is negative or
  /// above 2^63 - 1; `overflow` if the demands in one resource add up to more than 2^63 - 1.
  /// Another fault is `no_room` for more groups or oversized samples than the outputs have room
  /// for. Source: Yao et al., OmniBal, ICML 2025.
  template <executor Exec, device_demands Demands, measure Capacity,
            device_keep_rule<resources<omnibal::detail::kinds_of<Capacity>>> Keep>
    requires omnibal::detail::same_kinds<device_element_of<Demands>, Capacity>
  void operator()(Exec const& exec, Demands const& demands, Capacity const& capacity,
                  isf_options const& options, Keep const& keep, rng::feistel const& shuffle,
                  packing_span const& out) const {
    auto const limits = detail::checked_packing(name, demands.size(), capacity, out);
    omnibal::detail::check_positive(name, "options.rounds", options.rounds);
    if (!(options.min_gain >= 0.0 && options.min_gain <= 1.0)) {
      omnibal::detail::throw_invalid(name, "options.min_gain is " +
                                               omnibal::detail::to_text(options.min_gain) +
                                               ", must be in [0, 1]");
    }
    if constexpr (checked_keep_rule<Keep, std::remove_const_t<decltype(limits)>>) {
      keep.check(name, limits);
    }
    detail::isf_input<device_element_of<Demands>, limits.size()> const input{
        detail::data_of(demands), demands.size(), limits};
    detail::run_on_device(
        exec, [&](auto& backend) { detail::run_isf(backend, input, options, keep, shuffle, out); });
  }

  /// Packs samples like the other overload, with the shuffler `rng::feistel{0}`.
  template <executor Exec, device_demands Demands, measure Capacity,
            device_keep_rule<resources<omnibal::detail::kinds_of<Capacity>>> Keep>
    requires omnibal::detail::same_kinds<device_element_of<Demands>, Capacity>
  void operator()(Exec const& exec, Demands const& demands, Capacity const& capacity,
                  isf_options const& options, Keep const& keep, packing_span const& out) const {
    (*this)(exec, demands, capacity, options, keep, rng::feistel{}, out);
  }

 private:
  static constexpr std::string_view name = "gpu::isf";
};

/// Packs samples by iterative sampling and filtering on the device; see `isf_fn`.
inline constexpr isf_fn isf{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
