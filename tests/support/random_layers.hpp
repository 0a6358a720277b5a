// SPDX-License-Identifier: Apache-2.0
#pragma once

// Configurations that any tensor-parallel degree up to eight divides.

#include "samples.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace test {

template <class Enum>
Enum any_of(random_amounts& random, std::int64_t values) {
  return static_cast<Enum>(random.between(0, values - 1));
}

inline omnibal::transformer random_transformer(random_amounts& random) {
  omnibal::transformer layer;
  std::int64_t const groups = std::int64_t{1} << random.between(0, 5);
  layer.kv_heads = groups;
  layer.heads = groups * 8 * random.between(1, 4);
  layer.head_size = random.between(1, 256);
  layer.hidden = random.between(1, 20'000);
  layer.mlp = 8 * random.between(1, 8000);
  layer.feed_forward = any_of<omnibal::mlp_kind>(random, 2);
  layer.norm = any_of<omnibal::norm_kind>(random, 2);
  layer.head_norm = any_of<omnibal::query_key_norm>(random, 3);
  layer.mask = any_of<omnibal::attention_mask>(random, 2);
  layer.kernel = any_of<omnibal::attention_kernel>(random, 2);
  layer.qkv_bias = random.between(0, 1) == 1;
  layer.output_bias = random.between(0, 1) == 1;
  layer.mlp_bias = random.between(0, 1) == 1;
  layer.dropout = random.between(0, 1) == 1;
  layer.training = any_of<omnibal::training_mode>(random, 3);
  if (random.between(0, 2) == 0) {
    layer.kv_heads = 0;
    layer.latent = {.key_value_rank = random.between(1, 1000),
                    .query_rank = random.between(0, 2000),
                    .rope_size = random.between(0, 64),
                    .value_size = random.between(0, 256)};
  }
  if (random.between(0, 2) == 0) {
    std::int64_t const routed = 8 * random.between(1, 32);
    layer.experts = {.routed = routed,
                     .active = random.between(1, routed),
                     .shared = random.between(0, 3),
                     .mlp = 8 * random.between(1, 300)};
    if (random.between(0, 1) == 0) layer.mlp = 0;
  }
  if (random.between(0, 3) == 0) {
    layer.cross = {.context_width = random.between(1, 5000),
                   .placement = any_of<omnibal::cross_placement>(random, 2)};
  }
  return layer;
}

namespace detail {

inline bool is_drawn(random_amounts& random, std::int64_t of) {
  return random.between(0, of - 1) == 0;
}

inline void add_attention_kinds(random_amounts& random, omnibal::transformer& layer) {
  if (layer.mask == omnibal::attention_mask::causal && is_drawn(random, 2)) {
    layer.span = {omnibal::span_kind::window, random.between(1, 3000)};
  } else if (is_drawn(random, 3)) {
    layer.span = {omnibal::span_kind::chunk, random.between(1, 3000)};
  }
  layer.gate = any_of<omnibal::attention_gate>(random, 3);
  layer.sinks = is_drawn(random, 3);
  layer.key_bias = is_drawn(random, 2);
  if (is_drawn(random, 3)) layer.indexer = {random.between(1, 64), random.between(1, 128)};
  if (layer.latent.key_value_rank != 0) return;
  layer.source = any_of<omnibal::key_value_source>(random, 3);
  if (is_drawn(random, 3)) layer.value_size = random.between(1, 128);
}

inline omnibal::delta_net random_delta(random_amounts& random) {
  std::int64_t const heads = 8 * random.between(1, 4);
  return {.key_heads = heads,
          .value_heads = heads * random.between(0, 2),
          .key_size = random.between(1, 128),
          .value_size = random.between(0, 128),
          .convolution = random.between(0, 4),
          .decay = any_of<omnibal::delta_decay>(random, 2),
          .has_gate = is_drawn(random, 2)};
}

inline omnibal::state_space random_space(random_amounts& random) {
  std::int64_t const groups = std::int64_t{1} << random.between(0, 3);
  bool const is_first = is_drawn(random, 3);
  return {.heads = 8 * groups * random.between(1, 4),
          .head_size = is_first ? 1 : random.between(1, 64),
          .state = random.between(1, 128),
          .groups = is_first ? 1 : groups,
          .convolution = random.between(0, 4),
          .step_rank = is_first ? random.between(1, 160) : 0,
          .convolution_bias = is_drawn(random, 2),
          .projection_bias = is_drawn(random, 2),
          .has_norm = is_drawn(random, 2)};
}

inline void add_expert_kinds(random_amounts& random, omnibal::expert_layer& experts) {
  if (is_drawn(random, 2)) experts.shared_mlp = 8 * random.between(1, 300);
  if (is_drawn(random, 2)) experts.latent_width = random.between(1, 2000);
  experts.shared_gate = is_drawn(random, 2);
  experts.has_bias = is_drawn(random, 2);
}

}  // namespace detail

/// A layer with the parts that newer models have: recurrent ones, spans, gates, indexers, adapters.
inline omnibal::transformer random_hybrid(random_amounts& random) {
  omnibal::transformer layer = random_transformer(random);
  layer.hidden = 8 * random.between(1, 2500);
  detail::add_attention_kinds(random, layer);
  if (layer.experts.routed != 0) detail::add_expert_kinds(random, layer.experts);
  std::int64_t const mixer = random.between(0, 5);
  if (mixer == 1) layer.delta = detail::random_delta(random);
  if (mixer == 2) layer.space = detail::random_space(random);
  if (mixer == 3) {
    layer.convolution = {random.between(1, 4), detail::is_drawn(random, 2)};
  }
  bool const has_other = mixer >= 1 && mixer <= 3;
  if (has_other && detail::is_drawn(random, 2)) {
    layer.heads = 0;
    layer.span = {};
    layer.cross = {};
  }
  if (mixer == 4) {
    layer.mlp = 0;
    layer.experts = {};
    layer.parts = omnibal::layer_parts::mixer;
  }
  if (layer.training == omnibal::training_mode::input_gradients) {
    layer.adapters = {random.between(0, 64), any_of<omnibal::adapter_targets>(random, 3)};
  }
  layer.other_parameters = random.between(0, 100);
  return layer;
}

/// Documents whose numbers and lengths are multiples of eight.
inline omnibal::micro_batch_work random_documents(
    random_amounts& random, std::span<omnibal::attention_span const> spans = {}) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(0, 30)));
  for (auto& length : lengths) length = 8 * random.heavy_tail(4000);
  omnibal::micro_batch_work batch{.documents = omnibal::sequences_of(lengths, {}, spans)};
  batch.context.tokens = 8 * random.between(0, 1000);
  batch.context.pairs = batch.documents.tokens * batch.context.tokens;
  return batch;
}

}  // namespace test
