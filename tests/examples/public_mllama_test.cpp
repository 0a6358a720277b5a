// SPDX-License-Identifier: Apache-2.0
// Llama 3.2 Vision: small configurations of the classes of transformers 5.24.0, whose parameters
// were counted on the meta device.

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
