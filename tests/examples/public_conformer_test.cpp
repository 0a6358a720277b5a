// SPDX-License-Identifier: Apache-2.0
// Conformers and Gemma 3n: small configurations of the classes of transformers 5.24.0, whose
// parameters were counted on the meta device.

#include "counted_family.hpp"
#include "input_error.hpp"
#include "model_file.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using nlohmann::json;

// clang-format off
std::vector<test::counted_family> const towers{
    {"phi4_multimodal_audio", R"({"model_type": "phi4_multimodal_audio", "hidden_size": 64,
       "intermediate_size": 96, "num_blocks": 2, "num_attention_heads": 4,
       "ext_pw_out_channel": 64, "depthwise_separable_out_channel": 64, "nemo_conv_channels": 16,
       "bias_max_distance": 20, "kernel_size": 3, "input_size": 20, "time_reduction": 4})",
     149'296},
    {"gemma3n_audio", R"({"model_type": "gemma3n_audio", "hidden_size": 64,
       "conf_num_attention_heads": 4, "conf_num_hidden_layers": 2, "conf_conv_kernel_size": 5,
       "input_feat_size": 32, "sscp_conv_channel_size": [16, 8], "vocab_size": 10})",
     203'848},
    {"gemma4_audio", R"({"model_type": "gemma4_audio", "hidden_size": 64,
       "num_attention_heads": 4, "num_hidden_layers": 2, "subsampling_conv_channels": [16, 8],
       "output_proj_dims": 48})",
     204'920},
    {"parakeet_encoder", R"({"model_type": "parakeet_encoder", "hidden_size": 64,
       "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 96,
       "subsampling_conv_channels": 16, "num_mel_bins": 32, "conv_kernel_size": 9})",
     124'480},
    {"granite_speech_encoder", R"({"model_type": "granite_speech_encoder", "hidden_dim": 64,
       "num_heads": 4, "num_layers": 2, "input_dim": 20, "output_dim": 12, "context_size": 20,
       "max_pos_emb": 32, "conv_kernel_size": 15})",
     225'708}};

std::vector<test::counted_family> const models{
    {"gemma3n_text", R"({"model_type": "gemma3n_text", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 6, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 200,
       "vocab_size_per_layer_input": 120, "hidden_size_per_layer_input": 8,
       "num_kv_shared_layers": 2, "laurel_rank": 4, "altup_num_inputs": 3, "sliding_window": 32,
       "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
       "full_attention", "sliding_attention", "full_attention"]})",
     228'032},
    {"gemma4", R"({"model_type": "gemma4", "vision_config": null, "audio_config":
       {"model_type": "gemma4_audio", "hidden_size": 64, "num_attention_heads": 4,
       "num_hidden_layers": 2, "subsampling_conv_channels": [16, 8], "output_proj_dims": 48},
       "text_config": {"model_type": "gemma4_text", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "head_dim": 16, "global_head_dim": 32, "vocab_size": 200,
       "vocab_size_per_layer_input": 120, "hidden_size_per_layer_input": 8}})",
     300'320},
    {"granite_speech", R"({"model_type": "granite_speech", "encoder_config": {"model_type":
       "granite_speech_encoder", "hidden_dim": 64, "num_heads": 4, "num_layers": 2,
       "input_dim": 20, "output_dim": 12, "context_size": 20, "max_pos_emb": 32,
       "conv_kernel_size": 15}, "projector_config": {"model_type": "blip_2_qformer",
       "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
       "intermediate_size": 48, "encoder_hidden_size": 64}, "text_config": {"model_type":
       "granite", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200}})",
     337'724}};

std::string const phi4 = R"({"model_type": "phi4_multimodal", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 200, "vision_config": {"model_type":
  "phi4_multimodal_vision", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
  "num_attention_heads": 4, "image_size": 56}})";
// clang-format on

model_description read(json const& value) { return model_of("config.json", "", value); }

