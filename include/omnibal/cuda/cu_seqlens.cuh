// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cumulative sequence lengths of packed samples on a stream, for variable-length attention.

#include <omnibal/check.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/cu_seqlens/cu_seqlens_kernels.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_grouping.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/outputs.hpp>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct cu_seqlens_fn : detail::scratch_counted<cu_seqlens_fn> {
  /// Writes the cumulative sequence lengths of each group, with its samples in their order.
  ///
  /// `lengths` has the tokens of each sample. Complexity: linear, one launch. Memory: none.
  /// Determinism: portable, equal to `omnibal::cu_seqlens`. Errors on the host:
  /// `std::invalid_argument` if `begins` or `longest` has no room for all groups; `error`. Faults
  /// on the device: `unknown_index`, `invalid_amount`, `overflow` for a group of more than 2^31 - 1
  /// tokens, `no_room` for too few `offsets`.
  template <executor Exec, device_integers Lengths>
  void operator()(Exec const& exec, device_groups groups, Lengths const& lengths,
                  sequence_offsets_span out) const {
    omnibal::detail::check_index_count("gpu::cu_seqlens", "lengths", lengths.size());
    detail::check_room("gpu::cu_seqlens", "begins", out.begins.size(), groups.view.size() + 1);
    detail::check_room("gpu::cu_seqlens", "longest", out.longest.size(), groups.view.size());
    detail::run_on_device(exec, [&](auto& backend) {
      detail::cu_seqlens(backend, groups.view, detail::data_of(lengths), lengths.size(),
                         out.begins.data(), out.offsets.data(), out.offsets.size(),
                         out.longest.data(), out.faults.data());
    });
  }
};

/// Writes the cumulative sequence lengths of groups on a stream; see `cu_seqlens_fn`.
inline constexpr cu_seqlens_fn cu_seqlens{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
