// SPDX-License-Identifier: Apache-2.0
#include "pair_families.hpp"

#include "public_parts.hpp"
#include "tower_connector.hpp"

#include <omnibal/cost/layered_model.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::norm_kind;

constexpr std::int64_t most = max_of_model;

/// Layers behind the one whose output is taken do not run. The norm behind them runs only if the
/// class takes the output of the whole tower.
void take_layer(pair_draft& draft, char const* name, std::int64_t otherwise, bool keeps_norm) {
  auto& tower = draft.vision.tower;
  std::int64_t const all = tower.layers();
  std::int64_t const taken =
      draft.given.has(name) ? draft.given.integer(name, -all, all) : otherwise;
  std::int64_t const kept = taken < 0 ? all + 1 + taken : taken;
  std::int64_t const before = omnibal::count_parameters(tower).total;
  std::int64_t dropped = all - kept;
  while (dropped > 0) {
    omnibal::vision_run& last = tower.runs.back();
    std::int64_t const here = std::min(dropped, last.count);
    last.count -= here;
    dropped -= here;
    // The first run stays: it has the sizes of the tower.
    if (last.count == 0 && tower.runs.size() > 1) tower.runs.pop_back();
  }
  tower.has_last_norm &= keeps_norm && taken == -1;
  draft.vision.idle_parameters += before - omnibal::count_parameters(tower).total;
}

/// A token of `side * side` patches goes through the connector.
omnibal::projector connector_of_side(pair_draft const& draft, json_fields const& given,
                                     std::int64_t side) {
  auto result = connector_of(given, draft.vision.tower, side);
  result.output = draft.width;
  return result;
}

/// The square of patches that becomes one token, each patch at a ratio.
std::int64_t side_of_ratio(pair_draft const& draft) {
  double const ratio =
      draft.given.has("downsample_ratio") ? draft.given.number("downsample_ratio", 0.01, 1) : 0.5;
  return std::llround(1 / ratio);
}

void check_sequence(pair_draft const& draft) {
  std::int64_t const tokens = draft.vision.connector.tile_tokens;
  if (!draft.given.has("image_seq_length") ||
      draft.given.integer("image_seq_length", 1, most) == tokens) {
    return;
  }
  draft.given.refuse("image_seq_length",
                     "but a tile of the tower becomes " + std::to_string(tokens) + " tokens");
}

void connect_internvl(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, side_of_ratio(draft));
  connector.hidden = draft.width;
  connector.has_norm = true;
  check_activation(draft.given, "projector_hidden_act");
  check_sequence(draft);
}

void connect_internvl_class(pair_draft& draft) {
  take_layer(draft, "vision_feature_layer", -1, true);
  connect_internvl(draft);
}

void connect_internvl_chat(pair_draft& draft) {
  if (draft.given.has("force_image_size")) {
    std::int64_t const size = draft.given.integer("force_image_size", 1, most);
    for (omnibal::vision_run& run : draft.vision.tower.runs) run.layer.image_size = size;
    complete_patches(draft.given, draft.vision.tower);
  }
  take_layer(draft, "select_layer", -1, true);
  connect_internvl(draft);
}

void connect_llava_at(pair_draft& draft, std::int64_t layer) {
  take_layer(draft, "vision_feature_layer", layer, false);
  bool const takes_class = draft.given.has("vision_feature_select_strategy") &&
                           draft.given.text("vision_feature_select_strategy") == "full" &&
                           draft.vision.tower.layer().class_tokens != 0;
  if (takes_class) {
    draft.given.refuse("vision_feature_select_strategy",
                       "but class tokens in documents are not modeled");
  }
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, 1);
  connector.hidden = draft.width;
  connector.has_norm = false;
  connector.has_bias = draft.given.flag_or("multimodal_projector_bias", true);
  check_activation(draft.given, "projector_hidden_act");
}

void connect_llava(pair_draft& draft) {
  connect_llava_at(draft, -2);
  check_sequence(draft);
}

