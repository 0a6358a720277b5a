// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The exact split of the tokens of a batch over the copies of experts, on a stream.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cuda/concepts.hpp>
#include <omnibal/cuda/detail/arguments.hpp>
#include <omnibal/cuda/detail/device_backend.cuh>
#include <omnibal/cuda/device_span.hpp>
#include <omnibal/cuda/execution.hpp>
#include <omnibal/cuda/fault.hpp>
#include <omnibal/cuda/outputs.hpp>
#include <omnibal/cuda/split_experts/split_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace omnibal::inline v0::gpu {

#pragma GCC visibility push(hidden)

struct split_experts_options {
  /// The number of layers. The input arrays contain the values of one layer after the other.
  std::size_t layers = 1;
  /// The tokens that each rank of each layer has in addition to the split tokens; empty if there
  /// are none.
  device_span<std::int64_t const> first_tokens = {};
};

struct split_experts_fn : detail::scratch_counted<split_experts_fn> {
  /// Splits the tokens of each expert over its copies so that the rank with the most tokens has the
  /// fewest possible, for each layer. The result equals the result of `omnibal::split_experts` bit
  /// for bit. The array `tokens` has the number of tokens of each expert, experts fastest, then
  /// layers. `slots` has the expert of each slot, slots fastest, then ranks, then layers.
  ///
  /// Each layer is split by one block in its shared memory, in one launch. All threads search for
  /// augmenting paths level by level; one thread computes the first split and moves tokens along
  /// the paths. Complexity: the complexity of `omnibal::split_experts`; not timed on a device.
  /// Memory: none. Determinism: portable. Does not synchronize. Errors: `std::invalid_argument` if
  /// there are no ranks or layers, or if the number of tokens is not a multiple of the layers. It
  /// is also thrown if the number of slots is not a multiple of the ranks of all layers, or if an
  /// array of `out` or the first tokens have another size. Further errors: `std::length_error`
  /// above 4,096 slots of a layer, or if 16 bytes for each slot and expert and 36 for each rank
  /// exceed 96 KiB; `gpu::error`. Faults on the device: `invalid_amount` for negative tokens;
  /// `overflow` if the sum of a layer exceeds 2^63 - 1; `unknown_index` for an unknown expert, or
  /// for an expert with tokens and without a slot.
  template <executor Exec>
  void operator()(Exec const& exec, device_span<std::int64_t const> tokens,
                  device_span<std::uint32_t const> slots, std::size_t ranks,
                  split_experts_options const& options, expert_split_span const& out) const {
    auto const shape = checked_shape(tokens, slots, ranks, options, out);
    detail::split_tables const tables{
        .shape = shape,
        .tokens = tokens.data(),
        .slots = slots.data(),
        .first_tokens = options.first_tokens.empty() ? nullptr : options.first_tokens.data(),
        .split = out.tokens.data(),
        .rank_tokens = out.rank_tokens.data(),
        .largest = out.largest.data(),
        .is_full = out.is_full.data(),
        .faults = out.faults.data()};
    detail::run_on_device(
        exec, [&](auto& backend) { detail::split_experts(backend, tables, options.layers); });
  }

 private:
  static constexpr std::string_view name = "gpu::split_experts";

  [[nodiscard]] static detail::split_shape checked_shape(device_span<std::int64_t const> tokens,
                                                         device_span<std::uint32_t const> slots,
                                                         std::size_t ranks,
                                                         split_experts_options const& options,
                                                         expert_split_span const& out) {
    namespace checks = omnibal::detail;
    checks::check_positive(name, "ranks", ranks);
    checks::check_number(name, "ranks", ranks);
    checks::check_positive(name, "options.layers", options.layers);
    checks::check_number(name, "options.layers", options.layers);
    checks::check_index_count(name, "tokens", tokens.size());
    checks::check_index_count(name, "slots", slots.size());
    std::size_t const layers = options.layers;
    if (tokens.size() % layers != 0) {
      checks::throw_invalid(name, "tokens has ", tokens.size(), " values, must have a multiple of ",
                            layers, " layers");
    }
    std::size_t const all_ranks = ranks * layers;
    if (slots.size() % all_ranks != 0) {
      checks::throw_invalid(name, "slots has ", slots.size(), " values, must have a multiple of ",
                            all_ranks, " ranks of all layers");
    }
    if (!options.first_tokens.empty()) {
      checks::check_size(name, "options.first_tokens", options.first_tokens.size(), all_ranks,
                         "ranks of all layers");
    }
    detail::check_room(name, "out.tokens", out.tokens.size(), slots.size(), slots.size());
    detail::check_room(name, "out.rank_tokens", out.rank_tokens.size(), all_ranks, all_ranks);
    detail::check_room(name, "out.largest", out.largest.size(), layers, layers);
    detail::check_room(name, "out.is_full", out.is_full.size(), all_ranks, all_ranks);
    detail::check_word(name, "out.faults", out.faults.size());
    detail::split_shape const shape{static_cast<std::uint32_t>(tokens.size() / layers),
                                    static_cast<std::uint32_t>(ranks),
                                    static_cast<std::uint32_t>(slots.size() / all_ranks)};
    if (shape.all_slots() > detail::split_tuning::most_slots ||
        detail::split_bytes(shape) > detail::max_shared_bytes) {
      throw std::length_error(checks::message(
          name, shape.all_slots(), " slots, ", shape.experts, " experts and ", shape.ranks,
          " ranks of a layer do not fit the shared memory of a block"));
    }
    return shape;
  }
};

/// Splits the tokens of each expert over its copies, on a stream; see `split_experts_fn`.
inline constexpr split_experts_fn split_experts{};

#pragma GCC visibility pop

}  // namespace omnibal::inline v0::gpu
