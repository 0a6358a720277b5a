// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A scale that gives every token the same weight in the loss.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>

namespace omnibal::inline v0 {

struct loss_normalizer_fn {
  /// Returns the factor by which every rank multiplies the sum of its tokens' losses before the
  /// gradients are averaged over all ranks. The factor is 1 / T_ave. T_ave is the average number of
  /// tokens with a loss for each rank in the global batch. The average over the ranks is then the
  /// average loss of all tokens of the batch, as on a single rank that has all of them.
  ///
  /// `loss_tokens` has the number of tokens with a loss of each rank, gathered from all ranks. A
  /// rank that runs several micro-batches in a step contributes their sum. Ranks that share a pack
  /// contribute their own tokens of the pack, and an idle rank contributes zero. The result is 0 if
  /// no rank has any tokens, so that the loss is 0 and not undefined.
  ///
  /// If steps have different numbers of tokens, pass the numbers of all steps of an epoch, one for
  /// each rank and step, and use the result for all steps. Steps of packed samples with similar
  /// work are such steps. Then each token of the epoch has the same weight, and the average
  /// gradient of the steps is the gradient of the epoch. With a separate factor for each step, the
  /// tokens of steps with few tokens have a larger weight.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// if there are no ranks and if a number is negative; `std::overflow_error` if the sum exceeds
  /// 2^63 - 1. Source: Yao et al., "Hierarchical balance packing", NeurIPS 2025.
  template <sample_range LossTokens>
    requires std::integral<std::ranges::range_value_t<LossTokens const>>
  [[nodiscard]] double operator()(LossTokens const& loss_tokens) const {
    if (std::ranges::size(loss_tokens) == 0) detail::throw_invalid(name, "loss_tokens is empty");
    std::int64_t sum = 0;
    std::size_t rank = 0;
    for (auto const count : loss_tokens) {
      auto const tokens = detail::to_working<std::int64_t>({name, "loss_tokens", rank}, count);
      detail::check_weight(name, "loss_tokens", rank++, tokens);
      detail::checked_add(name, "the sum of the loss tokens", sum, tokens);
    }
    return sum == 0 ? 0.0 : static_cast<double>(rank) / static_cast<double>(sum);
  }

 private:
  static constexpr std::string_view name = "loss_normalizer";
};

/// Returns the average-token normalizer; see `loss_normalizer_fn`.
inline constexpr loss_normalizer_fn loss_normalizer{};

}  // namespace omnibal::inline v0
