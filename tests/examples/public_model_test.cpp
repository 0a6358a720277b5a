// SPDX-License-Identifier: Apache-2.0 Public configurations: the totals of their models to the
// digit, or a refusal that names the field.

#include "input_error.hpp"
#include "model_file.hpp"
#include "public_families.hpp"
#include "temporary_directory.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace examples;
using nlohmann::json;

/// A published configuration, without the fields that change no cost, and its exact total. Totals
/// are those of the classes of transformers: a tied matrix once, router biases not.
struct known_total {
  char const* name;
  char const* text;
  std::int64_t total;
};

// clang-format off
std::vector<known_total> const language_models{
    {"Llama 2 7B", R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 4096,
       "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32,
       "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
       "tie_word_embeddings": false, "torch_dtype": "float16", "vocab_size": 32000})", 6'738'415'616},
    {"CodeLlama 34B", R"({"model_type": "llama", "hidden_act": "silu", "hidden_size": 8192,
       "intermediate_size": 22016, "num_attention_heads": 64, "num_hidden_layers": 48,
       "num_key_value_heads": 8, "rope_theta": 1000000, "vocab_size": 32000})", 33'743'970'304},
    {"Mistral Nemo 12B", R"({"model_type": "mistral", "head_dim": 128, "hidden_act": "silu",
       "hidden_size": 5120, "intermediate_size": 14336, "num_attention_heads": 32,
       "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": null,
       "tie_word_embeddings": false, "vocab_size": 131072})", 12'247'782'400},
    {"Ministral 3 8B", R"({"model_type": "ministral3", "vocab_size": 131072, "hidden_size": 4096,
       "intermediate_size": 14336, "num_hidden_layers": 34, "num_attention_heads": 32,
       "num_key_value_heads": 8, "head_dim": 128, "sliding_window": null})", 8'489'553'920},
    {"Qwen2 72B", R"({"model_type": "qwen2", "hidden_act": "silu", "hidden_size": 8192,
       "intermediate_size": 29568, "max_window_layers": 80, "num_attention_heads": 64,
       "num_hidden_layers": 80, "num_key_value_heads": 8, "sliding_window": 131072,
       "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 152064})",
     72'706'203'648},
    {"Qwen3 8B", R"({"model_type": "qwen3", "attention_bias": false, "head_dim": 128,
       "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
       "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
       "tie_word_embeddings": false, "vocab_size": 151936})", 8'190'735'360},
    {"MiMo 7B", R"({"model_type": "mimo", "attention_bias": true, "head_dim": 128,
       "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
       "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8,
       "num_nextn_predict_layers": 0, "tie_word_embeddings": false, "vocab_size": 151680})",
     7'622'619'136},
    {"SmolLM3 3B", R"({"model_type": "smollm3", "vocab_size": 128256, "hidden_size": 2048,
       "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
       "num_key_value_heads": 4, "hidden_act": "silu", "use_sliding_window": false,
       "sliding_window": null, "no_rope_layers": [1, 1, 1, 0], "no_rope_layer_interval": 4, "attention_bias": false,
       "mlp_bias": false, "tie_word_embeddings": true})", 3'075'098'624},
    {"a Seed-OSS", R"({"model_type": "seed_oss", "attention_bias": true,
       "attention_out_bias": false, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
       "intermediate_size": 6144, "mlp_bias": false, "num_attention_heads": 16,
       "num_hidden_layers": 3, "num_key_value_heads": 8, "tie_word_embeddings": false,
       "vocab_size": 155136})", 786'458'624},
    {"Phi 3 mini", R"({"model_type": "phi3", "hidden_act": "silu", "hidden_size": 3072,
       "intermediate_size": 8192, "num_attention_heads": 32, "num_hidden_layers": 32,
       "num_key_value_heads": 32, "sliding_window": null, "tie_word_embeddings": false,
       "vocab_size": 32064})", 3'821'079'552},
    {"StarCoder2 3B", R"({"model_type": "starcoder2", "vocab_size": 49152, "hidden_size": 3072,
       "intermediate_size": 12288, "num_hidden_layers": 30, "num_attention_heads": 24,
       "num_key_value_heads": 2, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-05,
       "sliding_window": null, "use_bias": true, "tie_word_embeddings": true})", 3'030'371'328},
    {"Gemma 2B", R"({"model_type": "gemma", "head_dim": 256, "hidden_act": "gelu",
       "hidden_activation": null, "hidden_size": 2048, "intermediate_size": 16384,
       "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
       "vocab_size": 256000})", 2'506'172'416},
    {"Gemma 2 2B with full attention", R"({"model_type": "gemma2", "head_dim": 256,
       "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304, "intermediate_size": 9216,
       "num_attention_heads": 8, "num_hidden_layers": 26, "num_key_value_heads": 4,
       "sliding_window": null, "vocab_size": 256000})", 2'614'341'888},
    {"Gemma 3 27B with full attention", R"({"model_type": "gemma3_text", "head_dim": 128,
       "hidden_activation": "gelu", "hidden_size": 5376, "intermediate_size": 21504,
       "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
       "sliding_window": null, "vocab_size": 262144})", 27'009'002'240},
    {"OLMo 2 32B", R"({"model_type": "olmo2", "hidden_act": "silu", "hidden_size": 5120,
       "intermediate_size": 27648, "num_attention_heads": 40, "num_hidden_layers": 64,
       "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 100278})",
     32'233'522'176},
    {"ERNIE 4.5 0.3B", R"({"model_type": "ernie4_5", "hidden_act": "silu", "hidden_size": 1024,
       "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 2,
       "num_hidden_layers": 18, "head_dim": 128, "use_bias": false, "use_rmsnorm": true,
       "tie_word_embeddings": true, "vocab_size": 103424})", 360'748'032},
    {"an ERNIE 4.5 with biases", R"({"model_type": "ernie4_5", "hidden_size": 1024,
       "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 2,
       "num_hidden_layers": 18, "head_dim": 128, "use_bias": true,
       "tie_word_embeddings": false, "vocab_size": 103424})", 466'847'744},
    {"Mixtral 8x7B", R"({"model_type": "mixtral", "hidden_act": "silu", "hidden_size": 4096,
       "intermediate_size": 14336, "num_attention_heads": 32, "num_experts_per_tok": 2,
       "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
       "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 32000})",
     46'702'792'704},
    {"Qwen1.5 MoE A2.7B", R"({"model_type": "qwen2_moe", "vocab_size": 151936, "hidden_size": 2048,
       "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
       "num_key_value_heads": 16, "hidden_act": "silu", "use_sliding_window": false,
       "sliding_window": 0, "decoder_sparse_step": 1, "moe_intermediate_size": 1408,
       "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4, "num_experts": 60,
       "norm_topk_prob": false, "mlp_only_layers": [], "qkv_bias": true})", 14'315'784'192},
    {"Qwen3 30B A3B", R"({"model_type": "qwen3_moe", "attention_bias": false,
       "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2048,
       "mlp_only_layers": [], "moe_intermediate_size": 768, "num_attention_heads": 32,
       "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
       "num_key_value_heads": 4, "tie_word_embeddings": false, "vocab_size": 151936})",
     30'532'122'624},
    {"Qwen3 Coder 480B A35B", R"({"model_type": "qwen3_moe", "attention_bias": false,
       "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 6144,
       "intermediate_size": 8192, "max_window_layers": 62, "mlp_only_layers": [],
       "moe_intermediate_size": 2560, "num_attention_heads": 96, "num_experts": 160,
       "num_experts_per_tok": 8, "num_hidden_layers": 62, "num_key_value_heads": 8,
       "qkv_bias": false, "shared_expert_intermediate_size": 0, "sliding_window": null,
       "tie_word_embeddings": false, "use_qk_norm": true, "use_sliding_window": false,
       "vocab_size": 151936})", 480'154'875'392},
    {"OLMoE 1B 7B", R"({"model_type": "olmoe", "attention_bias": false, "hidden_act": "silu",
       "hidden_size": 2048, "intermediate_size": 1024, "num_attention_heads": 16,
       "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 16,
       "num_key_value_heads": 16, "router_aux_loss_coef": 0.01, "tie_word_embeddings": false,
       "vocab_size": 50304})", 6'919'161'856},
    {"DeepSeek V3", R"({"model_type": "deepseek_v3", "attention_bias": false, "ep_size": 1,
       "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
       "intermediate_size": 18432, "kv_lora_rank": 512, "moe_intermediate_size": 2048,
       "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
       "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
       "num_key_value_heads": 128, "num_nextn_predict_layers": 0, "q_lora_rank": 1536,
       "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "quantization_config": {"fmt": "e4m3"},
       "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 129280})", 671'026'404'352},
    {"Sarvam 105B", R"({"model_type": "sarvam_mla", "vocab_size": 262144, "hidden_size": 4096,
       "intermediate_size": 16384, "moe_intermediate_size": 2048, "num_hidden_layers": 32,
       "num_attention_heads": 64, "num_key_value_heads": 64, "n_shared_experts": 1,
       "n_routed_experts": 128, "kv_lora_rank": 512, "q_lora_rank": null, "qk_rope_head_dim": 64,
       "v_head_dim": 128, "qk_nope_head_dim": 128, "num_experts_per_tok": 8,
       "first_k_dense_replace": 1, "attention_bias": false, "num_nextn_predict_layers": 0,
       "qk_head_dim": 192, "head_dim": 64})", 106'031'763'456},
    {"the language model of GLM-4.5V", R"({"model_type": "glm4_moe", "attention_bias": true,
       "first_k_dense_replace": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
       "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 128,
       "n_shared_experts": 1, "num_attention_heads": 96, "num_experts_per_tok": 8,
       "num_hidden_layers": 46, "num_key_value_heads": 8, "use_qk_norm": false,
       "vocab_size": 151552})", 106'852'245'504},
    {"Solar Open 100B", R"({"model_type": "solar_open", "vocab_size": 196608, "hidden_size": 4096,
       "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8,
       "moe_intermediate_size": 1280, "num_experts_per_tok": 8, "n_shared_experts": 1,
       "n_routed_experts": 128, "head_dim": 128, "attention_bias": false})", 102'651'793'408}};

