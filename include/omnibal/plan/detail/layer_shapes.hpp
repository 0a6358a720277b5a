// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The matrix products, the attention and the traffic of one layer on one rank.

#include <omnibal/check.hpp>
#include <omnibal/cost/kernel_times.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/token_mixers.hpp>
#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The work of a layer on one rank in the forward pass, as shapes of its kernels.
struct layer_shapes {
  std::vector<matmul_shape> products;
  attention_shape attention{};
  /// The bytes of the keys and values that pass to the next rank of a ring.
  double key_bytes = 0;
  /// The bytes of an input of the layer, which tensor-parallel ranks add up or gather.
  double hidden_bytes = 0;
  /// The bytes of the tokens that a rank sends to experts.
  double routed_bytes = 0;
  /// The number of experts to which a token goes.
  double routed_copies = 1;
  /// The parameters of routed experts on this rank.
  double expert_parameters = 0;
};

/// Returns the number of ranks that share the matrices of an expert.
[[nodiscard]] inline std::int64_t expert_tensor_of(parallel_degrees const& degrees) {
  return degrees.expert_tensor == 0 ? degrees.tensor : degrees.expert_tensor;
}

/// Throws if a layer has a part for which the predictor has no kernel shapes.
inline void check_timed(std::string_view function, transformer const& layer) {
  auto const refuse = [&](bool has_part, std::string_view part) {
    if (has_part) throw_invalid(function, "a layer has ", part, ", which has no time");
  };
  refuse(layer.delta.key_heads != 0, "a delta net");
  refuse(layer.space.heads != 0, "a state space");
  refuse(layer.convolution.tokens != 0, "a short convolution");
  refuse(layer.cross.context_width != 0, "a cross-attention");
  refuse(layer.indexer.heads != 0, "an indexer");
  refuse(layer.gate != attention_gate::none, "a gate of attention");
  refuse(layer.adapters.rank != 0, "low-rank adapters");
  refuse(layer.streams.count > 1, "several residual streams");
  refuse(layer.layer_input_size != 0, "an input of its own");
  refuse(layer.experts.latent_width != 0, "experts of a latent width");
  refuse(layer.source != key_value_source::own, "keys of another layer");
}

/// Adds the projections of attention. The variables have the names of the symbols of `transformer`.
inline void add_projections(transformer const& layer, double rows, double tensor,
                            layer_shapes& shapes) {
  auto const hidden = static_cast<double>(layer.hidden);
  double const heads = shapes.attention.heads;
  double const key_heads = std::max(
      1.0, static_cast<double>(layer.kv_heads == 0 ? layer.heads : layer.kv_heads) / tensor);
  double const query = shapes.attention.query_size;
  double const value = shapes.attention.value_size;
  latent_attention const& latent = layer.latent;
  if (latent.key_value_rank == 0) {
    shapes.products.push_back(
        {.rows = rows, .columns = heads * query + key_heads * (query + value), .depth = hidden});
  } else {
    auto const rank = static_cast<double>(latent.key_value_rank);
    auto const rope = static_cast<double>(latent.rope_size);
    if (latent.query_rank != 0) {
      auto const query_rank = static_cast<double>(latent.query_rank);
      shapes.products.push_back({.rows = rows, .columns = query_rank, .depth = hidden});
      shapes.products.push_back({.rows = rows, .columns = heads * query, .depth = query_rank});
    } else {
      shapes.products.push_back({.rows = rows, .columns = heads * query, .depth = hidden});
    }
    shapes.products.push_back({.rows = rows, .columns = rank + rope, .depth = hidden});
    shapes.products.push_back(
        {.rows = rows, .columns = heads * (query - rope + value), .depth = rank});
  }
  shapes.products.push_back({.rows = rows, .columns = hidden, .depth = heads * value});
  shapes.key_bytes = key_heads * (query + value) * rows;
}

