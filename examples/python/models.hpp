// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A language model as Python gives it.

#include "convert.hpp"

#include <omnibal/cost/models.hpp>

#include <cstdint>
#include <optional>
#include <tuple>

#include <pybind11/stl.h>

namespace models {

/// The numbers of a mixture of experts: routed, active, shared, and the width of an expert.
using expert_numbers = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

/// The numbers of a language model, as Python gives them.
struct model {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t mlp = 0;
  std::int64_t vocabulary = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  bool gated = true;
  bool tied = false;
  std::optional<std::int64_t> window;
  std::optional<expert_numbers> experts;
  std::int64_t dense_layers = 0;

  [[nodiscard]] omnibal::language_model of() const {
    omnibal::transformer layer{
        .hidden = hidden, .heads = heads, .kv_heads = kv_heads, .head_size = head_size, .mlp = mlp};
    if (!gated) layer.feed_forward = omnibal::mlp_kind::plain;
    if (window) layer.span = {omnibal::span_kind::window, *window};
    omnibal::language_model result{.input = {.vocabulary = vocabulary, .hidden = hidden},
                                   .layers = layers,
                                   .layer = layer,
                                   .output = {.vocabulary = vocabulary, .hidden = hidden}};
    if (tied) result.output.weights = omnibal::head_weights::tied;
    if (experts) {
      auto const [routed, active, shared, width] = *experts;
      result.layer.mlp = 0;
      result.layer.experts = {.routed = routed, .active = active, .shared = shared, .mlp = width};
      result.first_layers = dense_layers;
      result.first_layer = layer;
      result.layers -= dense_layers;
    }
    return result;
  }
};

}  // namespace models

namespace pybind11::detail {
template <>
struct type_caster<models::model> : convert::value_caster<models::model> {};
}  // namespace pybind11::detail