std::vector<known_total> const vision_language_models{
    {"InternVL3.5 8B", R"({"model_type": "internvl", "downsample_ratio": 0.5,
       "image_seq_length": 256, "projector_hidden_act": "gelu", "vision_feature_layer": -1,
       "vision_feature_select_strategy": "default", "tie_word_embeddings": false,
       "vision_config": {"model_type": "internvl_vision", "hidden_size": 1024,
         "num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": false,
         "use_qk_norm": false, "intermediate_size": 4096, "norm_type": "layer_norm",
         "image_size": [448, 448], "patch_size": [14, 14], "num_channels": 3,
         "use_mask_token": false, "use_absolute_position_embeddings": true,
         "layer_scale_init_value": 0.1, "use_mean_pooling": true},
       "text_config": {"model_type": "qwen3", "head_dim": 128, "hidden_size": 4096,
         "intermediate_size": 12288, "num_attention_heads": 32, "num_hidden_layers": 36,
         "num_key_value_heads": 8, "tie_word_embeddings": false, "vocab_size": 151936}})",
     8'528'244'736},
    {"InternVL3 8B", R"({"model_type": "internvl_chat", "downsample_ratio": 0.5,
       "force_image_size": 448, "hidden_size": 3584, "max_dynamic_patch": 12, "select_layer": -1,
       "llm_config": {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
         "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
         "tie_word_embeddings": false, "vocab_size": 151674},
       "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 1024, "image_size": 448,
         "intermediate_size": 4096, "norm_type": "layer_norm", "num_attention_heads": 16,
         "num_hidden_layers": 24, "patch_size": 14, "qk_normalization": false, "qkv_bias": true}})",
     7'944'373'760},
    {"Qwen2.5-VL 7B", R"({"model_type": "qwen2_5_vl", "hidden_act": "silu", "hidden_size": 3584,
       "intermediate_size": 18944, "max_window_layers": 28, "num_attention_heads": 28,
       "num_hidden_layers": 28, "num_key_value_heads": 4, "sliding_window": 32768,
       "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 152064,
       "vision_config": {"depth": 32, "hidden_act": "silu", "hidden_size": 1280,
         "intermediate_size": 3420, "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584,
         "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": null,
         "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2,
         "temporal_patch_size": 2}})", 8'292'166'656},
    {"Qwen2-VL 2B", R"({"model_type": "qwen2_vl", "hidden_act": "silu", "hidden_size": 1536,
       "intermediate_size": 8960, "num_attention_heads": 12, "num_hidden_layers": 28,
       "num_key_value_heads": 2, "tie_word_embeddings": true, "use_sliding_window": false,
       "vocab_size": 151936, "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536,
         "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "patch_size": 14,
         "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}})",
     2'208'985'600}};

std::string_view const llava_7b = R"({"model_type": "llava", "vision_feature_layer": -2,
  "vision_feature_select_strategy": "default", "text_config": {"hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 11008, "model_type": "llama",
    "num_attention_heads": 32, "num_hidden_layers": 32, "vocab_size": 32064},
  "vision_config": {"hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
    "model_type": "clip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
    "patch_size": 14, "projection_dim": 768}, "tie_word_embeddings": false})";