std::string complaint(json const& value) {
  try {
    static_cast<void>(read(value));
  } catch (input_error const& error) {
    return error.what();
  }
  return "";
}

omnibal::layer_cost cost_of(std::size_t tower, omnibal::sequences const& clips) {
  return read(json::parse(towers[tower].text)).audio->tower.layer({.clips = clips});
}

std::int64_t kept(omnibal::layer_cost const& cost) {
  return cost[omnibal::recompute_choice::none].kept_bytes;
}

}  // namespace

TEST_CASE("Conformers have the exact totals of their classes") {
  test::check_families(towers);
  test::check_families(models);
  json whole = json::parse(phi4);
  whole["audio_config"] = json::parse(towers[0].text);
  auto const model = read(whole);
  CHECK(omnibal::count_parameters(model).total + model.vision->idle_parameters == 309'040);
}

TEST_CASE("a layer of Parakeet counts the products with distances") {
  // Widths 64 and 96, a kernel of 9 tokens, two clips of 10 and 20 tokens.
  std::int64_t const tokens = 30;
  std::int64_t const squares = 500;
  auto const cost = cost_of(3, {.count = 2, .tokens = tokens, .squares = squares});
  std::int64_t const feed_forward = 2 * 2 * 64 * 96;
  std::int64_t const convolution = 64 * 128 + 64 * 9 + 64 * 64;
  // Vectors of twice as many distances as tokens.
  std::int64_t const distances = 2 * 64 * 64;
  CHECK(cost.forward.flops == 2 * tokens * (feed_forward + 4 * 64 * 64 + convolution + distances) +
                                  4 * 64 * squares + 4 * 64 * squares);
  // Four norms and the last one; two hidden layers; queries, keys, values and outputs; the
  // convolution with its norm; vectors of the distances and their scores.
  std::int64_t const of_token = 4 * 4 * 64 + 2 * 64 + 2 * 4 * 96 + 8 * 64 + 12 * 64 + 4 * 64;
  CHECK(kept(cost) == tokens * of_token + 2 * 4 * squares);
}

TEST_CASE("a layer of Gemma 4 sees a fixed number of tokens") {
  // Chunks of 12 tokens see 12 tokens before them; 13 distances.
  std::int64_t const tokens = 48;
  auto const cost = cost_of(2, omnibal::equal_sequences({.count = 2, .length = 24}));
  std::int64_t const products = 2 * 2 * 64 * 256 + 4 * 64 * 64 + 64 * 128 + 64 * 5 + 64 * 64;
  CHECK(cost.forward.flops == 2 * tokens * products + 4 * 64 * tokens * 24 + 2 * 64 * tokens * 13);
  // Scores of the pairs and of the distances; norms behind three of the parts.
  std::int64_t const of_token =
      4 * 4 * 64 + 3 * 2 * 64 + 2 * 64 + 2 * 4 * 256 + 8 * 64 + 12 * 64 + 2 * 2 * 4 * 24;
  CHECK(kept(cost) == tokens * of_token);
}

TEST_CASE("a layer of Phi-4 multimodal has chunks and a product of channels") {
  std::int64_t const tokens = 1000;
  auto const cost = cost_of(0, omnibal::equal_sequences({.count = 1, .length = tokens}));
  std::int64_t const products = 2 * 3 * 64 * 96 + 4 * 64 * 64 + 64 * 128 + 64 * 3 + 2 * 64 * 64;
  CHECK(cost.forward.flops == 2 * tokens * products + 4 * 64 * tokens * 500);
  std::int64_t const of_token = 4 * 4 * 64 + 2 * 64 + 2 * 6 * 96 + 8 * 64 + 12 * 64;
  CHECK(kept(cost) == tokens * of_token);
}

TEST_CASE("a layer of Granite speech has a vector for each distance within a chunk") {
  std::int64_t const tokens = 60;
  auto const cost = cost_of(4, omnibal::equal_sequences({.count = 1, .length = tokens}));
  std::int64_t const products = 2 * 2 * 64 * 256 + 4 * 64 * 64 + 64 * 256 + 128 * 15 + 128 * 64;
  CHECK(cost.forward.flops == 2 * tokens * products + 6 * 64 * tokens * 20);
}

TEST_CASE("queries see the tokens of their window of a clip") {
  auto const resampler = *read(json::parse(models[2].text)).audio->resampler;
  std::vector<std::int64_t> flops;
  // Three windows of 15 tokens, the last one not full, with three queries each.
  omnibal::micro_batch_work const batch{.clips =
                                            omnibal::equal_sequences({.count = 1, .length = 40})};
  resampler.for_each_layer(
      [&](auto const& layer, std::int64_t) { flops.push_back(layer(batch).forward.flops); });
  std::int64_t const own = 2 * 9 * (4 * 32 * 32 + 2 * 32 * 48) + 4 * 32 * 3 * 9;
  std::int64_t const seen = 2 * 9 * 2 * 32 * 32 + 2 * 45 * 2 * 64 * 32 + 4 * 32 * 3 * 3 * 15;
  CHECK(flops == std::vector<std::int64_t>{own + seen, own, own + seen});
}

TEST_CASE("a layer of Gemma 3n counts its streams") {
  auto const language = *read(json::parse(models[0].text)).language;
  REQUIRE(language.runs.size() == 6);
  std::int64_t const tokens = 16;
  omnibal::micro_batch_work const batch{
      .documents = omnibal::equal_sequences({.count = 1, .length = tokens})};
  auto const cost = language.runs[1].layer(batch);
  omnibal::transformer single = language.runs[1].layer;
  single.streams = {};
  auto const usual = single(batch);
  // Three streams, a rank of 4: routers, predictions, corrections, products of streams.
  std::int64_t const streams = 2 * 64 * 3 + 27 + 9 + 64 * 9 + 2 * 64 * 4;
  CHECK(cost.forward.flops - usual.forward.flops == 2 * tokens * streams);
  CHECK(kept(cost) - kept(usual) == tokens * (2 * 3 * 64 + 10 * 64 + 2 * (4 + 64)));
  CHECK(cost.cut_bytes == 3 * usual.cut_bytes);
  // Two matrices make the other streams, and two join them.
  auto const input = language.input(batch);
  CHECK(input.forward.flops == 2 * tokens * 64 * (2 * 64 + 6 * 8));
  CHECK(input.cut_bytes == 3 * 2 * 64 * tokens);
  CHECK(language.output(batch).forward.flops == 2 * tokens * 64 * (200 + 2 * 64));
  // The last two layers have no keys and values of their own.
  CHECK(language.runs[3].layer(batch).parameters - language.runs[5].layer(batch).parameters ==
        2 * 64 * 32 + 16);
}

TEST_CASE("fields of Conformers that do not fit are refused by name") {
  auto const changed = [](std::size_t tower, char const* field, json const& value) {
    json result = json::parse(towers[tower].text);
    result[field] = value;
    return complaint(result);
  };
  CHECK(changed(0, "chunk_size", 12).find("\"chunk_size\"") != std::string::npos);
  CHECK(changed(0, "depthwise_multiplier", 2).find("only 1 is read") != std::string::npos);
  CHECK(changed(1, "sscp_conv_stride_size", {{2, 2}, {2, 1}}).find("squares of 2") !=
        std::string::npos);
  CHECK(changed(3, "subsampling_factor", 6).find("must be 2, 4 or 8") != std::string::npos);
  json const whole{{"model_type", "gemma3n"},
                   {"text_config", json::parse(models[0].text)},
                   {"audio_config", json::parse(towers[1].text)},
                   {"vision_config", {{"architecture", "mobilenetv5_300m_enc"}}}};
  CHECK(complaint(whole).find("\"vision_config\"") != std::string::npos);
  json without = whole;
  without["vision_config"] = nullptr;
  CHECK(read(without).audio->connectors.size() == 1);
}
