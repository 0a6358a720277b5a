#pragma once

/// \file
/// What a model is to the cost functions.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/detail/check_numbers.hpp>

#include <cstdint>
#include <string_view>

namespace omnibal::inline v0 {

namespace detail {

struct layer_visitor {
  template <layer_model Layer>
  void operator()(Layer const& /*layer*/, std::int64_t /*count*/) const {}
};

}  // namespace detail

/// Something with layers: `for_each_layer(visit)` calls `visit(layer, count)` from the first layers
/// to the last, with a layer model and how many of it follow one another.
template <class Model>
concept layered_model = requires(Model const& model, detail::layer_visitor visit) {
  model.for_each_layer(visit);
};

/// A model, or a single layer.
template <class Model>
concept costed_model = layered_model<Model> || layer_model<Model>;

namespace detail {

/// Calls `visit(layer, count)` for all layers. Errors: `std::invalid_argument` for a count that is
/// negative or above 2^20.
template <costed_model Model, class Visit>
void for_each_layer(std::string_view function, Model const& model, Visit const& visit) {
  if constexpr (layered_model<Model>) {
    model.for_each_layer([&](auto const& layer, std::int64_t count) {
      check_between(function, "layers", count, 0, std::int64_t{1} << 20);
      visit(layer, count);
    });
  } else {
    visit(model, std::int64_t{1});
  }
}

}  // namespace detail

}  // namespace omnibal::inline v0
