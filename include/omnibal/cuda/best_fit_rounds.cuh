#pragma once

/// \file
/// Best-fit packing of one resource in rounds, on a stream.

#include <omnibal/check.hpp>
#include <omnibal/cuda/best_fit_rounds/device_grid.cuh>
#include <omnibal/cuda/best_fit_rounds/launches.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace omnibal::inline v0::gpu {

struct best_fit_rounds_options {
  /// The most blocks, and so multiprocessors, that the rounds take. They all run at once and wait
  /// until so many are free: beside other work on the device fewer begin earlier.
  std::size_t most_blocks = 1024;
};

#pragma GCC visibility push(hidden)

struct best_fit_rounds_fn : detail::scratch_counted<best_fit_rounds_fn> {
  /// Packs one resource in rounds. Each deals with the largest samples that still wait, down to 3/4
  /// of the largest: every group takes the one that fits it best, or as many as fit where it holds
  /// two and more, and as many groups are opened as these samples cannot do without. Within 0.3 %
  /// of the groups of `omnibal::best_fit_decreasing` on every generator of the benchmarks.
  ///
  /// `demands` are integers, or resources of one, in device memory. The groups are in the order in
  /// which they are opened, the samples of a group from the largest to the smallest, equal ones by
  /// ascending index; samples above the capacity are oversized. The lower bound of the report
  /// counts the volume and the samples above half of the capacity only. The tests compare with a
  /// reference for the host (tests/support/reference).
  ///
  /// Complexity: two radix sorts, and one launch for all rounds, whose blocks all run at once (a
  /// cooperative launch), one on each multiprocessor but no more than the options allow: how many
  /// rounds there are, 2 to 40, the device finds out; a sample takes part in 1 to 4 of them in the
  /// mean. Memory: 80 bytes of scratch per sample. Determinism: portable. Errors on the host:
  /// `std::invalid_argument` for a capacity or a number of blocks that is not positive and an
  /// output that is too small for every packing, `std::length_error` above 2^32 - 2 samples;
  /// `error`. Faults on the device: `invalid_amount` for a demand that is negative or above 2^63 -
  /// 1; `no_room` for more groups or oversized samples than the outputs have room for.
  template <executor Exec, device_demands Demands, integral_amount Capacity>
    requires(omnibal::detail::kinds_of<device_element_of<Demands>> == 1 &&
             omnibal::detail::kinds_of<Capacity> == 1)
  void operator()(Exec const& exec, Demands const& demands, Capacity const& capacity,
                  best_fit_rounds_options const& options, packing_span const& out) const {
    omnibal::detail::check_positive(name, "options.most_blocks", options.most_blocks);
    auto const limits = detail::checked_packing(name, demands.size(), capacity, out);
    // One number stands for no group.
    omnibal::detail::check_index_count(name, "demands", demands.size() + 1);
    detail::run_on_device(exec, [&](auto& backend) {
      detail::best_fit_rounds(backend, detail::data_of(demands), demands.size(),
                              static_cast<std::uint64_t>(limits[0]), options.most_blocks, out);
    });
  }

 private:
  static constexpr std::string_view name = "gpu::best_fit_rounds";
};

/// Best-fit packing of one resource in rounds on a stream; see `best_fit_rounds_fn`.
inline constexpr best_fit_rounds_fn best_fit_rounds{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
