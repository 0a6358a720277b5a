// SPDX-License-Identifier: Apache-2.0
#pragma once

// Configurations that any tensor-parallel degree up to eight divides.

#include "samples.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstddef>
#include <cstdint>
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

/// Documents whose numbers and lengths are multiples of eight.
inline omnibal::micro_batch_work random_documents(random_amounts& random) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(0, 30)));
  for (auto& length : lengths) length = 8 * random.heavy_tail(4000);
  omnibal::micro_batch_work batch{.documents = omnibal::sequences_of(lengths)};
  batch.context.tokens = 8 * random.between(0, 1000);
  batch.context.pairs = batch.documents.tokens * batch.context.tokens;
  return batch;
}

}  // namespace test
