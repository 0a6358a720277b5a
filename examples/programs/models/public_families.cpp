// SPDX-License-Identifier: Apache-2.0
#include "public_families.hpp"

#include <algorithm>
#include <array>

namespace examples {

namespace {

using omnibal::norm_placement;
using omnibal::query_key_norm;

constexpr std::string_view no_windows = "sliding windows are not modeled";
constexpr std::string_view no_prediction =
    "multi-token prediction is not modeled; set it to 0 to plan without it";
constexpr std::string_view all_sparse = "a mix of dense and sparse layers is not modeled";

/// Windows that are off unless the file turns them on.
neutral_field optional_window() {
  return {.name = "sliding_window", .value = neutral_value::absent, .reason = no_windows};
}

/// Windows that are on unless the file turns them off.
neutral_field usual_window() {
  return {.name = "sliding_window",
          .value = neutral_value::absent,
          .reason = "sliding windows are not modeled; null counts full attention",
          .is_needed = true};
}

neutral_field full_attention() {
  return {.name = "layer_types",
          .value = neutral_value::full_attention,
          .reason = "layers with other attention are not modeled"};
}

/// The windows of Qwen and SmolLM3: off without the flag, whatever their width.
std::vector<neutral_field> flagged_windows() {
  return {{"use_sliding_window", neutral_value::off, no_windows}, full_attention()};
}

ignored_fields unused_windows() {
  return {"of sliding windows, which are off without use_sliding_window",
          {"sliding_window", "max_window_layers"}};
}

ignored_fields router_fields() {
  return {"the router: its scores cost the same",
          {"norm_topk_prob", "routed_scaling_factor", "scoring_func", "topk_group", "n_group",
           "topk_method", "aux_loss_alpha", "seq_aux", "router_aux_loss_coef",
           "router_jitter_noise", "moe_router_dtype", "ep_size"}};
}

ignored_fields latent_sizes() {
  return {"sums of sizes that are given, or keys that latent attention does not have",
          {"qk_head_dim", "head_dim", "num_key_value_heads"}};
}

std::vector<neutral_field> prediction_layers() {
  return {{"num_nextn_predict_layers", neutral_value::zero, no_prediction}};
}

std::vector<neutral_field> operator+(std::vector<neutral_field> first,
                                     std::vector<neutral_field> const& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Llama and what differs from it in names, biases, norms and windows.
std::vector<text_family> dense_families() {
  family_flag const attention_bias{.field = "attention_bias"};
  std::vector<text_family> result;
  result.push_back({.names = {"llama"},
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .mlp_bias = {.field = "mlp_bias"},
                    .needs_key_heads = false});
  result.push_back({.names = {"internlm2"},
                    .qkv_bias = {.field = "bias"},
                    .output_bias = {.field = "bias"},
                    .needs_key_heads = false});
  result.push_back({.names = {"mistral"}, .neutral = {usual_window()}});
  result.push_back({.names = {"ministral3"},
                    .needs_head_size = true,
                    .neutral = {optional_window(), full_attention()}});
  result.push_back({.names = {"qwen2", "qwen2_vl_text", "qwen2_5_vl_text"},
                    .qkv_bias = {.otherwise = true},
                    .neutral = flagged_windows(),
                    .ignored = {unused_windows()}});
  result.push_back({.names = {"qwen3"},
                    .head_norm = query_key_norm::each_head,
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .needs_head_size = true,
                    .neutral = flagged_windows(),
                    .ignored = {unused_windows()}});
  result.push_back({.names = {"mimo"},
                    .qkv_bias = {.field = "attention_bias", .otherwise = true},
                    .neutral = flagged_windows() + prediction_layers(),
                    .ignored = {unused_windows()}});
  result.push_back({.names = {"smollm3"},
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .mlp_bias = {.field = "mlp_bias"},
                    .has_tied_head = true,
                    .neutral = flagged_windows(),
                    .ignored = {unused_windows(),
                                {"layers without rotary positions cost the same",
                                 {"no_rope_layers", "no_rope_layer_interval"}}}});
  result.push_back({.names = {"seed_oss"},
                    .qkv_bias = {.field = "attention_bias", .otherwise = true},
                    .output_bias = {.field = "attention_out_bias"},
                    .mlp_bias = {.field = "mlp_bias"},
                    .needs_head_size = true});
  result.push_back({.names = {"phi3"},
                    .needs_key_heads = false,
                    .neutral = {optional_window(),
                                {"attention_bias", neutral_value::off, "it has no biases"},
                                {"mlp_bias", neutral_value::off, "it has no biases"},
                                {"lm_head_bias", neutral_value::off, "it has no biases"}}});
  result.push_back(
      {.names = {"starcoder2"},
       .norm = omnibal::norm_kind::layer,
       .feed_forward = omnibal::mlp_kind::plain,
       .qkv_bias = {.field = "use_bias", .otherwise = true},
       .output_bias = {.field = "use_bias", .otherwise = true},
       .mlp_bias = {.field = "use_bias", .otherwise = true},
       .has_tied_head = true,
       .neutral = {optional_window(),
                   {"norm_type", neutral_value::layer_norm, "its norms are layer norms"},
                   {"mlp_type", neutral_value::usual, "its layers are plain"}}});
  result.push_back({.names = {"gemma"},
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .activations = {"hidden_act", "hidden_activation"},
                    .has_tied_head = true,
                    .needs_head_size = true});
  ignored_fields const gemma_scales{
      "scales of scores and logits have no products",
      {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
       "rope_local_base_freq", "sliding_window_pattern"}};
  text_family gemma{.names = {"gemma2"},
                    .placement = norm_placement::both,
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .activations = {"hidden_act", "hidden_activation"},
                    .has_tied_head = true,
                    .needs_head_size = true,
                    .neutral = {usual_window(), full_attention()},
                    .ignored = {gemma_scales}};
  result.push_back(gemma);
  gemma.names = {"gemma3_text"};
  gemma.head_norm = query_key_norm::each_head;
  result.push_back(std::move(gemma));
  result.push_back({.names = {"ernie4_5"},
                    .qkv_bias = {.field = "use_bias"},
                    .output_bias = {.field = "use_bias"},
                    .mlp_bias = {.field = "use_bias"},
                    .has_tied_head = true,
                    .needs_head_size = true,
                    .neutral = {{"use_rmsnorm", neutral_value::on, "its norms are RMS norms"}}});
  result.push_back({.names = {"olmo2"},
                    .placement = norm_placement::after,
                    .head_norm = query_key_norm::whole_width,
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .needs_key_heads = false});
  return result;
}

std::vector<text_family> sparse_families() {
  family_flag const attention_bias{.field = "attention_bias"};
  neutral_field const every_layer{"decoder_sparse_step", neutral_value::one, all_sparse};
  neutral_field const no_dense{"mlp_only_layers", neutral_value::empty, all_sparse};
  ignored_fields const unused_width{"no layer is dense", {"intermediate_size"}};
  std::vector<text_family> result;
  result.push_back({.names = {"mixtral"},
                    .experts = {.count = "num_local_experts", .width = "intermediate_size"},
                    .neutral = {optional_window()},
                    .ignored = {router_fields()}});
  result.push_back({.names = {"qwen2_moe"},
                    .qkv_bias = {.field = "qkv_bias", .otherwise = true},
                    .experts = {.count = "num_experts",
                                .width = "moe_intermediate_size",
                                .shared_width = "shared_expert_intermediate_size",
                                .has_shared_gate = true},
                    .neutral = flagged_windows() + std::vector{every_layer, no_dense},
                    .ignored = {unused_windows(), router_fields(), unused_width}});
  result.push_back(
      {.names = {"qwen3_moe"},
       .head_norm = query_key_norm::each_head,
       .qkv_bias = attention_bias,
       .output_bias = attention_bias,
       .needs_head_size = true,
       .experts = {.count = "num_experts", .width = "moe_intermediate_size"},
       .neutral = flagged_windows() +
                  std::vector<neutral_field>{
                      every_layer,
                      no_dense,
                      {"qkv_bias", neutral_value::off, "its biases are those of attention_bias"},
                      {"use_qk_norm", neutral_value::on, "it has norms of queries and keys"},
                      {"shared_expert_intermediate_size", neutral_value::zero,
                       "it has no shared experts"}},
       .ignored = {unused_windows(), router_fields(), unused_width}});
  result.push_back({.names = {"olmoe"},
                    .head_norm = query_key_norm::whole_width,
                    .qkv_bias = attention_bias,
                    .output_bias = attention_bias,
                    .needs_key_heads = false,
                    .experts = {.count = "num_experts", .width = "intermediate_size"},
                    .neutral = {{"clip_qkv", neutral_value::absent, "clipped keys are not read"}},
                    .ignored = {router_fields()}});
  family_experts const of_deepseek{.count = "n_routed_experts",
                                   .width = "moe_intermediate_size",
                                   .shared_count = "n_shared_experts",
                                   .dense_layers = "first_k_dense_replace"};
  neutral_field const no_period{"moe_layer_freq", neutral_value::one, all_sparse};
  neutral_field const no_bias{"attention_bias", neutral_value::off,
                              "biases of latent attention are not read"};
  result.push_back({.names = {"deepseek_v2", "deepseek_v3", "kimi_k2", "sarvam_mla"},
                    .needs_key_heads = false,
                    .has_latent = true,
                    .experts = of_deepseek,
                    .neutral = prediction_layers() + std::vector{no_period, no_bias},
                    .ignored = {router_fields(), latent_sizes()}});
  result.push_back({.names = {"glm4_moe"},
                    .head_norm = query_key_norm::each_head,
                    .head_norm_field = "use_qk_norm",
                    .qkv_bias = attention_bias,
                    .needs_head_size = true,
                    .experts = of_deepseek,
                    .neutral = prediction_layers() + std::vector{no_period},
                    .ignored = {router_fields()}});
  family_experts of_solar = of_deepseek;
  of_solar.dense_layers = {};
  neutral_field const none_first{"first_k_dense_replace", neutral_value::zero,
                                 "it has no dense layers"};
  result.push_back({.names = {"solar_open"},
                    .qkv_bias = attention_bias,
                    .needs_head_size = true,
                    .experts = of_solar,
                    .neutral = prediction_layers() + std::vector{no_period, none_first},
                    .ignored = {router_fields(), unused_width}});
  return result;
}

}  // namespace

std::vector<text_family> const& text_families() {
  static std::vector<text_family> const families = [] {
    auto result = dense_families();
    for (text_family& family : sparse_families()) result.push_back(std::move(family));
    return result;
  }();
  return families;
}

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
      {{"llama4", "llama4_text"}, "shared experts between dense layers and chunked attention"},
      {{"jamba", "bamba", "zamba2", "falcon_h1", "granitemoehybrid", "nemotron_h", "lfm2"},
       "layers with a state space or convolutions"},
      {{"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "kimi_linear",
        "olmo_hybrid", "bailing_moe_linear"},
       "layers with linear attention"},
      {{"deepseek_v32", "glm_moe_dsa"}, "sparse attention by an indexer"},
      {{"ernie4_5_moe", "ernie4_5_vl_moe"}, "experts under other names and towers of their own"},
      {{"bailing_moe", "bailing_moe_v2"}, "shared experts under other names"},
      {{"gemma3", "gemma3n", "gemma4", "paligemma"},
       "windows of attention and towers whose tokens are pooled"},
      {{"smolvlm", "idefics3"}, "tokens of a tile by a scale factor"},
      {{"mistral3", "pixtral"}, "towers with gated layers and rotary positions"},
      {{"qwen3_vl", "qwen3_vl_moe", "qwen3_omni_moe"}, "mergers between the layers of the tower"},
      {{"gpt_oss"}, "windows of attention, and biases of experts"},
      {{"partition_minimax", "minimax_m2"},
       "its attention and multi-token prediction, which are not modeled"},
      {{"apertus"}, "an activation with parameters"},
      {{"llava_next", "llava_onevision"}, "images in tiles of several sizes"},
      {{"whisper", "qwen2_5_omni", "qwen2_audio"}, "audio towers"},
      {{"olmo3", "cohere2", "exaone4"}, "windows of attention in some layers"}};
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
  constexpr std::array<std::string_view, 8> known{
      "silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu", "quick_gelu"};
  return std::ranges::find(known, name) != known.end();
}

}  // namespace examples
