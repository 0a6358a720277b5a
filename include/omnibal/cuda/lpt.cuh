// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Longest processing time first, on the device.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/lpt/lpt_kernels.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct lpt_fn : detail::scratch_counted<lpt_fn> {
  /// Partitions the costs of each step by longest processing time first, equal to `omnibal::lpt`
  /// bit for bit: samples from the largest cost to the smallest, each to the part with the least
  /// load. Part p of step s is group s * parts + p of `out.groups`. Its items are indices into all
  /// costs, in ascending order.
  ///
  /// One block of threads assigns the samples of a step, many samples at a time. Steps that fit the
  /// shared memory of a block require one launch for any number of steps. The shared memory of a
  /// step is 12 bytes for each sample of the largest step and 28 for each part, 36 above 128 parts,
  /// 96 KiB in all. Otherwise all samples are sorted by radix sorts before and after.
  ///
  /// Complexity: a sort of the costs; then about one round for each sample of the part with the
  /// most samples. A round ranks the parts by load. If few parts receive most of the samples,
  /// because the other parts have very large samples, a round assigns only one sample. Memory: none
  /// if the steps fit; otherwise 16 bytes per sample, the memory of the sorts, and above 2700 parts
  /// 36 bytes for each part of each step. Determinism: portable. Does not synchronize. Errors:
  /// `std::invalid_argument` if there are no parts, if arrays of `out` have another size, or if
  /// `options.speeds` differ. It is also thrown if counts must be equal and the host sees that the
  /// parts do not divide the samples. Further errors: `std::length_error` above 2^32 - 1 costs or
  /// parts of all steps; `gpu::error`. Faults on the device: `invalid_amount` for a negative cost;
  /// `overflow` if the sum of a step exceeds 2^63 - 1; `uneven_counts` if the device sees that the
  /// parts do not divide the samples. Offsets that decrease, do not start with zero or exceed the
  /// costs cause `unknown_index`, and a step above `largest_step` causes `no_room`. Source: Graham,
  /// "Bounds on multiprocessing timing anomalies", 1969.
  template <executor Exec>
  void operator()(Exec const& exec, cost_steps const& steps, std::size_t parts,
                  lpt_options const& options, part_span const& out) const {
    check(steps, parts, options);
    detail::check_out(name, steps, parts, out);
    detail::run_on_device(
        exec, [&](auto& backend) { detail::lpt(backend, steps, parts, options.count, out); });
  }

 private:
  static constexpr std::string_view name = "gpu::lpt";

  static void check(cost_steps const& steps, std::size_t parts, lpt_options const& options) {
    detail::check_steps(name, steps, parts);
    if (!omnibal::detail::part_speeds(name, options.speeds, parts).are_equal()) {
      omnibal::detail::throw_invalid(
          name, "options.speeds has different speeds, but only equal speeds are supported");
    }
    bool const is_known = steps.offsets.empty();
    if (options.count != count_policy::equal || !is_known || steps.costs.size() % parts == 0)
      return;
    omnibal::detail::throw_invalid(
        name, omnibal::detail::to_text(steps.costs.size()) + " samples do not give " +
                  omnibal::detail::to_text(parts) + " parts with equal counts");
  }
};

/// Partitions costs by longest processing time first, on the device; see `lpt_fn`.
inline constexpr lpt_fn lpt{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
