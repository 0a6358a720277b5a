// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The load of each group on a stream: the sum of the demands of its samples.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/amounts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/group_loads.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct group_loads_fn : detail::scratch_counted<group_loads_fn> {
  /// Writes the load of each group, the sum of the demands of its samples, to `loads`, which has an
  /// element for each group of the view.
  ///
  /// `demands` has the demand of each sample, resources or a weight. The loads are resources of
  /// `std::int64_t`, or of `double` if the demands are floating-point. Complexity: linear, one
  /// launch. If demands are integers, a thread, a warp or a block sums each group, depending on its
  /// size. If they are floating-point numbers, one thread adds the demands of a group in their
  /// order. Memory: none. Determinism: portable, equal to `omnibal::group_loads`. Errors on the
  /// host: `std::invalid_argument` if `loads` has fewer elements than there are groups; `error`.
  /// Faults on the device: `unknown_index`, `invalid_amount`, `overflow`.
  template <executor Exec, device_amounts Demands>
  void operator()(Exec const& exec, device_groups groups, Demands const& demands,
                  device_span<detail::load_of<device_element_of<Demands>>> loads,
                  device_span<fault> faults = {}) const {
    omnibal::detail::check_index_count("gpu::group_loads", "demands", demands.size());
    detail::check_room("gpu::group_loads", "loads", loads.size(), groups.view.size());
    detail::run_on_device(exec, [&](auto& backend) {
      detail::group_loads(backend, groups.view, detail::data_of(demands), demands.size(),
                          loads.data(), faults.data());
    });
  }
};

/// Computes the load of each group on a stream; see `group_loads_fn`.
inline constexpr group_loads_fn group_loads{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
