// SPDX-License-Identifier: Apache-2.0
// Chunked losses and prediction layers, with sums made by hand.

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::training_mode;
using omnibal::transformer;
using enum omnibal::recompute_choice;

/// Documents of 4 and 6 tokens.
constexpr std::int64_t tokens = 10;
constexpr omnibal::micro_batch_work documents{
    .documents = {.count = 2, .tokens = 10, .squares = 16 + 36}};

}  // namespace

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

TEST_CASE("the head may compute the losses of prediction layers, which stand on any stage then") {
  for (bool const owns : {false, true}) {
    omnibal::prediction_layer const whole{.layer = {.hidden = 32, .heads = 8, .mlp = 20},
                                          .vocabulary = 100,
                                          .loss_chunk = 4,
                                          .owns_embeddings = owns};
    auto layer = whole;
    layer.part = omnibal::prediction_part::before_loss;
    omnibal::language_head const head{.vocabulary = 100, .hidden = 32, .loss_chunk = 4};
    auto all_losses = head;
    all_losses.predictions = {.count = 2, .loss_chunk = 4, .owns_matrices = owns};
    for (std::int64_t const pipeline : {1, 4}) {
      omnibal::parallel_degrees const degrees{.tensor = 2, .data = 3, .pipeline = pipeline};
      auto const apart = layer(documents, degrees);
      auto const losses = all_losses(documents, degrees);
      auto const one = head(documents, degrees);
      auto const joined = whole(documents, degrees);
      CHECK(2 * joined.parameters + one.parameters == 2 * apart.parameters + losses.parameters);
      CHECK(2 * joined.forward.flops + one.forward.flops ==
            2 * apart.forward.flops + losses.forward.flops);
      CHECK(2 * joined.backward.flops + one.backward.flops ==
            2 * apart.backward.flops + losses.backward.flops);
      CHECK(2 * joined[none].kept_bytes + one[none].kept_bytes ==
            2 * apart[none].kept_bytes + losses[none].kept_bytes);
      CHECK(losses.forward.flops == 3 * one.forward.flops);
      CHECK(losses.parameters == one.parameters + 2 * (32 + (owns ? 50 * 32 : 0)));
      // The outputs of three layers are the input. Nothing is sent behind the losses.
      CHECK(losses[full].kept_bytes == 3 * tokens * 32 * 2);
      CHECK(apart.cut_bytes == tokens * 32 * 2);
      CHECK(losses.cut_bytes == 0);
    }
  }
}

TEST_CASE("layers of multi-token prediction stand behind the head or before it") {
  omnibal::transformer const layer{.hidden = 32, .heads = 8, .mlp = 20};
  omnibal::mixed_language_model model{.input = {.vocabulary = 100, .hidden = 32},
                                      .runs = {{3, layer}},
                                      .output = {.vocabulary = 100, .hidden = 32},
                                      .prediction_layers = 2,
                                      .prediction = {.layer = layer, .vocabulary = 100}};
  auto const total = omnibal::count_parameters(model);
  auto const behind = omnibal::layer_costs(model, documents);
  model.order = omnibal::prediction_order::before_head;
  CHECK(omnibal::count_parameters(model) == total);
  auto const before = omnibal::layer_costs(model, documents);
  REQUIRE(behind.size() == 7);
  REQUIRE(before.size() == 7);
  CHECK(before[4] == before[5]);
  CHECK(before[4].flops() < behind[5].flops());
  CHECK(before[6].flops() == 3 * behind[4].flops());
  auto const flops = [](auto const& costs) {
    std::int64_t sum = 0;
    for (auto const& cost : costs) sum += cost.flops();
    return sum;
  };
  CHECK(flops(before) == flops(behind));
  model.prediction.owns_embeddings = true;
  auto const owning = omnibal::count_parameters(model);
  CHECK(owning.total == total.total + 2 * 2 * 100 * 32);
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
