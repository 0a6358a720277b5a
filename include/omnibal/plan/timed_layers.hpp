#pragma once

/// \file
/// From the costs of layers to layers that can be planned.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/accelerator.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/plan/pipeline_machine.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

/// A range of `layer_cost`.
template <class Layers>
concept layer_cost_range =
    sample_range<Layers> && std::same_as<std::ranges::range_value_t<Layers const>, layer_cost>;

/// A range of layers that can be planned.
template <class Layers>
concept plannable_range =
    sample_range<Layers> && plannable_layer<std::ranges::range_value_t<Layers const>>;

struct timed_layers_fn {
  /// The layers with the nanoseconds of a device; the choices are those of `recompute_choice`.
  ///
  /// Complexity: linear. Memory: the result. Determinism: portable. Errors: those of `accelerator`.
  template <layer_cost_range Costs>
  [[nodiscard]] std::vector<plan_layer<>> operator()(Costs const& costs,
                                                     accelerator const& device) const {
    std::vector<plan_layer<>> result;
    result.reserve(std::ranges::size(costs));
    for (layer_cost const& cost : costs) {
      auto const choices = timed_choices{device}(cost);
      result.push_back({{choices.begin(), choices.end()}, cost.state_bytes()});
    }
    return result;
  }
};

/// Layers with times; see `timed_layers_fn`.
inline constexpr timed_layers_fn timed_layers{};

}  // namespace omnibal::inline v0
