// SPDX-License-Identifier: Apache-2.0
// Figures of public configurations and papers.

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::recompute_choice;

/// 15 tiles, and 4096 tokens in four documents.
omnibal::micro_batch_work usual_workload() {
  return {.tiles = 15, .documents = omnibal::equal_sequences({.count = 4, .length = 1024})};
}

/// One row of a table: a figure in its unit, with as many digits as it is given.
void check_figure(std::int64_t value, double unit, double figure, double last_digit) {
  double const in_units = static_cast<double>(value) / unit;
  CHECK(in_units > figure - 0.5 * last_digit);
  CHECK(in_units < figure + 0.5 * last_digit);
}

}  // namespace

TEST_CASE("a layer of InternViT-6B costs what its configuration says") {
  auto const cost = omnibal::internvit_6b.layer(usual_workload());
  check_figure(cost.forward.flops, 1e12, 3.98, 0.01);
  check_figure(cost.parameters, 1e6, 122.9, 0.1);
  check_figure(cost[recompute_choice::none].kept_bytes, 1e6, 1968, 1);
  check_figure(cost[recompute_choice::selective].kept_bytes, 1e6, 1181, 1);
  check_figure(cost[recompute_choice::full].kept_bytes, 1e6, 98.4, 0.1);
  check_figure(cost.cut_bytes, 1e6, 98.4, 0.1);
}

TEST_CASE("the projector to InternLM2-20B costs what its configuration says") {
  auto const cost = omnibal::internvl_6_20b.connector(usual_workload());
  check_figure(cost.forward.flops, 1e12, 0.894, 0.001);
  check_figure(cost.parameters, 1e6, 116.4, 0.1);
  check_figure(cost[recompute_choice::none].kept_bytes, 1e6, 291, 1);
  check_figure(cost[recompute_choice::selective].kept_bytes, 1e6, 291, 1);
  check_figure(cost[recompute_choice::full].kept_bytes, 1e6, 98, 1);
  check_figure(cost.cut_bytes, 1e6, 47, 1);
}

TEST_CASE("a layer of InternLM2-20B costs what its configuration says") {
  auto const cost = omnibal::internlm2_20b.layer(usual_workload());
  check_figure(cost.forward.flops, 1e12, 3.247, 0.001);
  check_figure(cost.parameters, 1e6, 390.1, 0.1);
  check_figure(cost[recompute_choice::none].kept_bytes, 1e6, 721, 1);
  check_figure(cost[recompute_choice::selective].kept_bytes, 1e6, 487, 1);
  check_figure(cost[recompute_choice::full].kept_bytes, 1e6, 50.3, 0.1);
  check_figure(cost.cut_bytes, 1e6, 50.3, 0.1);
}

TEST_CASE("a layer of Yi-34B costs what its configuration says") {
  auto const cost = omnibal::yi_34b.layer(usual_workload());
  check_figure(cost.forward.flops, 1e12, 4.630, 0.001);
  check_figure(cost.parameters, 1e6, 557.9, 0.1);
  check_figure(cost[recompute_choice::none].kept_bytes, 1e6, 872, 1);
  check_figure(cost[recompute_choice::selective].kept_bytes, 1e6, 587, 1);
  check_figure(cost[recompute_choice::full].kept_bytes, 1e6, 58.7, 0.1);
  check_figure(cost.cut_bytes, 1e6, 58.7, 0.1);
}

TEST_CASE("the heads take 2ThV") {
  auto const documents = omnibal::equal_sequences({.count = 4, .length = 1024});
  CHECK(omnibal::yi_34b.output({.documents = documents}).forward.flops ==
        std::int64_t{2} * 4096 * 7168 * 64000);
}

