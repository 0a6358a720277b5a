// SPDX-License-Identifier: Apache-2.0
// Towers, audio towers and models of several parts: small configurations of the classes of
// transformers 5.24.0, whose parameters were counted on the meta device.

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

struct known_total {
  char const* name;
  char const* text;
  std::int64_t total;
};

// clang-format off
std::vector<known_total> const towers{
    {"DINOv2", R"({"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "image_size": 56, "patch_size": 14, "mlp_ratio": 4})",
     57'824},
    {"DINOv2 with gates and registers", R"({"model_type": "dinov2_with_registers", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "image_size": 56, "patch_size": 14, "mlp_ratio": 4,
       "use_swiglu_ffn": true, "num_register_tokens": 4})",
     58'864},
    {"DINOv3", R"({"model_type": "dinov3_vit", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14,
       "num_register_tokens": 4, "use_gated_mlp": true})",
     46'464},
    {"DINOv3 without biases of keys", R"({"model_type": "dinov3_vit", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14,
       "key_bias": false, "mlp_bias": false})",
     41'344},
    {"AIMv2", R"({"model_type": "aimv2_vision_model", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14})",
     48'864},
    {"AIMv2 with biases", R"({"model_type": "aimv2_vision_model", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14,
       "qkv_bias": true, "mlp_bias": true, "use_head": false})",
     46'496},
    {"SigLIP 2", R"({"model_type": "siglip2_vision_model", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "patch_size": 14, "num_patches": 16})",
     49'408},
    {"Pixtral", R"({"model_type": "pixtral", "hidden_size": 32, "num_hidden_layers": 3,
       "num_attention_heads": 4, "intermediate_size": 48, "image_size": 56, "patch_size": 14,
       "head_dim": 8})",
     45'152}};

