// SPDX-License-Identifier: Apache-2.0
// Experts, adapters, FP8, chunked losses and prediction layers, with sums made by hand.

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::adapter_targets;
using omnibal::micro_batch_work;
using omnibal::training_mode;
using omnibal::transformer;
using enum omnibal::recompute_choice;

/// Documents of 4 and 6 tokens.
constexpr std::int64_t tokens = 10;
constexpr micro_batch_work documents{.documents = {.count = 2, .tokens = 10, .squares = 16 + 36}};

constexpr transformer sparse{
    .hidden = 32, .heads = 8, .experts = {.routed = 8, .active = 2, .shared = 1, .mlp = 6}};

}  // namespace

TEST_CASE("shared experts may have a width of their own") {
  transformer layer = sparse;
  layer.experts.shared_mlp = 10;
  auto const cost = layer(documents);
  CHECK(cost.parameters == 4 * 32 * 32 + 2 * 32 + 32 * 8 + 8 * 3 * 32 * 6 + 3 * 32 * 10);
  CHECK(cost.active_parameters == 4 * 32 * 32 + 2 * 32 + 32 * 8 + 2 * 3 * 32 * 6 + 3 * 32 * 10);
  CHECK(cost.forward.flops ==
        2 * tokens * cost.active_parameters - 2 * tokens * 2 * 32 + 2 * 32 * (16 + 36));
}

TEST_CASE("routed experts may work on a narrower latent") {
  transformer layer = sparse;
  layer.experts.latent_width = 12;
  layer.feed_forward = omnibal::mlp_kind::plain;
  auto const cost = layer(documents);
  std::int64_t const fixed = 4 * 32 * 32 + 32 * 8 + 2 * 32 * 12 + 2 * 32 * 6;
  CHECK(cost.parameters == fixed + 8 * 2 * 12 * 6 + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * (fixed + 2 * 2 * 12 * 6) + 2 * 32 * (16 + 36));
  std::int64_t const kept = 8 * 32 + 8 * 32       // norms; queries, keys, values and output
                            + 4 * 8               // probabilities of the router in fp32
                            + 2 * 12              // input of the matrix behind the experts
                            + 2 * 2 * (12 + 12)   // sent and returned, for two experts
                            + 2 * 4 * 6 + 4 * 6;  // hidden numbers of two experts and one
  CHECK(cost[none].kept_bytes == tokens * kept);
}

TEST_CASE("experts and their router may have biases") {
  transformer layer = sparse;
  layer.experts.shared = 0;
  auto const without = layer(documents);
  layer.experts.has_bias = true;
  auto const cost = layer(documents);
  CHECK(cost.parameters - without.parameters == 8 + 8 * (2 * 6 + 32));
  CHECK(cost.active_parameters - without.active_parameters == 8 + 2 * (2 * 6 + 32));
  CHECK(cost.forward == without.forward);
}

TEST_CASE("experts may be whole on each tensor-parallel rank") {
  // Of 2 tensor-parallel and 4 data-parallel ranks each has one expert.
  omnibal::parallel_degrees const folded{.tensor = 2, .data = 4, .expert = 8, .expert_tensor = 1};
  auto const cost = sparse(documents, folded);
  std::int64_t const one_expert = 3 * 32 * 6;
  std::int64_t const dense = 4 * 32 * 32 / 2 + 2 * 32 + 32 * 8 + 3 * 32 * 6 / 2;
  CHECK(cost.parameters == dense + one_expert);
  // Each token uses two whole experts of the ranks.
  CHECK(cost.active_parameters == dense + 2 * one_expert);
  // The work is spread over the tensor-parallel ranks, however experts are.
  CHECK(cost.forward.flops == sparse(documents, {.tensor = 2, .data = 4}).forward.flops);
  // No other rank has this expert; four ranks share the state of the dense part.
  CHECK(cost.optimizer_bytes == 12 * (dense / 4 + one_expert));
  CHECK(cost.gradient_bytes == 4 * (dense + one_expert));
}

TEST_CASE("ranks that share the matrices of an expert gather its tokens") {
  using omnibal::norm_regions;
  transformer layer = sparse;
  layer.experts.mlp = 8;
  auto const with = [&](std::int64_t expert_tensor) {
    return layer(
        documents,
        {.tensor = 4, .data = 2, .norms = norm_regions::split, .expert_tensor = expert_tensor});
  };
  std::int64_t const input = tokens * 2 * 2 * 32;
  CHECK(with(2)[none].kept_bytes - with(1)[none].kept_bytes == input / 4);
  CHECK(with(4)[none].kept_bytes - with(1)[none].kept_bytes == 3 * input / 4);
  CHECK(with(0) == with(4));
  CHECK(4 * with(1)[none].kept_bytes == layer(documents)[none].kept_bytes);
}

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

