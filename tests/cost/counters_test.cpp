// SPDX-License-Identifier: Apache-2.0
// Training FLOPs of public models, and how they differ from those of public counters. The page
// docs/evidence/flops.md has the ratios. A figure of a counter comes from its formula for one
// sequence; each test names all terms in which the formula differs.

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/prediction_layer.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::head_weights;
using omnibal::layer_run;
using omnibal::mixed_language_model;
using omnibal::span_kind;
using omnibal::transformer;

constexpr std::int64_t short_length = 4096;
constexpr std::int64_t long_length = 131'072;

mixed_language_model model_of(std::vector<layer_run> runs, std::int64_t vocabulary,
                              head_weights weights = head_weights::own) {
  std::int64_t const hidden = runs.front().layer.hidden;
  return {.input = {.vocabulary = vocabulary, .hidden = hidden},
          .runs = std::move(runs),
          .output = {.vocabulary = vocabulary, .hidden = hidden, .weights = weights}};
}

mixed_language_model qwen3_30b_a3b() {
  return model_of({{48,
                    {.hidden = 2048,
                     .heads = 32,
                     .kv_heads = 4,
                     .head_size = 128,
                     .head_norm = omnibal::query_key_norm::each_head,
                     .experts = {.routed = 128, .active = 8, .mlp = 768}}}},
                  151'936);
}

mixed_language_model gemma3_12b() {
  transformer whole{.hidden = 3840,
                    .heads = 16,
                    .kv_heads = 8,
                    .head_size = 256,
                    .mlp = 15'360,
                    .head_norm = omnibal::query_key_norm::each_head,
                    .placement = omnibal::norm_placement::both};
  transformer windowed = whole;
  windowed.span = {span_kind::window, 1024};
  std::vector<layer_run> runs;
  for (int i = 0; i != 8; ++i) {
    runs.push_back({5, windowed});
    runs.push_back({1, whole});
  }
  return model_of(runs, 262'208, head_weights::tied);
}

mixed_language_model gpt_oss_20b() {
  transformer whole{.hidden = 2880,
                    .heads = 64,
                    .kv_heads = 8,
                    .head_size = 64,
                    .experts = {.routed = 32, .active = 4, .mlp = 2880, .has_bias = true},
                    .qkv_bias = true,
                    .output_bias = true,
                    .sinks = true};
  transformer windowed = whole;
  windowed.span = {span_kind::window, 128};
  std::vector<layer_run> runs;
  for (int i = 0; i != 12; ++i) {
    runs.push_back({1, windowed});
    runs.push_back({1, whole});
  }
  return model_of(runs, 201'088);
}

transformer deepseek_v3_layer() {
  return {.hidden = 7168,
          .heads = 128,
          .head_size = 128,
          .latent = {.key_value_rank = 512, .query_rank = 1536, .rope_size = 64},
          .experts = {.routed = 256, .active = 8, .shared = 1, .mlp = 2048}};
}

mixed_language_model deepseek_v3(transformer const& sparse = deepseek_v3_layer()) {
  transformer dense = sparse;
  dense.mlp = 18'432;
  dense.experts = {};
  return model_of({{3, dense}, {58, sparse}}, 129'280);
}

mixed_language_model deepseek_v3_2() {
  transformer sparse = deepseek_v3_layer();
  sparse.span = {span_kind::window, 2048};
  sparse.indexer = {.heads = 64, .head_size = 128};
  return deepseek_v3(sparse);
}

/// Three layers with a gated delta net before each layer with attention.
mixed_language_model delta_model(transformer const& attention, omnibal::delta_net const& net,
                                 std::int64_t groups, std::int64_t vocabulary) {
  transformer linear = attention;
  linear.heads = 0;
  linear.delta = net;
  std::vector<layer_run> runs;
  for (std::int64_t i = 0; i != groups; ++i) {
    runs.push_back({3, linear});
    runs.push_back({1, attention});
  }
  return model_of(runs, vocabulary);
}

mixed_language_model qwen3_next_80b() {
  return delta_model(
      {.hidden = 2048,
       .heads = 16,
       .kv_heads = 2,
       .head_size = 256,
       .head_norm = omnibal::query_key_norm::each_head,
       .experts = {.routed = 512, .active = 10, .shared = 1, .mlp = 512, .shared_gate = true},
       .gate = omnibal::attention_gate::each_number},
      {.key_heads = 16, .value_heads = 32, .key_size = 128}, 12, 151'936);
}

mixed_language_model qwen3_5_27b() {
  return delta_model({.hidden = 5120,
                      .heads = 24,
                      .kv_heads = 4,
                      .head_size = 256,
                      .mlp = 17'408,
                      .head_norm = omnibal::query_key_norm::each_head,
                      .gate = omnibal::attention_gate::each_number},
                     {.key_heads = 16, .value_heads = 48, .key_size = 128}, 16, 248'320);
}

mixed_language_model kimi_linear_48b() {
  transformer latent{.hidden = 2304,
                     .heads = 32,
                     .head_size = 128,
                     .latent = {.key_value_rank = 512, .rope_size = 64},
                     .experts = {.routed = 256, .active = 8, .shared = 1, .mlp = 1024}};
  transformer linear = latent;
  linear.heads = 0;
  linear.delta = {.key_heads = 32, .key_size = 128, .decay = omnibal::delta_decay::each_number};
  transformer dense = linear;
  dense.experts = {};
  dense.mlp = 9216;
  std::vector<layer_run> runs{{1, dense}, {2, linear}, {1, latent}};
  for (int i = 0; i != 5; ++i) {
    runs.push_back({3, linear});
    runs.push_back({1, latent});
  }
  runs.push_back({2, linear});
  runs.push_back({1, latent});
  return model_of(runs, 163'840);
}

/// 23 layers of Mamba-2, 6 of attention and 23 of experts.
mixed_language_model nemotron3_nano_30b() {
  using omnibal::layer_parts;
  transformer const mamba{.hidden = 2688,
                          .parts = layer_parts::mixer,
                          .space = {.heads = 64, .head_size = 64, .state = 128, .groups = 8}};
  transformer const attention{
      .hidden = 2688, .heads = 32, .kv_heads = 2, .head_size = 128, .parts = layer_parts::mixer};
  transformer const experts{
      .hidden = 2688,
      .feed_forward = omnibal::mlp_kind::plain,
      .experts = {.routed = 128, .active = 6, .shared = 1, .mlp = 1856, .shared_mlp = 3712},
      .parts = layer_parts::feed_forward};
  return model_of({{23, mamba}, {6, attention}, {23, experts}}, 131'072);
}

template <class Model>
std::int64_t flops(Model const& model, std::int64_t length) {
  return omnibal::document_cost(model)(length);
}

/// A length and the FLOPs of one sequence by one or two public counters.
struct counted_once {
  std::int64_t length;
  std::int64_t flops;
};
struct counted {
  std::int64_t length;
  std::int64_t first;
  std::int64_t second;
};

/// Forward and backward FLOPs of a matrix.
constexpr std::int64_t product(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  return 6 * rows * inputs * outputs;
}

}  // namespace

TEST_CASE("the models of the page have their parameters") {
  // Counted from the classes of transformers 5.24.0, which have no prediction layers.
  auto const total = [](auto const& model) { return omnibal::count_parameters(model).total; };
  CHECK(total(qwen3_30b_a3b()) == 30'532'122'624);
  CHECK(total(gemma3_12b()) == 11'766'034'176);
  CHECK(total(gpt_oss_20b()) == 20'914'757'184);
  CHECK(total(deepseek_v3()) == 671'026'404'352);
  CHECK(total(qwen3_next_80b()) == 79'674'391'296);
  CHECK(total(kimi_linear_48b()) == 49'122'675'072);
  CHECK(total(nemotron3_nano_30b()) == 31'577'937'344);
  CHECK(total(qwen3_5_27b()) == 26'895'998'464);
}

TEST_CASE("FLOPs of Llama 3 8B are those of Megatron-Bridge") {
  auto const& model = omnibal::llama3_8b;
  CHECK(flops(model, short_length) == 197'628'625'158'144);
  CHECK(flops(model, long_length) == 19'412'702'422'106'112);
  // verl counts the lookup of the embedding as a product.
  for (auto const& [length, verl] : {counted_once{short_length, 210'539'296'849'920},
                                     counted_once{long_length, 19'825'843'916'242'944}}) {
    CHECK(verl - flops(model, length) == product(length, 4096, 128'256));
  }
  // torchtitan counts norms as products, and the pairs that the causal mask hides.
  for (std::int64_t const length : {short_length, long_length}) {
    std::int64_t const torchtitan =
        6 * length * (8'030'261'248 - 128'256 * 4096) + 6 * 32 * 32 * 256 * length * length;
    CHECK(torchtitan - flops(model, length) ==
          6 * length * 65 * 4096 + 32 * 6 * 4096 * length * length);
  }
}

TEST_CASE("FLOPs of Qwen3 30B-A3B differ by the router from Megatron-Bridge") {
  auto const model = qwen3_30b_a3b();
  CHECK(flops(model, short_length) == 94'542'967'603'200);
  CHECK(flops(model, long_length) == 22'658'254'588'870'656);
  for (auto const& [length, bridge, verl] :
       {counted{short_length, 94'233'729'957'888, 102'190'156'873'728},
        counted{long_length, 22'648'358'984'220'672, 22'902'964'645'527'552}}) {
    CHECK(flops(model, length) - bridge == 48 * product(length, 2048, 128));
    CHECK(verl - flops(model, length) == product(length, 2048, 151'936));
  }
}

TEST_CASE("FLOPs of windows are those of Megatron-Bridge, but for the diagonal") {
  auto const gemma = gemma3_12b();
  CHECK(flops(gemma, short_length) == 299'657'318'105'088);
  CHECK(flops(gemma, long_length) == 12'893'135'340'306'432);
  for (auto const& [length, bridge, verl] :
       {counted{short_length, 299'664'364'535'808, 321'309'993'074'688},
        counted{long_length, 12'893'329'620'467'712, 13'554'066'382'651'392}}) {
    // A window of Megatron-Bridge has half a pair for each token of the window more, and its
    // vocabulary is rounded up.
    CHECK(bridge - flops(gemma, length) == 40LL * 6 * 4096 * 1024 + product(length, 3840, 64));
    // verl halves the pairs of a window, as if each token saw half of it.
    std::int64_t const hidden = 2 * 1024 * length - 1024 * 1024 - 1024 * length;
    CHECK(verl - flops(gemma, length) == product(length, 3840, 262'208) - 40 * 6 * 4096 * hidden);
  }
  auto const oss = gpt_oss_20b();
  CHECK(flops(oss, short_length) == 93'901'339'754'496);
  CHECK(flops(oss, long_length) == 7'913'212'565'520'384);
  for (auto const& [length, bridge, verl] :
       {counted{short_length, 93'847'019'323'392, 107'984'336'191'488},
        counted{long_length, 7'911'473'141'514'240, 8'363'718'664'519'680}}) {
    CHECK(bridge - flops(oss, length) == 12LL * 6 * 4096 * 128 - 24 * product(length, 2880, 32));
    std::int64_t const hidden = 2 * 128 * length - 128 * 128 - 128 * length;
    CHECK(verl - flops(oss, length) == product(length, 2880, 201'088) - 12 * 6 * 4096 * hidden);
  }
}

TEST_CASE("FLOPs of DeepSeek-V3 differ by routers and norms from Megatron-Bridge") {
  auto model = deepseek_v3();
  CHECK(flops(model, short_length) == 1'025'842'738'102'272);
  CHECK(flops(model, long_length) == 157'577'556'906'737'664);
  for (auto const& [length, bridge, verl] :
       {counted{short_length, 1'023'230'173'249'536, 1'048'616'802'189'312},
        counted{long_length, 157'493'954'831'450'112, 158'306'326'957'522'944}}) {
    // Megatron-Bridge counts the norms of the latents as products, but not the routers.
    CHECK(bridge - flops(model, length) ==
          61 * product(length, 1, 1536 + 512) - 58 * product(length, 7168, 256));
    CHECK(verl - flops(model, length) == product(length, 7168, 129'280));
  }
  model.prediction_layers = 1;
  model.prediction = {.layer = deepseek_v3_layer(), .vocabulary = 129'280};
  CHECK(flops(model, short_length) == 1'067'588'209'606'656);
  CHECK(flops(model, long_length) == 160'958'503'622'541'312);
  for (auto const& [length, bridge] : {counted_once{short_length, 1'064'931'126'411'264},
                                       counted_once{long_length, 160'873'476'960'288'768}}) {
    CHECK(bridge - flops(model, length) == 62 * product(length, 1, 1536 + 512) +
                                               product(length, 1, 3 * 7168) -
                                               59 * product(length, 7168, 256));
  }
}

TEST_CASE("FLOPs of DeepSeek-V3.2 count the layer, not the absorbed form of its kernel") {
  auto const model = deepseek_v3_2();
  CHECK(flops(model, short_length) == 1'029'314'145'419'264);
  CHECK(flops(model, long_length) == 42'359'321'115'230'208);
  // Megatron-Bridge, with the sparse loss of the indexer.
  for (auto const& [length, bridge] : {counted_once{short_length, 1'309'883'301'888'000},
                                       counted_once{long_length, 54'325'398'056'730'624}}) {
    std::int64_t const window = 2 * 2048 * length - 2048 * 2048;
    std::int64_t const chosen = window + 2048;
    std::int64_t const absorbed = 3 * 128 * (chosen * (512 + 64 + 512) - window * (192 + 128));
    std::int64_t const targets = chosen * 128 * (512 + 64);
    // The indexer of Megatron-Bridge also adds up its heads, one number each.
    std::int64_t const scores = length * (length + 1) * 64 * 129 - length * length * 64 * 128 +
                                2 * chosen * 64 * 129 - 2 * window * 64 * 128;
    CHECK(bridge - flops(model, length) ==
          61 * (absorbed + targets + scores + product(length, 1, 1536 + 512)) -
              58 * product(length, 7168, 256));
  }
}

TEST_CASE("FLOPs of gated delta nets lie between those of verl and Megatron-Bridge") {
  auto const dense = qwen3_5_27b();
  CHECK(flops(dense, short_length) == 642'412'217'106'432);
  CHECK(flops(dense, long_length) == 30'373'630'760'189'952);
  for (auto const& [length, bridge, verl] :
       {counted{short_length, 643'339'930'042'368, 673'194'247'716'864},
        counted{long_length, 30'403'317'574'139'904, 31'358'655'739'723'776}}) {
    // Forward FLOPs of a state number: 6 here, 8 in Megatron-Bridge, 5 in verl.
    std::int64_t const states = 48 * length * 48 * 128 * 128;
    CHECK(bridge - flops(dense, length) == 3 * (8 - 6) * states);
    CHECK(verl - flops(dense, length) == product(length, 5120, 248'320) - 3 * (6 - 5) * states);
  }
  auto const sparse = qwen3_next_80b();
  CHECK(flops(sparse, short_length) == 93'917'244'555'264);
  CHECK(flops(sparse, long_length) == 7'913'571'732'160'512);
  for (auto const& [length, bridge] : {counted_once{short_length, 93'141'734'522'880},
                                       counted_once{long_length, 7'888'755'411'124'224}}) {
    std::int64_t const states = 36 * length * 32 * 128 * 128;
    CHECK(bridge - flops(sparse, length) ==
          3 * (8 - 6) * states - 48 * product(length, 2048, 512 + 1));
  }
}

TEST_CASE("FLOPs of Nemotron 3 Nano have the width of its heads") {
  auto const model = nemotron3_nano_30b();
  CHECK(flops(model, short_length) == 82'382'438'793'216);
  CHECK(flops(model, long_length) == 5'090'347'994'578'944);
  for (auto const& [length, bridge] : {counted_once{short_length, 88'777'175'334'912},
                                       counted_once{long_length, 5'294'979'563'913'216}}) {
    // Megatron-Bridge takes twice the width of the model, 5,376, instead of 64 heads of 64, counts 7
    // instead of 4 FLOPs for each number of the state, and no convolution.
    std::int64_t const wide = 2 * 2688;
    std::int64_t const width = 64 * 64;
    CHECK(bridge - flops(model, length) ==
          23 *
              (3 * product(length, 2688, wide - width) + 3 * length * 128 * (7 * wide - 4 * width) -
               product(length, 4, width + 2 * 8 * 128) - product(length, 2688, 128)));
  }
}

TEST_CASE("FLOPs of Kimi Linear have products, states and latent attention") {
  auto const model = kimi_linear_48b();
  for (std::int64_t const length : {short_length, long_length}) {
    // Queries, keys, values, output; decays and gates of rank 128; steps.
    std::int64_t const linear = 4 * 2304 * 4096 + 2 * (2304 * 128 + 128 * 4096) + 2304 * 32;
    std::int64_t const latent = 2304 * 32 * 192 + 2304 * 576 + 512 * 32 * 256 + 32 * 128 * 2304;
    std::int64_t const products = 20 * (linear + 4 * 3 * 4096) + 7 * latent + 3 * 2304 * 9216 +
                                  26 * (9 * 3 * 2304 * 1024 + 2304 * 256) + 2304 * 163'840;
    std::int64_t const states = 20 * 3 * 6 * 4096 * 128;
    CHECK(flops(model, length) ==
          length * (6 * products + states) + 7 * 3 * 32 * (192 + 128) * length * length);
  }
  CHECK(flops(model, short_length) == 80'732'366'045'184);
  CHECK(flops(model, long_length) == 6'162'346'061'856'768);
}
