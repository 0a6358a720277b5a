// SPDX-License-Identifier: Apache-2.0
// Sums made by hand, with small numbers.

#include <omnibal/cost/audio_transformer.hpp>
#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/resampler.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::micro_batch_work;
using omnibal::recompute_choice;
using omnibal::transformer;

/// Ten tokens: documents of 4 and 6.
constexpr std::int64_t tokens = 10;
constexpr std::int64_t squares = 16 + 36;

micro_batch_work documents() {
  return {.documents = {.count = 2, .tokens = tokens, .squares = squares}};
}

std::int64_t kept(omnibal::layer_cost const& cost, recompute_choice choice) {
  return cost[choice].kept_bytes;
}

}  // namespace

TEST_CASE("grouped queries share keys and values") {
  transformer const layer{.hidden = 32, .heads = 8, .kv_heads = 2, .head_size = 6, .mlp = 20};
  auto const cost = layer(documents());
  std::int64_t const matrices = 2 * 32 * 48 + 2 * 32 * 12 + 3 * 32 * 20;
  CHECK(cost.parameters == matrices + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * matrices + 2 * 48 * squares);
  std::int64_t const everything = 8 * 32 + 4 * 48 + 4 * 12 + 6 * 20;
  CHECK(kept(cost, recompute_choice::none) == tokens * everything);
  CHECK(kept(cost, recompute_choice::selective) == tokens * (everything - 4 * 32 - 2 * 20));
  CHECK(kept(cost, recompute_choice::full) == tokens * 2 * 32);
  // Norms are read and written, and the activation reads two numbers for the one that it writes.
  CHECK(cost[recompute_choice::selective].extra ==
        omnibal::layer_work{.flops = 0, .moved_bytes = tokens * (2 * 4 * 32 + 3 * 2 * 20)});
}

TEST_CASE("the widest operation and what is made again are transient") {
  transformer const layer{.hidden = 32, .heads = 8, .kv_heads = 2, .head_size = 6, .mlp = 64};
  auto const cost = layer(documents());
  std::int64_t const widest = tokens * 6 * 64;
  CHECK(cost[recompute_choice::none].transient_bytes == widest);
  for (auto const choice : {recompute_choice::selective, recompute_choice::full}) {
    CHECK(cost[choice].transient_bytes ==
          widest + kept(cost, recompute_choice::none) - kept(cost, choice));
  }
  transformer const narrow{.hidden = 32, .heads = 8, .kv_heads = 2, .head_size = 6, .mlp = 1};
  CHECK(narrow(documents())[recompute_choice::none].transient_bytes ==
        tokens * 2 * (48 + 2 * 12 + 48));
}

TEST_CASE("biases and layer norms are parameters") {
  transformer const layer{.hidden = 32,
                          .heads = 8,
                          .kv_heads = 2,
                          .mlp = 20,
                          .feed_forward = omnibal::mlp_kind::plain,
                          .norm = omnibal::norm_kind::layer,
                          .qkv_bias = true,
                          .output_bias = true,
                          .mlp_bias = true};
  std::int64_t const matrices = 2 * 32 * 32 + 2 * 32 * 8 + 2 * 32 * 20;
  CHECK(layer(documents()).parameters == matrices + 4 * 32 + (32 + 2 * 8) + 32 + (20 + 32));
}

TEST_CASE("tensor-parallel ranks share matrices and their input biases, and each has the rest") {
  transformer const layer{.hidden = 32,
                          .heads = 8,
                          .kv_heads = 2,
                          .mlp = 20,
                          .qkv_bias = true,
                          .output_bias = true,
                          .mlp_bias = true};
  std::int64_t const matrices = 2 * 32 * 32 + 2 * 32 * 8 + 3 * 32 * 20;
  std::int64_t const shared_biases = 32 + 2 * 8 + 2 * 20;
  std::int64_t const whole = 32 + 32 + 2 * 32;
  CHECK(layer(documents()).parameters == matrices + shared_biases + whole);
  CHECK(layer(documents(), {.tensor = 2}).parameters == (matrices + shared_biases) / 2 + whole);
}

