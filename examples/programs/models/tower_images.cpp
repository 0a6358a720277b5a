// SPDX-License-Identifier: Apache-2.0
// Families of towers for images of their own size. Here an image is a tile: of `image_size`, if the
// file has one, or of 32 patches on a side.
#include "tower_connector.hpp"
#include "tower_families.hpp"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::mlp_kind;
using omnibal::norm_kind;

constexpr std::int64_t usual_patches = 32;

/// Reads the sizes under the names of Qwen: `depth`, `num_heads`, `in_channels` and the frames of a
/// patch.
void read_qwen_sizes(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  draft.layers = fields.integer("depth");
  layer.heads = fields.integer("num_heads");
  check_activation(fields, "hidden_act");
  layer.patch_size = fields.integer("patch_size");
  layer.image_size = fields.integer_or("image_size", usual_patches * layer.patch_size, 1);
  layer.image_size -= layer.image_size % layer.patch_size;
  char const* const channels = fields.is_in_file("in_chans") ? "in_chans" : "in_channels";
  draft.patches.channels = fields.integer_or(channels, 3, 1);
  fields.skip({"in_channels", "in_chans", "spatial_patch_size", "tokens_per_second"});
}

std::int64_t frames_of(tower_draft const& draft) {
  return draft.fields.integer_or("temporal_patch_size", 2, 1);
}

/// A merger of two matrices; the norm works on one patch at a time.
omnibal::projector qwen_merger(tower_draft const& draft, std::int64_t output) {
  auto result = draft.merger(draft.fields.integer_or("spatial_merge_size", 2, 1));
  result.hidden = result.input;
  result.output = output;
  result.has_norm = true;
  result.norm = draft.layer.norm;
  result.norm_width = draft.layer.hidden;
  return result;
}

void read_qwen2(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  draft.layer.hidden = fields.integer("embed_dim");
  draft.layer.mlp = width_by_ratio(fields.number("mlp_ratio"), draft.layer.hidden);
  draft.patches.channels *= frames_of(draft);
  draft.patches.has_bias = false;
  // The hidden size is the width of the language model.
  draft.connector = qwen_merger(draft, fields.integer("hidden_size"));
}

void read_qwen2_5(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  layer.mlp = fields.integer("intermediate_size");
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  draft.patches.channels *= frames_of(draft);
  draft.patches.has_bias = false;
  draft.connector = qwen_merger(draft, fields.integer("out_hidden_size"));
  fields.skip({"fullatt_block_indexes"});
  if (!fields.has("window_size")) return;
  std::int64_t const merged = fields.integer_or("spatial_merge_size", 2, 1);
  std::int64_t const side = fields.integer("window_size") / merged / layer.patch_size * merged;
  if (side == 0) fields.refuse("window_size", "must be at least the pixels of a token");
  layer.span = {omnibal::span_kind::chunk, side * side};
  draft.whole_layers = fields.integers("fullatt_block_indexes");
}

/// Learned positions, and a merger at the end.
void read_qwen3_parts(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  draft.layer.hidden = fields.integer("hidden_size");
  draft.layer.mlp = fields.integer("intermediate_size");
  draft.patches.channels *= frames_of(draft);
  draft.patches.positions = fields.integer("num_position_embeddings");
  draft.connector = qwen_merger(draft, fields.integer("out_hidden_size"));
}

/// Mergers of the outputs of some layers (DeepStack) have norms of all patches of a token.
void read_qwen3(tower_draft& draft) {
  read_qwen3_parts(draft);
  if (!draft.fields.has("deepstack_visual_indexes")) return;
  auto const layers = draft.fields.integers("deepstack_visual_indexes");
  auto merger = *draft.connector;
  merger.norm_width = 0;
  connector_run mergers{.count = 0, .layer = merger};
  for (std::int64_t const inner : layers) {
    if (inner >= draft.layers) continue;
    mergers.inner_layers.push_back(inner);
    ++mergers.count;
  }
  std::int64_t const used = mergers.count;
  if (used != 0) draft.further.push_back(mergers);
  std::int64_t const one =
      (merger.input + 1) * merger.hidden + (merger.hidden + 1) * merger.output + 2 * merger.input;
  draft.idle_parameters = (static_cast<std::int64_t>(layers.size()) - used) * one;
}

void read_qwen3_5(tower_draft& draft) {
  // The class has no mergers of inner layers, whatever a file says.
  draft.fields.skip({"deepstack_visual_indexes"});
  read_qwen3_parts(draft);
}

/// A convolution makes one token of some patches; a matrix, a norm and a gated part follow.
void add_glm_merger(tower_draft& draft, std::int64_t hidden) {
  std::int64_t const output = draft.fields.integer("out_hidden_size");
  auto step = draft.merger(draft.fields.integer_or("spatial_merge_size", 2, 1));
  step.output = output;
  draft.further.push_back({1, step});
  step.input = output;
  step.has_bias = false;
  draft.further.push_back({1, step});
  step.hidden = hidden;
  step.has_norm = true;
  step.feed_forward = mlp_kind::gated;
  draft.connector = step;
}