TEST_CASE("models have as many parameters as published") {
  auto const total = [](auto const& model) { return omnibal::count_parameters(model).total; };
  CHECK(total(omnibal::llama3_8b) == 8'030'261'248);
  CHECK(total(omnibal::llama3_70b) == 70'553'706'496);
  CHECK(total(omnibal::yi_34b) == 34'388'917'248);
  CHECK(total(omnibal::internlm2_20b) == 19'861'260'288);
  check_figure(total(omnibal::internvit_6b), 1e9, 5.54, 0.01);
  check_figure(total(omnibal::internvl_6_20b), 1e9, 25.51, 0.01);
}

TEST_CASE("InternViT-6B with all of its layers, for tiles of 224 pixels, has 5903 million") {
  omnibal::vision_model whole = omnibal::internvit_6b;
  whole.layers = 48;
  whole.patches.image_size = 224;
  whole.patches.positions = 257;
  check_figure(omnibal::count_parameters(whole).total, 1e6, 5903, 1);
}

TEST_CASE("DeepSeek-V2 has 236 billion parameters, 21 billion of them active") {
  auto const counts = omnibal::count_parameters(omnibal::deepseek_v2);
  check_figure(counts.total, 1e9, 236, 1);
  check_figure(counts.active, 1e9, 21, 1);
  auto const dense = omnibal::count_parameters(omnibal::llama3_8b);
  CHECK(dense.active == dense.total);
}

TEST_CASE("other public models have as many parameters as their checkpoints") {
  using omnibal::language_model;
  using omnibal::transformer;
  auto const total = [](std::int64_t layers, transformer const& layer, std::int64_t vocabulary,
                        omnibal::head_weights weights = omnibal::head_weights::own) {
    return omnibal::count_parameters(language_model{
        .input = {.vocabulary = vocabulary, .hidden = layer.hidden},
        .layers = layers,
        .layer = layer,
        .output = {.vocabulary = vocabulary, .hidden = layer.hidden, .weights = weights}});
  };
  // Mixtral 8x7B: 46.7 billion, 12.9 billion active.
  auto const mixtral = total(32,
                             {.hidden = 4096,
                              .heads = 32,
                              .kv_heads = 8,
                              .experts = {.routed = 8, .active = 2, .mlp = 14336}},
                             32000);
  CHECK(mixtral.total == 46'702'792'704);
  check_figure(mixtral.active, 1e9, 12.9, 0.1);
  // Qwen2.5-7B: biases of queries, keys and values.
  CHECK(total(28, {.hidden = 3584, .heads = 28, .kv_heads = 4, .mlp = 18944, .qkv_bias = true},
              152064)
            .total == 7'615'616'512);
  // Qwen3-8B: norms of each head.
  CHECK(total(36,
              {.hidden = 4096,
               .heads = 32,
               .kv_heads = 8,
               .head_size = 128,
               .mlp = 12288,
               .head_norm = omnibal::query_key_norm::each_head},
              151936)
            .total == 8'190'735'360);
  // Llama-3.2-1B: the head has the weights of the embedding.
  CHECK(total(16, {.hidden = 2048, .heads = 32, .kv_heads = 8, .mlp = 8192}, 128256,
              omnibal::head_weights::tied)
            .total == 1'235'814'400);
}

TEST_CASE("DeepSeek-V2-Lite, without compressed queries, has 15.7 billion parameters") {
  omnibal::language_model lite = omnibal::deepseek_v2;
  lite.input.hidden = lite.output.hidden = 2048;
  lite.layers = 26;
  for (omnibal::transformer* const layer : {&lite.first_layer, &lite.layer}) {
    layer->hidden = 2048;
    layer->heads = 16;
    layer->latent.query_rank = 0;
  }
  lite.first_layer.mlp = 10944;
  lite.layer.experts = {.routed = 64, .active = 6, .shared = 2, .mlp = 1408};
  CHECK(omnibal::count_parameters(lite).total == 15'706'484'224);
}

TEST_CASE("CLIP ViT-L/14 for 336 pixels has 303.5 million parameters") {
  omnibal::vision_model const clip{
      .patches = {.hidden = 1024,
                  .image_size = 336,
                  .class_tokens = 1,
                  .positions = 577,
                  .has_bias = false,
                  .has_norm = true},
      .layers = 24,
      .layer = {.hidden = 1024, .heads = 16, .mlp = 4096, .image_size = 336, .class_tokens = 1},
      .has_last_norm = true};
  CHECK(omnibal::count_parameters(clip).total == 303'507'456);
}

TEST_CASE("GPT-2 has 124 million parameters") {
  omnibal::language_model const model{
      .input = {.vocabulary = 50257, .hidden = 768, .positions = 1024},
      .layers = 12,
      .layer = {.hidden = 768,
                .heads = 12,
                .mlp = 3072,
                .feed_forward = omnibal::mlp_kind::plain,
                .norm = omnibal::norm_kind::layer,
                .qkv_bias = true,
                .output_bias = true,
                .mlp_bias = true},
      .output = {.vocabulary = 50257,
                 .hidden = 768,
                 .norm = omnibal::norm_kind::layer,
                 .weights = omnibal::head_weights::tied}};
  CHECK(omnibal::count_parameters(model).total == 124'439'808);
}

TEST_CASE("a token takes two FLOPs forward and four backward for each active parameter") {
  auto const check = [](omnibal::language_model const& model) {
    auto const cost = omnibal::document_cost(model);
    auto const used =
        omnibal::count_parameters(model).active - model.input.vocabulary * model.input.hidden;
    auto const ratio = static_cast<double>(cost.linear) / (6.0 * static_cast<double>(used));
    // Norms have parameters and no products.
    CHECK(ratio <= 1.0);
    CHECK(ratio > 0.9999);
  };
  check(omnibal::llama3_8b);
  check(omnibal::llama3_70b);
  check(omnibal::yi_34b);
  check(omnibal::internlm2_20b);
  check(omnibal::deepseek_v2);
}

TEST_CASE("a transformer without mask and gate takes 24 s h^2 + 4 h s^2, as HBP counts") {
  omnibal::transformer const layer{.hidden = 64,
                                   .heads = 8,
                                   .mlp = 256,
                                   .feed_forward = omnibal::mlp_kind::plain,
                                   .mask = omnibal::attention_mask::full};
  std::vector<int> const lengths{7, 100, 1};
  auto const cost = layer({.documents = omnibal::sequences_of(lengths)});
  CHECK(cost.forward.flops == 24 * 108 * 64 * 64 + 4 * 64 * (49 + 10000 + 1));
}

TEST_CASE(
    "a vision-language model is a chain of patches, tower, projector, embedding and decoder") {
  auto const costs = omnibal::layer_costs(omnibal::internvl_6_20b, usual_workload());
  REQUIRE(costs.size() == 1 + 45 + 1 + 1 + 48 + 1);
  CHECK(costs[0] == omnibal::internvit_6b.patches(usual_workload()));
  CHECK(costs[1] == costs[45]);
  CHECK(costs[46].cut_bytes == 15 * 256 * 2 * 6144);
  CHECK(costs[47].forward.flops == 0);
  CHECK(costs[48] == omnibal::internlm2_20b.layer(usual_workload()));
  CHECK(costs[96].cut_bytes == 0);
  // Where the tower ends, all of its tokens are sent; the projector has merged them.
  CHECK(costs[45].cut_bytes == 15 * 1025 * 2 * 3200);
  auto const deep = omnibal::layer_costs(omnibal::deepseek_v2, usual_workload());
  REQUIRE(deep.size() == 1 + 1 + 59 + 1);
  CHECK(deep[1] == omnibal::deepseek_v2.first_layer(usual_workload()));
  CHECK(deep[2] == omnibal::deepseek_v2.layer(usual_workload()));
}
