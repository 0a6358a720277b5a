// SPDX-License-Identifier: Apache-2.0
#include "public_families.hpp"

#include "text_families.hpp"

#include <algorithm>
#include <array>

namespace examples {

std::vector<tower_family> const& tower_families() {
  ignored_fields const pooling{
      "the space that texts and images share, and pooling: connectors take patches",
      {"projection_dim", "vision_use_head", "encoder_stride", "pooler_output_size", "pooler_act",
       "vocab_size"}};
  static std::vector<tower_family> const families{
      {.names = {"vit"},
       .has_last_norm = true,
       .qkv_bias = {.field = "qkv_bias", .otherwise = true},
       .ignored = {pooling}},
      {.names = {"clip_vision_model"},
       .has_patch_bias = false,
       .has_first_norm = true,
       .has_last_norm = true,
       .ignored = {pooling}},
      {.names = {"siglip_vision_model"},
       .class_tokens = 0,
       .has_last_norm = true,
       .ignored = {pooling}},
      {.names = {"intern_vit_6b"},
       .qkv_bias = {.field = "qkv_bias"},
       .head_norm = {.field = "qk_normalization"},
       .norm_field = "norm_type",
       .has_layer_scale = true,
       .needs_fields = true,
       .neutral = {{"use_moe", neutral_value::off, "experts of towers are not read"}},
       .ignored = {pooling,
                   {"experts, which are off",
                    {"capacity_factor", "eval_capacity_factor", "laux_allreduce", "moe_coeff_ratio",
                     "moe_intermediate_size", "moe_output_scale", "noisy_gate_policy",
                     "num_experts", "num_routed_experts", "num_shared_experts",
                     "shared_expert_intermediate_size", "use_residual", "use_rts",
                     "use_weighted_residual"},
                    "use_moe"}}},
      {.names = {"internvl_vision"},
       .has_last_norm = true,
       .no_last_norm_field = "use_mean_pooling",
       .qkv_bias = {.field = "attention_bias"},
       .head_norm = {.field = "use_qk_norm"},
       .norm_field = "norm_type",
       .has_layer_scale = true,
       .needs_fields = true,
       .neutral = {{"use_mask_token", neutral_value::off, "mask tokens are not read"},
                   {"use_absolute_position_embeddings", neutral_value::on,
                    "towers without learned positions are not read"}},
       .ignored = {pooling, {"initialization", {"layer_scale_init_value"}}}}};
  return families;
}

std::vector<pair_family> const& pair_families() {
  neutral_field const whole_selection{"vision_feature_select_strategy", neutral_value::usual,
                                      "class tokens in documents are not modeled"};
  ignored_fields const tiles{
      "how images become tiles: their number is given",
      {"dynamic_image_size", "max_dynamic_patch", "min_dynamic_patch", "use_thumbnail",
       "pad2square", "ps_version", "template", "image_grid_pinpoints", "image_fold"}};
  static std::vector<pair_family> const families{
      {.names = {"internvl_chat"},
       .kind = pair_kind::internvl,
       .tied = tied_by::language,
       .text_field = "llm_config",
       .understood = {"downsample_ratio", "force_image_size", "select_layer"},
       .neutral = {{"use_backbone_lora", neutral_value::zero, "adapters are not modeled"},
                   {"use_llm_lora", neutral_value::zero, "adapters are not modeled"}},
       .ignored = {tiles}},
      {.names = {"internvl"},
       .kind = pair_kind::internvl,
       .understood = {"downsample_ratio", "vision_feature_layer", "image_seq_length",
                      "projector_hidden_act"},
       .neutral = {whole_selection},
       .ignored = {tiles}},
      {.names = {"llava"},
       .kind = pair_kind::llava,
       .tied = tied_by::either,
       .understood = {"vision_feature_layer", "image_seq_length", "projector_hidden_act",
                      "multimodal_projector_bias"},
       .neutral = {whole_selection}},
      {.names = {"qwen2_vl"},
       .kind = pair_kind::qwen,
       .text_family = "qwen2_vl_text",
       .tower_family = "qwen2_vl"},
      {.names = {"qwen2_5_vl"},
       .kind = pair_kind::qwen,
       .text_family = "qwen2_5_vl_text",
       .tower_family = "qwen2_5_vl"}};
  return families;
}

std::vector<clip_family> const& clip_families() {
  static std::vector<clip_family> const families{{{"clip"}, "clip_vision_model"},
                                                 {{"siglip"}, "siglip_vision_model"}};
  return families;
}

std::vector<refused_family> const& refused_families() {
  static std::vector<refused_family> const families{
      {{"llama4", "gemma3", "gemma4", "paligemma"}, "towers that are not read"},
      {{"gemma3n", "gemma3n_text"},
       "four streams of hidden numbers (AltUp) and low-rank products beside attention (LAuReL)"},
      {{"zaya"}, "convolutions within its attention (CCA) and routers of several layers"},
      {{"zamba2", "zamba"}, "layers that share their parameters"},
      {{"deepseek_v4"}, "attention to compressed tokens and several streams of hidden numbers"},
      {{"longcat_flash"}, "two attentions in each layer and experts without parameters"},
      {{"minimax_m3_vl_text"}, "sparse attention by blocks"},
      {{"recurrent_gemma", "rwkv", "xlstm"}, "recurrent layers of other kinds"},
      {{"mllama_text_model"},
       "layers of cross-attention; \"cross\" of a model file describes them"},
      {{"dbrx", "jetmoe", "doge", "diffllama", "bitnet"},
       "layers that are like no layer of the cost models"},
      {{"gpt2", "opt", "bloom", "mpt", "gptj", "codegen", "gpt_bigcode"},
       "names of fields of older classes; a model file describes its layers"},
      {{"smolvlm", "idefics3"}, "tokens of a tile by a scale factor"},
      {{"mistral3", "pixtral"}, "towers with gated layers and rotary positions"},
      {{"qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe"}, "mergers between the layers of the tower"},
      {{"qwen3_5", "qwen3_5_moe", "glm4v", "glm4v_moe", "glm_ocr", "ernie4_5_vl_moe"},
       "towers that are not read"},
      {{"llava_next", "llava_onevision"}, "images in tiles of several sizes"},
      {{"whisper", "qwen2_5_omni", "qwen2_audio"}, "audio towers"}};
  return families;
}

std::vector<std::string> names_of_families() {
  std::vector<std::string> result;
  auto const add = [&](auto const& families) {
    for (auto const& family : families) {
      result.insert(result.end(), family.names.begin(), family.names.end());
    }
  };
  add(text_families());
  add(pair_families());
  add(clip_families());
  add(tower_families());
  return result;
}

bool is_known_activation(std::string_view name) {
  constexpr std::array<std::string_view, 11> known{
      "silu", "swish", "gelu",         "gelu_new",   "gelu_fast", "gelu_pytorch_tanh",
      "relu", "relu2", "relu_squared", "quick_gelu", "sigmoid"};
  return std::ranges::find(known, name) != known.end();
}

}  // namespace examples