TEST_CASE("more tensor-parallel ranks than key-value heads have copies of them") {
  transformer const layer{.hidden = 32, .heads = 8, .kv_heads = 2, .head_size = 6, .mlp = 24};
  auto const one = layer(documents(), {.tensor = 8});
  // One head of queries, one of keys and values.
  std::int64_t const matrices = 2 * 32 * 6 + 2 * 32 * 6 + 3 * 32 * 3;
  CHECK(one.parameters == matrices + 2 * 32);
  CHECK(one.forward.flops == 2 * tokens * matrices + 2 * 6 * squares);
  CHECK(kept(one, recompute_choice::none) == tokens * (8 * 32 + 4 * 6 + 4 * 6 + 6 * 3));
}

TEST_CASE("norms of queries and keys have a weight for each number or one set for all heads") {
  transformer layer{.hidden = 32, .heads = 8, .kv_heads = 2, .mlp = 20};
  auto const plain = layer(documents());
  layer.head_norm = omnibal::query_key_norm::each_head;
  auto const each = layer(documents());
  layer.head_norm = omnibal::query_key_norm::whole_width;
  auto const whole = layer(documents());
  CHECK(each.parameters == plain.parameters + 2 * 4);
  CHECK(whole.parameters == plain.parameters + 32 + 8);
  CHECK(kept(each, recompute_choice::none) ==
        kept(plain, recompute_choice::none) + tokens * 2 * (32 + 8));
  CHECK(kept(each, recompute_choice::selective) == kept(plain, recompute_choice::selective));
}

TEST_CASE("latent attention compresses keys, values and queries") {
  transformer layer{
      .hidden = 32,
      .heads = 4,
      .head_size = 6,
      .mlp = 20,
      .latent = {.key_value_rank = 5, .query_rank = 7, .rope_size = 2, .value_size = 3}};
  auto const cost = layer(documents());
  std::int64_t const queries = 32 * 7 + 7 * 4 * (6 + 2);
  std::int64_t const others = 32 * (5 + 2) + 5 * 4 * (6 + 3) + 4 * 3 * 32 + 3 * 32 * 20;
  CHECK(cost.parameters == queries + others + 7 + 5 + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * (queries + others) + 4 * (6 + 2 + 3) * squares);
  std::int64_t const everything =
      8 * 32 + 4 * (7 + 5) + 2 * (4 * 8 + 4 * 8 + 4 * 3) + 2 * 4 * 3 + 6 * 20;
  CHECK(kept(cost, recompute_choice::none) == tokens * everything);
  CHECK(kept(cost, recompute_choice::selective) ==
        tokens * (everything - 4 * 32 - 2 * (7 + 5) - 2 * 20));

  layer.latent.query_rank = 0;
  CHECK(layer(documents()).parameters == 32 * 4 * (6 + 2) + others + 5 + 2 * 32);
  layer.latent.value_size = 0;
  CHECK(layer(documents()).forward.flops - layer({}).forward.flops ==
        2 * tokens * (layer(documents()).parameters - 5 - 2 * 32) + 4 * (6 + 2 + 6) * squares);
}

TEST_CASE("a mixture computes with active experts and has all of them") {
  transformer const layer{
      .hidden = 32, .heads = 8, .experts = {.routed = 16, .active = 3, .shared = 2, .mlp = 10}};
  auto const cost = layer(documents());
  std::int64_t const attention = 4 * 32 * 32;
  std::int64_t const router = 32 * 16;
  std::int64_t const expert = 3 * 32 * 10;
  CHECK(cost.parameters == attention + router + 18 * expert + 2 * 32);
  CHECK(cost.active_parameters == attention + router + 5 * expert + 2 * 32);
  CHECK(cost.forward.flops == 2 * tokens * (attention + router + 5 * expert) + 2 * 32 * squares);
  std::int64_t const sent_and_returned = 2 * 3 * 2 * 32;
  CHECK(kept(cost, recompute_choice::none) ==
        tokens * (8 * 32 + 8 * 32 + 4 * 16 + sent_and_returned + 5 * 6 * 10));
}