std::vector<known_total> const pairs{
    {"LLaVA with a SigLIP", R"({"model_type": "llava", "vision_feature_layer": -2, "vision_feature_select_strategy":
       "full", "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14, "vision_use_head": false}, "text_config": {"model_type": "llama",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}, "image_seq_length": 16})",
     135'568},
    {"LLaVA-NeXT", R"({"model_type": "llava_next", "vision_feature_layer": -2, "image_seq_length": 16,
       "vision_config": {"model_type": "clip_vision_model", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14}, "text_config": {"model_type": "llama", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": false}})",
     135'728},
    {"LLaVA-OneVision", R"({"model_type": "llava_onevision", "vision_config": {"model_type": "siglip_vision_model",
       "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
       "intermediate_size": 48, "image_size": 56, "patch_size": 14, "vision_use_head": false},
       "text_config": {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": false}})",
     135'888},
    {"Mistral 3", R"({"model_type": "mistral3", "vision_config": {"model_type": "pixtral", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14, "head_dim": 8}, "text_config": {"model_type": "mistral",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false, "head_dim": 16}, "spatial_merge_size": 2,
       "tie_word_embeddings": false})",
     142'784},
    {"Qwen2.5-VL", R"({"model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl", "depth": 4,
       "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 14,
       "out_hidden_size": 64, "window_size": 56, "fullatt_block_indexes": [1, 3]},
       "text_config": {"model_type": "qwen2_5_vl_text", "hidden_size": 64, "intermediate_size":
       96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": false}, "tie_word_embeddings": false})",
     186'144},
    {"Qwen3-VL", R"({"model_type": "qwen3_vl", "vision_config": {"model_type": "qwen3_vl", "depth": 4,
       "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 14,
       "out_hidden_size": 64, "num_position_embeddings": 64, "deepstack_visual_indexes": [0,
       2]}, "text_config": {"model_type": "qwen3_vl_text", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": false, "head_dim":
       16}, "tie_word_embeddings": false})",
     232'032},
    {"GLM-4V", R"({"model_type": "glm4v", "vision_config": {"model_type": "glm4v_vision", "depth": 4,
       "hidden_size": 32, "intermediate_size": 80, "num_heads": 4, "patch_size": 14,
       "out_hidden_size": 64, "image_size": 56}, "text_config": {"model_type": "glm4v_text",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}, "tie_word_embeddings": false})",
     195'168},
    {"GLM-OCR", R"({"model_type": "glm_ocr", "vision_config": {"model_type": "glm_ocr_vision", "depth": 4,
       "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 14,
       "out_hidden_size": 64, "attention_bias": true}, "text_config": {"model_type":
       "glm_ocr_text", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false, "head_dim": 16}, "tie_word_embeddings": false})",
     210'816},
    {"Gemma 3", R"({"model_type": "gemma3", "mm_tokens_per_image": 4, "vision_config": {"model_type":
       "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads":
       4, "intermediate_size": 48, "image_size": 56, "patch_size": 14, "vision_use_head":
       false}, "text_config": {"model_type": "gemma3_text", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": true, "head_dim":
       16, "sliding_window": 8}})",
     118'896},
    {"PaliGemma", R"({"model_type": "paligemma", "projection_dim": 64, "vision_config": {"model_type":
       "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads":
       4, "intermediate_size": 48, "image_size": 56, "patch_size": 14, "vision_use_head":
       false}, "text_config": {"model_type": "gemma", "hidden_size": 64, "intermediate_size":
       96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": true, "head_dim": 16}})",
     118'608},
    {"SmolVLM", R"({"model_type": "smolvlm", "scale_factor": 2, "tie_word_embeddings": false,
       "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14}, "text_config": {"model_type": "llama", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": false}})",
     137'488},
    {"Idefics 3 with a tied head", R"({"model_type": "idefics3", "scale_factor": 2, "tie_word_embeddings": true,
       "vision_config": {"model_type": "idefics3_vision", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14}, "text_config": {"model_type": "llama", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "tie_word_embeddings": false}})",
     124'688},
    {"Ovis 2", R"({"model_type": "ovis2", "hidden_size": 64, "vocab_size": 200, "tie_word_embeddings":
       true, "vision_config": {"model_type": "ovis2_vision", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "image_size":
       56, "patch_size": 14, "vocab_size": 128, "hidden_stride": 2}, "text_config":
       {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers":
       2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}})",
     144'726},
    {"LFM2-VL", R"({"model_type": "lfm2_vl", "projector_hidden_size": 40, "tie_word_embeddings": true,
       "vision_config": {"model_type": "siglip2_vision_model", "hidden_size": 32,
       "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 48, "patch_size":
       14, "num_patches": 16}, "text_config": {"model_type": "lfm2", "hidden_size": 64,
       "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "vocab_size": 200, "block_auto_adjust_ff_dim": false,
       "layer_types": ["conv", "full_attention"], "conv_L_cache": 3, "tie_word_embeddings":
       true}})",
     136'328},
    {"Llama 4", R"({"model_type": "llama4", "tie_word_embeddings": false, "vision_config": {"model_type":
       "llama4_vision_model", "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads":
       4, "intermediate_size": 128, "image_size": 56, "patch_size": 14, "vision_output_dim":
       40, "projector_input_dim": 40, "projector_output_dim": 40, "pixel_shuffle_ratio": 0.5},
       "text_config": {"model_type": "llama4_text", "hidden_size": 64, "intermediate_size": 48,
       "intermediate_size_mlp": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 200, "num_local_experts": 4,
       "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "tie_word_embeddings": false}})",
     210'080},
    {"Gemma 4", R"({"model_type": "gemma4", "vision_config": {"model_type": "gemma4_vision", "hidden_size":
       32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
       "num_key_value_heads": 4, "head_dim": 8, "patch_size": 14, "position_embedding_size":
       50, "pooling_kernel_size": 2}, "text_config": {"model_type": "gemma4_text",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "global_head_dim":
       16, "vocab_size": 200, "vocab_size_per_layer_input": 200, "hidden_size_per_layer_input":
       8, "layer_types": ["sliding_attention", "full_attention"], "tie_word_embeddings": true}})",
     131'896},
    {"Kimi K2.5", R"({"model_type": "kimi_k25", "tie_word_embeddings": false, "projection_hidden_size": 64,
       "vision_config": {"model_type": "kimi_k25_vision", "patch_size": 14, "pos_emb_height":
       8, "pos_emb_width": 8, "num_attention_heads": 4, "num_hidden_layers": 3, "hidden_size":
       32, "intermediate_size": 48}, "text_config": {"model_type": "deepseek_v3",
       "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
       "vocab_size": 200, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts":
       1, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
       "v_head_dim": 16, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
       "tie_word_embeddings": false}})",
     166'816},
    {"Kimi K2.5 as published", R"({"model_type": "kimi_k25", "tie_word_embeddings": false, "projection_hidden_size": 64,
       "media_placeholder_token_id": 9,
       "vision_config": {"model_type": "", "patch_size": 14, "init_pos_emb_height":
       8, "init_pos_emb_width": 8, "init_pos_emb_time": 4, "vt_num_attention_heads": 4,
       "vt_num_hidden_layers": 3, "vt_hidden_size": 32, "vt_intermediate_size": 48,
       "mm_hidden_size": 32, "text_hidden_size": 64, "merge_type": "sd2_tpool",
       "mm_projector_type": "patchmerger", "pos_emb_type": "divided_fixed",
       "video_attn_type": "spatial_temporal", "projector_hidden_act": "gelu",
       "projector_ln_eps": 1e-05}, "text_config": {"model_type": "deepseek_v3",
       "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 32,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
       "vocab_size": 200, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts":
       1, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
       "v_head_dim": 16, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
       "tie_word_embeddings": false}})",
     166'816},
    {"ERNIE 4.5 VL", R"({"model_type": "ernie4_5_vl_moe", "tie_word_embeddings": true, "vision_config":
       {"model_type": "ernie4_5_vl_moe_vision", "depth": 3, "hidden_size": 32,
       "intermediate_size": 48, "num_heads": 4, "patch_size": 14}, "text_config":
       {"model_type": "ernie4_5_vl_moe_text", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 1,
       "moe_intermediate_size": [32, 16], "head_dim": 128, "tie_word_embeddings": true}})",
     546'304}};

