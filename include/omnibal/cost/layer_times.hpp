#pragma once

/// \file
/// From the costs of a layer to times, as partitioning and recomputation ask for them.

#include <omnibal/check.hpp>
#include <omnibal/choice.hpp>
#include <omnibal/cost/accelerator.hpp>
#include <omnibal/cost/layer_cost.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// A functor from a layer to the nanoseconds of its forward and backward pass, with what a choice
/// makes again: `stage_sum(costs, layer_time{device})`.
///
/// Determinism: portable. Errors: those of `accelerator`.
struct layer_time {
  accelerator device{};
  recompute_choice recomputed = recompute_choice::none;

  [[nodiscard]] constexpr std::int64_t operator()(layer_cost const& layer) const {
    std::int64_t sum = device(layer.forward);
    detail::checked_add("layer_time", "the time of a layer", sum, device(layer.backward));
    detail::checked_add("layer_time", "the time of a layer", sum, device(layer[recomputed].extra));
    return sum;
  }
};

/// A functor from a layer to its ways of running in nanoseconds, by `recompute_choice`, with all
/// that a way takes: `select_recompute(costs, timed_choices{device}, budget)`.
///
/// Determinism: portable. Errors: those of `accelerator`.
struct timed_choices {
  accelerator device{};

  [[nodiscard]] constexpr std::array<choice<>, 3> operator()(layer_cost const& layer) const {
    std::array<choice<>, 3> result{};
    for (std::size_t i = 0; i != result.size(); ++i) {
      recompute_cost const& given = layer.choices[i];
      result[i] = {.time = layer_time{device, static_cast<recompute_choice>(i)}(layer),
                   .bytes = given.kept_bytes,
                   .transient_bytes = given.transient_bytes};
    }
    return result;
  }
};

}  // namespace omnibal::inline v0
