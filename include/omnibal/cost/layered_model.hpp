// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Models for the cost functions: costs of layers, stages and samples, and parameters.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/quadratic_cost.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/prefix_sums.hpp>
#include <omnibal/resources.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

struct layer_visitor {
  template <layer_model Layer>
  void operator()(Layer const& /*layer*/, std::int64_t /*count*/) const {}
};

}  // namespace detail

/// A model with layers. `for_each_layer(visit)` calls `visit(layer, count)` from the first layers
/// to the last, with a layer model and the number of consecutive equal layers.
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

/// Returns the sum of `cost_of(layer)` over all layers.
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

struct layer_costs_fn {
  /// Returns the cost of each layer of a model for one micro-batch, in the order of the layers.
  /// These costs are the input of partitioning and recomputation. A model is a layer or a type with
  /// `for_each_layer`.
  ///
  /// If parts of a model have different parallel degrees, such as a vision tower without tensor
  /// parallelism, call the function for each part and append the results.
  ///
  /// Complexity: linear in the layers; equal layers are computed once. Memory: one `layer_cost` for
  /// each layer. Determinism: portable. Errors: the errors of the layers, and
  /// `std::invalid_argument` for a number of layers that is negative or above 2^20.
  template <costed_model Model>
  [[nodiscard]] std::vector<layer_cost> operator()(Model const& model,
                                                   micro_batch_work const& batch,
                                                   parallel_degrees const& degrees = {},
                                                   byte_sizes const& bytes = {}) const {
    std::vector<layer_cost> result;
    detail::for_each_layer("layer_costs", model, [&](auto const& layer, std::int64_t count) {
      result.insert(result.end(), static_cast<std::size_t>(count), layer(batch, degrees, bytes));
    });
    return result;
  }
};

/// Returns the costs of all layers of a model; see `layer_costs_fn`.
inline constexpr layer_costs_fn layer_costs{};

/// A functor (stage, first, last) to the cost of the layers [first, last), the same on every stage.
/// A call reads two numbers. `stage_sum` creates the functor.
///
/// Precondition of a call: first <= last, and last at most the number of layers.
template <scalar_measure Cost>
class stage_sums {
 public:
  [[nodiscard]] std::size_t layers() const noexcept { return before_.size() - 1; }

  [[nodiscard]] Cost operator()(std::size_t /*stage*/, std::size_t first, std::size_t last) const {
    return before_[last] - before_[first];
  }

 private:
  friend struct stage_sum_fn;

  /// The sum of the costs of the layers before each layer; the last entry is the sum over all
  /// layers.
  std::vector<Cost> before_{Cost{}};
};

struct stage_sum_fn {
  /// Returns a functor (stage, first, last) to the sum of the costs of the layers [first, last).
  /// Example: `stage_sum(costs, &layer_cost::flops)`. The cost may be a lambda that calls a
  /// `device_model`. Layers may have any type.
  ///
  /// Complexity: linear; constant for a call of the result. Memory: 8 bytes for each layer.
  /// Determinism: portable for integers. Errors: `std::invalid_argument` for a cost that is
  /// negative or not finite, `std::overflow_error` if the sum of all costs exceeds its type,
  /// `std::length_error` above 2^32 - 1 layers.
  template <sample_range Layers, class Cost = std::identity>
    requires cost_function<Cost, sample_reference<Layers>>
  [[nodiscard]] auto operator()(Layers const& layers, Cost const& cost = {}) const {
    stage_sums<detail::measured_weight<Layers, Cost>> result;
    detail::sum_costs("stage_sum", layers, cost, result.before_);
    return result;
  }
};

/// Returns a functor to the cost of consecutive layers; see `stage_sum_fn`.
inline constexpr stage_sum_fn stage_sum{};

