// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moves and swaps that balance parts, many pairs of parts at a time, on the device.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/detail/kernel_concepts.hpp>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/refine_parts/refine_kernels.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::gpu {

struct refine_parts_options {
  /// The tolerance: the search ends if the largest load exceeds a lower bound by at most this share
  /// of the bound.
  double max_overload = 0.005;
  /// The rule for the numbers of samples: with `kept` samples are only swapped, otherwise they are
  /// also moved.
  part_counts counts = part_counts::free;
  /// The largest number of rounds, each a ranking of the parts and a pass over the samples of the
  /// step. All rounds are one launch that cannot be interrupted. Their number bounds the duration
  /// if the tolerance cannot be reached.
  std::size_t rounds = 1000;
};

#pragma GCC visibility push(hidden)

struct refine_parts_fn : detail::scratch_counted<refine_parts_fn> {
  /// Balances the loads of given parts in rounds, for the costs of each step. In each round the
  /// most loaded part exchanges with the least loaded one, the second most loaded with the second
  /// least loaded, and further pairs follow while loads are above the limit, all at once. Each pair
  /// makes the one move or swap after which the larger load of the two is least. If no such
  /// exchange lowers the load of the most loaded part, only this part exchanges, with the part that
  /// lowers its load most. The largest load never rises. A step ends within `options.max_overload`
  /// of a lower bound, after `options.rounds`, or if no exchange with any part lowers the largest
  /// load. The lower bound is the largest of three numbers: the mean load, the largest cost, and
  /// two of the `parts + 1` largest costs. `omnibal::refine_parts` on the host makes other
  /// exchanges, one after the other. The tests compare with a reference for the host
  /// (tests/support/reference).
  ///
  /// `parts` are groups on the device, the same number for each step, as `gpu::deal` writes them.
  /// Part p of step s is group s * parts + p, and has indices into all costs. The argument `parts`
  /// may use the arrays of `out`, which has the same numbers of groups. The items of each part of
  /// `out` are ascending.
  ///
  /// Steps that fit the shared memory of a block require one launch with a block for each step. The
  /// shared memory of a step is 20 bytes for each sample of the largest step and 60 for each part,
  /// 96 KiB in all. Otherwise all samples are sorted by radix sorts before and after, and the lists
  /// are in device memory.
  ///
  /// Complexity: sorts of the samples, and the rounds. A round ranks the parts, runs a binary
  /// search for each sample of the parts above the limit, and passes over the samples of the step.
  /// Memory: none if the steps fit; otherwise 28 bytes per sample and the memory of the sorts, and
  /// above 1600 parts 60 bytes for each part of each step. Determinism: portable. Does not
  /// synchronize. Errors: `std::invalid_argument` if the steps do not divide the number of groups,
  /// if arrays of `out` have another size, or if the tolerance is negative or not finite. Further
  /// errors: `std::length_error` above 2^32 - 1 costs or groups; `gpu::error`. Faults on the
  /// device: the faults of `gpu::deal`, and `unknown_index` if the parts contain a sample twice,
  /// not at all, or of another step.
  template <executor Exec>
  void operator()(Exec const& exec, cost_steps const& steps, device_groups parts,
                  refine_parts_options const& options, part_span const& out) const {
    std::size_t const count = checked_parts(steps, parts.view.size(), options);
    detail::check_out(name, steps, count, out);
    detail::given_parts const start{parts.view, static_cast<std::uint32_t>(count)};
    detail::run_on_device(exec, [&](auto& backend) { run(backend, steps, start, options, out); });
  }

  /// Balances the parts of `gpu::deal`, `parts` for each step, without writing the dealt parts
  /// first: one launch instead of two and one sort of the costs. Scratch and faults are the same as
  /// in the other overload, except that there is no fault for wrong parts. Errors:
  /// `std::invalid_argument` if there are no parts.
  template <executor Exec>
  void operator()(Exec const& exec, cost_steps const& steps, std::size_t parts,
                  refine_parts_options const& options, part_span const& out) const {
    omnibal::detail::check_max_overload(name, options.max_overload);
    detail::check_steps(name, steps, parts);
    detail::check_out(name, steps, parts, out);
    detail::dealt_parts const start{static_cast<std::uint32_t>(parts)};
    detail::run_on_device(exec, [&](auto& backend) { run(backend, steps, start, options, out); });
  }

 private:
  static constexpr std::string_view name = "gpu::refine_parts";

  [[nodiscard]] static std::size_t checked_parts(cost_steps const& steps, std::size_t groups,
                                                 refine_parts_options const& options) {
    omnibal::detail::check_max_overload(name, options.max_overload);
    return detail::checked_parts_of_steps(name, steps, groups);
  }

  template <detail::kernel_backend Backend, class Start>
  static void run(Backend& backend, cost_steps const& steps, Start const& start,
                  refine_parts_options const& options, part_span const& out) {
    detail::round_refiner const search{options.rounds, options.counts};
    detail::refine_parts(backend, steps, start, options.max_overload, search, out);
  }
};

/// Balances parts by moves and swaps, many pairs at a time, on the device; see `refine_parts_fn`.
inline constexpr refine_parts_fn refine_parts{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