TEST_CASE("the router reads its input in bf16 also if matrices keep FP8") {
  transformer layer = sparse;
  layer.experts.shared = 0;
  auto const fp8 = layer(documents, {}, omnibal::fp8_bytes);
  std::int64_t const kept = 2 * (2 * 32 + 32) + 2 * 4 * 32 + 32  // norms and attention
                            + 2 * 32 + 4 * 8                     // input of the router, its output
                            + 2 * (32 + 2 * 32)                  // sent in FP8, returned in bf16
                            + 2 * (2 * 2 * 6 + 6);
  CHECK(fp8[none].kept_bytes == tokens * kept);
  CHECK(fp8.parameter_bytes - layer(documents).parameter_bytes ==
        2 * (4 * 32 * 32 + 8 * 3 * 32 * 6));
}

TEST_CASE("a chunked loss keeps no probabilities and computes the logits again") {
  omnibal::language_head head{.vocabulary = 100, .hidden = 32};
  auto const whole = head(documents);
  head.loss_chunk = 3;
  auto const chunked = head(documents);
  std::int64_t const logits = 2 * tokens * 32 * 100;
  CHECK(whole[none].kept_bytes == tokens * (4 * 32 + 4 * 100));
  CHECK(chunked[none].kept_bytes == tokens * 4 * 32);
  CHECK(whole[none].transient_bytes == tokens * (2 + 4) * 100);
  CHECK(chunked[none].transient_bytes == 3 * (2 + 4) * 100);
  CHECK(chunked.forward == whole.forward);
  CHECK(chunked.backward.flops == 3 * logits);
  CHECK(whole.backward.flops == 2 * logits);
  // A chunk of more tokens than the rank has is one chunk.
  head.loss_chunk = 6;
  CHECK(head(documents, {.sequence = 2})[none].transient_bytes == 5 * (2 + 4) * 100);
  head.training = training_mode::forward_only;
  CHECK(head(documents).backward.flops == 0);
  head.has_bias = true;
  CHECK(head(documents).parameters == 100 * 32 + 100 + 32);
}

TEST_CASE("a prediction layer joins two norms, and has a layer and a head") {
  omnibal::prediction_layer const prediction{
      .layer = {.hidden = 32, .heads = 8, .mlp = 20}, .vocabulary = 100, .loss_chunk = 4};
  auto const cost = prediction(documents);
  auto const layer = prediction.layer(documents);
  omnibal::language_head const head{.vocabulary = 100, .hidden = 32, .loss_chunk = 4};
  auto const logits = head(documents);
  std::int64_t const joined = 2 * 32 * 32;
  CHECK(cost.parameters == layer.parameters + joined + 2 * 32 + 32);
  CHECK(cost.forward.flops == layer.forward.flops + 2 * tokens * joined + logits.forward.flops);
  CHECK(cost.backward.flops == layer.backward.flops + 4 * tokens * joined + logits.backward.flops);
  // Both norms keep input and output, and the embedding the indices of its tokens.
  CHECK(cost[none].kept_bytes ==
        layer[none].kept_bytes + tokens * (2 * 4 * 32 + 8) + logits[none].kept_bytes);
  // With more than one stage the layer has a copy of the embedding.
  CHECK(prediction(documents, {.pipeline = 2}).parameters == cost.parameters + 100 * 32);
  auto owning = prediction;
  owning.owns_embeddings = true;
  CHECK(owning(documents).parameters == cost.parameters + 2 * 100 * 32);
}

TEST_CASE("the prediction layer of DeepSeek-V3 has a sparse layer, a matrix and three norms") {
  omnibal::prediction_layer prediction{
      .layer = {.hidden = 7168,
                .heads = 128,
                .head_size = 128,
                .latent = {.key_value_rank = 512, .query_rank = 1536, .rope_size = 64},
                .experts = {.routed = 256, .active = 8, .shared = 1, .mlp = 2048}},
      .vocabulary = 129280};
  std::int64_t const attention = 7168 * 1536 + 1536 + 1536 * 128 * 192  // queries
                                 + 7168 * (512 + 64) + 512              // latent keys and values
                                 + 512 * 128 * 256 + 128 * 128 * 7168;  // keys, values, output
  std::int64_t const experts = 257 * 3LL * 7168 * 2048 + 7168 * 256;    // and the router
  std::int64_t const joined = 2 * 7168 * 7168 + 2 * 7168;
  auto const own = omnibal::count_parameters(prediction);
  CHECK(own.total == attention + experts + 2 * 7168 + joined + 7168);
  CHECK(own.total == 11'610'067'968);
  prediction.owns_embeddings = true;
  CHECK(omnibal::count_parameters(prediction).total == own.total + 2 * 129280LL * 7168);
}