/// Tiles of several sizes: their number is given. A learned token ends each line of an image.
void connect_llava_next(pair_draft& draft) {
  connect_llava_at(draft, -2);
  draft.vision.connector.other_parameters = draft.width;
}

void connect_llava_onevision(pair_draft& draft) {
  connect_llava_at(draft, -1);
  draft.vision.connector.other_parameters = draft.width;
}

/// The patches of a token become one by a matrix before the connector.
void connect_mistral3(pair_draft& draft) {
  take_layer(draft, "vision_feature_layer", -1, false);
  std::int64_t const side = draft.given.integer_or("spatial_merge_size", 2, 1, most);
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, side);
  std::int64_t const hidden = draft.vision.tower.layer().hidden;
  auto merger = connector;
  merger.output = hidden;
  merger.norm = norm_kind::rms;
  merger.norm_width = hidden;
  merger.has_bias = false;
  draft.vision.further.push_back({1, merger});
  connector.input = hidden;
  connector.hidden = draft.width;
  connector.has_norm = false;
  connector.has_bias = draft.given.flag_or("multimodal_projector_bias", false);
  check_activation(draft.given, "projector_hidden_act");
}

/// Tokens are means of squares of patches.
void connect_gemma3(pair_draft& draft) {
  std::int64_t const tokens = draft.given.integer_or("mm_tokens_per_image", 256, 1, most);
  auto const& layer = draft.vision.tower.layer();
  auto const side = std::llround(std::sqrt(static_cast<double>(tokens)));
  std::int64_t const patches = layer.image_size / layer.patch_size;
  if (side * side != tokens || patches % side != 0) {
    draft.given.refuse("mm_tokens_per_image", "must be the square of a divisor of the " +
                                                  std::to_string(patches) +
                                                  " patches on the side of a tile");
  }
  draft.vision.connector = {.input = layer.hidden,
                            .output = draft.width,
                            .tile_tokens = tokens,
                            .patches_per_token = patches / side * (patches / side),
                            .has_norm = true,
                            .norm = norm_kind::rms,
                            .has_bias = false};
}

void connect_paligemma(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given, 1);
  connector.has_norm = false;
  connector.output = draft.given.integer_or("projection_dim", 2048, 1, most);
}

void connect_idefics(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector =
      connector_of_side(draft, draft.given, draft.given.integer_or("scale_factor", 2, 1, most));
  connector.has_norm = false;
  connector.has_bias = false;
}

void connect_lfm2(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  connector = connector_of_side(draft, draft.given,
                                draft.given.integer_or("downsample_factor", 2, 1, most));
  connector.hidden = draft.given.integer_or("projector_hidden_size", 2560, 1, most);
  connector.has_norm = draft.given.flag_or("projector_use_layernorm", true);
  connector.has_bias = draft.given.flag_or("projector_bias", true);
  check_activation(draft.given, "projector_hidden_act");
}

/// The table of the visual vocabulary has the width that stands beside it.
void connect_ovis2(pair_draft& draft) {
  draft.vision.connector.output = draft.given.integer_or("hidden_size", 1536, 1, most);
}

void connect_llama4(pair_draft& draft) { draft.vision.connector.output = draft.width; }

void connect_step(pair_draft& draft) {
  draft.vision.connector.output = draft.width;
  draft.vision.connector.has_bias = draft.given.flag_or("projector_bias", false);
}

void connect_kimi(pair_draft& draft) {
  draft.vision.connector.output = draft.width;
  draft.vision.connector.norm_width =
      draft.given.integer_or("projection_hidden_size", 1152, 1, most);
  check_activation(draft.given, "projection_hidden_act");
}

