#pragma once

/// \file
/// What a sample costs the whole model, as the balancers ask for it.

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/cost/workload.hpp>

#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

/// The sum over all layers of what `cost_of` gives for one.
template <costed_model Model, class CostOf>
[[nodiscard]] quadratic_cost total_cost(std::string_view function, Model const& model,
                                        CostOf const& cost_of) {
  quadratic_cost total;
  for_each_layer(function, model, [&](auto const& layer, std::int64_t count) {
    total = total + count * cost_of(layer);
  });
  return total;
}

}  // namespace detail

struct document_cost_fn {
  /// Forward and backward FLOPs of a model by the length of a document in tokens:
  /// `lpt(lengths, ranks, document_cost(llama3_8b))`.
  ///
  /// Complexity: constant for each kind of layer. Allocates nothing. Determinism: portable. Errors:
  /// those of the layers, `std::overflow_error` for a cost above 2^63 - 1.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("document_cost", model, [](auto const& layer) {
      return detail::sample_cost(layer, &workload::documents);
    });
  }
};

/// What a document costs; see `document_cost_fn`.
inline constexpr document_cost_fn document_cost{};

struct clip_cost_fn {
  /// Forward and backward FLOPs of a model by the length of a clip in tokens of its audio tower.
  /// Complexity, memory, determinism and errors as `document_cost`.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("clip_cost", model, [](auto const& layer) {
      return detail::sample_cost(layer, &workload::clips);
    });
  }
};

/// What a clip costs; see `clip_cost_fn`.
inline constexpr clip_cost_fn clip_cost{};

struct tile_cost_fn {
  /// Forward and backward FLOPs of a model by the number of tiles: a sample costs
  /// `tile_cost(model)(tiles) + document_cost(model)(tokens)`. Complexity, memory, determinism and
  /// errors as `document_cost`.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("tile_cost", model, [](auto const& layer) {
      return quadratic_cost{.linear = detail::flops_of(layer, workload{.tiles = 1})};
    });
  }
};

/// What tiles cost; see `tile_cost_fn`.
inline constexpr tile_cost_fn tile_cost{};

}  // namespace omnibal::inline v0
