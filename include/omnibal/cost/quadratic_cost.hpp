// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The cost of a sample by its length, for balancers.

#include <omnibal/check.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/model_limits.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// The cost linear * length + quadratic * length^2, in FLOPs if a layer gives it. The cost is a
/// functor of a length: `lpt(lengths, ranks, layer.sample_cost())`. A lambda around it is a functor
/// of a sample. Costs add up and multiply: `45 * layer.sample_cost() + head.sample_cost()`.
///
/// Determinism: portable. Errors: `std::invalid_argument` for a length that is negative or above
/// 2^40 and for a negative factor, `std::overflow_error` for a cost above 2^63 - 1.
struct quadratic_cost {
  std::int64_t linear = 0;
  std::int64_t quadratic = 0;

  [[nodiscard]] constexpr std::int64_t operator()(std::int64_t length) const {
    if (length < 0 || length > detail::max_tokens || linear < 0 || quadratic < 0) [[unlikely]] {
      check(length);
    }
    std::int64_t result = 0;
    if (__builtin_mul_overflow(quadratic, length, &result) ||
        __builtin_add_overflow(result, linear, &result) ||
        __builtin_mul_overflow(result, length, &result)) [[unlikely]] {
      detail::throw_overflow("quadratic_cost", "the cost of a sample");
    }
    return result;
  }

  [[nodiscard]] friend constexpr quadratic_cost operator+(quadratic_cost left,
                                                          quadratic_cost const& right) {
    detail::checked_add("quadratic_cost", "the cost of a token", left.linear, right.linear);
    detail::checked_add("quadratic_cost", "the cost of a pair", left.quadratic, right.quadratic);
    return left;
  }

  [[nodiscard]] friend constexpr quadratic_cost operator*(std::int64_t factor,
                                                          quadratic_cost cost) {
    detail::check_weight("quadratic_cost", "factor", factor);
    if (__builtin_mul_overflow(factor, cost.linear, &cost.linear) ||
        __builtin_mul_overflow(factor, cost.quadratic, &cost.quadratic)) {
      detail::throw_overflow("quadratic_cost", "a multiple of a cost");
    }
    return cost;
  }

  [[nodiscard]] friend bool operator==(quadratic_cost const&, quadratic_cost const&) = default;

 private:
  void check(std::int64_t length) const {
    detail::check_between("quadratic_cost", "length", length, 0, detail::max_tokens);
    detail::check_weight("quadratic_cost", "linear", linear);
    detail::check_weight("quadratic_cost", "quadratic", quadratic);
  }
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

/// Returns the forward and backward FLOPs on a single rank.
template <layer_model Layer>
[[nodiscard]] std::int64_t flops_of(Layer const& layer, micro_batch_work const& batch) {
  return layer(batch, parallel_degrees{}, byte_sizes{}).flops();
}

/// Returns the FLOPs of a layer by the length of one sequence of that kind. Two tokens, apart and
/// together, distinguish the FLOPs of a token from the FLOPs of a pair.
template <layer_model Layer>
[[nodiscard]] quadratic_cost sample_cost(Layer const& layer, sequences micro_batch_work::*kind) {
  micro_batch_work apart;
  apart.*kind = {.count = 2, .tokens = 2, .squares = 2};
  micro_batch_work together;
  together.*kind = {.count = 1, .tokens = 2, .squares = 4};
  std::int64_t const flops = flops_of(layer, apart);
  std::int64_t const quadratic = (flops_of(layer, together) - flops) / 2;
  return {.linear = flops / 2 - quadratic, .quadratic = quadratic};
}

}  // namespace omnibal::inline v0::detail
