// SPDX-License-Identifier: Apache-2.0
// Families of towers with tiles of one size and learned or rotary positions.
#include "tower_connector.hpp"
#include "tower_families.hpp"

#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::mlp_kind;
using omnibal::norm_kind;
using omnibal::query_key_norm;

/// The parameters of a pooling by attention with one query: attention, norm and feed-forward part.
std::int64_t attention_pooling(std::int64_t hidden, std::int64_t mlp) {
  return hidden + 4 * (hidden * hidden + hidden) + 2 * hidden + 2 * hidden * mlp + mlp + hidden;
}

void read_vit(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.layer.class_tokens = 1;
  draft.layer.qkv_bias = draft.fields.flag("qkv_bias", true);
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
  std::int64_t const hidden = draft.layer.hidden;
  draft.idle_parameters = (hidden + 1) * draft.fields.integer_or("pooler_output_size", hidden, 1);
}

void read_clip(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.layer.class_tokens = 1;
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
}

void read_siglip(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
  if (draft.fields.flag("vision_use_head")) {
    draft.idle_parameters = attention_pooling(draft.layer.hidden, draft.layer.mlp);
  }
}

/// Phi-4 multimodal: the means of squares of four patches of an inner layer. The layers behind it,
/// the norm and the head never run.
void read_phi4(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.has_tile_positions = true;
  auto const& layer = draft.layer;
  std::int64_t const all = draft.layers;
  std::int64_t feature = draft.fields.integer("feature_layer", -all);
  if (feature < 0) feature += all + 1;
  if (feature < 1 || feature > all) {
    draft.fields.refuse("feature_layer", "but there are " + std::to_string(all) + " layers");
  }
  draft.layers = feature;
  draft.idle_parameters = attention_pooling(layer.hidden, layer.mlp) + 2 * layer.hidden +
                          (all - feature) * layer({}).parameters;
  std::int64_t const side = layer.image_size / layer.patch_size;
  std::int64_t const squares = (side + 1) / 2 * ((side + 1) / 2);
  draft.connector = omnibal::projector{.input = layer.hidden,
                                       .hidden = -1,
                                       .tile_tokens = squares,
                                       .patches_per_token = 4,
                                       .other_parameters = 2 * layer.hidden};
}

/// Idefics3 and SmolVLM: SigLIP without a head.
void read_idefics(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
}

/// Positions for a number of patches, here of one square tile.
void read_siglip2(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  draft.layers = fields.integer("num_hidden_layers");
  layer.heads = fields.integer("num_attention_heads");
  layer.mlp = fields.integer("intermediate_size");
  check_activation(fields, "hidden_act");
  draft.patches.channels = fields.integer_or("num_channels", 3, 1);
  layer.patch_size = fields.integer("patch_size");
  draft.patches.positions = fields.integer("num_patches");
  auto const side = std::llround(std::sqrt(static_cast<double>(draft.patches.positions)));
  if (side * side != draft.patches.positions) fields.refuse("num_patches", "must be a square");
  layer.image_size = side * layer.patch_size;
  draft.has_last_norm = true;
  if (fields.flag("vision_use_head")) {
    draft.idle_parameters = attention_pooling(layer.hidden, layer.mlp);
  }
}

norm_kind norm_of(config_fields const& fields, std::string_view name) {
  std::string const text = fields.text(name);
  if (text == "layer_norm") return norm_kind::layer;
  if (text != "rms_norm") fields.refuse(name, "must be \"rms_norm\" or \"layer_norm\"");
  return norm_kind::rms;
}

/// Norms of queries and keys are RMS norms and the last norm is a layer norm in the class, whatever
/// the others are.
void check_norms(tower_draft const& draft) {
  bool const has_layer_norms = draft.layer.norm == norm_kind::layer;
  if (has_layer_norms && draft.layer.head_norm != query_key_norm::none) {
    draft.fields.refuse("norm_type",
                        "but norms of queries and keys are RMS norms; towers with "
                        "both kinds are not read");
  }
  if (!has_layer_norms && draft.has_last_norm) {
    draft.fields.refuse("norm_type",
                        "but the norm behind all layers is a layer norm; towers with "
                        "both kinds are not read");
  }
}