void read_glm(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  layer.mlp = fields.integer("out_hidden_size");
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  layer.qkv_bias = fields.flag("attention_bias");
  layer.output_bias = false;
  layer.mlp_bias = false;
  draft.patches.channels *= frames_of(draft);
  draft.patches.has_norm = true;
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
  add_glm_merger(draft, fields.integer("intermediate_size"));
}

void read_glm_ocr(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  layer.mlp = fields.integer("intermediate_size");
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  layer.head_norm = omnibal::query_key_norm::each_head;
  layer.qkv_bias = fields.flag("attention_bias");
  layer.output_bias = layer.qkv_bias;
  layer.mlp_bias = layer.qkv_bias;
  draft.has_last_norm = true;
  add_glm_merger(draft, fields.integer("out_hidden_size") * draft.patches.channels);
  draft.patches.channels *= frames_of(draft);
}

/// Tokens are means of squares of patches. Positions are a row and a column.
void read_gemma4(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  draft.layers = fields.integer("num_hidden_layers");
  layer.heads = fields.integer("num_attention_heads");
  if (fields.integer_or("num_key_value_heads", layer.heads, 1) != layer.heads) {
    fields.refuse("num_key_value_heads", "must be the number of heads");
  }
  layer.head_size = fields.integer("head_dim");
  layer.mlp = fields.integer("intermediate_size");
  check_activation(fields, "hidden_activation");
  layer.feed_forward = mlp_kind::gated;
  layer.norm = norm_kind::rms;
  layer.placement = omnibal::norm_placement::both;
  layer.head_norm = omnibal::query_key_norm::each_head;
  layer.qkv_bias = false;
  layer.output_bias = false;
  layer.mlp_bias = false;
  draft.patches.has_bias = false;
  draft.patches.positions = 2 * fields.integer("position_embedding_size");
  layer.patch_size = fields.integer("patch_size");
  std::int64_t const side = fields.integer("pooling_kernel_size");
  auto const tokens = static_cast<double>(fields.integer_or("default_output_length", 280, 1));
  layer.image_size = static_cast<std::int64_t>(std::sqrt(tokens)) * side * layer.patch_size;
  draft.connector = draft.merger(side);
  draft.connector->input = layer.hidden;
  draft.connector->has_norm = true;
  draft.connector->norm = norm_kind::unweighted;
  draft.connector->has_bias = false;
}

/// Two parts with a hidden layer and a norm each, of one image and of two frames, lead to the last
/// matrix. The frames of an image are equal.
void read_ernie(tower_draft& draft) {
  read_qwen_sizes(draft);
  config_fields const& fields = draft.fields;
  draft.layer.hidden = fields.integer("hidden_size");
  draft.layer.mlp = fields.integer("intermediate_size");
  draft.patches.has_bias = false;
  draft.has_last_norm = true;
  auto step = draft.merger(fields.integer_or("spatial_merge_size", 2, 1));
  std::int64_t const width = step.input;
  step.hidden = width;
  step.output = width;
  step.has_output_norm = true;
  step.output_norm = norm_kind::layer;
  draft.further.push_back({1, step});
  step.input = width * fields.integer_or("temporal_merge_size", 2, 1);
  draft.further.push_back({1, step});
  step.input = width;
  step.hidden = 0;
  step.output = 0;
  step.output_norm = norm_kind::rms;
  draft.connector = step;
}

/// Errors: `input_error` for a tower that the class does not have.
void check_kimi(config_fields const& fields) {
  struct stated_kind {
    std::string_view name;
    std::string_view only;
  };
  for (stated_kind const& one : {stated_kind{"merge_type", "sd2_tpool"},
                                 {"mm_projector_type", "patchmerger"},
                                 {"pos_emb_type", "divided_fixed"},
                                 {"video_attn_type", "spatial_temporal"}}) {
    if (!fields.has(one.name) || fields.text(one.name) == one.only) continue;
    fields.refuse(one.name, "but only \"" + std::string(one.only) + "\" is read");
  }
  if (fields.integer_or("mm_hidden_size", fields.integer("hidden_size")) !=
      fields.integer("hidden_size")) {
    fields.refuse("mm_hidden_size", "must be the width of the tower");
  }
  if (fields.has("projector_hidden_act")) check_activation(fields, "projector_hidden_act");
  fields.skip({"text_hidden_size", "projector_ln_eps", "_attn_implementation"});
}

void read_kimi(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  draft.layers = fields.integer("num_hidden_layers");
  layer.heads = fields.integer("num_attention_heads");
  layer.mlp = fields.integer("intermediate_size");
  check_activation(fields, "hidden_act");
  layer.patch_size = fields.integer("patch_size");
  layer.image_size = usual_patches * layer.patch_size;
  draft.patches.positions = fields.integer("pos_emb_height") * fields.integer("pos_emb_width");
  fields.skip({"pos_emb_time"});
  check_kimi(fields);
  draft.has_last_norm = true;
  draft.connector = draft.merger(side_of(fields, "merge_kernel_size"));
  draft.connector->hidden = draft.connector->input;
  draft.connector->has_norm = true;
  draft.connector->norm_width = layer.hidden;
}