std::vector<known_total> const models_of_sound{
    {"Whisper", R"({"model_type": "whisper", "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
       "decoder_start_token_id": 1, "vocab_size": 200, "num_mel_bins": 16, "encoder_layers": 2,
       "encoder_attention_heads": 4, "decoder_layers": 3, "decoder_attention_heads": 4,
       "encoder_ffn_dim": 48, "decoder_ffn_dim": 40, "d_model": 32, "max_source_positions": 50,
       "max_target_positions": 20})",
     62'008},
    {"Moonshine", R"({"model_type": "moonshine", "vocab_size": 200, "hidden_size": 32, "intermediate_size":
       48, "encoder_num_hidden_layers": 2, "decoder_num_hidden_layers": 3,
       "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4})",
     84'864},
    {"Qwen2-Audio", R"({"model_type": "qwen2_audio", "audio_config": {"model_type": "qwen2_audio_encoder",
       "num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads": 4,
       "encoder_ffn_dim": 48, "d_model": 32, "max_source_positions": 50}, "text_config":
       {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers":
       2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}})",
     111'008},
    {"Voxtral", R"({"model_type": "voxtral", "audio_config": {"model_type": "voxtral_encoder",
       "num_mel_bins": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 128, "hidden_size": 32, "max_source_positions": 50}, "text_config":
       {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers":
       2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}})",
     303'360},
    {"Qwen3-ASR", R"({"model_type": "qwen3_asr", "tie_word_embeddings": true, "audio_config": {"model_type":
       "qwen3_asr_encoder", "num_mel_bins": 16, "encoder_layers": 2, "encoder_attention_heads":
       4, "encoder_ffn_dim": 48, "d_model": 32, "output_dim": 64, "downsample_hidden_size":
       12}, "text_config": {"model_type": "qwen3", "hidden_size": 64, "intermediate_size": 96,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 200, "tie_word_embeddings": true, "head_dim": 16}})",
     96'368},
    {"the thinker of Qwen2.5-Omni", R"({"model_type": "qwen2_5_omni_thinker", "tie_word_embeddings": false, "audio_config":
       {"model_type": "qwen2_5_omni_audio_encoder", "num_mel_bins": 16, "encoder_layers": 2,
       "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "d_model": 32, "output_dim": 64},
       "vision_config": {"model_type": "qwen2_5_omni_vision_encoder", "depth": 4,
       "hidden_size": 32, "intermediate_size": 48, "num_heads": 4, "patch_size": 14,
       "out_hidden_size": 64}, "text_config": {"model_type": "qwen2_5_omni_text",
       "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
       "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 200,
       "tie_word_embeddings": false}})",
     208'064},
    {"the thinker of Qwen3-Omni", R"({"model_type": "qwen3_omni_moe_thinker", "tie_word_embeddings": false, "audio_config":
       {"model_type": "qwen3_omni_moe_audio_encoder", "num_mel_bins": 16, "encoder_layers": 2,
       "encoder_attention_heads": 4, "encoder_ffn_dim": 48, "d_model": 32, "output_dim": 64,
       "downsample_hidden_size": 12}, "vision_config": {"model_type":
       "qwen3_omni_moe_vision_encoder", "depth": 4, "hidden_size": 32, "intermediate_size": 48,
       "num_heads": 4, "patch_size": 14, "out_hidden_size": 64, "num_position_embeddings": 64,
       "deepstack_visual_indexes": [0, 2, 9]}, "text_config": {"model_type":
       "qwen3_omni_moe_text", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads":
       4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 200, "num_experts": 4,
       "num_experts_per_tok": 2, "moe_intermediate_size": 32, "intermediate_size": 96}})",
     291'600}};
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