void read_intern(tower_draft& draft, std::string_view bias, std::string_view head_norm) {
  read_usual_sizes(draft);
  static_cast<void>(draft.fields.at(bias));
  static_cast<void>(draft.fields.at(head_norm));
  draft.layer.class_tokens = 1;
  draft.has_tile_positions = true;
  draft.layer.qkv_bias = draft.fields.flag(bias);
  if (draft.fields.flag(head_norm)) draft.layer.head_norm = query_key_norm::whole_width;
  draft.layer.norm = norm_of(draft.fields, "norm_type");
  draft.layer.layer_scale = true;
}

void read_intern_vit(tower_draft& draft) {
  read_intern(draft, "qkv_bias", "qk_normalization");
  check_norms(draft);
}

void read_internvl(tower_draft& draft) {
  read_intern(draft, "attention_bias", "use_qk_norm");
  draft.has_last_norm = !draft.fields.flag("use_mean_pooling", true);
  check_norms(draft);
}

/// DINOv2, with or without registers. Registers have no positions.
void read_dinov2(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  draft.layers = fields.integer("num_hidden_layers");
  layer.heads = fields.integer("num_attention_heads");
  check_activation(fields, "hidden_act");
  draft.patches.channels = fields.integer_or("num_channels", 3, 1);
  read_tile_size(draft);
  layer.mlp = width_by_ratio(fields.number("mlp_ratio"), layer.hidden);
  if (fields.flag("use_swiglu_ffn")) {
    layer.feed_forward = mlp_kind::gated;
    layer.mlp = (layer.mlp * 2 / 3 + 7) / 8 * 8;
  }
  layer.qkv_bias = fields.flag("qkv_bias", true);
  layer.layer_scale = true;
  layer.class_tokens = 1 + fields.integer_or("num_register_tokens", 0);
  draft.patches.positions = draft.patches_of_tile() + 1;
  draft.patches.other_parameters = fields.flag("use_mask_token", true) ? layer.hidden : 0;
  draft.has_last_norm = true;
}

void read_dinov3(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  read_usual_sizes(draft);
  layer.qkv_bias = fields.flag("query_bias");
  layer.key_bias = fields.flag("key_bias");
  if (fields.flag("value_bias") != layer.qkv_bias || (layer.key_bias && !layer.qkv_bias)) {
    fields.refuse("value_bias", "but biases of queries, keys and values of this mix are not read");
  }
  layer.output_bias = fields.flag("proj_bias");
  layer.mlp_bias = fields.flag("mlp_bias");
  if (fields.flag("use_gated_mlp")) layer.feed_forward = mlp_kind::gated;
  layer.layer_scale = true;
  layer.class_tokens = 1 + fields.integer_or("num_register_tokens", 0);
  // The mask token.
  draft.patches.other_parameters = layer.hidden;
  draft.has_last_norm = true;
}

/// The layers of AIMv2 and Ovis2.
void read_aim_layers(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  read_usual_sizes(draft);
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  layer.qkv_bias = fields.flag("qkv_bias");
  layer.output_bias = layer.qkv_bias;
  layer.mlp_bias = fields.flag("mlp_bias");
  draft.patches.has_norm = true;
  draft.has_last_norm = true;
}

void read_aimv2(tower_draft& draft) {
  read_aim_layers(draft);
  draft.has_tile_positions = !draft.fields.flag("is_native");
  std::int64_t const hidden = draft.layer.hidden;
  if (draft.fields.flag("use_head", true)) {
    draft.idle_parameters =
        3 * hidden * hidden + 2 * hidden + (draft.layer.qkv_bias ? 2 * hidden : 0);
  }
}

/// Behind the tower of Ovis2 each token becomes a distribution over a visual vocabulary.
void read_ovis2(tower_draft& draft) {
  read_aim_layers(draft);
  config_fields const& fields = draft.fields;
  draft.has_tile_positions = true;
  std::int64_t const words = fields.integer("vocab_size");
  auto head = draft.merger(fields.integer_or("hidden_stride", 1, 1));
  head.output = words - fields.integer("num_visual_indicator_tokens", 0);
  head.has_bias = false;
  head.has_output_norm = true;
  head.output_norm = norm_kind::layer;
  draft.further.push_back({1, head});
  draft.connector = omnibal::projector{.input = words,
                                       .tile_tokens = head.tile_tokens,
                                       .patches_per_token = head.patches_per_token,
                                       .has_bias = false};
}

