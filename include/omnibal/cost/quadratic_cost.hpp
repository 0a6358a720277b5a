// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cost of a sample as a function of its length, for balancers.

#include <omnibal/check.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <array>
#include <concepts>
#include <cstdint>

namespace omnibal::inline v0 {

/// The part factor * span.squares(length) of a cost: the attention of layers with a window or
/// chunks.
struct span_factor {
  attention_span span{};
  std::int64_t factor = 0;

  [[nodiscard]] friend bool operator==(span_factor const&, span_factor const&) = default;
};

/// The cost linear * length + quadratic * length^2, plus factor * span.squares(length) for windows
/// or chunks. Costs that layers return are FLOPs. The cost is a functor of a length: `lpt(lengths,
/// ranks, layer.sample_cost())`. For other samples, call the functor in a lambda. Costs can be
/// added and multiplied by integers: `45 * layer.sample_cost() + head.sample_cost()`.
///
/// Determinism: portable. Errors: `std::invalid_argument` for a length that is negative or above
/// 2^40, for a negative factor and for a sum with more than `max_attention_spans` different spans;
/// `std::overflow_error` for a cost above 2^63 - 1.
struct quadratic_cost {
  std::int64_t linear = 0;
  std::int64_t quadratic = 0;
  /// The factors of the windows and chunks; used entries come first.
  std::array<span_factor, max_attention_spans> spans{};

  [[nodiscard]] constexpr std::int64_t operator()(std::int64_t length) const {
    // The bitwise or is negative if one of the numbers is negative.
    bool const is_right = (length | linear | quadratic) >= 0 && length <= detail::max_tokens;
    if (!is_right || spans[0].factor != 0) [[unlikely]] {
      return with_spans(length);
    }
    return polynomial(length);
  }

  [[nodiscard]] friend constexpr quadratic_cost operator+(quadratic_cost left,
                                                          quadratic_cost const& right) {
    detail::checked_add("quadratic_cost", "the cost of a token", left.linear, right.linear);
    detail::checked_add("quadratic_cost", "the cost of a pair", left.quadratic, right.quadratic);
    for (span_factor const& given : right.spans) {
      if (given.factor != 0) left.add(given);
    }
    return left;
  }

  [[nodiscard]] friend constexpr quadratic_cost operator*(std::int64_t factor,
                                                          quadratic_cost cost) {
    detail::check_weight("quadratic_cost", "factor", factor);
    if (__builtin_mul_overflow(factor, cost.linear, &cost.linear) ||
        __builtin_mul_overflow(factor, cost.quadratic, &cost.quadratic)) {
      detail::throw_overflow("quadratic_cost", "a multiple of a cost");
    }
    for (span_factor& given : cost.spans) {
      if (__builtin_mul_overflow(factor, given.factor, &given.factor)) {
        detail::throw_overflow("quadratic_cost", "a multiple of a cost");
      }
    }
    if (factor == 0) cost.spans = {};
    return cost;
  }

  [[nodiscard]] friend bool operator==(quadratic_cost const&, quadratic_cost const&) = default;

 private:
  [[nodiscard]] constexpr std::int64_t polynomial(std::int64_t length) const {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(quadratic, length, &result) ||
        __builtin_add_overflow(result, linear, &result) ||
        __builtin_mul_overflow(result, length, &result)) [[unlikely]] {
      detail::throw_overflow("quadratic_cost", "the cost of a sample");
    }
    return result;
  }

  /// Returns the cost including the spans. Throws if a number is invalid.
  [[nodiscard]] constexpr std::int64_t with_spans(std::int64_t length) const {
    detail::check_between("quadratic_cost", "length", length, 0, detail::max_tokens);
    detail::check_weight("quadratic_cost", "linear", linear);
    detail::check_weight("quadratic_cost", "quadratic", quadratic);
    std::int64_t result = polynomial(length);
    for (auto const& [span, factor] : spans) {
      if (factor == 0) break;
      detail::check_weight("quadratic_cost", "factor", factor);
      std::int64_t part = 0;
      if (__builtin_mul_overflow(factor, span.squares(length), &part)) {
        detail::throw_overflow("quadratic_cost", "the cost of a sample");
      }
      detail::checked_add("quadratic_cost", "the cost of a sample", result, part);
    }
    return result;
  }

