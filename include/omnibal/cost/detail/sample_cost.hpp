#pragma once

/// \file
/// From the cost of a workload to that of one sample.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/workload.hpp>

#include <cstdint>

namespace omnibal::inline v0::detail {

/// Forward and backward FLOPs on a single rank.
template <layer_model Layer>
[[nodiscard]] std::int64_t flops_of(Layer const& layer, workload const& batch) {
  return layer(batch, parallel_degrees{}, byte_sizes{}).flops();
}

/// The FLOPs of a layer by the length of one sequence of that kind: two tokens, apart and together,
/// tell those of a token from those of a pair.
template <layer_model Layer>
[[nodiscard]] quadratic_cost sample_cost(Layer const& layer, sequences workload::*kind) {
  workload apart;
  apart.*kind = {.count = 2, .tokens = 2, .squares = 2};
  workload together;
  together.*kind = {.count = 1, .tokens = 2, .squares = 4};
  std::int64_t const flops = flops_of(layer, apart);
  std::int64_t const quadratic = (flops_of(layer, together) - flops) / 2;
  return {.linear = flops / 2 - quadratic, .quadratic = quadratic};
}

}  // namespace omnibal::inline v0::detail
