// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <catch.hpp>

TEST_CASE("the costs of a layer and of a sample allocate nothing") {
  omnibal::micro_batch_work const batch{
      .tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})};
  std::vector<std::pair<int, std::int64_t>> const points{{1, 10}, {100, 500}, {2000, 90'000}};
  auto const table = omnibal::measured_table(points, &std::pair<int, std::int64_t>::first,
                                             &std::pair<int, std::int64_t>::second);
  std::int64_t sum = 0;
  CHECK(test::allocations_of([&] {
          omnibal::internvl_6_20b.for_each_layer(
              [&](auto const& layer, std::int64_t count) { sum += count * layer(batch).flops(); });
          sum += omnibal::document_cost(omnibal::deepseek_v2)(1000);
          sum += omnibal::count_parameters(omnibal::internvl_6_34b).active;
          sum += table(300);
        }) == 0);
  CHECK(sum > 0);
}

TEST_CASE("the costs of layers of all kinds and of their spans allocate nothing") {
  omnibal::transformer layer{
      .hidden = 64,
      .heads = 8,
      .head_size = 8,
      .mlp = 32,
      .latent = {.key_value_rank = 16, .query_rank = 16, .rope_size = 4},
      .experts = {.routed = 4, .active = 2, .shared = 1, .mlp = 16, .latent_width = 32},
      .training = omnibal::training_mode::input_gradients,
      .span = {omnibal::span_kind::window, 100},
      .indexer = {.heads = 2, .head_size = 8},
      .gate = omnibal::attention_gate::each_head,
      .sinks = true,
      .delta = {.key_heads = 2, .key_size = 8},
      .space = {.heads = 8, .head_size = 8, .state = 16},
      .convolution = {.tokens = 3},
      .adapters = {.rank = 4}};
  omnibal::prediction_layer const prediction{.layer = layer, .vocabulary = 100, .loss_chunk = 64};
  std::vector<std::int64_t> const lengths{300, 40, 70};
  std::int64_t sum = 0;
  CHECK(test::allocations_of([&] {
          auto const spans = omnibal::attention_spans(layer);
          omnibal::micro_batch_work const batch{.documents =
                                                    omnibal::sequences_of(lengths, {}, spans)};
          omnibal::parallel_degrees const degrees{
              .tensor = 2, .data = 4, .expert = 4, .expert_tensor = 1};
          sum += layer(batch, degrees, omnibal::mxfp8_bytes).flops();
          sum += prediction(batch).flops();
          sum += (omnibal::document_cost(layer) + omnibal::document_cost(prediction))(1000);
        }) == 0);
  CHECK(sum > 0);
}