/// Rotary positions in two dimensions; the width of a head in the file is not used by the class.
void read_pixtral(tower_draft& draft) {
  read_usual_sizes(draft);
  draft.fields.skip({"head_dim"});
  auto& layer = draft.layer;
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  layer.qkv_bias = false;
  layer.output_bias = false;
  layer.mlp_bias = false;
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
}

/// An adapter of two matrices belongs to the tower.
void read_llama4(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  read_usual_sizes(draft);
  draft.layer.class_tokens = 1;
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
  auto const side = std::llround(1 / fields.number("pixel_shuffle_ratio"));
  auto adapter = draft.merger(side);
  adapter.input = draft.layer.mlp;
  adapter.hidden = fields.integer("projector_input_dim");
  adapter.output = fields.integer("projector_output_dim");
  adapter.has_bias = false;
  draft.further.push_back({1, adapter});
  draft.connector = omnibal::projector{.input = fields.integer("vision_output_dim"),
                                       .tile_tokens = adapter.tile_tokens,
                                       .patches_per_token = adapter.patches_per_token,
                                       .has_bias = false};
}

/// Two convolutions with a stride of two follow the layers.
void read_step(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  read_usual_sizes(draft);
  fields.skip({"mlp_ratio", "layer_scale_init_value"});
  auto& layer = draft.layer;
  layer.layer_scale = true;
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
  draft.patches.positions = fields.integer("max_position_embeddings");
  std::int64_t width = layer.hidden;
  for (std::int64_t const side : {2, 4}) {
    auto convolution = draft.merger(side);
    convolution.input = 9 * width;
    convolution.output = 2 * width;
    draft.further.push_back({1, convolution});
    width *= 2;
  }
  draft.connector = draft.merger(4);
  draft.connector->input = width;
  draft.connector->has_bias = false;
}

ignored_fields pooling() {
  return {"the space that texts and images share, and pooling: connectors take patches",
          {"projection_dim", "vision_use_head", "encoder_stride", "pooler_output_size",
           "pooler_act", "vocab_size"}};
}

ignored_fields outputs() {
  return {"what the class returns, and the starts of its numbers",
          {"apply_layernorm", "reshape_hidden_states", "stage_names", "out_features", "out_indices",
           "layerscale_value", "layer_scale_init_value"}};
}

ignored_fields unused_experts() {
  return {"experts, which are off",
          {"capacity_factor", "eval_capacity_factor", "laux_allreduce", "moe_coeff_ratio",
           "moe_intermediate_size", "moe_output_scale", "noisy_gate_policy", "num_experts",
           "num_routed_experts", "num_shared_experts", "shared_expert_intermediate_size",
           "use_residual", "use_rts", "use_weighted_residual"},
          "use_moe"};
}

}  // namespace

