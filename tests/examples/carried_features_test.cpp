// SPDX-License-Identifier: Apache-2.0
// The bytes that cuts send, counted by hand: the output of the layer and what later layers read.
#include "carried_features.hpp"

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
using numbers = std::vector<std::int64_t>;

model_description model(std::string const& text) {
  return model_of("x.json", "", nlohmann::json::parse(text));
}

numbers cuts_of(model_description const& given, omnibal::micro_batch_work const& batch,
                omnibal::parallel_degrees const& degrees = {}) {
  numbers result;
  for (auto const& cost : omnibal::layer_costs(given, batch, degrees)) {
    result.push_back(cost.cut_bytes);
  }
  return result;
}

std::string const vision = R"("vision": {"layers": 4, "hidden": 64, "heads": 4, "mlp": 128,
  "image_size": 56})";
std::string const language = R"("language": {"layers": 3, "hidden": 128, "heads": 4, "mlp": 256,
  "vocabulary": 1000)";
std::string const audio = R"("audio": {"layers": 2, "hidden": 32, "heads": 4, "mlp": 64,
  "convolutions": [{"inputs": 8, "outputs": 32}]})";

constexpr omnibal::micro_batch_work batch{
    .tiles = 2,
    .clips = omnibal::equal_sequences({.count = 2, .length = 50}),
    .documents = omnibal::equal_sequences({.count = 1, .length = 100})};

// Bytes in bf16: the patches of two tiles, their four tokens each, the documents, the clips.
constexpr std::int64_t patches = 2 * 2 * 16 * 64;
constexpr std::int64_t merged = 2 * 2 * 4 * 128;
constexpr std::int64_t document = 2 * 100 * 128;

}  // namespace

TEST_CASE("cuts send the outputs of inner layers to mergers, and these to the language model") {
  std::string const mergers = R"("further_projectors": [{"count": 2, "inner_layers": [0, 2]}])";
  auto const given = model("{" + vision + "," + mergers + "," + language + "}}");
  constexpr auto P = patches;
  constexpr auto M = merged;
  constexpr auto D = document;
  // Patch embedding and four layers, two mergers and the projector, embedding, three layers, head.
  numbers const expected{P,         P,         2 * P, 2 * P, 3 * P, M + 2 * P, 2 * M + P,
                         M + 2 * M, D + 2 * M, D + M, D,     D,     0};
  CHECK(cuts_of(given, batch) == expected);
  // Two ranks that split the norms share all of it.
  numbers halves;
  for (std::int64_t const bytes : expected) halves.push_back(bytes / 2);
  CHECK(cuts_of(given, batch, {.tensor = 2, .norms = omnibal::norm_regions::split}) == halves);
  // The layers that are cut are equal otherwise, and are the same when the file is written.
  auto const again = model(model_json(given).dump());
  CHECK(model_json(again) == model_json(given));
  CHECK(cuts_of(again, batch) == expected);
  CHECK(model_layers(given, {.batch = batch, .device = {.flops_per_second = 1'000'000}})[8]
            .cut_bytes == D + 2 * M);
  auto const plain = model("{" + vision + "," + language + "}}");
  CHECK(cuts_of(plain, batch) == numbers{P, P, P, P, P, M, D, D, D, D, 0});
  CHECK(omnibal::count_parameters(given).total > omnibal::count_parameters(plain).total);
}

// The output of the last layer is the output of the tower only if no norm stands between them.
TEST_CASE("cuts send the output of the last layer to its merger besides the norm of the tower") {
  constexpr auto P = patches;
  constexpr auto M = merged;
  constexpr auto D = document;
  std::string const mergers = R"("further_projectors": [{"count": 2, "inner_layers": [0, 3]}])";
  auto given = model("{" + vision + "," + mergers + "," + language + "}}");
  given.vision->tower.has_last_norm = false;
  CHECK(cuts_of(given, batch) ==
        numbers{P, P, 2 * P, 2 * P, 2 * P, M + P, 2 * M + P, 3 * M, D + 2 * M, D + M, D, D, 0});
  given.vision->tower.has_last_norm = true;
  CHECK(cuts_of(given, batch) == numbers{P, P, 2 * P, 2 * P, 2 * P, 3 * P, M + 2 * P, 2 * M + P,
                                         3 * M, D + 2 * M, D + M, D, D, 0});
}

