// SPDX-License-Identifier: Apache-2.0
// Spans, indexers, gates, sinks and sources of attention, with sums made by hand.

#include <omnibal/cost/attention_span.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::attention_span;
using omnibal::micro_batch_work;
using omnibal::span_kind;
using omnibal::transformer;
using enum omnibal::recompute_choice;

/// Documents of 4 and 6 tokens.
constexpr std::int64_t tokens = 10;

micro_batch_work documents(attention_span const& span = {}) {
  std::vector<std::int64_t> const lengths{4, 6};
  std::array const spans{span};
  return {.documents = omnibal::sequences_of(lengths, {}, spans)};
}

/// A layer whose products and norms other tests count.
constexpr transformer plain{.hidden = 32, .heads = 8, .kv_heads = 2, .mlp = 20};

}  // namespace

TEST_CASE("a window leaves the last tokens up to the token itself") {
  transformer layer = plain;
  layer.span = {span_kind::window, 3};
  auto const cost = layer(documents(layer.span));
  auto const whole = plain(documents());
  // Half of each token itself and of the first tokens hides: 2 * 3 * 4 - 9 and 2 * 3 * 6 - 9.
  std::int64_t const squares = (2 * 3 * 4 - 3 * 3) + (2 * 3 * 6 - 3 * 3);
  CHECK(whole.forward.flops - cost.forward.flops == 2 * 32 * (16 + 36 - squares));
  CHECK(cost[none] == whole[none]);
  CHECK(cost[selective] == whole[selective]);
  CHECK(cost.parameters == whole.parameters);
}

TEST_CASE("a chunk leaves the tokens of the same chunk") {
  transformer layer = plain;
  layer.span = {span_kind::chunk, 4};
  auto const cost = layer(documents(layer.span));
  std::int64_t const squares = 4 * 4 + (4 * 4 + 2 * 2);
  CHECK(plain(documents()).forward.flops - cost.forward.flops == 2 * 32 * (16 + 36 - squares));
}

TEST_CASE("unfused attention keeps the scores within its window") {
  transformer layer = plain;
  layer.kernel = omnibal::attention_kernel::unfused;
  auto const whole = layer(documents());
  layer.span = {span_kind::window, 3};
  std::int64_t const squares = (2 * 3 * 4 - 3 * 3) + (2 * 3 * 6 - 3 * 3);
  CHECK(whole[none].kept_bytes - layer(documents(layer.span))[none].kept_bytes ==
        2 * 8 * (16 + 36 - squares));
}

TEST_CASE("a vision tower with chunks attends within them, without a mask") {
  omnibal::vision_transformer layer{.hidden = 32, .heads = 4, .mlp = 20, .image_size = 56};
  // Tiles of 4 x 4 patches, and images of 6 and 4 patches.
  std::vector<std::int64_t> const images{6, 4};
  auto const whole = layer({.tiles = 2, .images = omnibal::sequences_of(images)});
  layer.span = {span_kind::chunk, 5};
  std::array const spans{layer.span};
  auto const cost = layer({.tiles = 2, .images = omnibal::sequences_of(images, {}, spans)});
  std::int64_t const all = 2 * 16 * 16 + 36 + 16;
  std::int64_t const within = 2 * (3 * 25 + 1) + (25 + 1) + 16;
  CHECK(whole.forward.flops - cost.forward.flops == 4 * 32 * (all - within));
  CHECK(cost[none] == whole[none]);
}

TEST_CASE("an indexer scores all tokens, and its inputs get no gradients") {
  transformer layer{.hidden = 32,
                    .heads = 4,
                    .head_size = 6,
                    .mlp = 20,
                    .latent = {.key_value_rank = 5, .query_rank = 7, .rope_size = 2},
                    .span = {span_kind::window, 3}};
  auto const without = layer(documents(layer.span));
  layer.indexer = {.heads = 3, .head_size = 4};
  auto const cost = layer(documents(layer.span));
  std::int64_t const products = 7 * 3 * 4 + 32 * 4 + 32 * 3;  // queries, keys, weights of heads
  CHECK(cost.parameters - without.parameters == products + 2 * 4);
  std::int64_t const all = 16 + 36;
  std::int64_t const chosen = (2 * 3 * 4 - 3 * 3) + (2 * 3 * 6 - 3 * 3);
  CHECK(cost.forward.flops - without.forward.flops == 2 * tokens * products + all * 3 * 4);
  CHECK(cost.backward.flops - without.backward.flops == 2 * tokens * products + 2 * chosen * 3 * 4);
  // Queries and weights of the heads, keys before and after their norm.
  CHECK(cost[none].kept_bytes - without[none].kept_bytes == tokens * 2 * (3 * 4 + 3 + 2 * 4));

  layer.latent.query_rank = 0;
  auto const direct = layer(documents(layer.span));
  layer.indexer = {};
  CHECK(direct.parameters - layer(documents(layer.span)).parameters ==
        32 * 3 * 4 + 32 * 4 + 32 * 3 + 2 * 4);
}

