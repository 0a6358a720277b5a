// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fewest copies of experts on foreign ranks with which no rank exceeds a cap on its tokens, on
/// a stream.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/spill_experts/spill_kernels.hpp>
#include <omnibal/experts/spill_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct spill_experts_options {
  /// The number of layers. The input arrays contain the values of one layer after the other.
  std::size_t layers = 1;
  /// The options of the search, the same for all layers. The default effort is `fast` because one
  /// thread searches each layer.
  omnibal::spill_experts_options plan = {.effort = effort::fast};
};

struct spill_experts_fn : detail::scratch_counted<spill_experts_fn> {
  /// Plans the fewest copies of experts on foreign ranks with which no rank exceeds a cap, for each
  /// layer. The result equals the result of `omnibal::spill_experts` with the same options bit for
  /// bit. The array `tokens` has the number of tokens of each expert and `home` the rank of its
  /// weights, experts fastest, then layers.
  ///
  /// Each layer is planned by one block, in one launch. All threads sum the loads and sort donors,
  /// rooms and experts. One thread tries the orders of the donors, because each order follows from
  /// the one before it; only the layers are parallel. Therefore the default effort is `fast`.
  /// Complexity: the search of `omnibal::spill_experts`, and sorts that compare all pairs of
  /// experts and of ranks, divided among the threads of a block. The kernel has run on a simulated
  /// device and compiles for devices. It has not run on a device and is not timed. Memory: none if
  /// 64 bytes for each expert and 164 for each rank fit in 96 KiB of shared memory; otherwise
  /// scratch of that size for each layer. Determinism: portable. Does not synchronize. Errors:
  /// `std::invalid_argument` if there are no ranks or layers, or if the number of tokens is not a
  /// multiple of the layers. It is also thrown if `home` or an array of `out` has another size, and
  /// for a negative or infinite overload. Further errors: `std::length_error` above 2^32 - 1
  /// experts or ranks; `gpu::error`. Faults on the device: `invalid_amount` for negative tokens;
  /// `unknown_index` for an unknown rank; `overflow` if the sum of a layer exceeds 2^63 - 1. The
  /// outputs of a layer with a fault are zeros.
  template <executor Exec>
  void operator()(Exec const& exec, device_span<std::int64_t const> tokens,
                  device_span<std::uint32_t const> home, std::size_t ranks,
                  spill_experts_options const& options, spill_plan_span const& out) const {
    auto const shape = checked_shape(tokens, home, ranks, options, out);
    auto const& plan = options.plan;
    detail::spill_tables const tables{
        .shape = shape,
        .tokens = tokens.data(),
        .home = home.data(),
        .slots = plan.slots.value_or(std::numeric_limits<std::size_t>::max()),
        .max_overload = plan.max_overload,
        .orders = omnibal::detail::orders_of(plan.effort),
        .seed = plan.seed,
        .copies = out.copies.data(),
        .copy_count = out.copy_count.data(),
        .home_tokens = out.home_tokens.data(),
        .rank_tokens = out.rank_tokens.data(),
        .largest = out.largest.data(),
        .cap = out.cap.data(),
        .fewest_copies = out.fewest_copies.data(),
        .status = out.status.data(),
        .is_proven = out.is_proven.data(),
        .faults = out.faults.data()};
    detail::run_on_device(
        exec, [&](auto& backend) { detail::spill_experts(backend, tables, options.layers); });
  }

 private:
  static constexpr std::string_view name = "gpu::spill_experts";

  [[nodiscard]] static detail::spill_shape checked_shape(device_span<std::int64_t const> tokens,
                                                         device_span<std::uint32_t const> home,
                                                         std::size_t ranks,
                                                         spill_experts_options const& options,
                                                         spill_plan_span const& out) {
    namespace checks = omnibal::detail;
    std::size_t const layers = options.layers;
    checks::check_positive(name, "ranks", ranks);
    checks::check_number(name, "ranks", ranks);
    checks::check_positive(name, "options.layers", layers);
    checks::check_number(name, "options.layers", layers);
    checks::check_index_count(name, "tokens", tokens.size());
    checks::check_max_overload(name, options.plan.max_overload);
    checks::check_size(name, "home", home.size(), tokens.size(), "tokens");
    if (tokens.size() % layers != 0) {
      checks::throw_invalid(name, "tokens has ", tokens.size(), " values, must have a multiple of ",
                            layers, " layers");
    }
    detail::spill_shape const shape{static_cast<std::uint32_t>(tokens.size() / layers),
                                    static_cast<std::uint32_t>(ranks)};
    std::size_t const all_ranks = ranks * layers;
    std::size_t const copies = shape.copies() * layers;
    detail::check_room(name, "out.copies", out.copies.size(), copies, copies);
    detail::check_room(name, "out.copy_count", out.copy_count.size(), layers, layers);
    detail::check_room(name, "out.home_tokens", out.home_tokens.size(), tokens.size(),
                       tokens.size());
    detail::check_room(name, "out.rank_tokens", out.rank_tokens.size(), all_ranks, all_ranks);
    detail::check_room(name, "out.largest", out.largest.size(), layers, layers);
    detail::check_room(name, "out.cap", out.cap.size(), layers, layers);
    detail::check_room(name, "out.fewest_copies", out.fewest_copies.size(), layers, layers);
    detail::check_room(name, "out.status", out.status.size(), layers, layers);
    detail::check_room(name, "out.is_proven", out.is_proven.size(), layers, layers);
    detail::check_word(name, "out.faults", out.faults.size());
    return shape;
  }
};

/// Plans the fewest copies of experts on foreign ranks, on a stream; see `spill_experts_fn`.
inline constexpr spill_experts_fn spill_experts{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