TEST_CASE("a dense part beside the experts adds up") {
  transformer layer{.hidden = 32,
                    .heads = 8,
                    .mlp = 20,
                    .experts = {.routed = 16, .active = 3, .shared = 0, .mlp = 10}};
  auto const both = layer(documents());
  layer.mlp = 0;
  auto const mixed = layer(documents());
  CHECK(both.parameters - mixed.parameters == 3 * 32 * 20);
  CHECK(kept(both, recompute_choice::none) - kept(mixed, recompute_choice::none) ==
        tokens * 6 * 20);
}

TEST_CASE("cross-attention takes its keys from the context") {
  micro_batch_work batch = documents();
  batch.context = {.tokens = 7, .pairs = 33};
  transformer layer{.hidden = 32, .heads = 8, .kv_heads = 2, .mlp = 20};
  auto const without = layer(batch);
  CHECK(without == layer(documents()));
  layer.cross.context_width = 12;
  auto const after = layer(batch);
  std::int64_t const by_token = 2 * 32 * 32;
  std::int64_t const by_context = 2 * 12 * 8;
  CHECK(after.parameters - without.parameters == by_token + by_context + 32);
  CHECK(after.forward.flops - without.forward.flops ==
        2 * tokens * by_token + 2 * 7 * by_context + 4 * 32 * 33);
  CHECK(kept(after, recompute_choice::none) - kept(without, recompute_choice::none) ==
        tokens * (4 * 32 + 4 * 32) + 7 * 4 * 8);

  layer.cross.placement = omnibal::cross_placement::instead_self;
  auto const instead = layer(batch);
  CHECK(instead.parameters == by_token + by_context + 3 * 32 * 20 + 2 * 32);
  CHECK(instead.forward.flops ==
        2 * tokens * (by_token + 3 * 32 * 20) + 2 * 7 * by_context + 4 * 32 * 33);
}

TEST_CASE("unfused attention computes what a causal mask hides") {
  transformer layer{.hidden = 32, .heads = 8, .mlp = 20};
  auto const causal = layer(documents());
  layer.mask = omnibal::attention_mask::full;
  auto const full = layer(documents());
  layer.mask = omnibal::attention_mask::causal;
  layer.kernel = omnibal::attention_kernel::unfused;
  auto const unfused = layer(documents());
  CHECK(full.forward.flops - causal.forward.flops == 2 * 32 * squares);
  CHECK(unfused.forward.flops == full.forward.flops);
  CHECK(kept(unfused, recompute_choice::none) ==
        kept(full, recompute_choice::none) + 2 * 8 * squares);
}

TEST_CASE("frozen layers pass gradients on, or do nothing backward") {
  transformer layer{.hidden = 32, .heads = 8, .mlp = 20};
  auto const trained = layer(documents());
  std::int64_t const scores = 2 * 32 * squares;
  std::int64_t const matrices = trained.forward.flops - scores;
  CHECK(trained.backward.flops == 2 * (matrices + scores));
  CHECK(trained.parameter_bytes == 2 * trained.parameters);
  CHECK(trained.gradient_bytes == 4 * trained.parameters);
  CHECK(trained.optimizer_bytes == 12 * trained.parameters);

  layer.training = omnibal::training_mode::input_gradients;
  auto const passing = layer(documents());
  CHECK(passing.forward == trained.forward);
  CHECK(passing.backward.flops == matrices + 2 * scores);
  CHECK(passing.state_bytes() == 2 * trained.parameters);
  // The inputs of matrices are for the gradients of weights, and nothing else.
  CHECK(kept(passing, recompute_choice::none) ==
        kept(trained, recompute_choice::none) - tokens * (4 * 32 + 2 * 20));
  CHECK(passing[recompute_choice::selective].kept_bytes ==
        passing[recompute_choice::none].kept_bytes);
  CHECK(passing[recompute_choice::selective].extra == omnibal::layer_work{});
  CHECK(kept(passing, recompute_choice::full) == tokens * 2 * 32);

  layer.training = omnibal::training_mode::forward_only;
  auto const frozen = layer(documents());
  CHECK(frozen.forward == trained.forward);
  CHECK(frozen.backward == omnibal::layer_work{});
  CHECK(frozen.state_bytes() == 2 * trained.parameters);
  for (auto const& choice : frozen.choices) {
    CHECK(choice.kept_bytes == 0);
    CHECK(choice.extra == omnibal::layer_work{});
    CHECK(choice.transient_bytes == tokens * 2 * 4 * 32);
  }
  CHECK(frozen.cut_bytes == trained.cut_bytes);
}