TEST_CASE("an indexer has a backward pass only if it is trained") {
  transformer layer = plain;
  layer.span = {span_kind::window, 3};
  layer.training = omnibal::training_mode::input_gradients;
  auto const without = layer(documents(layer.span));
  layer.indexer = {.heads = 3, .head_size = 4};
  layer.adapters.rank = 2;
  auto const adapted = layer(documents(layer.span));
  layer.adapters.rank = 0;
  auto const cost = layer(documents(layer.span));
  CHECK(cost.forward.flops > without.forward.flops);
  CHECK(cost.backward.flops == without.backward.flops);
  CHECK(cost[none].kept_bytes == without[none].kept_bytes);
  layer.indexer = {};
  layer.adapters.rank = 2;
  CHECK(adapted[none].kept_bytes == layer(documents(layer.span))[none].kept_bytes);
  CHECK(adapted.optimizer_bytes == layer(documents(layer.span)).optimizer_bytes);
}

TEST_CASE("every tensor-parallel rank has the whole indexer") {
  transformer layer = plain;
  layer.span = {span_kind::window, 3};
  omnibal::parallel_degrees const degrees{.tensor = 2};
  auto const without = layer(documents(layer.span), degrees);
  layer.indexer = {.heads = 3, .head_size = 4};
  auto const cost = layer(documents(layer.span), degrees);
  std::int64_t const products = 32 * 3 * 4 + 32 * 4 + 32 * 3;
  CHECK(cost.parameters - without.parameters == products + 2 * 4);
  CHECK(cost.forward.flops - without.forward.flops == 2 * tokens * products + (16 + 36) * 3 * 4);
}

TEST_CASE("the output of attention has a gate for each head or each number") {
  transformer layer = plain;
  auto const without = layer(documents());
  for (auto const gate :
       {omnibal::attention_gate::each_head, omnibal::attention_gate::each_number}) {
    layer.gate = gate;
    std::int64_t const width = gate == omnibal::attention_gate::each_head ? 8 : 32;
    auto const cost = layer(documents());
    CHECK(cost.parameters - without.parameters == 32 * width);
    CHECK(cost.forward.flops - without.forward.flops == 2 * tokens * 32 * width);
    // The gates, and the gated outputs, which are recomputed from outputs and gates.
    CHECK(cost[none].kept_bytes - without[none].kept_bytes == tokens * (2 * width + 2 * 32));
    CHECK(cost[selective].kept_bytes - without[selective].kept_bytes == tokens * 2 * width);
    CHECK(cost[selective].extra.moved_bytes - without[selective].extra.moved_bytes ==
          tokens * (2 * width + 2 * 2 * 32));
  }
}

TEST_CASE("each head may have a sink") {
  transformer layer = plain;
  layer.sinks = true;
  auto const cost = layer(documents());
  CHECK(cost.parameters == plain(documents()).parameters + 8);
  CHECK(cost.forward == plain(documents()).forward);
  CHECK(layer(documents(), {.tensor = 2}).parameters ==
        plain(documents(), {.tensor = 2}).parameters + 4);
}

TEST_CASE("values may be the keys, and keys may come from an earlier layer") {
  transformer layer = plain;
  layer.head_norm = omnibal::query_key_norm::each_head;
  auto const own = layer(documents());
  layer.source = omnibal::key_value_source::keys;
  auto const keys = layer(documents());
  CHECK(own.parameters - keys.parameters == 32 * 8);
  CHECK(own.forward.flops - keys.forward.flops == 2 * tokens * 32 * 8);
  CHECK(keys[none].kept_bytes == own[none].kept_bytes);
  layer.source = omnibal::key_value_source::earlier_layer;
  auto const earlier = layer(documents());
  // Neither products nor a norm of keys; keys, values and normed keys are not kept a second time.
  CHECK(own.parameters - earlier.parameters == 2 * 32 * 8 + 4);
  CHECK(own.forward.flops - earlier.forward.flops == 2 * tokens * 2 * 32 * 8);
  CHECK(own[none].kept_bytes - earlier[none].kept_bytes == tokens * 2 * (8 + 8 + 8));
}

TEST_CASE("values may have another size than keys") {
  transformer layer{
      .hidden = 32, .heads = 8, .kv_heads = 2, .head_size = 6, .mlp = 20, .value_size = 3};
  auto const cost = layer(documents());
  std::int64_t const products = 32 * 48 + 32 * 12 + 32 * 6 + 24 * 32 + 3 * 32 * 20;
  CHECK(cost.parameters == products + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * products + 8 * (6 + 3) * (16 + 36));
  CHECK(cost[none].kept_bytes == tokens * (8 * 32 + 2 * (48 + 12 + 6 + 24) + 6 * 20));
}

TEST_CASE("biases of the inputs may leave out the keys") {
  transformer layer = plain;
  layer.qkv_bias = true;
  CHECK(layer(documents()).parameters - plain(documents()).parameters == 32 + 8 + 8);
  layer.key_bias = false;
  CHECK(layer(documents()).parameters - plain(documents()).parameters == 32 + 8);
}
