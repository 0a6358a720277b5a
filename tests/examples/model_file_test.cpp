// SPDX-License-Identifier: Apache-2.0
#include "model_file.hpp"

#include "context_model.hpp"
#include "input_error.hpp"
#include "machine_file.hpp"
#include "temporary_directory.hpp"
#include "vlm_layers.hpp"

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;

// Public configurations, without what no cost depends on.

std::string const llama = R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "mlp_bias": false,
  "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
  "vocab_size": 128256})";

std::string const qwen2_7b = R"({"hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "model_type": "qwen2", "num_attention_heads": 28,
  "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "vocab_size": 152064})";

std::string const qwen2_small = R"({"hidden_act": "silu", "hidden_size": 896,
  "intermediate_size": 4864, "model_type": "qwen2", "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": true, "vocab_size": 151936})";

std::string const qwen2_5_vl = R"({"hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "model_type": "qwen2_5_vl", "num_attention_heads": 28,
  "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "vocab_size": 152064, "vision_config": {"depth": 32,
  "hidden_act": "silu", "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
  "in_chans": 3, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2,
  "window_size": null, "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2}})";

std::string const internvl_1_5 = R"({"architectures": ["InternVLChatModel"],
  "downsample_ratio": 0.5, "force_image_size": 448, "model_type": "internvl_chat",
  "select_layer": -1, "llm_config": {"bias": false, "hidden_act": "silu", "hidden_size": 6144,
  "intermediate_size": 16384, "model_type": "internlm2", "num_attention_heads": 48,
  "num_hidden_layers": 48, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false, "vocab_size": 92553}, "vision_config": {"hidden_act": "gelu",
  "hidden_size": 3200, "image_size": 448, "intermediate_size": 12800,
  "model_type": "intern_vit_6b", "norm_type": "rms_norm", "num_attention_heads": 25,
  "num_channels": 3, "num_hidden_layers": 45, "patch_size": 14, "qk_normalization": true,
  "qkv_bias": false}})";

std::string const deepseek = R"({"attention_bias": false, "first_k_dense_replace": 1,
  "hidden_act": "silu", "hidden_size": 5120, "intermediate_size": 12288, "kv_lora_rank": 512,
  "model_type": "deepseek_v2", "moe_intermediate_size": 1536, "moe_layer_freq": 1,
  "n_routed_experts": 160, "n_shared_experts": 2, "num_attention_heads": 128,
  "num_experts_per_tok": 6, "num_hidden_layers": 60, "num_key_value_heads": 128,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 102400})";

std::string const mixtral = R"({"hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "model_type": "mixtral", "num_attention_heads": 32,
  "num_experts_per_tok": 2, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "num_local_experts": 8, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
  "vocab_size": 32000})";

std::string const deepseek_v3 = R"({"attention_bias": false, "first_k_dense_replace": 3,
  "hidden_act": "silu", "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
  "model_type": "deepseek_v3", "moe_intermediate_size": 2048, "moe_layer_freq": 1,
  "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rms_norm_eps": 1e-06,
  "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 129280})";

std::string const qwen3_8b = R"({"attention_bias": false, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 12288, "model_type": "qwen3",
  "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
  "rms_norm_eps": 1e-06, "tie_word_embeddings": false, "vocab_size": 151936})";

std::string const siglip = R"({"model_type": "siglip", "text_config": {},
  "vision_config": {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304,
  "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27,
  "patch_size": 14}})";

std::string const clip = R"({"model_type": "clip", "projection_dim": 768,
  "text_config": {"hidden_size": 768}, "vision_config": {"hidden_size": 1024, "image_size": 336,
  "intermediate_size": 4096, "model_type": "clip_vision_model", "num_attention_heads": 16,
  "num_hidden_layers": 24, "patch_size": 14}})";

std::string const vit = R"({"hidden_size": 768, "image_size": 224, "intermediate_size": 3072,
  "model_type": "vit", "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12,
  "patch_size": 16, "qkv_bias": true})";