TEST_CASE("a vision tower adds tiles and images of their own size") {
  omnibal::vision_transformer const layer{
      .hidden = 32, .heads = 8, .mlp = 20, .image_size = 28, .patch_size = 7, .class_tokens = 1};
  CHECK(layer.tile_tokens() == 17);
  auto const tiles = layer({.tiles = 3});
  CHECK(tiles == layer({.images = omnibal::equal_sequences({.count = 3, .length = 17})}));
  auto const images = layer({.images = {.count = 2, .tokens = tokens, .squares = squares}});
  auto const both =
      layer({.tiles = 3, .images = {.count = 2, .tokens = tokens, .squares = squares}});
  CHECK(both.forward.flops == tiles.forward.flops + images.forward.flops);
  CHECK(both.cut_bytes == (3 * 17 + tokens) * 2 * 32);
  CHECK(layer(documents()).forward.flops == 0);
}

TEST_CASE("an audio tower works on clips, without a mask") {
  omnibal::audio_transformer const layer{.hidden = 32, .heads = 8, .mlp = 20};
  auto const cost = layer({.clips = {.count = 2, .tokens = tokens, .squares = squares}});
  std::int64_t const matrices = 4 * 32 * 32 + 2 * 32 * 20;
  CHECK(cost.parameters == matrices + 4 * 32 + 4 * 32 + 20 + 32);
  CHECK(cost.forward.flops == 2 * tokens * matrices + 4 * 32 * squares);
  CHECK(layer(documents()).forward.flops == 0);
}

TEST_CASE("a projector merges patches") {
  omnibal::projector layer{
      .input = 24, .hidden = 10, .output = 8, .tile_tokens = 4, .patches_per_token = 4};
  // Two tiles of four tokens, and ten patches in three tokens.
  micro_batch_work const batch{.tiles = 2, .images = {.count = 1, .tokens = 10, .squares = 100}};
  auto const cost = layer(batch);
  CHECK(cost.parameters == 24 * 10 + 10 + 10 * 8 + 8);
  CHECK(cost.forward.flops == 2 * 11 * (24 * 10 + 10 * 8));
  CHECK(kept(cost, recompute_choice::none) == 11 * (2 * 24 + 4 * 10));
  CHECK(kept(cost, recompute_choice::selective) == 11 * (2 * 24 + 4 * 10));
  CHECK(kept(cost, recompute_choice::full) == 11 * 2 * 24);
  CHECK(cost.cut_bytes == 11 * 2 * 8);
  layer.has_norm = true;
  CHECK(layer(batch).parameters == cost.parameters + 2 * 24);
  CHECK(kept(layer(batch), recompute_choice::none) == 11 * (4 * 24 + 4 * 10));
  layer.hidden = 0;
  CHECK(layer(batch).parameters == 24 * 8 + 8 + 2 * 24);
  CHECK(layer(batch).forward.flops == 2 * 11 * 24 * 8);
}