std::vector<tower_family> tile_tower_families() {
  constexpr std::string_view siglip = R"({"hidden_size": 768, "intermediate_size": 3072,
    "num_hidden_layers": 12, "num_attention_heads": 12, "image_size": 224, "patch_size": 16,
    "vision_use_head": true, "num_patches": 256})";
  constexpr std::string_view idefics = R"({"hidden_size": 1152, "intermediate_size": 3072,
    "num_hidden_layers": 12, "num_attention_heads": 16, "image_size": 224, "patch_size": 32})";
  constexpr std::string_view aim = R"({"hidden_size": 1024, "intermediate_size": 2816,
    "num_hidden_layers": 24, "num_attention_heads": 8, "image_size": 224, "patch_size": 14,
    "vocab_size": 16384, "num_visual_indicator_tokens": 5})";
  constexpr std::string_view dinov2 = R"({"hidden_size": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "mlp_ratio": 4, "image_size": 224, "patch_size": 14})";
  return {
      {.names = {"vit"},
       .read = read_vit,
       .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "image_size": 224, "patch_size": 16})",
       .ignored = {pooling()}},
      {.names = {"clip_vision_model"},
       .read = read_clip,
       .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "intermediate_size": 3072, "image_size": 224, "patch_size": 32})",
       .ignored = {pooling()}},
      {.names = {"siglip_vision_model"},
       .read = read_siglip,
       .defaults = siglip,
       .ignored = {pooling()}},
      {.names = {"phi4_multimodal_vision"},
       .read = read_phi4,
       .defaults = R"({"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
         "num_attention_heads": 16, "image_size": 448, "patch_size": 14, "feature_layer": -2})",
       .ignored = {{"how images become tiles, and ids", {"crop_size", "image_token_id"}}}},
      {.names = {"siglip2_vision_model"},
       .read = read_siglip2,
       .defaults = siglip,
       .ignored = {pooling()}},
      {.names = {"idefics3_vision", "smolvlm_vision"},
       .read = read_idefics,
       .defaults = idefics,
       .ignored = {pooling(),
                   {"sizes of images before they become tiles", {"size", "max_image_size"}}}},
      {.names = {"intern_vit_6b"},
       .read = read_intern_vit,
       .neutral = {{"use_moe", neutral_value::off, "experts of towers are not read"}},
       .ignored = {pooling(), unused_experts()}},
      {.names = {"internvl_vision"},
       .read = read_internvl,
       .defaults = R"({"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
         "attention_bias": false, "use_qk_norm": false, "intermediate_size": 4096,
         "norm_type": "layer_norm", "image_size": [448, 448], "patch_size": [14, 14]})",
       .neutral = {{"use_mask_token", neutral_value::off, "mask tokens are not read"},
                   {"use_absolute_position_embeddings", neutral_value::on,
                    "towers without learned positions are not read"}},
       .ignored = {pooling(), outputs()}},
      {.names = {"dinov2"}, .read = read_dinov2, .defaults = dinov2, .ignored = {outputs()}},
      {.names = {"dinov2_with_registers"},
       .read = read_dinov2,
       .defaults = R"({"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
         "mlp_ratio": 4, "image_size": 224, "patch_size": 16, "num_register_tokens": 4})",
       .ignored = {outputs()}},
      {.names = {"dinov3_vit"},
       .read = read_dinov3,
       .defaults = R"({"hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
         "intermediate_size": 1536, "image_size": 224, "patch_size": 16, "query_bias": true,
         "key_bias": false, "value_bias": true, "proj_bias": true, "mlp_bias": true})",
       .ignored = {outputs(),
                   {"rotary positions",
                    {"pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"}}}},
      {.names = {"aimv2_vision_model"},
       .read = read_aimv2,
       .defaults = aim,
       .ignored = {pooling()}},
      {.names = {"ovis2_vision"},
       .read = read_ovis2,
       .defaults = aim,
       .ignored = {{"how scores become a distribution", {"tokenize_function"}}}},
      {.names = {"pixtral"},
       .read = read_pixtral,
       .defaults = R"({"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
         "intermediate_size": 4096, "image_size": 1024, "patch_size": 16})",
       .ignored = {pooling()}},
      {.names = {"llama4_vision_model"},
       .read = read_llama4,
       .defaults = R"({"hidden_size": 768, "num_hidden_layers": 34, "num_attention_heads": 16,
         "intermediate_size": 5632, "image_size": 448, "patch_size": 14,
         "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
         "vision_output_dim": 7680})",
       .neutral = {{"multi_modal_projector_bias", neutral_value::off, "the projector has no bias"}},
       .ignored = {{"the class takes the last layer and drops class tokens",
                    {"vision_feature_select_strategy", "vision_feature_layer"}},
                   {"dropout", {"projector_dropout"}}}},
      {.names = {"step3p5_vision"},
       .read = read_step,
       .defaults = R"({"hidden_size": 1536, "num_hidden_layers": 47, "num_attention_heads": 16,
         "intermediate_size": 8960, "image_size": 728, "patch_size": 14,
         "max_position_embeddings": 2704})"}};
}

}  // namespace examples