TEST_CASE("the mergers of a public configuration are read with their layers") {
  auto const given = model(R"({"model_type": "qwen3_vl",
    "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 128, "intermediate_size": 256,
      "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32, "num_hidden_layers": 4,
      "vocab_size": 1000},
    "vision_config": {"model_type": "qwen3_vl", "depth": 4, "hidden_size": 64, "num_heads": 4,
      "intermediate_size": 128, "out_hidden_size": 128, "patch_size": 16,
      "deepstack_visual_indexes": [1, 2], "num_position_embeddings": 64}})");
  REQUIRE(given.vision->further.size() == 1);
  CHECK(given.vision->further[0].inner_layers == numbers{1, 2});
  auto const cuts = cuts_of(given, batch);
  std::int64_t const tokens = given.vision->connector.tile_tokens;
  // Behind the embedding both mergers are missing, behind the first layer one.
  CHECK(cuts[8] == document + 2 * 2 * 2 * tokens * 128);
  CHECK(cuts[9] == document + 2 * 2 * tokens * 128);
  CHECK(cuts[10] == document);
}

TEST_CASE("cuts send the tokens of sound to all layers that attend to them") {
  auto const given = model(R"({"model_type": "whisper", "d_model": 64, "encoder_layers": 2,
    "decoder_layers": 3, "encoder_attention_heads": 4, "decoder_attention_heads": 4})");
  constexpr std::int64_t clips = 2 * 100 * 64;
  constexpr std::int64_t text = 2 * 100 * 64;
  // Convolutions, two layers and a norm; embedding, three layers and the head.
  CHECK(cuts_of(given, batch) ==
        numbers{clips, clips, clips, clips, text + clips, text + clips, text + clips, text, 0});
}

TEST_CASE("cuts in an audio tower send the tokens of images") {
  auto const given =
      model("{" + vision + "," + audio + R"(, "audio_projectors": [{}], )" + language + "}}");
  constexpr std::int64_t clips = 2 * 100 * 32;
  constexpr std::int64_t heard = 2 * 100 * 128;
  auto const cuts = cuts_of(given, batch);
  // Behind the patch embedding and four layers: projector, convolutions, two layers, projector.
  CHECK(numbers(cuts.begin() + 5, cuts.begin() + 11) ==
        numbers{merged, merged + clips, merged + clips, merged + clips, merged + heard, document});
}

TEST_CASE("cuts between layers of multi-token prediction send all that the losses read") {
  auto const given = model("{" + language + R"(, "prediction": {"layers": 2}}})");
  CHECK(cuts_of(given, batch) ==
        numbers{document, document, document, document, 2 * document, 3 * document, 0});
  auto behind = given;
  behind.language->order = omnibal::prediction_order::behind_head;
  CHECK(cuts_of(behind, batch) ==
        numbers{document, document, document, document, document, document, document});
}

TEST_CASE("cuts send inputs of layers and shared keys and values") {
  auto const given = model(R"({"language": {"hidden": 128, "heads": 4, "kv_heads": 2, "mlp": 256,
    "vocabulary": 1000, "layer_embeddings": {"vocabulary": 1000, "layers": 4, "size": 16},
    "layer_input_size": 16,
    "layer_kinds": {"own": {}, "near": {"window": 32}, "shared": {"key_value_source": "earlier_layer"}},
    "pattern": ["own", "near", "own", "shared"]}})");
  constexpr std::int64_t input = 2 * 100 * 16;
  constexpr std::int64_t keys_and_values = 2 * 100 * 2 * 64;
  numbers const expected{document + 4 * input,
                         document + 3 * input,
                         document + 2 * input,
                         document + input + keys_and_values,
                         document,
                         0};
  CHECK(cuts_of(given, batch) == expected);
  // Two tensor-parallel ranks share keys and values, but not the activations.
  auto const on_two = cuts_of(given, batch, {.tensor = 2});
  CHECK(on_two[3] == document + input + keys_and_values / 2);
}

TEST_CASE("connectors that name layers which the tower does not have are refused") {
  auto const with = [](std::string const& further) {
    return "{" + vision + R"(, "further_projectors": [)" + further + "]," + language + "}}";
  };
  CHECK_THROWS_WITH(model(with(R"({"inner_layers": [4]})")),
                    Catch::Contains("inner_layers\" has 4, must have integers from 0 to 3"));
  CHECK_THROWS_WITH(model(with(R"({"count": 2, "inner_layers": [1]})")),
                    Catch::Contains("inner_layers\" is a list, must have 2 layers"));
  CHECK_THROWS_WITH(model(with(R"({}, {"inner_layers": [1]})")),
                    Catch::Contains("but a connector without inner layers stands before"));
  CHECK_THROWS_WITH(
      model("{" + audio + R"(, "audio_projectors": [{"inner_layers": [1]}], )" + language + "}}"),
      Catch::Contains("but only images have them"));
}