TEST_CASE("a resampler makes a fixed number of tokens of every image") {
  omnibal::resampler layer{
      .input = 24, .hidden = 32, .heads = 4, .queries = 5, .tile_patches = 6, .has_bias = false};
  micro_batch_work const batch{.tiles = 2, .images = {.count = 1, .tokens = 10, .squares = 100}};
  auto const cost = layer(batch);
  std::int64_t const patches = 22;
  std::int64_t const queries = 15;
  CHECK(cost.parameters == 24 * 32 + 4 * 32 * 32 + 5 * 32 + 4 * 32);
  CHECK(cost.forward.flops ==
        2 * patches * (24 * 32 + 2 * 32 * 32) + 2 * queries * 2 * 32 * 32 + 4 * 32 * 5 * patches);
  CHECK(kept(cost, recompute_choice::none) ==
        patches * (2 * 24 + 4 * 32 + 4 * 32) + queries * (4 * 32 + 4 * 32));
  CHECK(kept(cost, recompute_choice::full) == patches * 2 * 24);
  CHECK(cost.cut_bytes == queries * 2 * 32);
  layer.mlp = 9;
  layer.output = 11;
  auto const more = layer(batch);
  CHECK(more.parameters - cost.parameters == 2 * 32 + 2 * 32 * 9 + 32 * 11);
  CHECK(more.forward.flops - cost.forward.flops == 2 * queries * (2 * 32 * 9 + 32 * 11));
  CHECK(more.cut_bytes == queries * 2 * 11);
}

TEST_CASE("the resampler of Qwen-VL has 0.08 billion parameters") {
  omnibal::resampler const layer{
      .input = 1664, .hidden = 4096, .heads = 32, .queries = 256, .tile_patches = 1024};
  auto const parameters = layer({}).parameters;
  CHECK(parameters > 75'000'000);
  CHECK(parameters < 85'000'000);
}

TEST_CASE("embeddings look up, heads compare with all words") {
  omnibal::embedding const words{.vocabulary = 101, .hidden = 32, .positions = 50};
  auto const looked_up = words(documents());
  CHECK(looked_up.parameters == 151 * 32);
  CHECK(looked_up.flops() == 0);
  CHECK(looked_up.forward.moved_bytes == tokens * 2 * 2 * 32);
  CHECK(kept(looked_up, recompute_choice::none) == tokens * 8);
  CHECK(looked_up.cut_bytes == tokens * 2 * 32);
  // A vocabulary is padded to a multiple of the ranks.
  CHECK(words(documents(), {.tensor = 2}).parameters == 51 * 32 + 50 * 32);

  omnibal::language_head output{.vocabulary = 101, .hidden = 32};
  auto const compared = output(documents());
  CHECK(compared.parameters == 101 * 32 + 32);
  CHECK(compared.forward.flops == 2 * tokens * 32 * 101);
  CHECK(compared.cut_bytes == 0);
  CHECK(output(documents(), {.tensor = 2}).forward.flops == 2 * tokens * 32 * 51);
  output.weights = omnibal::head_weights::tied;
  CHECK(output(documents()).parameters == 32);
  CHECK(output(documents()).forward == compared.forward);
}

TEST_CASE("norms behind the parts of a layer keep their inputs") {
  std::int64_t const h = 32;
  transformer layer{.hidden = h, .heads = 8, .kv_heads = 2, .mlp = 20};
  auto const before = layer(documents());
  layer.placement = omnibal::norm_placement::both;
  auto const both = layer(documents());
  CHECK(both.parameters == before.parameters + 2 * h);
  for (recompute_choice const choice : {recompute_choice::none, recompute_choice::selective}) {
    CHECK(kept(both, choice) == kept(before, choice) + 2 * tokens * 2 * h);
  }
  CHECK(both.forward.flops == before.forward.flops);
  CHECK(both.forward.moved_bytes == before.forward.moved_bytes + 2 * 2 * tokens * 2 * h);
  // The inputs of the parts are kept in place of the outputs of norms, which could be made again.
  layer.placement = omnibal::norm_placement::after;
  auto const after = layer(documents());
  CHECK(after.parameters == before.parameters);
  CHECK(kept(after, recompute_choice::none) == kept(before, recompute_choice::none));
  CHECK(kept(after, recompute_choice::selective) ==
        kept(before, recompute_choice::selective) + 2 * tokens * 2 * h);
  layer.norm = omnibal::norm_kind::layer;
  CHECK(layer(documents()).parameters == before.parameters + 2 * h);
}