/// The parameters of all layers, and those that never run.
std::int64_t parameters_of(model_description const& model) {
  std::int64_t idle = 0;
  if (model.vision) idle += model.vision->idle_parameters;
  if (model.audio) idle += model.audio->idle_parameters;
  if (!model.language) return omnibal::count_parameters(model.vision->tower).total + idle;
  return omnibal::count_parameters(model.without_prediction()).total + idle;
}

json config_of(std::string const& name) {
  for (auto const* const list : {&towers, &pairs, &models_of_sound}) {
    for (known_total const& one : *list) {
      if (one.name == name) return json::parse(one.text);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("towers, pairs and models of sound have the exact totals of their classes") {
  for (auto const* const list : {&towers, &pairs, &models_of_sound}) {
    for (known_total const& one : *list) {
      INFO(one.name);
      CHECK(parameters_of(read(json::parse(one.text))) == one.total);
    }
  }
}

TEST_CASE("a model file repeats a model of several parts") {
  for (auto const* const list : {&pairs, &models_of_sound}) {
    for (known_total const& one : *list) {
      INFO(one.name);
      json written = json::parse(model_json(read(json::parse(one.text))).dump());
      json again = json::parse(model_json(read(written)).dump());
      CHECK(again == written);
    }
  }
}

TEST_CASE("a field that no tower reads is refused by name") {
  for (auto const* const list : {&towers, &pairs, &models_of_sound}) {
    for (known_total const& one : *list) {
      INFO(one.name);
      json const whole = json::parse(one.text);
      json changed = whole;
      changed["a_new_field"] = 2;
      CHECK(complaint(changed).find("\"a_new_field\" of ") != std::string::npos);
      for (char const* const part : {"vision_config", "audio_config"}) {
        if (!whole.contains(part) || whole[part].is_null()) continue;
        changed = whole;
        changed[part]["a_new_field"] = 2;
        CHECK(complaint(changed).find(std::string(part) + ".a_new_field\" of ") !=
              std::string::npos);
      }
    }
  }
}

TEST_CASE("layers with windows and layers with whole images alternate as the file says") {
  auto const tower = read(config_of("Qwen2.5-VL")).vision->tower;
  REQUIRE(tower.runs.size() == 4);
  // A window of 56 pixels has 4 patches on a side.
  CHECK(tower.runs[0].layer.span == omnibal::attention_span{omnibal::span_kind::chunk, 16});
  CHECK(tower.runs[1].layer.span == omnibal::attention_span{});
  std::int64_t const tokens = tower.layer().tile_tokens();
  auto const windows = tower.runs[0].layer({.tiles = 1}).forward.flops;
  auto const whole = tower.runs[1].layer({.tiles = 1}).forward.flops;
  CHECK(whole - windows == 4 * tower.layer().hidden * tokens * (tokens - 16));
}

TEST_CASE("mergers of inner layers are connectors of their own") {
  auto const vision = *read(config_of("Qwen3-VL")).vision;
  REQUIRE(vision.further.size() == 1);
  CHECK(vision.further[0].count == 2);
  CHECK(vision.further[0].layer.norm_width == 0);
  CHECK(vision.connector.norm_width == 32);
  // The third index is beyond the layers: its merger is there and never runs.
  auto const omni = *read(config_of("the thinker of Qwen3-Omni")).vision;
  CHECK(omni.further[0].count == 2);
  CHECK(omni.idle_parameters == omnibal::count_parameters(omni.further[0].layer).total);
}

TEST_CASE("tokens of a tile are as many as the class makes") {
  CHECK(read(config_of("Gemma 3")).vision->connector.tile_tokens == 4);
  CHECK(read(config_of("PaliGemma")).vision->connector.tile_tokens == 16);
  CHECK(read(config_of("SmolVLM")).vision->connector.tile_tokens == 4);
  CHECK(read(config_of("Mistral 3")).vision->connector.tile_tokens == 4);
  json gemma = config_of("Gemma 3");
  gemma["mm_tokens_per_image"] = 9;
  CHECK(complaint(gemma).find("must be the square of a divisor of the 4 patches") !=
        std::string::npos);
}

TEST_CASE("an audio part runs before the language model, which may attend to its tokens") {
  auto const whisper = read(config_of("Whisper"));
  CHECK(whisper.audio->tower.layers == 2);
  CHECK_FALSE(whisper.vision);
  omnibal::micro_batch_work const batch{
      .clips = omnibal::equal_sequences({.count = 2, .length = 50}),
      .documents = omnibal::equal_sequences({.count = 2, .length = 10})};
  omnibal::micro_batch_work const silent{.documents = batch.documents};
  auto const heard = omnibal::layer_costs(whisper.language_layers(), batch);
  auto const unheard = omnibal::layer_costs(whisper.language_layers(), silent);
  // Keys and values of 100 tokens, and scores of 20 words with 50 tokens each, twice.
  CHECK(heard[1].forward.flops - unheard[1].forward.flops ==
        2 * 100 * 2 * 32 * 32 + 4 * 20 * 50 * 32);
  auto const omni = read(config_of("the thinker of Qwen2.5-Omni"));
  CHECK(omni.audio->tower.layer.span == omnibal::attention_span{omnibal::span_kind::chunk, 100});
  CHECK(omni.audio->connectors[0].layer.patches_per_token == 2);
}

TEST_CASE("the thinker of a model that speaks is read without its talker") {
  json const thinker = config_of("the thinker of Qwen2.5-Omni");
  json whole{{"model_type", "qwen2_5_omni"},
             {"thinker_config", thinker},
             {"talker_config", {{"hidden_size", 8}}},
             {"token2wav_config", {{"dit_config", json::object()}}}};
  CHECK(parameters_of(read(whole)) == parameters_of(read(thinker)));
  whole["listener_config"] = json::object();
  CHECK(complaint(whole).find("field \"listener_config\" of qwen2_5_omni") != std::string::npos);
}
