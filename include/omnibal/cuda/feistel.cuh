// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The Feistel shuffler on a stream.

#include <omnibal/check.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_array.hpp>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/feistel/feistel_kernels.hpp>
#include <omnibal/rng/feistel.hpp>

#include <cstdint>
#include <type_traits>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct feistel_fn : detail::scratch_counted<feistel_fn> {
  /// Writes the order in which `shuffle` permutes `out.size()` elements in this round: `out[i]` is
  /// the position before the shuffle of the element that moves to position i.
  ///
  /// Complexity: constant work for each element, one launch. Memory: none. Determinism: portable,
  /// equal to `shuffle.order(n, round)` on the host. Errors: `std::length_error` above 2^32 - 1
  /// elements; `error`.
  template <executor Exec>
  void operator()(Exec const& exec, rng::feistel const& shuffle, std::uint64_t round,
                  device_span<std::uint32_t> out) const {
    omnibal::detail::check_index_count("gpu::feistel", "out", out.size());
    detail::run_on_device(exec, [&](auto& backend) {
      detail::write_feistel_order(backend, shuffle, round, out.data(), out.size());
    });
  }

  /// Shuffles the elements of `in` into `out`, equal to `shuffle(in, round)` on the host; the
  /// arrays must not overlap. Complexity, memory, determinism and errors are the same as in the
  /// other overload. Further errors: `std::invalid_argument` if the sizes differ.
  template <executor Exec, device_element T>
  void operator()(Exec const& exec, device_span<std::type_identity_t<T> const> in,
                  rng::feistel const& shuffle, std::uint64_t round, device_span<T> out) const {
    omnibal::detail::check_index_count("gpu::feistel", "out", out.size());
    if (in.size() != out.size()) {
      omnibal::detail::throw_invalid(
          "gpu::feistel", "in has " + omnibal::detail::to_text(in.size()) +
                              " elements, but out has " + omnibal::detail::to_text(out.size()));
    }
    detail::run_on_device(exec, [&](auto& backend) {
      detail::feistel_shuffle(backend, shuffle, round, in.data(), out.data(), out.size());
    });
  }
};

/// Writes or applies the order of `rng::feistel` on a stream; see `feistel_fn`.
inline constexpr feistel_fn feistel{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
