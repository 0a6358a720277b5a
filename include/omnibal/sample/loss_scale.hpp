#pragma once

/// \file
/// The same loss for every token, however the packs are spread over ranks.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>

namespace omnibal::inline v0 {

struct loss_scale_fn {
  /// What every rank multiplies the sum of its tokens' losses by before the mean of the gradients
  /// over all ranks: 1 / T_ave, with T_ave the mean number of tokens with a loss per rank in the
  /// global batch. The mean over the ranks then is the mean loss of all tokens of the batch, as on
  /// a single rank that has all of them.
  ///
  /// `loss_tokens` has the number of each rank, gathered from all; a rank that runs several
  /// micro-batches in a step gives their sum, ranks that share a pack give what each has of it, and
  /// an idle rank gives zero. 0 where no rank has any, so that the loss is 0 and not undefined.
  ///
  /// Where steps differ in tokens, as even steps of packed samples do, give it the numbers of all
  /// steps of an epoch instead, one for each rank and step, and keep the result for all of them.
  /// Then each token of the epoch has the same weight, and the mean gradient of the steps is that
  /// of the epoch; with a scale for each step, tokens of steps that have few of them weigh more.
  ///
  /// Complexity: linear. Allocates nothing. Determinism: portable. Errors: `std::invalid_argument`
  /// for no ranks and for a negative number; `std::overflow_error` where the sum exceeds 2^63 - 1.
  /// Source: Yao et al., "Hierarchical balance packing", NeurIPS 2025.
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
  static constexpr std::string_view name = "loss_scale";
};

/// The average-token normaliser; see `loss_scale_fn`.
inline constexpr loss_scale_fn loss_scale{};

}  // namespace omnibal::inline v0