TEST_CASE("kept bytes of a token in models with more norms are those of their modules") {
  auto const bytes = [](transformer const& layer) {
    return kept(layer({.documents = {.count = 1, .tokens = 1, .squares = 1}}),
                recompute_choice::none);
  };
  using omnibal::query_key_norm;
  // Gemma 3 4B, without its windows.
  CHECK(bytes({.hidden = 2560,
               .heads = 8,
               .kv_heads = 4,
               .head_size = 256,
               .mlp = 10240,
               .head_norm = query_key_norm::each_head,
               .placement = omnibal::norm_placement::both}) == 110'592);
  // GLM-4.5 and MiniMax-M2.
  CHECK(bytes({.hidden = 5120,
               .heads = 96,
               .kv_heads = 8,
               .head_size = 128,
               .head_norm = query_key_norm::each_head,
               .experts = {.routed = 160, .active = 8, .shared = 1, .mlp = 1536}}) == 368'256);
  CHECK(bytes({.hidden = 3072,
               .heads = 48,
               .kv_heads = 8,
               .head_size = 128,
               .head_norm = query_key_norm::whole_width,
               .experts = {.routed = 256, .active = 8, .mlp = 1536}}) == 240'640);
}

TEST_CASE("a gate of shared experts has a number for each of its inputs") {
  transformer layer{
      .hidden = 32, .heads = 8, .experts = {.routed = 4, .active = 2, .shared = 3, .mlp = 8}};
  auto const plain = layer(documents());
  layer.experts.shared_gate = true;
  auto const gated = layer(documents());
  CHECK(gated.parameters == plain.parameters + 32);
  CHECK(gated.forward.flops == plain.forward.flops + 2 * tokens * 32);
  CHECK(kept(gated, recompute_choice::none) ==
        kept(plain, recompute_choice::none) + tokens * 2 * 32);
}

TEST_CASE("the norm of a projector may look at one patch at a time") {
  omnibal::projector connector{
      .input = 128, .hidden = 64, .output = 32, .tile_tokens = 4, .has_norm = true};
  auto const whole = connector({.tiles = 3});
  connector.norm_width = 32;
  auto patchwise = connector({.tiles = 3});
  CHECK(whole.parameters - patchwise.parameters == 2 * (128 - 32));
  CHECK(patchwise.choices == whole.choices);
  CHECK(patchwise.forward == whole.forward);
}

TEST_CASE("a tied head has a copy of the matrix in a pipeline of several stages") {
  omnibal::language_head tied{
      .vocabulary = 101, .hidden = 32, .weights = omnibal::head_weights::tied};
  omnibal::language_head own = tied;
  own.weights = omnibal::head_weights::own;
  for (omnibal::parallel_degrees degrees :
       {omnibal::parallel_degrees{}, omnibal::parallel_degrees{.tensor = 2, .data = 8}}) {
    omnibal::layer_cost const shared = tied(documents(), degrees);
    CHECK(shared.parameters == 32);
    CHECK(own(documents(), degrees).parameters > shared.parameters);
    degrees.pipeline = 2;
    CHECK(tied(documents(), degrees) == own(documents(), degrees));
    degrees.pipeline = 16;
    CHECK(tied(documents(), degrees) == own(documents(), degrees));
  }
  // The parameters of a model have the matrix once.
  omnibal::language_model model = omnibal::llama3_8b;
  std::int64_t const matrix = std::int64_t{128256} * 4096;
  std::int64_t const both = omnibal::count_parameters(model).total;
  model.output.weights = omnibal::head_weights::tied;
  CHECK(omnibal::count_parameters(model).total == both - matrix);
  auto const last = omnibal::layer_costs(model, {}, {.pipeline = 4}).back();
  CHECK(last.state_bytes() == 18 * (matrix + 4096));
}

TEST_CASE("a tied head gathers the matrix of the embedding where ranks share it out") {
  omnibal::language_head head{.vocabulary = 101, .hidden = 32};
  omnibal::parallel_degrees const sharded{.data = 8,
                                          .sharding = omnibal::sharded_state::parameters};
  auto const transient = [&] { return head(documents(), sharded).choices[0].transient_bytes; };
  std::int64_t const own = transient();
  head.weights = omnibal::head_weights::tied;
  CHECK(transient() == own);
}

TEST_CASE("Llama 3 70B over 64 ranks needs room for its gathered head") {
  omnibal::parallel_degrees const degrees{.data = 64,
                                          .sharding = omnibal::sharded_state::parameters};
  auto const head = omnibal::layer_costs(omnibal::llama3_70b, {}, degrees).back();
  std::int64_t const parameters = std::int64_t{128256} * 8192 + 8192;
  CHECK(head[recompute_choice::none].transient_bytes == (2 + 4) * parameters);
}

TEST_CASE("patches are projected, class tokens are not") {
  omnibal::patch_embedding const layer{
      .hidden = 32, .image_size = 28, .patch_size = 7, .class_tokens = 1, .positions = 17};
  auto const cost = layer({.tiles = 3});
  CHECK(cost.parameters == (3 * 49 + 1 + 1 + 17) * 32);
  CHECK(cost.forward.flops == 2 * 3 * 16 * 3 * 49 * 32);
  CHECK(kept(cost, recompute_choice::none) == 3 * 16 * 3 * 49 * 2);
  CHECK(cost.cut_bytes == 3 * 17 * 2 * 32);
}

TEST_CASE("norms around a tower keep their inputs and have no products") {
  omnibal::patch_embedding layer{
      .hidden = 32, .image_size = 28, .patch_size = 7, .class_tokens = 1, .positions = 17};
  auto const bare = layer({.tiles = 3});
  layer.has_norm = true;
  auto const normed = layer({.tiles = 3});
  omnibal::tower_norm const last{
      .hidden = 32, .image_size = 28, .patch_size = 7, .class_tokens = 1};
  auto const behind = last({.tiles = 3});
  std::int64_t const bytes = 3 * 17 * 32 * 2;
  CHECK(behind.parameters == 2 * 32);
  CHECK(normed.parameters - bare.parameters == behind.parameters);
  CHECK(behind.forward.flops == 0);
  CHECK(normed.forward.flops == bare.forward.flops);
  for (auto const choice : {recompute_choice::none, recompute_choice::selective}) {
    CHECK(kept(behind, choice) == bytes);
    CHECK(kept(normed, choice) - kept(bare, choice) == bytes);
  }
  CHECK(behind.cut_bytes == bytes);
  CHECK(behind.forward.moved_bytes == 2 * bytes);
  auto const split = last({.tiles = 4}, {.tensor = 4, .norms = omnibal::norm_regions::split});
  CHECK(kept(split, recompute_choice::none) == 17 * 32 * 2);
  CHECK(split.parameters == 2 * 32);
}

TEST_CASE("keys without biases leave those of queries and values") {
  omnibal::vision_transformer layer{.hidden = 32, .heads = 8, .mlp = 20, .image_size = 28};
  auto const all = layer({.tiles = 3}, {.tensor = 2});
  layer.key_bias = false;
  auto const some = layer({.tiles = 3}, {.tensor = 2});
  CHECK(all.parameters - some.parameters == 32 / 2);
  CHECK(all.forward.flops == some.forward.flops);
  layer.qkv_bias = false;
  CHECK(some.parameters - layer({.tiles = 3}, {.tensor = 2}).parameters == 2 * 32 / 2);
}

TEST_CASE("bytes of numbers are the trainer's") {
  transformer const layer{.hidden = 32, .heads = 8, .mlp = 20};
  auto const usual = layer(documents());
  auto const wide =
      layer(documents(), {}, {.activation = 4, .parameter = 4, .gradient = 8, .optimizer = 0});
  CHECK(kept(wide, recompute_choice::none) == 2 * kept(usual, recompute_choice::none));
  CHECK(wide.parameter_bytes == 4 * usual.parameters);
  CHECK(wide.gradient_bytes == 8 * usual.parameters);
  CHECK(wide.optimizer_bytes == 0);
  CHECK(wide.cut_bytes == 2 * usual.cut_bytes);
}
