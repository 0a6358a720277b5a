// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Best-fit packing of one resource in rounds, on a stream.

#include <omnibal/check.hpp>
#include <omnibal/cuda/best_fit_rounds/best_fit_rounds_kernels.hpp>
#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::gpu {

struct best_fit_rounds_options {
  /// The largest number of blocks of the launch, and of multiprocessors that the launch uses. All
  /// blocks run at the same time, so the launch starts only when there is room for all blocks. If
  /// other work runs on the device, a launch of fewer blocks starts earlier.
  std::size_t max_blocks = 1024;
};

#pragma GCC visibility push(hidden)

struct best_fit_rounds_fn : detail::scratch_counted<best_fit_rounds_fn> {
  /// Packs one resource in rounds of best fit. Each round handles the unpacked samples of at least
  /// 3/4 of the largest size. First it opens new groups, but no more than every packing of these
  /// samples requires. Then every group that can hold one of these samples receives the sample that
  /// fits best. A group that can hold several receives up to that number.
  ///
  /// `demands` are integers, or resources of one kind, in device memory. The groups are in the
  /// order in which they are opened. The samples of a group are in descending order, equal ones by
  /// ascending index. Samples above the capacity are oversized. The lower bound in the report is
  /// the larger of two numbers: the sum of the sizes divided by the capacity, rounded up, and the
  /// number of samples above half of the capacity. The tests compare with a reference for the host
  /// (tests/support/reference).
  ///
  /// Complexity: two radix sorts and one cooperative launch for all rounds. All blocks of the
  /// launch run at once, at most one for each multiprocessor and at most `options.max_blocks`. The
  /// device decides when the last round has run. Memory: 80 bytes of scratch per sample.
  /// Determinism: portable. Errors on the host: `std::invalid_argument` if the capacity or the
  /// number of blocks is not positive or if an output is too small for every packing,
  /// `std::length_error` above 2^32 - 2 samples; `error`. Faults on the device: `invalid_amount`
  /// for a demand that is negative or above 2^63 - 1; `no_room` for more groups or oversized
  /// samples than the outputs have room for.
  template <executor Exec, device_demands Demands, integral_measure Capacity>
    requires(omnibal::detail::kinds_of<device_element_of<Demands>> == 1 &&
             omnibal::detail::kinds_of<Capacity> == 1)
  void operator()(Exec const& exec, Demands const& demands, Capacity const& capacity,
                  best_fit_rounds_options const& options, packing_span const& out) const {
    omnibal::detail::check_positive(name, "options.max_blocks", options.max_blocks);
    auto const limits = detail::checked_packing(name, demands.size(), capacity, out);
    // One number is reserved for "no group".
    omnibal::detail::check_index_count(name, "demands", demands.size() + 1);
    detail::run_on_device(exec, [&](auto& backend) {
      detail::best_fit_rounds(backend, detail::data_of(demands), demands.size(),
                              static_cast<std::uint64_t>(limits[0]), options.max_blocks, out);
    });
  }

 private:
  static constexpr std::string_view name = "gpu::best_fit_rounds";
};

/// Packs one resource by best fit in rounds on a stream; see `best_fit_rounds_fn`.
inline constexpr best_fit_rounds_fn best_fit_rounds{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
