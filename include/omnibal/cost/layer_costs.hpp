#pragma once

/// \file
/// From a model to the costs of its layers, one after the other.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/parallel_degrees.hpp>
#include <omnibal/cost/workload.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

struct layer_costs_fn {
  /// What each layer of a model costs for one micro-batch, in the order of the layers: what
  /// partitioning and recomputation are about. A model is a layer or what has `for_each_layer`.
  ///
  /// Parts of a model with other ranks, such as a vision tower without tensor parallelism, are
  /// models of their own: append one result to the other.
  ///
  /// Complexity: linear in the layers; equal ones are computed once. Memory: one `layer_cost` for
  /// each layer. Determinism: portable. Errors: those of the layers; `std::invalid_argument` for a
  /// number of layers that is negative or above 2^20.
  template <costed_model Model>
  [[nodiscard]] std::vector<layer_cost> operator()(Model const& model, workload const& batch,
                                                   parallel_degrees const& degrees = {},
                                                   byte_sizes const& bytes = {}) const {
    std::vector<layer_cost> result;
    detail::for_each_layer("layer_costs", model, [&](auto const& layer, std::int64_t count) {
      result.insert(result.end(), static_cast<std::size_t>(count), layer(batch, degrees, bytes));
    });
    return result;
  }
};

/// The costs of all layers of a model; see `layer_costs_fn`.
inline constexpr layer_costs_fn layer_costs{};

}  // namespace omnibal::inline v0