/// A tower, the parameters that its class has, and those of them that no connector needs: pooling
/// and the space that texts and images share.
struct known_tower {
  char const* name;
  char const* text;
  std::int64_t total;
  std::int64_t pooling;
};

std::vector<known_tower> const towers{
    {"CLIP ViT-B/32", R"({"model_type": "clip", "projection_dim": 512, "vision_config":
       {"model_type": "clip_vision_model", "hidden_size": 768, "image_size": 224,
        "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
        "patch_size": 32}})", 87'456'000, 0},
    {"CLIP ViT-L/14 at 336 pixels", R"({"model_type": "clip_vision_model", "hidden_act":
       "quick_gelu", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
       "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14})", 303'507'456, 0},
    {"SigLIP B/16", R"({"model_type": "siglip_vision_model", "hidden_size": 768, "image_size": 224,
       "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
       "patch_size": 16})", 92'884'224, 7'087'104},
    {"SigLIP So400m/14 at 384 pixels", R"({"model_type": "siglip_vision_model", "hidden_size": 1152,
       "image_size": 384, "intermediate_size": 4304, "num_attention_heads": 16,
       "num_hidden_layers": 27, "patch_size": 14})", 428'225'600, 15'238'352},
    {"ViT-B/16", R"({"model_type": "vit", "hidden_size": 768, "image_size": 224,
       "intermediate_size": 3072, "num_attention_heads": 12, "num_channels": 3,
       "num_hidden_layers": 12, "patch_size": 16})", 86'389'248, 768 * 768 + 768},
    {"InternViT 300M", R"({"model_type": "internvl_vision", "hidden_size": 1024,
       "num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": true,
       "use_qk_norm": false, "intermediate_size": 4096, "norm_type": "layer_norm",
       "image_size": [448, 448], "patch_size": [14, 14]})", 304'012'288, 0},
    {"InternViT 300M with a last norm", R"({"model_type": "internvl_vision", "hidden_size": 1024,
       "num_hidden_layers": 24, "num_attention_heads": 16, "attention_bias": true,
       "use_qk_norm": false, "intermediate_size": 4096, "norm_type": "layer_norm",
       "image_size": [448, 448], "patch_size": [14, 14], "use_mean_pooling": false})",
     304'014'336, 0},
    {"InternViT 6B", R"({"model_type": "intern_vit_6b", "hidden_size": 3200,
       "num_hidden_layers": 45, "num_attention_heads": 25, "qkv_bias": false,
       "qk_normalization": true, "intermediate_size": 12800, "norm_type": "rms_norm",
       "image_size": 448, "patch_size": 14})", 5'536'496'000, 0},
    {"open_clip ViT-B-32", R"({"embed_dim": 512, "vision_cfg": {"image_size": 224, "layers": 12,
       "width": 768, "patch_size": 32}, "text_cfg": {}})", 87'849'216, 768 * 512},
    {"EVA01-g-14", R"({"embed_dim": 1024, "vision_cfg": {"image_size": 224, "layers": 40,
       "width": 1408, "head_width": 88, "mlp_ratio": 4.3637, "patch_size": 14,
       "eva_model_name": "eva-clip-g-14-x", "xattn": true}, "text_cfg": {}})",
     1'012'588'928, 1408 * 1024 + 1024},
    {"EVA02-E-14", R"({"embed_dim": 1024, "vision_cfg": {"image_size": 224, "layers": 64,
       "width": 1792, "head_width": 112, "mlp_ratio": 8.571428571428571, "patch_size": 14,
       "eva_model_name": "eva-clip-4b-14-x", "postnorm": true}, "text_cfg": {}})",
     4'350'556'928, 1792 * 1024 + 1024}};
