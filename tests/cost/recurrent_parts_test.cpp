// SPDX-License-Identifier: Apache-2.0
// Parts that mix tokens in linear time, with sums made by hand.

#include <omnibal/cost/token_mixers.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::layer_parts;
using omnibal::transformer;
using enum omnibal::recompute_choice;

constexpr std::int64_t tokens = 10;
constexpr omnibal::micro_batch_work documents{
    .documents = {.count = 1, .tokens = 10, .squares = 100}};

/// Kept bytes of a norm before a part of width 32: its input and its output.
constexpr std::int64_t norm_kept = 2 * 32 + 2 * 32;

}  // namespace

TEST_CASE("a gated delta net keeps what flash-linear-attention keeps") {
  transformer const layer{
      .hidden = 32,
      .mlp = 20,
      .delta = {
          .key_heads = 2, .value_heads = 4, .key_size = 8, .value_size = 6, .convolution = 3}};
  auto const cost = layer(documents);
  std::int64_t const keys = 2 * 8;
  std::int64_t const values = 4 * 6;
  std::int64_t const channels = 2 * keys + values;
  std::int64_t const products = 32 * channels      // queries, keys and values
                                + 32 * 4 + 32 * 4  // steps and decays
                                + 32 * values      // gates
                                + values * 32      // outputs
                                + 3 * 32 * 20;     // feed-forward part
  std::int64_t const others = 4 + 4                // bias and rate of the decays
                              + 6                  // norm of the outputs
                              + 2 * 32;            // norms of the layer
  CHECK(cost.parameters == products + 3 * channels + others);
  std::int64_t const state = 3 * 2 * values * 8;  // read for the key, change, read for the query
  CHECK(cost.forward.flops == tokens * (2 * products + 2 * 3 * channels + state));
  CHECK(cost.backward.flops == 2 * cost.forward.flops);
  std::int64_t const kept = 2 * norm_kept + 2 * channels +
                            2 * channels               // in and out of convolution
                            + 2 * (4 + 4)              // decays and steps
                            + 2 * 4 * 64               // a row of a chunk
                            + 2 * values + 2 * values  // outputs and gates
                            + 2 * values               // gated outputs
                            + 6 * 20;
  CHECK(cost[none].kept_bytes == tokens * kept);
  CHECK(cost[selective].kept_bytes ==
        tokens * (kept - 2 * 2 * 32 - 2 * channels - 2 * values - 2 * 20));
  CHECK(cost[selective].extra.flops == tokens * 2 * 3 * channels);
  CHECK(cost[selective].extra.moved_bytes ==
        tokens * (2 * 4 * 32 + 4 * channels + 6 * values + 6 * 20));
  CHECK(cost[full].kept_bytes == tokens * 2 * 32);
}

TEST_CASE("a delta net with a decay for each number projects decays and gates by a low rank") {
  transformer layer{.hidden = 32,
                    .parts = layer_parts::mixer,
                    .delta = {.key_heads = 4,
                              .key_size = 8,
                              .value_size = 6,
                              .decay = omnibal::delta_decay::each_number}};
  auto const cost = layer(documents);
  std::int64_t const keys = 4 * 8;
  std::int64_t const values = 4 * 6;
  std::int64_t const channels = 2 * keys + values;
  std::int64_t const products = 32 * channels + 32 * 4  // queries, keys, values and steps
                                + 32 * 6 + 6 * keys     // decays
                                + 32 * 6 + 6 * values   // gates
                                + values * 32;          // outputs
  CHECK(cost.parameters == products + 4 * channels + keys + 4 + 6 + 32);
  CHECK(cost.forward.flops == tokens * (2 * products + 2 * 4 * channels + 6 * values * 8));
  std::int64_t const kept = norm_kept + 4 * channels + 2 * 6 + 2 * 6  // both low-rank outputs
                            + 2 * (keys + 4) + 2 * 2 * 4 * 64         // two matrices of a chunk
                            + 3 * 2 * values;
  CHECK(cost[none].kept_bytes == tokens * kept);
  // Each value head has its own decays.
  layer.delta.value_heads = 8;
  std::int64_t const more = 8 * 8 - 4 * 8;
  std::int64_t const wide = 2 * values;
  std::int64_t const wider =
      32 * (2 * keys + wide) + 32 * 8 + 32 * 6 + 6 * (keys + more) + 32 * 6 + 6 * wide + wide * 32;
  CHECK(layer(documents).parameters == wider + 4 * (2 * keys + wide) + keys + more + 8 + 6 + 32);
}

