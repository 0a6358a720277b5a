// SPDX-License-Identifier: Apache-2.0
// Adapters and FP8, with sums made by hand.

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::adapter_targets;
using omnibal::training_mode;
using omnibal::transformer;
using enum omnibal::recompute_choice;

/// Documents of 4 and 6 tokens.
constexpr std::int64_t tokens = 10;
constexpr omnibal::micro_batch_work documents{
    .documents = {.count = 2, .tokens = 10, .squares = 16 + 36}};

constexpr transformer sparse{
    .hidden = 32, .heads = 8, .experts = {.routed = 8, .active = 2, .shared = 1, .mlp = 6}};

}  // namespace

TEST_CASE("adapters are trained beside the matrices of a frozen layer") {
  transformer layer{.hidden = 32, .heads = 8, .kv_heads = 2, .mlp = 20};
  layer.training = training_mode::input_gradients;
  auto const frozen = layer(documents);
  std::int64_t const attention = 2 * (32 + 32)     // queries
                                 + 2 * (32 + 8)    // keys
                                 + 2 * (32 + 8)    // values
                                 + 2 * (32 + 32);  // output
  std::int64_t const feed_forward = 2 * 2 * (32 + 20) + 2 * (20 + 32);
  layer.adapters = {.rank = 2, .targets = adapter_targets::attention};
  auto const first = layer(documents);
  layer.adapters.targets = adapter_targets::feed_forward;
  auto const second = layer(documents);
  layer.adapters.targets = adapter_targets::all;
  auto const all = layer(documents);
  CHECK(first.parameters - frozen.parameters == attention);
  CHECK(second.parameters - frozen.parameters == feed_forward);
  CHECK(all.parameters - frozen.parameters == attention + feed_forward);
  CHECK(all.optimizer_bytes == 12 * (attention + feed_forward));
  CHECK(all.forward.flops - frozen.forward.flops == 2 * tokens * (attention + feed_forward));
  CHECK(all.backward.flops - frozen.backward.flops == 4 * tokens * (attention + feed_forward));
  // Inputs of the matrices, which are the outputs of a norm and of the activation, and the outputs
  // of the first matrices of the adapters. The output of attention is kept in any case.
  CHECK(first[none].kept_bytes - frozen[none].kept_bytes == tokens * (2 * 32 + 4 * 2 * 2));
  CHECK(second[none].kept_bytes - frozen[none].kept_bytes ==
        tokens * (2 * 32 + 2 * 20 + 3 * 2 * 2));
}

TEST_CASE("adapters of Llama 2 7B and Llama 3 8B have the numbers that PEFT prints") {
  // r = 16 beside all matrices of the layers: 39,976,960 and 41,943,040 trained parameters.
  transformer llama2{.hidden = 4096, .heads = 32, .mlp = 11008};
  transformer llama3 = omnibal::llama3_8b.layer;
  for (auto* const layer : {&llama2, &llama3}) {
    layer->training = training_mode::input_gradients;
    layer->adapters.rank = 16;
  }
  CHECK(32 * llama2(documents).optimizer_bytes == 12 * 39'976'960);
  CHECK(32 * llama3(documents).optimizer_bytes == 12 * 41'943'040);
}

TEST_CASE("routed and shared experts have adapters, and the router has none") {
  transformer layer = sparse;
  layer.training = training_mode::input_gradients;
  auto const frozen = layer(documents);
  layer.adapters = {.rank = 2, .targets = adapter_targets::feed_forward};
  auto const cost = layer(documents);
  std::int64_t const one = 3 * 2 * (32 + 6);
  CHECK(cost.parameters - frozen.parameters == 8 * one + one);
  CHECK(cost.active_parameters - frozen.active_parameters == 2 * one + one);
  CHECK(cost.forward.flops - frozen.forward.flops == 2 * tokens * 3 * one);
  // A rank of 4 has two experts and, with sharded state, nothing of it twice.
  CHECK(layer(documents, {.data = 4, .expert = 4}).optimizer_bytes == 12 * (one / 4 + 2 * one));
  // Two ranks that share the experts have shares of the hidden sides of adapters.
  layer.adapters = {};
  auto const half = layer(documents, {.tensor = 2});
  layer.adapters = {.rank = 2, .targets = adapter_targets::feed_forward};
  CHECK(layer(documents, {.tensor = 2}).parameters - half.parameters == 9 * 3 * 2 * (32 + 3));
  std::int64_t const inputs = 2 * 32 + 2 * 2 * 32 + 3 * 2 * 6;  // norm, sent tokens, activations
  CHECK(cost[none].kept_bytes - frozen[none].kept_bytes == tokens * (inputs + 3 * 3 * 2 * 2));
}

TEST_CASE("a mixer without adapters keeps no inputs for them") {
  transformer layer{.hidden = 32, .mlp = 20, .convolution = {.tokens = 3}};
  layer.training = training_mode::input_gradients;
  layer.adapters = {.rank = 2, .targets = adapter_targets::attention};
  auto const adapted = layer(documents);
  layer.adapters = {};
  CHECK(adapted == layer(documents));
}

TEST_CASE("FP8 keeps inputs of matrices in one byte, and copies of the matrices") {
  transformer layer{.hidden = 32, .heads = 8, .kv_heads = 2, .mlp = 20};
  auto const bf16 = layer(documents);
  auto const fp8 = layer(documents, {}, omnibal::fp8_bytes);
  std::int64_t const products = 2 * 32 * 32 + 2 * 32 * 8 + 3 * 32 * 20;
  CHECK(fp8.parameter_bytes - bf16.parameter_bytes == 2 * products);
  CHECK(fp8.optimizer_bytes == bf16.optimizer_bytes);
  std::int64_t const kept = 2 * (2 * 32 + 32)        // inputs of norms in bf16, outputs in FP8
                            + 2 * (32 + 8 + 8 + 32)  // what the kernel of attention reads
                            + 32                     // its output as the input of a matrix
                            + 2 * 2 * 20 + 20;       // the activation
  CHECK(fp8[none].kept_bytes == tokens * kept);
  // One scale for each 32 numbers.
  auto const mxfp8 = layer(documents, {}, omnibal::mxfp8_bytes);
  CHECK(mxfp8[none].kept_bytes - fp8[none].kept_bytes == 3 * tokens + (tokens * 20 + 31) / 32);
}