// clang-format on

model_description read(json const& value, std::string const& family = "") {
  return model_of("config.json", "", value, family);
}

std::string complaint(json const& value, std::string const& family = "") {
  try {
    static_cast<void>(read(value, family));
  } catch (input_error const& error) {
    return error.what();
  }
  return "";
}

json config_of(std::string_view name) {
  for (auto const* const models : {&language_models, &vision_language_models}) {
    for (known_total const& one : *models) {
      if (one.name == name) return json::parse(one.text);
    }
  }
  return {};
}

void check_contains(std::string const& message, std::string const& part) {
  INFO(message << " lacks " << part);
  CHECK(message.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("public configurations have the exact totals of their models") {
  for (auto const* const models : {&language_models, &vision_language_models}) {
    for (known_total const& one : *models) {
      INFO(one.name);
      auto const model = read(json::parse(one.text)).without_prediction();
      CHECK(omnibal::count_parameters(model).total == one.total);
    }
  }
}

TEST_CASE("towers have the exact totals of their classes, without what no connector needs") {
  for (known_tower const& one : towers) {
    INFO(one.name);
    auto const tower = read(json::parse(one.text)).vision->tower;
    CHECK(omnibal::count_parameters(tower).total + one.pooling == one.total);
  }
}

TEST_CASE("LLaVA 1.5 has the published total less what runs behind the layer that it takes") {
  json const llava = json::parse(llava_7b);
  std::int64_t const layer = 4 * (1024 * 1024 + 1024) + 2 * 1024 * 4096 + 4096 + 1024 + 4 * 1024;
  std::int64_t const last_norm = 2 * 1024;
  auto const total = [](json const& value) { return omnibal::count_parameters(read(value)).total; };
  CHECK(total(llava) + layer + last_norm == 7'063'427'072);
  json whole = llava;
  whole["vision_feature_layer"] = -1;
  CHECK(total(whole) + last_norm == 7'063'427'072);
  json large = llava;
  large["text_config"].update(R"({"hidden_size": 5120, "intermediate_size": 13824,
                                  "num_attention_heads": 40, "num_hidden_layers": 40})"_json);
  CHECK(total(large) + layer + last_norm == 13'351'494'656);
  // The default of the class is the last layer but one.
  json unstated = llava;
  unstated.erase("vision_feature_layer");
  CHECK(total(unstated) == total(llava));
  CHECK(read(unstated).vision->idle_parameters == layer + last_norm);
}

TEST_CASE("of two flags for tied matrices that one holds which the classes take") {
  using flag = std::optional<bool>;
  struct tied_case {
    flag of_pair;
    flag of_text;
    // Without a value: refused.
    flag in_llava;
    flag in_internvl;
    flag in_internvl_chat;
  };
  flag const none;
  std::vector<tied_case> const cases{
      {none, none, false, false, false},   {none, true, true, true, true},
      {none, false, false, false, false},  {true, none, true, true, false},
      {false, none, false, false, false},  {true, true, true, true, true},
      {false, false, false, false, false}, {true, false, none, none, false},
      {false, true, true, none, true}};
  auto const check = [](json value, char const* text, tied_case const& one, flag const& expected) {
    value.erase("tie_word_embeddings");
    value[text].erase("tie_word_embeddings");
    if (one.of_pair) value["tie_word_embeddings"] = *one.of_pair;
    if (one.of_text) value[text]["tie_word_embeddings"] = *one.of_text;
    INFO(value.dump());
    if (!expected) {
      check_contains(complaint(value), "versions of transformers differ");
      return;
    }
    bool const is_tied = read(value).language->output.weights == omnibal::head_weights::tied;
    CHECK(is_tied == *expected);
  };
  for (tied_case const& one : cases) {
    check(json::parse(llava_7b), "text_config", one, one.in_llava);
    check(config_of("InternVL3.5 8B"), "text_config", one, one.in_internvl);
    check(config_of("InternVL3 8B"), "llm_config", one, one.in_internvl_chat);
  }
}

TEST_CASE("a tower whose norms are of two kinds is refused") {
  json tower = json::parse(towers[5].text);
  tower["use_qk_norm"] = true;
  check_contains(complaint(tower), "norms of queries and keys are RMS norms");
  tower["norm_type"] = "rms_norm";
  CHECK(complaint(tower).empty());
  tower["use_mean_pooling"] = false;
  check_contains(complaint(tower), "the norm behind all layers is a layer norm");
}

TEST_CASE("widths by a ratio are rounded down, as their classes do") {
  json eva = json::parse(towers[9].text);
  eva["vision_cfg"].update(R"({"width": 1024, "head_width": 64, "mlp_ratio": 2.6667})"_json);
  CHECK(read(eva).vision->tower.layer().mlp == 2730);
}

TEST_CASE("a field that no rule of the family has is refused by name, wherever it stands") {
  for (auto const* const models : {&language_models, &vision_language_models}) {
    for (known_total const& one : *models) {
      json const whole = json::parse(one.text);
      std::string const family = whole["model_type"];
      for (char const* const field :
           {"full_attention_interval", "interleave_moe_layer_step", "attn_layer_period",
            "index_topk", "mtp_num_hidden_layers", "attn_output_gate", "a_new_field"}) {
        json changed = whole;
        changed[field] = 2;
        INFO(one.name << ": " << field);
        CHECK(complaint(changed) == std::string("config.json: field \"") + field + "\" of " +
                                        family +
                                        " is not understood; it may change what the model costs");
        // Null says nothing.
        changed[field] = nullptr;
        CHECK(complaint(changed).empty());
        for (char const* const part : {"vision_config", "text_config", "llm_config"}) {
          if (!whole.contains(part)) continue;
          changed = whole;
          changed[part][field] = 2;
          check_contains(complaint(changed),
                         std::string("field \"") + part + '.' + field + "\" of ");
        }
      }
    }
  }
}

TEST_CASE("fields that would make other layers are refused with the reason") {
  struct changed_field {
    char const* model;
    char const* field;
    json value;
    char const* message;
  };
  std::vector<changed_field> const changes{
      {"Qwen3 8B", "layer_types", json::array({"full_attention", "sliding_attention"}),
       "must have a kind for each of 36 layers"},
      {"Gemma 3 27B with full attention", "use_bidirectional_attention", true,
       "attention to later tokens is not read"},
      {"DeepSeek V3", "moe_layer_freq", json::array({0, 1}), "must have a flag for each layer"},
      {"Qwen3 30B A3B", "use_qk_norm", false, "it has norms of queries and keys"},
      {"Llama 2 7B", "hidden_act", "xielu", "no activation of that name is known"},
      {"Llama 2 7B", "is_encoder_decoder", true, "encoder-decoder models are not read"},
      {"InternVL3.5 8B", "image_seq_length", 1024, "a tile of the tower becomes 256 tokens"},
      {"InternVL3.5 8B", "tie_word_embeddings", true,
       "but \"text_config.tie_word_embeddings\" is not"},
      {"InternVL3.5 8B", "vision_feature_select_strategy", "full",
       "class tokens in documents are not modeled"},
      {"InternVL3 8B", "hidden_size", 4096, "field \"hidden_size\" of internvl_chat"}};
  for (changed_field const& one : changes) {
    json whole = config_of(one.model);
    whole[one.field] = one.value;
    check_contains(complaint(whole), one.message);
  }
  // The default of the class is a window.
  json nemo = config_of("Mistral Nemo 12B");
  nemo.erase("sliding_window");
  CHECK(read(nemo).language->runs.front().layer.span ==
        omnibal::attention_span{omnibal::span_kind::window, 4096});
  // Experts of a tower are ignored only if they are off.
  json internvl = config_of("InternVL3 8B");
  internvl["vision_config"]["num_experts"] = 8;
  check_contains(complaint(internvl), "field \"vision_config.num_experts\" of intern_vit_6b");
  internvl["vision_config"]["use_moe"] = false;
  CHECK(omnibal::count_parameters(read(internvl)).total == 7'944'373'760);
  internvl["vision_config"]["use_moe"] = true;
  check_contains(complaint(internvl), "experts of towers are not read");
  json vision = config_of("Qwen2.5-VL 7B");
  for (json const& window : {json(112), json(nullptr)}) {
    vision["vision_config"]["window_size"] = window;
    CHECK(omnibal::count_parameters(read(vision)).total == 8'292'166'656);
    CHECK(read(vision).vision->tower.runs.size() == (window.is_null() ? 1 : 8));
  }
  vision["vision_config"]["out_hidden_size"] = 4096;
  check_contains(complaint(vision), "must be the width of the language model, 3584");
}

TEST_CASE("a family that is unknown, not read or not stated is an error that helps") {
  json llama = config_of("Llama 2 7B");
  llama["model_type"] = "llama9";
  std::string const message = complaint(llama);
  check_contains(message,
                 "config.json: family \"llama9\" is not known; the families are \"llama\", ");
  for (std::string const& name : names_of_families()) check_contains(message, '"' + name + '"');
  check_contains(message, "--as FAMILY");
  CHECK(omnibal::count_parameters(read(llama, "llama")).total == 6'738'415'616);
  llama.erase("model_type");
  check_contains(complaint(llama), "no field \"model_type\"");
  CHECK(omnibal::count_parameters(read(llama, "llama")).total == 6'738'415'616);
  check_contains(complaint(llama, "lama"), "family \"lama\" is not known");
  // The rules of the other family hold.
  llama["attention_bias"] = true;
  CHECK(complaint(llama, "llama").empty());
  check_contains(complaint(llama, "mistral"), "field \"attention_bias\" of mistral");
  llama["conv_L_cache"] = 3;
  check_contains(complaint(llama, "llama"), "field \"conv_L_cache\" of llama is not understood");

  for (char const* const name : {"zaya", "zamba2", "deepseek_v4", "longcat_flash",
                                 "minimax_m3_vl_text", "recurrent_gemma", "dbrx"}) {
    check_contains(complaint({{"model_type", name}, {"hidden_size", 64}, {"vocab_size", 10}}),
                   std::string("family \"") + name + "\" is not read because of ");
  }
  // A width of a projection makes no CLIP, a text by itself no pair.
  check_contains(complaint({{"model_type", "x"}, {"projection_dim", 64}, {"hidden_size", 64}}),
                 "family \"x\" is not known");
  check_contains(complaint({{"model_type", "internvl"}, {"text_config", {{"hidden_size", 64}}}}),
                 "no field \"vision_config\"");
}

TEST_CASE("a number that a file lacks has the default of its class") {
  json const deepseek = config_of("DeepSeek V3");
  auto const counted = [](json const& value) {
    return omnibal::count_parameters(read(value).without_prediction()).total;
  };
  std::int64_t const whole = counted(deepseek);
  for (char const* const field : {"q_lora_rank", "n_shared_experts", "first_k_dense_replace"}) {
    json shorter = deepseek;
    shorter.erase(field);
    CHECK(counted(shorter) == whole);
    shorter[field] = nullptr;
    CHECK(counted(shorter) != whole);
  }
  // No class of a family states a default.
  json mimo = config_of("MiMo 7B");
  mimo.erase("vocab_size");
  check_contains(complaint(mimo), "no field \"vocab_size\"");
}

TEST_CASE("a model file says by whose rules the configurations that it names are read") {
  temporary_directory const folder;
  json llama = config_of("Llama 2 7B");
  llama.erase("model_type");
  folder.write("text.json", llama.dump());
  auto const find = [&](json const& value) {
    return find_model(folder.write("mine.json", value.dump()).string(), model_parts::language);
  };
  auto const refusal = [&](json const& value) -> std::string {
    try {
      static_cast<void>(find(value));
    } catch (input_error const& error) {
      return error.what();
    }
    return "";
  };
  json mine{{"language", "text.json"}};
  check_contains(refusal(mine), "or in a model file \"vision_as\" or \"language_as\"");
  mine["language_as"] = "llama";
  CHECK(omnibal::count_parameters(*find(mine).language).total == 6'738'415'616);
  mine["language_as"] = "cohere";
  CHECK(omnibal::count_parameters(*find(mine).language).total < 6'738'415'616);
  mine["vision_as"] = "vit";
  check_contains(refusal(mine), "field \"vision_as\" is \"vit\", but \"vision\" is no name");
}

TEST_CASE("biases are those of the family") {
  json glm = config_of("the language model of GLM-4.5V");
  auto const glm_layer = read(glm).language->runs.back().layer;
  CHECK(glm_layer.qkv_bias);
  CHECK_FALSE(glm_layer.output_bias);
  json qwen = config_of("Qwen3 8B");
  qwen["attention_bias"] = true;
  CHECK(read(qwen).language->runs.back().layer.output_bias);
  glm["use_qk_norm"] = true;
  CHECK(read(glm).language->runs.back().layer.head_norm == omnibal::query_key_norm::each_head);
}

TEST_CASE("a sparse model needs no width of dense layers that it does not have") {
  json qwen = config_of("Qwen3 30B A3B");
  for (json const& width : {json(nullptr), json(6144)}) {
    qwen["intermediate_size"] = width;
    CHECK(omnibal::count_parameters(read(qwen)).total == 30'532'122'624);
  }
  json deepseek = config_of("DeepSeek V3");
  deepseek["intermediate_size"] = nullptr;
  CHECK(complaint(deepseek) ==
        "config.json: field \"intermediate_size\" is null, must have a value");
}

TEST_CASE("numbers that Python's json writes are read, and refused where they are needed") {
  temporary_directory const folder;
  json llama = config_of("Llama 2 7B");
  llama["initializer_range"] = "@";
  llama["rope_scaling"] = {{"factors", {"#", "@"}}, {"note", "a \"NaN\" \\"}};
  auto const write = [&](json const& value) {
    std::string text = value.dump();
    for (auto const& [mark, constant] : std::vector<std::pair<std::string, std::string>>{
             {"\"@\"", "-Infinity"}, {"\"#\"", "NaN"}}) {
      for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
        text.replace(at, mark.size(), constant);
      }
    }
    return folder.write("config.json", text).string();
  };
  auto const model = find_model(write(llama), model_parts::language);
  CHECK(omnibal::count_parameters(model).total == 6'738'415'616);
  llama["hidden_size"] = "@";
  std::string message;
  try {
    static_cast<void>(find_model(write(llama), model_parts::language));
  } catch (input_error const& error) {
    message = error.what();
  }
  check_contains(message, "field \"hidden_size\" is \"-Infinity\", must be an integer from 1");
}

// Files of today state these fields beside those of the class, with values that change no layer.
TEST_CASE("published files may state what follows from other fields") {
  struct further_fields {
    char const* text;
    char const* further;
    /// Fields of which each makes the file another model.
    char const* refused;
  };
  std::vector<further_fields> const files{
      {R"({"model_type": "mimo_v2_flash", "num_hidden_layers": 3, "sliding_window": 128})",
       R"({"swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "swa_head_dim": 192,
           "swa_v_head_dim": 128, "sliding_window_size": 128, "attention_chunk_size": 128,
           "hybrid_layer_pattern": [0, 1, 1], "moe_layer_freq": [0, 1, 1],
           "add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true,
           "layernorm_epsilon": 1e-05, "attention_value_scale": 0.707, "swa_rope_theta": 10000})",
       R"({"swa_num_key_value_heads": 4, "swa_head_dim": 128, "attention_chunk_size": 64,
           "add_full_attention_sink_bias": true, "add_swa_attention_sink_bias": false,
           "hybrid_layer_pattern": [0, 1]})"},
      {R"({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*-"})",
       R"({"time_step_rank": 512})", "{}"},
      {R"({"model_type": "glm_moe_dsa", "num_hidden_layers": 2})",
       R"({"layer_types": ["deepseek_sparse_attention", "deepseek_sparse_attention"]})",
       R"({"layer_types": ["deepseek_sparse_attention", "full_attention"]})"},
      {R"({"model_type": "qwen3_5_text", "num_hidden_layers": 4})",
       R"({"mlp_only_layers": [], "output_gate_type": "swish"})", R"({"mlp_only_layers": [1]})"}};
  for (further_fields const& file : files) {
    json const base = json::parse(file.text);
    INFO(file.text);
    auto const expected = model_of("config.json", "", base);
    json all = base;
    all.update(json::parse(file.further));
    CHECK(model_json(model_of("config.json", "", all)) == model_json(expected));
    json const refused = json::parse(file.refused);
    for (auto const& [name, value] : refused.items()) {
      json other = all;
      other[name] = value;
      check_contains(complaint(other), name);
    }
  }
  // The pattern places the windows.
  json moved = json::parse(files[0].text);
  moved["hybrid_layer_pattern"] = {1, 0, 1};
  auto const usual = model_of("config.json", "", json::parse(files[0].text));
  CHECK(model_json(model_of("config.json", "", moved)) != model_json(usual));
}