  constexpr void add(span_factor const& given) {
    for (auto& [span, factor] : spans) {
      if (factor != 0 && span != given.span) continue;
      span = given.span;
      detail::checked_add("quadratic_cost", "the cost of a pair", factor, given.factor);
      return;
    }
    detail::throw_invalid("quadratic_cost", "the layers have more than ",
                          std::int64_t{max_attention_spans}, " different windows and chunks");
  }
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns the forward and backward FLOPs on a single rank.
template <layer_model Layer>
[[nodiscard]] std::int64_t flops_of(Layer const& layer, micro_batch_work const& batch) {
  return layer(batch, parallel_degrees{}, byte_sizes{}).flops();
}

/// A layer whose attention may have a window or chunks.
template <class Layer>
concept spanned_layer = requires(Layer const& layer) {
  { layer.span } -> std::convertible_to<attention_span>;
};

/// A layer that contains another layer, such as `prediction_layer`.
template <class Layer>
concept wrapping_layer = requires(Layer const& layer) {
  layer.layer;
};

/// Returns the span of a layer, or of the layer that it contains; `whole` if neither has a span.
template <class Layer>
[[nodiscard]] constexpr attention_span span_of(Layer const& layer) {
  if constexpr (spanned_layer<Layer>) {
    return layer.span;
  } else if constexpr (wrapping_layer<Layer>) {
    return span_of(layer.layer);
  } else {
    return {};
  }
}

/// Sets the span of a layer, or of the layer that it contains. Does nothing if neither has a span.
template <class Layer>
constexpr void set_span(Layer& layer, attention_span const& span) {
  if constexpr (spanned_layer<Layer>) {
    layer.span = span;
  } else if constexpr (wrapping_layer<Layer>) {
    set_span(layer.layer, span);
  }
}

/// The FLOPs of two tokens: in two sequences, and in one sequence.
struct two_token_flops {
  std::int64_t apart = 0;
  std::int64_t together = 0;
};

template <layer_model Layer>
[[nodiscard]] two_token_flops flops_of_two(Layer const& layer, sequences micro_batch_work::*kind) {
  micro_batch_work apart;
  apart.*kind = {.count = 2, .tokens = 2, .squares = 2};
  micro_batch_work together;
  together.*kind = {.count = 1, .tokens = 2, .squares = 4};
  return {flops_of(layer, apart), flops_of(layer, together)};
}

/// Returns the FLOPs of a layer as a function of the length of one sequence of the given kind. Two
/// tokens in one and in two sequences distinguish the FLOPs of a token from the FLOPs of a pair. If
/// the layer has a span, chunks of one token distinguish the pairs within the span from the pairs
/// of an indexer.
template <layer_model Layer>
[[nodiscard]] quadratic_cost sample_cost(Layer const& layer, sequences micro_batch_work::*kind) {
  attention_span const span = span_of(layer);
  Layer changed = layer;
  set_span(changed, {});
  two_token_flops const whole = flops_of_two(changed, kind);
  std::int64_t const quadratic = (whole.together - whole.apart) / 2;
  quadratic_cost result{.linear = whole.apart / 2 - quadratic, .quadratic = quadratic};
  if (span.kind == span_kind::whole) return result;
  set_span(changed, {span_kind::chunk, 1});
  two_token_flops const alone = flops_of_two(changed, kind);
  result.quadratic = (alone.together - alone.apart) / 2;
  result.spans[0] = {span, quadratic - result.quadratic};
  return result;
}

}  // namespace omnibal::inline v0::detail
