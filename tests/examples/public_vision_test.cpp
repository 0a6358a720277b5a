// SPDX-License-Identifier: Apache-2.0 Llama 3.2 Vision and towers beside texts: small
// configurations of the classes of transformers 5.24.0, whose parameters were counted on the meta
// device.

#include "counted_family.hpp"
#include "input_error.hpp"
#include "model_file.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using nlohmann::json;

json const tower = json::parse(R"({"model_type": "mllama_vision_model", "hidden_size": 32,
  "num_hidden_layers": 3, "num_global_layers": 2, "attention_heads": 4, "intermediate_size": 48,
  "image_size": 56, "patch_size": 14, "max_num_tiles": 4, "intermediate_layers_indices": [0, 2],
  "vision_output_dim": 96})");
json const text = json::parse(R"({"model_type": "mllama_text_model", "hidden_size": 64,
  "intermediate_size": 96, "num_hidden_layers": 5, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 200, "cross_attention_layers": [1, 3]})");
json const whole{{"model_type", "mllama"}, {"vision_config", tower}, {"text_config", text}};

// clang-format off
std::vector<test::counted_family> const pairs{
    {"vipllava", R"({"model_type": "vipllava", "vision_feature_layer": [-2, -3, 1], "vision_config":
       {"model_type": "clip_vision_model", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14},
       "text_config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": false}})",
     139'952},
    {"aya_vision", R"({"model_type": "aya_vision", "vision_config": {"model_type": "siglip_vision_model",
       "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
       "intermediate_size": 48, "image_size": 56, "patch_size": 14, "vision_use_head": false},
       "text_config": {"model_type": "cohere2", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": true, "pad_token_id": 0, "bos_token_id": 1,
       "eos_token_id": 2}})",
     126'992},
    {"cohere2_vision", R"({"model_type": "cohere2_vision", "alignment_intermediate_size": 160, "vision_config":
       {"model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14,
       "vision_use_head": false}, "text_config": {"model_type": "cohere2", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": true,
       "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}})",
     142'192},
    {"lighton_ocr", R"({"model_type": "lighton_ocr", "vision_config": {"model_type": "pixtral", "hidden_size":
       32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
       "image_size": 56, "patch_size": 14}, "text_config": {"model_type": "qwen3",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": true, "head_dim": 16}})",
     121'280},
    {"audioflamingo3", R"({"model_type": "audioflamingo3", "audio_config": {"model_type":
       "audioflamingo3_encoder", "num_mel_bins": 16, "encoder_layers": 2,
       "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "d_model": 32,
       "max_source_positions": 20}, "text_config": {"model_type": "qwen2", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": false}})",
     114'208},
    {"parakeet_ctc", R"({"model_type": "parakeet_ctc", "vocab_size": 30, "pad_token_id": 0, "encoder_config":
       {"model_type": "parakeet_encoder", "hidden_size": 64, "num_attention_heads": 4,
       "num_hidden_layers": 2, "intermediate_size": 96, "subsampling_conv_channels": 16,
       "num_mel_bins": 32}})",
     126'430}};
// clang-format on

model_description read(json const& value) { return model_of("config.json", "", value); }

std::string complaint(json value, std::string const& field, json const& wrong) {
  value[json::json_pointer(field)] = wrong;
  try {
    static_cast<void>(read(value));
  } catch (input_error const& error) {
    return error.what();
  }
  return "";
}

/// 6 tiles, which are images of 4 and of 2 tiles, and a document of 10 tokens.
omnibal::micro_batch_work const batch{
    .tiles = 6, .documents = omnibal::equal_sequences({.count = 1, .length = 10})};
constexpr std::int64_t tile_tokens = 17;

}  // namespace

TEST_CASE("Llama 3.2 Vision has the totals of its classes") {
  CHECK(omnibal::count_parameters(read(tower).vision->tower).total == 78'295);
  CHECK(omnibal::count_parameters(*read(text).language).total == 180'484);
  CHECK(omnibal::count_parameters(read(whole)).total == 264'987);
}

TEST_CASE("further pairs have the totals of their classes with the parts that never run") {
  for (test::counted_family const& one : pairs) {
    INFO(one.name);
    auto const model = read(json::parse(one.text));
    std::int64_t const idle = model.vision ? model.vision->idle_parameters : 0;
    CHECK(omnibal::count_parameters(model).total + idle == one.total);
    auto const written = model_json(model);
    CHECK(model_json(read(json::parse(written.dump()))) == written);
  }
}

TEST_CASE("all tiles of an image attend to one another") {
  auto const part = *read(whole).vision;
  REQUIRE(part.tower.runs.size() == 2);
  CHECK(part.tower.runs[1].count == 2);
  std::int64_t const squares = 68 * 68 + 34 * 34;
  std::int64_t const products = 2 * (6 * tile_tokens) * (4 * 32 * 32 + 2 * 32 * 48);
  for (omnibal::vision_run const& run : part.tower.runs) {
    CHECK(run.layer(batch).forward.flops == products + 4 * 32 * squares);
  }
  omnibal::vision_transformer apart = part.tower.layer();
  apart.tiles_of_image = 1;
  CHECK(apart(batch).forward.flops == products + 4 * 32 * 6 * tile_tokens * tile_tokens);
  // Class tokens are among the tokens to which the language model attends.
  CHECK(part.connector.tile_tokens == tile_tokens);
  CHECK(part.connector.input == 96);
}

TEST_CASE("a layer of cross-attention sees the tiles of one image") {
  auto const model = read(whole);
  CHECK(model.document_tokens_of_tile() == 0);
  auto const kinds = layer_kinds(model);
  std::vector<std::int64_t> crossed;
  for (std::size_t i = 0; i != kinds.size(); ++i) {
    if (kinds[i] == "cross-attention layer") crossed.push_back(static_cast<std::int64_t>(i));
  }
  // Patch embedding, 5 layers, norm, projector and embedding stand before the first layer.
  CHECK(crossed == std::vector<std::int64_t>{10, 12});
  auto const costs = omnibal::layer_costs(model, batch);
  std::int64_t const seen = 4 * tile_tokens;
  std::int64_t const context = 6 * tile_tokens;
  CHECK(costs[10].forward.flops ==
        2 * 10 * (2 * 64 * 64 + 3 * 64 * 96) + 2 * context * 2 * 64 * 32 + 4 * 10 * seen * 64);
  // Norms, queries and outputs, norms of queries, MLP; keys and values, and their norms.
  CHECK(costs[10][omnibal::recompute_choice::none].kept_bytes ==
        10 * (8 * 64 + 4 * 64 + 2 * 64 + 6 * 96) + context * (4 * 32 + 2 * 32));
  // A cut also sends the tokens of all tiles to the layers that attend to them.
  CHECK(costs[11].cut_bytes == 2 * 10 * 64 + 2 * context * 64);
  CHECK(costs[12].cut_bytes == 2 * 10 * 64);
}

TEST_CASE("a model file repeats layers that attend to tiles") {
  auto const model = read(whole);
  auto const again = read(json::parse(model_json(model).dump()));
  CHECK(omnibal::layer_costs(again, batch) == omnibal::layer_costs(model, batch));
}

TEST_CASE("fields of Llama 3.2 Vision that do not fit are refused by name") {
  CHECK(complaint(whole, "/vision_config/vision_output_dim", 128).find("must be 96") !=
        std::string::npos);
  CHECK(complaint(whole, "/text_config/cross_attention_layers", {1, 5}).find("from 0 to 4") !=
        std::string::npos);
  CHECK(complaint(whole, "/tie_word_embeddings", true).find("ties none") != std::string::npos);
  CHECK(complaint(whole, "/vision_config/num_attention_heads", 8).find("attention_heads") !=
        std::string::npos);
}

TEST_CASE("parts of a file that are not read have names and parameters") {
  json const clip{
      {"model_type", "clip"}, {"vision_config", json::object()}, {"text_config", json::object()}};
  auto const clip_file = read(clip);
  REQUIRE(clip_file.omitted.size() == 1);
  CHECK(omnibal::count_parameters(clip_file.vision->tower).total +
            clip_file.omitted[0].parameters ==
        151'277'313);
  json const siglip{{"model_type", "siglip"}, {"vision_config", json::object()}};
  auto const other = read(siglip);
  CHECK(omnibal::count_parameters(other.vision->tower).total + other.omitted[0].parameters +
            other.vision->idle_parameters ==
        203'155'970);
}