struct attention_spans_fn {
  /// Returns the windows and chunks of the layers of a model, which `sequences_of` accepts. Unused
  /// entries have the kind `whole`.
  ///
  /// Complexity: constant for each kind of layer. Allocates nothing. Determinism: portable. Errors:
  /// `std::invalid_argument` for more than `max_attention_spans` different windows and chunks, or
  /// for a number of layers that is negative or above 2^20.
  template <costed_model Model>
  [[nodiscard]] std::array<attention_span, max_attention_spans> operator()(
      Model const& model) const {
    constexpr std::string_view name = "attention_spans";
    std::array<attention_span, max_attention_spans> result{};
    detail::for_each_layer(name, model, [&](auto const& layer, std::int64_t layers) {
      attention_span const span = detail::span_of(layer);
      if (layers == 0 || span.kind == span_kind::whole) return;
      auto* const entry = detail::find_entry(result, span, std::identity{});
      if (entry == nullptr) {
        detail::throw_invalid(name, "the model has more than ", std::int64_t{max_attention_spans},
                              " different windows and chunks");
      }
      *entry = span;
    });
    return result;
  }
};

/// Returns the windows and chunks of a model; see `attention_spans_fn`.
inline constexpr attention_spans_fn attention_spans{};

struct document_cost_fn {
  /// Returns the forward and backward FLOPs of a model as a function of the length of a document in
  /// tokens. Example: `lpt(lengths, ranks, document_cost(llama3_8b))`.
  ///
  /// Complexity: constant for each kind of layer. Allocates nothing. Determinism: portable. Errors:
  /// as the layers, and `std::overflow_error` for a cost above 2^63 - 1.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("document_cost", model, [](auto const& layer) {
      return detail::sample_cost(layer, &micro_batch_work::documents);
    });
  }
};

/// Returns the cost of a document as a function of its length; see `document_cost_fn`.
inline constexpr document_cost_fn document_cost{};

struct clip_cost_fn {
  /// Returns the forward and backward FLOPs of a model as a function of the length of a clip, in
  /// tokens of the audio tower. Complexity, memory, determinism and errors: as `document_cost`.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("clip_cost", model, [](auto const& layer) {
      return detail::sample_cost(layer, &micro_batch_work::clips);
    });
  }
};

/// Returns the cost of a clip as a function of its length; see `clip_cost_fn`.
inline constexpr clip_cost_fn clip_cost{};

struct tile_cost_fn {
  /// Returns the forward and backward FLOPs of a model as a function of the number of tiles. The
  /// cost of a sample is `tile_cost(model)(tiles) + document_cost(model)(tokens)`. Complexity,
  /// memory, determinism and errors: as `document_cost`.
  template <costed_model Model>
  [[nodiscard]] quadratic_cost operator()(Model const& model) const {
    return detail::total_cost("tile_cost", model, [](auto const& layer) {
      return quadratic_cost{.linear = detail::flops_of(layer, micro_batch_work{.tiles = 1})};
    });
  }
};

/// Returns the cost of tiles as a function of their number; see `tile_cost_fn`.
inline constexpr tile_cost_fn tile_cost{};

/// The parameters of a model.
struct parameter_counts {
  std::int64_t total = 0;
  /// The number of parameters that one token uses: all except the experts to which the token is not
  /// routed.
  std::int64_t active = 0;

  [[nodiscard]] friend bool operator==(parameter_counts const&, parameter_counts const&) = default;
};

struct count_parameters_fn {
  /// Returns the number of parameters of the whole model, trained or not.
  ///
  /// Complexity: constant for each kind of layer. Allocates nothing. Determinism: portable. Errors:
  /// as the layers; `std::invalid_argument` for a number of layers that is negative or above 2^20,
  /// `std::overflow_error` above 2^63 - 1 parameters.
  template <costed_model Model>
  [[nodiscard]] parameter_counts operator()(Model const& model) const {
    constexpr std::string_view name = "count_parameters";
    detail::int128 total = 0;
    detail::int128 active = 0;
    detail::for_each_layer(name, model, [&](auto const& layer, std::int64_t count) {
      layer_cost const cost = layer(micro_batch_work{}, parallel_degrees{}, byte_sizes{});
      total += detail::int128{count} * cost.parameters;
      active += detail::int128{count} * cost.active_parameters;
    });
    return {.total = detail::checked_cast<std::int64_t>(name, "the number of parameters", total),
            .active = detail::checked_cast<std::int64_t>(name, "the number of active parameters",
                                                         active)};
  }
};

/// Returns the number of parameters of a model; see `count_parameters_fn`.
inline constexpr count_parameters_fn count_parameters{};

}  // namespace omnibal::inline v0