TEST_CASE("a delta net may have neither gates nor a convolution") {
  transformer layer{.hidden = 32,
                    .parts = layer_parts::mixer,
                    .delta = {.key_heads = 4, .key_size = 8, .convolution = 0, .has_gate = false}};
  auto const cost = layer(documents);
  CHECK(cost.parameters == 32 * 3 * 32 + 2 * 32 * 4 + 32 * 32 + 4 + 4 + 8 + 32);
  CHECK(cost[none].kept_bytes ==
        tokens * (norm_kept + 2 * 3 * 32 + 2 * (4 + 4) + 2 * 4 * 64 + 2 * 32 + 2 * 32));
}

TEST_CASE("Mamba-2 keeps what its fused kernel keeps") {
  transformer layer{.hidden = 32,
                    .parts = layer_parts::mixer,
                    .space = {.heads = 8, .head_size = 6, .state = 5, .groups = 2}};
  auto const cost = layer(documents);
  std::int64_t const width = 8 * 6;
  std::int64_t const inputs = 2 * 2 * 5;
  std::int64_t const channels = width + inputs;
  std::int64_t const products = 32 * (width + channels + 8)  // gates, values and inputs, steps
                                + width * 32;
  std::int64_t const others = channels       // bias of the convolution
                              + 3 * 8        // bias of the steps, rates, factors of the token
                              + width + 32;  // norms
  CHECK(cost.parameters == products + 4 * channels + others);
  CHECK(cost.forward.flops == tokens * (2 * products + 2 * 4 * channels + 4 * width * 5));
  CHECK(cost.backward.flops == 2 * cost.forward.flops);
  std::int64_t const kept = norm_kept + 2 * (width + channels + 8)  // outputs of the first matrix
                            + 2 * width                             // outputs of the state
                            + 2 * width;                            // gated outputs
  CHECK(cost[none].kept_bytes == tokens * kept);
  CHECK(cost[selective].kept_bytes == tokens * (kept - 2 * 32 - 2 * width));
  layer.space.projection_bias = true;
  layer.space.convolution_bias = false;
  layer.space.has_norm = false;
  CHECK(layer(documents).parameters ==
        products + (width + channels + 8) + 32 + 4 * channels + 3 * 8 + 32);
}

TEST_CASE("tensor-parallel ranks beyond the groups of Mamba-2 have copies of the inputs") {
  transformer const layer{.hidden = 32,
                          .parts = layer_parts::mixer,
                          .space = {.heads = 8, .head_size = 6, .state = 5, .groups = 2}};
  auto const one = layer(documents, {.tensor = 4});
  std::int64_t const channels = 12 + 2 * 5;
  CHECK(one.parameters == 32 * (12 + channels + 2) + 12 * 32 + 5 * channels + 3 * 2 + 12 + 32);
  CHECK(one[none].kept_bytes == tokens * (norm_kept + 2 * (12 + channels + 2) + 2 * 12 + 2 * 12));
}