std::string const eva = R"({"embed_dim": 1024, "vision_cfg": {"image_size": 224, "layers": 64,
  "width": 1792, "head_width": 112, "mlp_ratio": 8.571428571428571, "patch_size": 14,
  "eva_model_name": "eva-clip-4b-14-x", "postnorm": true}, "text_cfg": {"width": 1280}})";

std::string const llava = R"({"model_type": "llava", "vision_feature_layer": -2,
  "vision_feature_select_strategy": "default", "text_config": {"hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 11008, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false, "vocab_size": 32064}, "vision_config": {"hidden_size": 1024,
  "image_size": 336, "intermediate_size": 4096, "model_type": "clip_vision_model",
  "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768}})";

std::string const own = R"({"name": "mine",
  "vision": {"layers": 12, "hidden": 768, "heads": 12, "mlp": 3072, "image_size": 448},
  "projector": {"patches_per_token": 16},
  "language": {"layers": 8, "hidden": 1024, "heads": 8, "kv_heads": 2, "mlp": 4096,
               "vocabulary": 1000}})";

/// A perceiver and layers of cross-attention, and a Q-Former whose tokens stand in the documents.
std::string const crossed = R"({"name": "crossed",
  "vision": {"layers": 4, "hidden": 768, "heads": 12, "mlp": 3072, "image_size": 224,
             "class_tokens": 1, "training": "forward_only"},
  "resampler": {"queries": 16, "layers": 3, "hidden": 768, "heads": 12, "mlp": 3072},
  "language": {"layers": 7, "hidden": 1024, "heads": 8, "mlp": 4096, "vocabulary": 1000,
               "first_layers": 1, "first_mlp": 2048, "training": "input_gradients",
               "cross": {"every": 3}}})";
std::string const queried = R"({"name": "queried",
  "vision": {"layers": 4, "hidden": 768, "heads": 12, "mlp": 3072, "image_size": 224},
  "resampler": {"kind": "q_former", "queries": 32, "layers": 5, "hidden": 512, "heads": 8,
                "mlp": 2048, "cross_every": 2},
  "language": {"layers": 8, "hidden": 1024, "heads": 8, "mlp": 4096, "vocabulary": 1000}})";

/// How many layers of each kind there are, by their names.
std::map<std::string, int> kinds_in(model_description const& model) {
  std::map<std::string, int> result;
  for (std::string_view const kind : layer_kinds(model)) ++result[std::string(kind)];
  return result;
}

model_description read(std::string const& text) {
  return model_of("config.json", "", nlohmann::json::parse(text));
}

std::int64_t parameters_of(model_description const& model) {
  model_description counted = model;
  // A tower by itself has a connector that leads nowhere.
  if (!counted.language) return omnibal::count_parameters(counted.vision->tower).total;
  return omnibal::count_parameters(counted).total;
}

/// In billions, by what models are said to have.
void check_billions(model_description const& model, double billions, double tolerance = 0.01) {
  INFO(model.name << ": " << parameters_of(model));
  CHECK(static_cast<double>(parameters_of(model)) / 1e9 == Approx(billions).epsilon(tolerance));
}

template <class Call>
std::string complaint(Call const& call) {
  try {
    static_cast<void>(call());
  } catch (input_error const& error) {
    return error.what();
  }
  return "";
}

std::string without(std::string text, std::string const& part, std::string const& in_place = "") {
  std::size_t const at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), in_place);
}

}  // namespace

