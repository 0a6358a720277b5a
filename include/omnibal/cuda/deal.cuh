// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Dealing of samples to parts in descending order of cost, back and forth over the parts, on the
/// device.

#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/deal/deal_kernels.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/detail/device_sort.cuh>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct deal_fn : detail::scratch_counted<deal_fn> {
  /// Partitions the costs of each step by dealing, equal to `omnibal::deal` bit for bit: the
  /// samples from the largest cost to the smallest go to the parts 0, 1, ... and back. Part p of
  /// step s is group s * parts + p of `out.groups`. Its items are indices into all costs.
  ///
  /// Steps that fit the shared memory of a block (12 bytes for each sample of the largest step, at
  /// most 96 KiB) require one launch with a block for each step. Otherwise all samples are sorted
  /// by radix sorts.
  ///
  /// Complexity: a sort of the costs, and linear work for the parts. Memory: none if the steps fit;
  /// otherwise 12 bytes per sample and the memory of the sorts. Determinism: portable. Does not
  /// synchronize. Errors: `std::invalid_argument` if there are no parts or if arrays of `out` have
  /// another size; `std::length_error` above 2^32 - 1 costs or parts of all steps; `gpu::error`.
  /// Faults on the device: `invalid_amount` for a negative cost; `overflow` if the sum of a step
  /// exceeds 2^63 - 1. Offsets that decrease, do not start with zero or exceed the costs cause
  /// `unknown_index`, and a step above `largest_step` causes `no_room`.
  template <executor Exec>
  void operator()(Exec const& exec, cost_steps const& steps, std::size_t parts,
                  part_span const& out) const {
    detail::check_steps(name, steps, parts);
    detail::check_out(name, steps, parts, out);
    detail::run_on_device(exec, [&](auto& backend) { detail::deal(backend, steps, parts, out); });
  }

 private:
  static constexpr std::string_view name = "gpu::deal";
};

/// Partitions samples by dealing them in descending order of cost, on the device; see `deal_fn`.
inline constexpr deal_fn deal{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