TEST_CASE("Mamba-1 computes steps and inputs of the state from the convolved tokens") {
  transformer layer{.hidden = 32,
                    .parts = layer_parts::mixer,
                    .space = {.heads = 48, .state = 5, .step_rank = 3}};
  auto const cost = layer(documents);
  std::int64_t const made = 3 + 2 * 5;
  std::int64_t const products = 32 * 2 * 48 + 48 * made + 3 * 48 + 48 * 32;
  std::int64_t const others = 48             // bias of the convolution
                              + made         // norms of steps and inputs
                              + 48           // bias of the steps
                              + 48 * 5 + 48  // rates and factors of the token
                              + 32;          // norm of the layer
  CHECK(cost.parameters == products + 4 * 48 + others);
  CHECK(cost.forward.flops == tokens * (2 * products + 2 * 4 * 48 + 4 * 48 * 5));
  std::int64_t const kept = norm_kept + 2 * 48 + 2 * 48  // in and out of the convolution
                            + 2 * made + 2 * made        // before and after their norms
                            + 2 * 48                     // steps
                            + 2 * 48 + 2 * 48 + 2 * 48;  // outputs, gates, gated outputs
  CHECK(cost[none].kept_bytes == tokens * kept);
  CHECK(cost[selective].kept_bytes == tokens * (kept - 2 * 32 - 3 * 2 * 48));
  CHECK(cost[selective].extra.flops == tokens * (2 * 4 * 48 + 2 * 3 * 48));
  layer.space.has_norm = false;
  CHECK(layer(documents).parameters == cost.parameters - made);
  CHECK(layer(documents)[none].kept_bytes == tokens * (kept - 2 * made));
}

TEST_CASE("a short convolution has three projections and two gates") {
  transformer layer{.hidden = 32, .mlp = 20, .convolution = {.tokens = 3}};
  auto const cost = layer(documents);
  std::int64_t const products = 3 * 32 * 32 + 32 * 32 + 3 * 32 * 20;
  CHECK(cost.parameters == products + 3 * 32 + 2 * 32);
  CHECK(cost.forward.flops == tokens * (2 * products + 2 * 3 * 32));
  std::int64_t const kept = 2 * norm_kept + 3 * 2 * 32  // both gates and the value
                            + 2 * 32 + 2 * 32 + 2 * 32  // gated value, its convolution, output
                            + 6 * 20;
  CHECK(cost[none].kept_bytes == tokens * kept);
  CHECK(cost[selective].kept_bytes == tokens * (kept - 4 * 32 - 2 * 32 - 2 * 32 - 2 * 20));
  layer.convolution.has_bias = true;
  CHECK(layer(documents).parameters == cost.parameters + 3 * 32 + 32 + 32);
}

TEST_CASE("parts side by side read one norm") {
  transformer layer{
      .hidden = 32, .heads = 8, .mlp = 20, .space = {.heads = 8, .head_size = 6, .state = 5}};
  auto const both = layer(documents);
  layer.space = {};
  auto const attention = layer(documents);
  transformer const space{
      .hidden = 32, .parts = layer_parts::mixer, .space = {.heads = 8, .head_size = 6, .state = 5}};
  auto const alone = space(documents);
  CHECK(both.parameters == attention.parameters + alone.parameters - 32);
  CHECK(both.forward.flops == attention.forward.flops + alone.forward.flops);
  CHECK(both[none].kept_bytes ==
        attention[none].kept_bytes + alone[none].kept_bytes - tokens * norm_kept);
}

TEST_CASE("a layer may be a mixer or a feed-forward part alone") {
  transformer whole{.hidden = 32, .heads = 8, .mlp = 20};
  transformer mixer = whole;
  mixer.mlp = 0;
  mixer.parts = layer_parts::mixer;
  transformer feed_forward = whole;
  feed_forward.heads = 0;
  feed_forward.parts = layer_parts::feed_forward;
  auto const all = whole(documents);
  auto const first = mixer(documents);
  auto const second = feed_forward(documents);
  CHECK(first.parameters == 4 * 32 * 32 + 32);
  CHECK(second.parameters == 3 * 32 * 20 + 32);
  CHECK(second.forward.flops == 2 * tokens * 3 * 32 * 20);
  CHECK(second[none].kept_bytes == tokens * (norm_kept + 6 * 20));
  CHECK(all.forward.flops == first.forward.flops + second.forward.flops);
  CHECK(all[none].kept_bytes == first[none].kept_bytes + second[none].kept_bytes);
}