TEST_CASE("public configurations have the parameters that their models have") {
  CHECK(parameters_of(read(llama)) == 8'030'261'248);
  CHECK(parameters_of(read(qwen2_7b)) == 7'615'616'512);
  CHECK(parameters_of(read(qwen2_small)) == 494'032'768);
  CHECK(parameters_of(read(qwen2_5_vl)) == 8'292'166'656);
  CHECK(parameters_of(read(mixtral)) == 46'702'792'704);
  CHECK(parameters_of(read(qwen3_8b)) == 8'190'735'360);
  check_billions(read(deepseek_v3), 671.0, 0.002);
  check_billions(read(siglip), 0.413);
  CHECK(read(siglip).vision->tower.layer().tile_tokens() == 27 * 27);
  check_billions(read(clip), 0.3035);
  check_billions(read(vit), 0.0858);
  check_billions(read(eva), 4.35);
  check_billions(read(llava), 7.06);
}

TEST_CASE("public configurations of known models are these models") {
  CHECK(model_json(read(llama))["language"] ==
        model_json(find_model("llama3-8b", model_parts::language))["language"]);
  auto const same = [](std::string const& text, std::string const& name) {
    auto made = read(text);
    made.name = name;
    CHECK(model_json(made) == model_json(find_model(name, model_parts::language)));
  };
  same(internvl_1_5, "6+20B");
  same(deepseek, "deepseek-v2");
  same(qwen2_7b, "qwen2.5-7b");
  same(qwen2_5_vl, "qwen2.5-vl-7b");
}

TEST_CASE("known models have the sizes of their names") {
  auto const billions = [](std::string const& name, double expected, double tolerance = 0.02) {
    check_billions(
        find_model(name, name.find("vit") == 0 ? model_parts::vision : model_parts::language),
        expected, tolerance);
  };
  billions("6+20B", 25.5);
  billions("6+34B", 40.1);
  billions("qwen2.5-vl-72b", 73.4);
  billions("internlm2-7b", 7.74);
  billions("qwen1.5-110b", 111.2);
  billions("qwen2.5-72b", 72.7);
  billions("deepseek-v2", 235.7);
  billions("flamingo-3b", 3.2);
  billions("flamingo-80b", 80);
  billions("blip2-opt-2.7b", 3.745);
  billions("blip2-opt-6.7b", 7.75);
  auto const tower = [](std::string const& name, double expected) {
    check_billions(find_model(name, model_parts::vision), expected, 0.02);
  };
  tower("internvit-300m", 0.304);
  tower("eva-clip-g", 1.01);
  tower("eva-clip-e", 4.35);
  tower("eva-clip-8b", 7.53);
  tower("eva-clip-18b", 17.6);
}

TEST_CASE("every known model is the same when written and read again, as every pair of them") {
  for (model_description const& model : known_models()) {
    auto const written = model_json(model);
    if (!model.language) continue;
    CHECK(model_json(model_of("x.json", "", nlohmann::json::parse(written.dump()))) == written);
  }
  std::size_t pairs = 0;
  for (model_description const& tower : known_models()) {
    for (model_description const& language : known_models()) {
      if (tower.language || language.vision) continue;
      auto const pair = find_model(tower.name + '+' + language.name, model_parts::both);
      CHECK(pair.vision->connector.output == language.language->input.hidden);
      auto const written = model_json(pair);
      CHECK(model_json(model_of("x.json", "", nlohmann::json::parse(written.dump()))) == written);
      ++pairs;
    }
  }
  CHECK(pairs == 7 * 9);
}

TEST_CASE("resamplers and cross-attention have the parameters that were published") {
  auto const millions = [](std::string const& name, std::string_view kind) {
    auto const model = find_model(name, model_parts::both);
    training_setting const setting{.batch = {.tiles = 1},
                                   .device = {.flops_per_second = 1'000'000'000'000}};
    std::int64_t sum = 0;
    for (vlm_layer const& layer : model_layers(model, setting)) {
      if (layer.kind == kind) sum += layer.parameters;
    }
    return static_cast<double>(sum) / 1e6;
  };
  CHECK(millions("flamingo-80b", "resampler layer") == Approx(194).epsilon(0.03));
  CHECK(millions("flamingo-3b", "cross-attention layer") == Approx(1200).epsilon(0.02));
  CHECK(millions("flamingo-80b", "cross-attention layer") == Approx(10'000).epsilon(0.05));
  CHECK(kinds_in(find_model("flamingo-80b", model_parts::both))["cross-attention layer"] == 12);
  CHECK(millions("blip2-opt-6.7b", "resampler layer") == Approx(105).epsilon(0.01));
}

TEST_CASE("layers of cross-attention stand before every so many layers of the language model") {
  auto const kinds = layer_kinds(read(crossed));
  std::vector<std::string_view> expected{"patch embedding"};
  expected.insert(expected.end(), 4, "vision layer");
  expected.insert(expected.end(), 3, "resampler layer");
  expected.insert(expected.end(), {"projector", "embedding"});
  for (std::size_t const run : {3U, 3U, 2U}) {
    expected.emplace_back("cross-attention layer");
    expected.insert(expected.end(), run, "language layer");
  }
  expected.emplace_back("head");
  CHECK((kinds == expected));
  CHECK(first_language_layer(kinds) == 9);
  CHECK(kinds_in(read(queried))["resampler layer"] == 5);
  CHECK(kinds_in(read(queried)).count("cross-attention layer") == 0);
}

TEST_CASE("queries and tokens of documents attend to what the model says") {
  omnibal::micro_batch_work const batch{
      .tiles = 3, .documents = omnibal::equal_sequences({.count = 2, .length = 100})};
  auto const costs = omnibal::layer_costs(read(crossed), batch);
  // 16 queries of each of 3 tiles see its 257 tokens and one another.
  std::int64_t const width = 768;
  std::int64_t const rows = 3 * 16;
  std::int64_t const seen = 3 * (257 + 16);
  std::int64_t const perceiver = 2 * rows * (2 * width * width + 2 * width * 3072) +
                                 2 * seen * 2 * width * width + 4 * 16 * seen * width;
  CHECK(costs[5].forward.flops == perceiver);
  CHECK(costs[5].backward.flops == 2 * perceiver);
  // What later layers see is sent along, in 16 bits: the tokens of the tower, then the queries.
  CHECK(costs[5].cut_bytes == 2 * (rows * width + 3 * 257 * width));
  CHECK(costs[7].cut_bytes == 2 * rows * width);
  // 200 tokens see 16 of a tile.
  std::int64_t const hidden = 1024;
  std::int64_t const cross = 2 * 200 * (2 * hidden * hidden + 3 * hidden * 4096) +
                             2 * rows * 2 * hidden * hidden + 4 * 200 * 16 * hidden;
  CHECK(costs[10].forward.flops == cross);
  CHECK(costs[10].cut_bytes == 2 * (200 * hidden + rows * hidden));
  CHECK(costs[18].cut_bytes == 2 * 200 * hidden);
  // What is frozen has no gradients, and in front of what is trained no backward pass.
  CHECK(costs[1].backward.flops == 0);
  CHECK(costs[11].gradient_bytes == 0);
  CHECK(costs[10].gradient_bytes > 0);

  auto const former = omnibal::layer_costs(read(queried), batch);
  std::int64_t const self = 2 * 3 * 32 * 512 * (4 * 512 + 2 * 2048) + 4 * 3 * 32 * 32 * 512;
  CHECK(former[6].forward.flops == self);
  CHECK(former[5].forward.flops ==
        self + 2 * 3 * 32 * 2 * 512 * 512 + 2 * 3 * 256 * 2 * 768 * 512 + 4 * 3 * 32 * 256 * 512);
  // Without tiles there is nothing to see.
  auto const text = omnibal::layer_costs(
      read(crossed), {.documents = omnibal::equal_sequences({.count = 2, .length = 100})});
  CHECK(text[10].forward.flops == 2 * 200 * (2 * hidden * hidden + 3 * hidden * 4096));
  CHECK(text[5].forward.flops == 0);
}

TEST_CASE("a tower with its resampler goes with another language model, without cross-attention") {
  auto const pair = find_model("flamingo-80b+llama3-8b", model_parts::both);
  CHECK(kinds_in(pair).count("cross-attention layer") == 0);
  CHECK(kinds_in(pair)["resampler layer"] == 6);
  CHECK(pair.vision->connector.output == 4096);
  CHECK(pair.vision->connector.hidden == 0);
  CHECK(pair.document_tokens_of_tile() == 64);
  auto const language = find_model("internvit-300m+flamingo-3b", model_parts::both);
  CHECK(kinds_in(language).count("cross-attention layer") == 0);
  auto const written = model_json(pair);
  CHECK(model_json(model_of("x.json", "", nlohmann::json::parse(written.dump()))) == written);
}

TEST_CASE("heads of towers and of resamplers are padded for the ranks that share them") {
  auto const model = padded(find_model("blip2-opt-2.7b", model_parts::both), 8);
  CHECK(model.vision->tower.layer().heads == 16);
  CHECK(model.vision->resampler->layer.heads == 16);
  CHECK(model.vision->resampler->layer.head_size == 64);
}

TEST_CASE("parts of a model file may be names and files beside it") {
  temporary_directory const folder;
  folder.write("tower/config.json", clip);
  auto const path =
      folder.write("pair.json", R"({"vision": "tower/config.json", "language": "llama3-8b"})");
  auto const pair = find_model(path.string(), model_parts::both);
  CHECK(pair.name == "pair");
  CHECK(pair.vision->tower.layers() == 24);
  CHECK(pair.vision->connector.tile_tokens == 144);
  CHECK(pair.language->input.hidden == 4096);

  auto const config = folder.write("Some-8B/config.json", llama);
  CHECK(find_model(config.string(), model_parts::language).name == "Some-8B");
  auto const joined = find_model("internvit-6b+" + config.string(), model_parts::both);
  CHECK(joined.name == "internvit-6b+Some-8B");

  auto const mine = read(own);
  CHECK(mine.name == "mine");
  CHECK(mine.vision->connector.tile_tokens == 64);
  CHECK(mine.vision->connector.input == 16 * 768);
  CHECK(mine.vision->tower.layer().tile_tokens() == 1024);
}

// Files that named each other were read until the stack ended.
TEST_CASE("model files that name each other are refused") {
  temporary_directory const folder;
  auto const self = folder.write("self.json", R"({"name": "m", "language": "self.json"})").string();
  folder.write("a.json", R"({"language": "b.json"})");
  auto const other = folder.write("b.json", R"({"language": "a.json"})").string();
  for (std::string const& name : {self, other}) {
    auto const message = complaint([&] { return find_model(name, model_parts::language); });
    CHECK(message.find("is named by itself, or by a model file that it names") !=
          std::string::npos);
  }
  auto const good = folder.write("c.json", R"({"language": "llama3-8b"})").string();
  for (int i = 0; i != 2; ++i) CHECK(find_model(good, model_parts::language).name == "c");
}

TEST_CASE("a field that an object has twice is refused") {
  temporary_directory const folder;
  std::string twice = llama;
  twice.insert(twice.find('{') + 1, "\"hidden_size\": 2048, ");
  auto const path = folder.write("twice.json", twice).string();
  auto const message = complaint([&] { return find_model(path, model_parts::language); });
  CHECK(message.find("\"hidden_size\" occurs twice in an object") != std::string::npos);
}

// A name of a family that nothing is read by was ignored.
TEST_CASE("a family is refused if no public configuration is read by it") {
  temporary_directory const folder;
  auto const mine = folder.write("mine.json", R"({"language": "llama3-8b"})").string();
  for (std::string const& name :
       {std::string("llama3-8b"), std::string("internvit-6b+llama3-8b"), mine}) {
    auto const message =
        complaint([&] { return find_model(name, model_parts::language, "llama"); });
    CHECK(message.find("--as is for public configurations") != std::string::npos);
  }
}

TEST_CASE("only layers whose output is taken run, and images have the size that is forced") {
  auto const shortened =
      read(without(internvl_1_5, "\"select_layer\": -1", "\"select_layer\": -4"));
  CHECK(shortened.vision->tower.layers() == 42);
  CHECK(read(llava).vision->tower.layers() == 23);
  CHECK(read(llava).vision->connector.tile_tokens == 576);
  auto const small =
      read(without(internvl_1_5, "\"force_image_size\": 448", "\"force_image_size\": 224"));
  CHECK(small.vision->connector.tile_tokens == 64);
}

TEST_CASE("what is no model is refused with the file, the field and the value") {
  struct wrong_model {
    std::string text;
    std::string message;
  };
  std::vector<wrong_model> const models{
      {"[]", "config.json: is [], must be an object"},
      {"{}", "config.json: is no model"},
      {without(llama, "\"num_hidden_layers\": 32", "\"num_hidden_layers\": 0"),
       "field \"num_hidden_layers\" is 0, must be an integer from 1"},
      {without(llama, "\"hidden_size\": 4096", "\"hidden_size\": \"4096\""),
       "field \"hidden_size\" is \"4096\", must be an integer"},
      {without(llama, "\"num_attention_heads\": 32", "\"num_attention_heads\": 33"), "heads"},
      {without(deepseek, "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 0"),
       "field \"moe_layer_freq\" is 0, must be an integer from 1"},
      {without(own, "\"image_size\": 448", "\"image_size\": 450"),
       "field \"vision.image_size\" is 450, must be a multiple of the patch size, 14"},
      {without(own, "\"kv_heads\"", "\"kv_head\""),
       "unknown field \"language.kv_head\"; did you mean \"kv_heads\"?"},
      {without(own, "\"vocabulary\"", "\"vocab\""),
       "unknown field \"language.vocab\"; did you mean \"vocabulary\"?"},
      {without(own, "\"heads\": 12", "\"heads\": -12"), "field \"vision.heads\" is -12"},
      {without(own, "\"vocabulary\": 1000", "\"norm\": \"rsm\", \"vocabulary\": 1000"),
       "field \"language.norm\" is \"rsm\"; did you mean \"rms\"?"},
      {without(own, "\"vocabulary\": 1000", "\"experts\": {\"routed\": 8}, \"vocabulary\": 1000"),
       "no field \"language.experts.active\""},
      {without(crossed, "\"every\": 3", "\"every\": 0"),
       "field \"language.cross.every\" is 0, must be an integer from 1"},
      {without(crossed, "\"every\": 3", "\"every\": 3, \"hidden\": 512"),
       "field \"language.cross.hidden\" is 512, must be that of the language model, 1024"},
      {without(crossed, "\"queries\": 16, ", ""), "no field \"resampler.queries\""},
      {without(crossed, "\"queries\": 16", "\"queries\": 16, \"kind\": \"qformer\""),
       "field \"resampler.kind\" is \"qformer\"; did you mean \"q_former\"?"},
      {without(crossed, "\"layers\": 3, \"hidden\": 768", "\"layers\": 3, \"hidden\": 384"),
       "field \"resampler.hidden\" is 384, must be the width of the tower, 768"},
      {without(crossed, "\"queries\": 16", "\"queries\": 16, \"cross_every\": 2"),
       "field \"resampler.cross_every\" is 2, must be 1"},
      {without(crossed, "forward_only", "none"), "field \"vision.training\" is \"none\""},
      {R"({"vision": "clip-l-336", "language": {"layers": 1, "hidden": 64, "heads": 1, "mlp": 64,
          "vocabulary": 10, "cross": []}})",
       "field \"language.cross\" is [], must be an object"},
      {R"({"language": {"layers": 1, "hidden": 64, "heads": 1, "mlp": 64, "vocabulary": 10,
          "cross": {"every": 1}}})",
       "field \"language.cross\" is an object, but there is no vision tower"},
      {R"({"resampler": {"queries": 1}, "language": "llama3-8b"})",
       "field \"resampler\" is an object, but there is no vision tower"},
      {R"({"vision": "internvit-7b", "language": "llama3-8b"})",
       "there is no model \"internvit-7b\"; did you mean \"internvit-6b\"?"}};
  for (wrong_model const& one : models) {
    std::string const message = complaint([&] { return read(one.text); });
    INFO(message << " lacks " << one.message);
    CHECK(message.find(one.message) != std::string::npos);
  }
}

TEST_CASE("a configuration with any value in place of one field is a model or an input error") {
  std::vector<nlohmann::json> const values{nullptr,
                                           -1,
                                           0,
                                           1,
                                           2,
                                           3,
                                           7,
                                           1.5,
                                           1e300,
                                           (std::uint64_t{1} << 63) + 1,
                                           std::int64_t{1} << 40,
                                           "text",
                                           "",
                                           true,
                                           nlohmann::json::array(),
                                           nlohmann::json::object(),
                                           {1, 2}};
  std::size_t models = 0;
  std::size_t errors = 0;
  auto const try_all = [&](nlohmann::json& whole, nlohmann::json& object,
                           auto const& self) -> void {
    for (auto& [key, value] : object.items()) {
      nlohmann::json const before = value;
      for (nlohmann::json const& other : values) {
        value = other;
        try {
          auto const made = model_of("config.json", "", whole);
          REQUIRE((made.vision || made.language));
          if (made.language) static_cast<void>(model_json(made).dump());
          ++models;
        } catch (input_error const&) {
          ++errors;
        }
      }
      value = before;
      if (value.is_object()) self(whole, value, self);
    }
  };
  for (std::string const& text : {llama, qwen2_5_vl, internvl_1_5, deepseek, mixtral, clip, vit,
                                  eva, siglip, llava, own, qwen3_8b, crossed, queried}) {
    auto whole = nlohmann::json::parse(text);
    try_all(whole, whole, try_all);
  }
  CHECK(models > 300);
  CHECK(errors > 300);
}

TEST_CASE("a deep or broken text is an input error") {
  temporary_directory const folder;
  for (std::string const& text :
       {std::string(100'000, '['), std::string(50'000, '[') + std::string(50'000, ']'),
        "{\"hidden_size\": " + std::string(50'000, '[') + std::string(50'000, ']') +
            ", \"vocab_size\": 5}",
        std::string("\xff\xfe{}"), std::string("{}\0", 3), std::string("{} {}")}) {
    auto const path = folder.write("deep.json", text).string();
    CHECK(complaint([&] { return find_model(path, model_parts::language); }).find("deep.json") !=
          std::string::npos);
  }
}

TEST_CASE("models that are not there, or lack a part, are refused with the nearest name") {
  temporary_directory const folder;
  auto const cut = folder.write("cut.json", llama.substr(0, 100)).string();
  auto const message = [](std::string const& name, model_parts needed) {
    return complaint([&] { return find_model(name, needed); });
  };
  CHECK(message("llama3-7b", model_parts::language) ==
        "there is no model \"llama3-7b\"; did you mean \"llama3-8b\"?");
  CHECK(message("internvit-6b+lama3-8b", model_parts::both) ==
        "there is no model \"lama3-8b\"; did you mean \"llama3-8b\"?");
  CHECK(message("gpt", model_parts::language).find("; the models are \"6+20B\"") !=
        std::string::npos);
  CHECK(message("internvit-6b", model_parts::both).find("internvit-6b+llama3-8b") !=
        std::string::npos);
  CHECK(message("llama3-8b", model_parts::both).find("internvit-6b+llama3-8b") !=
        std::string::npos);
  CHECK(message("llama3-8b+llama3-8b", model_parts::both) ==
        "model \"llama3-8b\" has no vision tower");
  CHECK(message(cut, model_parts::language).find("cut.json: line 2: is no JSON, or is cut off") !=
        std::string::npos);
  CHECK(message("absent.json", model_parts::language).find("absent.json: cannot open") == 0);
  CHECK(find_model("LLaMA3-8B", model_parts::language).name == "llama3-8b");
}

TEST_CASE("the shape of a model has the parameters that a token runs through, to two digits") {
  CHECK(known_shape("llama3-8b").parameters == Approx(8.0e9));
  CHECK(known_shape("llama3-70b").parameters == Approx(70e9));
  auto const mixture = known_shape("deepseek-v2");
  CHECK(mixture.parameters == Approx(21e9));
  CHECK(mixture.layers == 60);
  CHECK(mixture.hidden == 5120);
  CHECK(mixture.keys == 512);
  CHECK(known_shape("llama3-8b").keys == 1024);
  CHECK(shape_of(*find_model("6+20B", model_parts::both).language).layers == 48);
}

TEST_CASE("a machine comes from a file or by its name, and is refused where it is none") {
  temporary_directory const folder;
  auto const read_machine = [&](std::string const& text) {
    return find_machine(folder.write("machine.json", text).string());
  };
  auto const machine = read_machine(R"({"memory_gb": 40, "reserve_gb": 2.5, "peak_teraflops": 312,
      "link_gb_per_second": 12.5, "ranks": 64, "ranks_per_node": 4})");
  CHECK(machine.name == "machine");
  CHECK(machine.memory_bytes == 40'000'000'000);
  CHECK(machine.reserve_bytes == 2'500'000'000);
  CHECK(machine.flops == 156'000'000'000'000);
  CHECK(machine.bytes == machine_description::no_time);
  CHECK(machine.link_bytes == 12'500'000'000);
  CHECK(machine.ranks == 64);
  CHECK(machine.ranks_per_node == 4);
  CHECK(find_machine("a100-40gb").memory_bytes == 40'000'000'000);

  auto const message = [&](std::string const& text) {
    std::string const whole = complaint([&] { return read_machine(text); });
    return whole.substr(std::min(whole.find("machine.json"), whole.size()));
  };
  CHECK(message(R"({"memory_gb": 40})") ==
        "machine.json: no field \"peak_teraflops\"; the fields are \"memory_gb\"");
  CHECK(message(R"({"memory_gb": 0, "peak_teraflops": 1})")
            .find("field \"memory_gb\" is 0, must be") != std::string::npos);
  CHECK(message(R"({"memory": 40, "peak_teraflops": 1})") ==
        "machine.json: unknown field \"memory\"; did you mean \"memory_gb\"?");
  CHECK(message(R"({"memory_gb": 4, "peak_teraflops": 1})").find("leaves nothing") !=
        std::string::npos);
  CHECK(message(R"({"memory_gb": 40, "peak_teraflops": 1, "teraflops": 2})")
            .find("field \"teraflops\" is 2, must be at most \"peak_teraflops\"") !=
        std::string::npos);
  CHECK(complaint([] { return find_machine("h100"); }) ==
        "there is no machine \"h100\"; did you mean \"h100-80gb\"?");
  CHECK(complaint([] { return find_machine("tpu"); }) ==
        "there is no machine \"tpu\"; the machines are \"a100-80gb\", \"a100-40gb\", "
        "\"a100-80gb-products\", \"h100-80gb\"");
}

// The bytes of an index say the parameters only if every parameter has the same known bytes.
TEST_CASE("an index of weights says the published total by its parameters or its bytes") {
  auto const total = [](char const* metadata, char const* configuration) {
    auto const index = nlohmann::json::parse(R"({"metadata": )" + std::string(metadata) + "}");
    return total_of_index("index.json", index, nlohmann::json::parse(configuration));
  };
  CHECK(total(R"({"total_parameters": 5, "total_size": 999})", "{}").parameters == 5);
  CHECK(total(R"({"total_size": 24})", R"({"dtype": "bfloat16"})").parameters == 12);
  CHECK(
      total(R"({"total_size": 24})", R"({"text_config": {"torch_dtype": "float32"}})").parameters ==
      6);
  auto const odd = total(R"({"total_size": 25})", R"({"dtype": "float16"})");
  CHECK(odd.parameters == 0);
  CHECK(odd.bytes == 25);
  CHECK(total(R"({"total_size": 24})", "{}").parameters == 0);
  CHECK(total(R"({"total_size": 24})", R"({"dtype": "float16", "quantization_config": {}})")
            .parameters == 0);
}