/// Two matrices for each patch, then two for the patches of a token.
void connect_minimax(pair_draft& draft) {
  auto& connector = draft.vision.connector;
  auto const hidden = draft.given.has("projector_hidden_size")
                          ? draft.given.integer("projector_hidden_size", 1, most)
                          : draft.width;
  std::int64_t const patches = connector.patches_per_token;
  draft.vision.further.push_back({1,
                                  {.input = draft.vision.tower.layer().hidden,
                                   .hidden = hidden,
                                   .output = draft.width,
                                   .tile_tokens = draft.patches_of_tile()}});
  connector.input = patches * draft.width;
  connector.hidden = draft.width;
  connector.output = draft.width;
  check_activation(draft.given, "projector_hidden_act");
}

/// Versions of Qwen that train on the width of another language model are no models.
void connect_qwen2(pair_draft& draft) {
  if (draft.vision.connector.output == draft.width) return;
  json_fields const vision = draft.given.object("vision_config");
  char const* const name = vision.has("out_hidden_size") ? "out_hidden_size" : "hidden_size";
  if (!vision.has(name)) return;
  vision.refuse(name, "must be the width of the language model, " + std::to_string(draft.width));
}

}  // namespace

std::vector<pair_family> const& pair_families() {
  neutral_field const whole_selection{"vision_feature_select_strategy", neutral_value::usual,
                                      "class tokens in documents are not modeled"};
  ignored_fields const tiles{
      "how images become tiles: their number is given",
      {"dynamic_image_size", "max_dynamic_patch", "min_dynamic_patch", "use_thumbnail",
       "pad2square", "ps_version", "template", "image_grid_pinpoints", "image_fold",
       "vision_aspect_ratio", "do_image_splitting", "use_image_newline_parameter"}};
  ignored_fields const ids{"ids of tokens and times of positions",
                           {"boi_token_index",
                            "eoi_token_index",
                            "boi_token_id",
                            "eoi_token_id",
                            "boa_token_id",
                            "eoa_token_id",
                            "eoa_token_index",
                            "audio_token_id",
                            "audio_token_index",
                            "audio_start_token_id",
                            "audio_end_token_id",
                            "user_token_id",
                            "timestamp_token_id",
                            "boi_token",
                            "eoi_token",
                            "_pad_token_id",
                            "visual_indicator_token_ids",
                            "vision_soft_tokens_per_image",
                            "position_id_per_seconds",
                            "seconds_per_chunk",
                            "token_classification_bias"}};
  ignored_fields const repeated{"sizes that the parts state",
                                {"hidden_size", "vocab_size", "num_image_tokens"}};
  std::vector<std::string_view> const of_llava{"vision_feature_layer",
                                               "vision_feature_select_strategy", "image_seq_length",
                                               "multimodal_projector_bias", "projector_hidden_act"};
  static std::vector<pair_family> const families{
      {.names = {"internvl_chat"},
       .connect = connect_internvl_chat,
       .tied = tied_by::language,
       .text_field = "llm_config",
       .tower_family = "intern_vit_6b",
       .understood = {"downsample_ratio", "force_image_size", "select_layer"},
       .neutral = {{"use_backbone_lora", neutral_value::zero, "adapters are not modeled"},
                   {"use_llm_lora", neutral_value::zero, "adapters are not modeled"}},
       .ignored = {tiles}},
      {.names = {"internvl"},
       .connect = connect_internvl_class,
       .text_family = "qwen2",
       .tower_family = "internvl_vision",
       .understood = {"downsample_ratio", "vision_feature_layer", "image_seq_length",
                      "projector_hidden_act"},
       .neutral = {whole_selection},
       .ignored = {tiles}},
      {.names = {"llava"},
       .connect = connect_llava,
       .tied = tied_by::either,
       .text_family = "llama",
       .tower_family = "clip_vision_model",
       .vision_defaults = R"({"hidden_size": 1024, "intermediate_size": 4096,
         "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14})",
       .understood = of_llava},
      {.names = {"llava_next"},
       .connect = connect_llava_next,
       .tied = tied_by::either,
       .text_family = "llama",
       .tower_family = "clip_vision_model",
       .vision_defaults = R"({"hidden_size": 1024, "intermediate_size": 4096,
         "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 336, "patch_size": 14})",
       .understood = of_llava,
       .ignored = {tiles}},
      {.names = {"llava_onevision"},
       .connect = connect_llava_onevision,
       .tied = tied_by::either,
       .text_family = "qwen2",
       .tower_family = "siglip_vision_model",
       .vision_defaults = R"({"hidden_size": 1152, "intermediate_size": 4304,
         "num_hidden_layers": 26, "num_attention_heads": 16, "image_size": 384, "patch_size": 14,
         "vision_use_head": false})",
       .understood = of_llava,
       .ignored = {tiles}},
      {.names = {"mistral3"},
       .connect = connect_mistral3,
       .tied = tied_by::pair,
       .text_family = "mistral",
       .tower_family = "pixtral",
       .vision_defaults = R"({"hidden_size": 1024, "intermediate_size": 4096,
         "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 1540, "patch_size": 14})",
       .ties_by_default = true,
       .understood = {"vision_feature_layer", "multimodal_projector_bias", "projector_hidden_act",
                      "spatial_merge_size"}},
      {.names = {"qwen2_vl"},
       .connect = connect_qwen2,
       .text_family = "qwen2_vl_text",
       .tower_family = "qwen2_vl"},
      {.names = {"qwen2_5_vl"},
       .connect = connect_qwen2,
       .text_family = "qwen2_5_vl_text",
       .tower_family = "qwen2_5_vl"},
      {.names = {"qwen3_vl"}, .text_family = "qwen3_vl_text", .tower_family = "qwen3_vl"},
      {.names = {"qwen3_vl_moe"},
       .text_family = "qwen3_vl_moe_text",
       .tower_family = "qwen3_vl_moe"},
      {.names = {"qwen3_5"}, .text_family = "qwen3_5_text", .tower_family = "qwen3_5"},
      {.names = {"qwen3_5_moe"}, .text_family = "qwen3_5_moe_text", .tower_family = "qwen3_5_moe"},
      {.names = {"glm4v"}, .text_family = "glm4v_text", .tower_family = "glm4v_vision"},
      {.names = {"glm4v_moe"}, .text_family = "glm4v_moe_text", .tower_family = "glm4v_moe_vision"},
      {.names = {"glm_ocr"}, .text_family = "glm_ocr_text", .tower_family = "glm_ocr_vision"},
      {.names = {"gemma3"},
       .connect = connect_gemma3,
       .text_family = "gemma3_text",
       .tower_family = "siglip_vision_model",
       .ties_by_default = true,
       .understood = {"mm_tokens_per_image"},
       .ignored = {ids}},
      {.names = {"gemma4"},
       .text_family = "gemma4_text",
       .tower_family = "gemma4_vision",
       .ties_by_default = true,
       .neutral = {{"audio_config", neutral_value::absent,
                    "audio towers with convolutions in each layer (Conformer) are not read"}},
       .ignored = {ids}},
      {.names = {"paligemma"},
       .connect = connect_paligemma,
       .text_family = "gemma",
       .tower_family = "siglip_vision_model",
       .vision_defaults = R"({"hidden_size": 1152, "intermediate_size": 4096,
         "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 224, "patch_size": 14,
         "vision_use_head": false})",
       .text_ignored = {"num_image_tokens"},
       .ties_by_default = true,
       .understood = {"projection_dim"},
       .ignored = {ids, repeated}},
      {.names = {"idefics3", "smolvlm"},
       .connect = connect_idefics,
       .tied = tied_by::pair,
       .text_family = "llama",
       .tower_family = "idefics3_vision",
       .understood = {"scale_factor"},
       .ignored = {ids, tiles, repeated}},
      {.names = {"ovis2"},
       .connect = connect_ovis2,
       .tied = tied_by::pair,
       .text_family = "qwen2",
       .tower_family = "ovis2_vision",
       .ties_by_default = true,
       .understood = {"hidden_size"},
       .ignored = {ids, repeated}},
      {.names = {"lfm2_vl"},
       .connect = connect_lfm2,
       .text_family = "lfm2",
       .tower_family = "siglip2_vision_model",
       .ties_by_default = true,
       .understood = {"downsample_factor", "projector_hidden_size", "projector_use_layernorm",
                      "projector_bias", "projector_hidden_act"},
       .ignored = {tiles}},
      {.names = {"ernie4_5_vl_moe"},
       .connect = connect_llama4,
       .text_family = "ernie4_5_vl_moe_text",
       .tower_family = "ernie4_5_vl_moe_vision",
       .ties_by_default = true},
      {.names = {"llama4"},
       .connect = connect_llama4,
       .text_family = "llama4_text",
       .tower_family = "llama4_vision_model",
       .ignored = {ids}},
      {.names = {"kimi_k25"},
       .connect = connect_kimi,
       .tied = tied_by::pair,
       .text_family = "deepseek_v3",
       .tower_family = "kimi_k25_vision",
       .ties_by_default = true,
       .understood = {"projection_hidden_act", "projection_hidden_size"},
       .ignored = {{"sizes that the parts state",
                    {"projection_ln_eps", "projection_layer_norm_eps", "use_unified_vision_chunk",
                     "video_placeholder"}}}},
      {.names = {"minimax_m3_vl"},
       .connect = connect_minimax,
       .text_family = "minimax_m3_vl_text",
       .tower_family = "minimax_m3_vl_vision",
       .understood = {"projector_hidden_size", "projector_hidden_act"},
       .ignored = {ids, tiles}},
      {.names = {"step3p7"},
       .connect = connect_step,
       .text_family = "step3p5",
       .tower_family = "step3p5_vision",
       .understood = {"projector_bias"}},
      {.names = {"qwen2_5_omni_thinker"},
       .tied = tied_by::pair,
       .text_family = "qwen2_5_omni_text",
       .tower_family = "qwen2_5_omni_vision_encoder",
       .audio_family = "qwen2_5_omni_audio_encoder",
       .ignored = {ids}},
      {.names = {"qwen3_omni_moe_thinker"},
       .tied = tied_by::pair,
       .text_family = "qwen3_omni_moe_text",
       .tower_family = "qwen3_omni_moe_vision_encoder",
       .audio_family = "qwen3_omni_moe_audio_encoder",
       .ignored = {ids}},
      {.names = {"qwen2_5_omni"},
       .inner = "thinker_config",
       .ignored = {{"the talker and its sound are not read: the thinker is a model of its own",
                    {"talker_config", "token2wav_config", "enable_audio_output",
                     "enable_talker"}}}},
      {.names = {"qwen3_omni_moe"},
       .inner = "thinker_config",
       .ignored = {{"the talker and its sound are not read: the thinker is a model of its own",
                    {"talker_config", "code2wav_config", "enable_audio_output",
                     "assistant_token_id", "system_token_id", "user_token_id", "im_start_token_id",
                     "im_end_token_id", "tts_bos_token_id", "tts_eos_token_id",
                     "tts_pad_token_id"}}}},
      {.names = {"qwen2_audio"},
       .tied = tied_by::language,
       .text_family = "qwen2",
       .audio_family = "qwen2_audio_encoder",
       .ignored = {ids, repeated}},
      {.names = {"qwen3_asr"},
       .text_family = "qwen3",
       .audio_family = "qwen3_asr_encoder",
       .ties_by_default = true,
       .ignored = {ids}},
      {.names = {"voxtral"},
       .text_family = "llama",
       .audio_family = "voxtral_encoder",
       .text_defaults = R"({"vocab_size": 131072, "hidden_size": 3072, "intermediate_size": 8192,
         "num_hidden_layers": 30, "num_key_value_heads": 8, "head_dim": 128})",
       .understood = {"projector_hidden_act"},
       .ignored = {ids, repeated}}};
  return families;
}

}  // namespace examples