/// Adds the two products of a feed-forward part, or of `count` equal parts.
inline void add_feed_forward(double count, double rows, double hidden, double width, mlp_kind kind,
                             layer_shapes& shapes) {
  double const inputs = kind == mlp_kind::gated ? 2 : 1;
  shapes.products.push_back(
      {.count = count, .rows = rows, .columns = inputs * width, .depth = hidden});
  shapes.products.push_back({.count = count, .rows = rows, .columns = hidden, .depth = width});
}

/// Adds the products of the router, the routed experts and the shared experts. Each routed expert
/// receives the same number of tokens.
inline void add_experts(transformer const& layer, double rows, parallel_degrees const& degrees,
                        layer_shapes& shapes) {
  expert_layer const& experts = layer.experts;
  auto const hidden = static_cast<double>(layer.hidden);
  auto const tensor = static_cast<double>(degrees.tensor);
  auto const expert_tensor = static_cast<double>(expert_tensor_of(degrees));
  double const local = static_cast<double>(experts.routed) / static_cast<double>(degrees.expert);
  double const routed = rows * static_cast<double>(experts.active) * expert_tensor / tensor;
  double const width = static_cast<double>(experts.mlp) / expert_tensor;
  shapes.products.push_back(
      {.rows = rows / tensor, .columns = static_cast<double>(experts.routed), .depth = hidden});
  add_feed_forward(local, routed / local, hidden, width, layer.feed_forward, shapes);
  shapes.expert_parameters =
      local * hidden * width * (layer.feed_forward == mlp_kind::gated ? 3 : 2);
  shapes.routed_bytes = rows / tensor * static_cast<double>(experts.active) * hidden;
  shapes.routed_copies = static_cast<double>(experts.active);
  if (experts.shared == 0) return;
  auto const shared_width =
      static_cast<double>(experts.shared_mlp == 0 ? experts.mlp : experts.shared_mlp);
  add_feed_forward(1, rows, hidden, static_cast<double>(experts.shared) * shared_width / tensor,
                   layer.feed_forward, shapes);
}

/// Returns the shapes of a layer for one micro-batch.
[[nodiscard]] inline layer_shapes shapes_of(std::string_view function, transformer const& layer,
                                            micro_batch_work const& batch,
                                            parallel_degrees const& degrees,
                                            byte_sizes const& bytes) {
  check_timed(function, layer);
  layer_shapes shapes;
  auto const ranks = static_cast<double>(degrees.sequence);
  auto const tensor = static_cast<double>(degrees.tensor);
  auto const number_bytes = static_cast<double>(bytes.activation);
  double const rows = static_cast<double>(batch.documents.tokens) / ranks;
  shapes.hidden_bytes = rows * static_cast<double>(layer.hidden) * number_bytes;
  if (layer.heads != 0) {
    std::int64_t const size = layer.head_size == 0 ? layer.hidden / layer.heads : layer.head_size;
    std::int64_t const value =
        layer.latent.key_value_rank != 0 ? layer.latent.value_size : layer.value_size;
    shapes.attention = {.tokens = rows,
                        .squares = static_cast<double>(squares_within(
                                       function, "documents", batch.documents, layer.span)) /
                                   ranks,
                        .heads = static_cast<double>(layer.heads) / tensor,
                        .query_size = static_cast<double>(size + layer.latent.rope_size),
                        .value_size = static_cast<double>(value == 0 ? size : value),
                        .kernel = layer.kernel,
                        .mask = layer.mask};
    add_projections(layer, rows, tensor, shapes);
    shapes.key_bytes *= number_bytes;
  }
  if (layer.mlp != 0) {
    add_feed_forward(1, rows, static_cast<double>(layer.hidden),
                     static_cast<double>(layer.mlp) / tensor, layer.feed_forward, shapes);
  }
  if (layer.experts.routed != 0) add_experts(layer, rows, degrees, shapes);
  shapes.routed_bytes *= number_bytes;
  return shapes;
}

}  // namespace omnibal::inline v0::detail