/// Rotary positions. A connector works on each patch, another one on the patches of a token.
void read_minimax(tower_draft& draft) {
  read_usual_sizes(draft);
  config_fields const& fields = draft.fields;
  draft.layer.image_size = usual_patches * draft.layer.patch_size;
  draft.patches.channels *= frames_of(draft);
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
  draft.connector = draft.merger(fields.integer_or("spatial_merge_size", 2, 1));
}

}  // namespace

std::vector<tower_family> image_tower_families() {
  constexpr std::string_view qwen2_5 = R"({"depth": 32, "hidden_size": 3584,
    "intermediate_size": 3420, "num_heads": 16, "patch_size": 14, "out_hidden_size": 3584,
    "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]})";
  constexpr std::string_view qwen3 = R"({"depth": 27, "hidden_size": 1152,
    "intermediate_size": 4304, "num_heads": 16, "patch_size": 16, "out_hidden_size": 3584,
    "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]})";
  constexpr std::string_view glm = R"({"depth": 24, "hidden_size": 1536, "num_heads": 12,
    "image_size": 336, "patch_size": 14, "out_hidden_size": 4096, "intermediate_size": 13696})";
  neutral_field const with_biases{"attention_bias", neutral_value::on,
                                  "towers without biases are not read"};
  ignored_fields const positions{"positions are always learned", {"apply_vit_abs_pos_embed"}};
  return {{.names = {"qwen2_vl", "qwen2_vl_vision"},
           .read = read_qwen2,
           .defaults = R"({"depth": 32, "embed_dim": 1280, "hidden_size": 3584, "mlp_ratio": 4,
         "num_heads": 16, "patch_size": 14})",
           .neutral = {with_biases}},
          {.names = {"qwen2_5_vl", "qwen2_5_vl_vision", "qwen2_5_omni_vision_encoder"},
           .read = read_qwen2_5,
           .defaults = qwen2_5,
           .neutral = {with_biases}},
          {.names = {"qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision",
                     "qwen3_omni_moe_vision_encoder"},
           .read = read_qwen3,
           .defaults = qwen3,
           .neutral = {with_biases},
           .ignored = {positions}},
          {.names = {"qwen3_5", "qwen3_5_vision", "qwen3_5_moe", "qwen3_5_moe_vision"},
           .read = read_qwen3_5,
           .defaults = qwen3,
           .neutral = {with_biases},
           .ignored = {positions}},
          {.names = {"glm4v_vision", "glm4v_moe_vision"}, .read = read_glm, .defaults = glm},
          {.names = {"glm_ocr_vision"},
           .read = read_glm_ocr,
           .defaults = R"({"depth": 24, "hidden_size": 1024, "num_heads": 16, "image_size": 336,
         "patch_size": 14, "out_hidden_size": 1536, "intermediate_size": 4096,
         "attention_bias": true})"},
          {.names = {"gemma4_vision"},
           .read = read_gemma4,
           .defaults = R"({"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16,
         "num_attention_heads": 12, "head_dim": 64, "pooling_kernel_size": 3, "patch_size": 16,
         "position_embedding_size": 10240})",
           .neutral = {{"attention_bias", neutral_value::off, "it has no biases"}},
           .ignored = {{"bounds and scales that are not learned",
                        {"use_clipped_linears", "standardize", "global_head_dim"}},
                       {"how images become tiles", {"image_seq_length", "video_seq_length"}}}},
          {.names = {"ernie4_5_vl_moe", "ernie4_5_vl_moe_vision"},
           .read = read_ernie,
           .defaults = R"({"depth": 32, "hidden_size": 1280, "num_heads": 16, "patch_size": 14,
         "intermediate_size": 5120})"},
          {.names = {"kimi_k25_vision"},
           .read = read_kimi,
           .defaults = R"({"patch_size": 14, "pos_emb_height": 64, "pos_emb_width": 64,
         "num_attention_heads": 16, "num_hidden_layers": 27, "hidden_size": 1152,
         "intermediate_size": 4304, "merge_kernel_size": [2, 2]})",
           .aliases = {{"vt_hidden_size", "hidden_size"},
                       {"vt_num_hidden_layers", "num_hidden_layers"},
                       {"vt_num_attention_heads", "num_attention_heads"},
                       {"vt_intermediate_size", "intermediate_size"},
                       {"init_pos_emb_height", "pos_emb_height"},
                       {"init_pos_emb_width", "pos_emb_width"},
                       {"init_pos_emb_time", "pos_emb_time"}}},
          {.names = {"minimax_m3_vl_vision"},
           .read = read_minimax,
           .defaults = R"({"hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
         "num_attention_heads": 16, "image_size": 2016, "patch_size": 14})"}};
}

}  // namespace examples
