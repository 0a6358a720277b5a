// SPDX-License-Identifier: Apache-2.0
// Families with state spaces and short convolutions.
#include "text_families.hpp"
#include "text_mixers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace examples {

namespace {

using omnibal::layer_parts;
using omnibal::mlp_kind;
using omnibal::query_key_norm;
using omnibal::transformer;

/// Mamba-2 with the names of Bamba, Falcon-H1 and Granite.
omnibal::state_space read_mamba2(config_fields const& given, std::int64_t width) {
  omnibal::state_space space{.heads = given.integer("mamba_n_heads"),
                             .state = given.integer("mamba_d_state"),
                             .groups = given.integer("mamba_n_groups"),
                             .convolution = given.integer("mamba_d_conv"),
                             .convolution_bias = given.flag("mamba_conv_bias", true)};
  bool const is_auto = !given.has("mamba_d_head") || given.at("mamba_d_head").is_string();
  space.head_size = is_auto ? width / space.heads : given.integer("mamba_d_head");
  given.skip({"mamba_expand", "mamba_chunk_size", "time_step_limit", "mamba_proj_bias"});
  return space;
}

/// Replaces attention by a state space in the layers that the kinds name.
void set_space(text_draft& draft, std::vector<std::string> const& kinds,
               omnibal::state_space const& space) {
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] != linear) continue;
    draft.layers[l] = without_attention(draft.layers[l]);
    draft.layers[l].space = space;
  }
}

void read_bamba(text_draft& draft) {
  config_fields const& given = draft.given;
  read_attention_bias(draft);
  draft.base.mlp_bias = given.flag("mlp_bias");
  read_usual(draft);
  auto space = read_mamba2(given, given.integer("mamba_expand") * draft.base.hidden);
  space.projection_bias = given.flag("mamba_proj_bias");
  std::vector<std::int64_t> attending;
  if (given.has("attn_layer_indices")) attending = given.integers("attn_layer_indices");
  set_space(draft,
            mixed_kinds(draft, "layers_block_type",
                        [&](std::size_t l) {
                          auto const number = static_cast<std::int64_t>(l);
                          return std::ranges::find(attending, number) != attending.end() ? full
                                                                                         : linear;
                        }),
            space);
}

void read_falcon_h1(text_draft& draft) {
  config_fields const& given = draft.given;
  read_attention_bias(draft);
  draft.base.mlp_bias = given.flag("mlp_bias");
  read_usual(draft);
  std::int64_t const expanded = given.integer_or("mamba_expand", 2, 1) * draft.base.hidden;
  std::int64_t const width = given.integer_or("mamba_d_ssm", expanded, 1);
  auto space = read_mamba2(given, width);
  space.has_norm = given.flag("mamba_rms_norm");
  space.projection_bias = given.flag("mamba_proj_bias");
  given.skip({"mamba_norm_before_gate", "mlp_multipliers", "ssm_multipliers", "ssm_in_multiplier",
              "ssm_out_multiplier", "key_multiplier", "attention_in_multiplier",
              "attention_out_multiplier", "lm_head_multiplier", "mamba_use_mlp",
              "mlp_expansion_factor", "layers_block_type", "attn_layer_indices"});
  if (given.flag("projectors_bias") != space.projection_bias) {
    given.refuse("projectors_bias", "must be that of mamba_proj_bias");
  }
  for (transformer& layer : draft.layers) layer.space = space;
}

void read_granite_hybrid(text_draft& draft) {
  config_fields const& given = draft.given;
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  check_activation(given, "hidden_act");
  draft.base.mlp = given.integer("shared_intermediate_size");
  fill_layers(draft);
  if (given.integer_or("num_local_experts", 0) != 0) {
    auto const experts =
        read_experts(given, {.count = "num_local_experts", .width = "intermediate_size"});
    for (transformer& layer : draft.layers) layer.experts = experts;
  }
  given.skip({"intermediate_size", "num_experts_per_tok", "position_embedding_type",
              "normalization_function", "init_method"});
  auto space = read_mamba2(given, given.integer("mamba_expand") * draft.base.hidden);
  space.projection_bias = given.flag("mamba_proj_bias");
  set_space(draft, mixed_kinds(draft, "layer_types", [](std::size_t) { return linear; }), space);
}

/// Mamba-1, as Jamba and the Mamba models state it.
omnibal::state_space first_mamba(std::int64_t hidden, std::int64_t expand, std::int64_t state,
                                 std::int64_t convolution, std::int64_t rank) {
  return {.heads = expand * hidden,
          .state = state,
          .convolution = convolution,
          .step_rank = rank == 0 ? (hidden + 15) / 16 : rank};
}

void read_jamba(text_draft& draft) {
  config_fields const& given = draft.given;
  read_usual(draft);
  bool const is_auto = !given.has("mamba_dt_rank") || given.at("mamba_dt_rank").is_string();
  auto space =
      first_mamba(draft.base.hidden, given.integer("mamba_expand"), given.integer("mamba_d_state"),
                  given.integer("mamba_d_conv"), is_auto ? 0 : given.integer("mamba_dt_rank"));
  space.convolution_bias = given.flag("mamba_conv_bias", true);
  space.projection_bias = given.flag("mamba_proj_bias");
  given.skip({"use_mamba_kernels", "use_mambapy", "use_associative_scan", "mamba_inner_layernorms",
              "calc_logits_for_entire_prompt"});
  auto experts = read_experts(given, {.width = "intermediate_size"});
  std::int64_t const expert_period = given.integer("expert_layer_period");
  std::int64_t const expert_offset = given.integer("expert_layer_offset", 0);
  set_experts(draft, experts, [&](std::size_t l) {
    return experts.routed > 1 && static_cast<std::int64_t>(l) % expert_period == expert_offset;
  });
  std::int64_t const period = given.integer("attn_layer_period");
  std::int64_t const offset = given.integer("attn_layer_offset", 0);
  auto const kinds = mixed_kinds(draft, "layers_block_type", [&](std::size_t l) {
    return static_cast<std::int64_t>(l) % period == offset ? full : linear;
  });
  set_space(draft, kinds, space);
}

/// Layers of a norm and a Mamba part alone.
void set_mamba_alone(text_draft& draft, omnibal::state_space const& space) {
  draft.given.skip({"residual_in_fp32", "rescale_prenorm_residual", "time_step_scale",
                    "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor",
                    "time_step_limit", "use_mambapy", "use_associative_scan", "chunk_size",
                    "mixer_rms_eps", "intermediate_size", "use_falcon_mambapy", "hidden_act"});
  draft.base.parts = layer_parts::mixer;
  draft.base.space = space;
  fill_layers(draft);
}

void read_mamba(text_draft& draft) {
  config_fields const& given = draft.given;
  read_ends(draft);
  bool const is_auto = !given.has("time_step_rank") || given.at("time_step_rank").is_string();
  auto space =
      first_mamba(draft.base.hidden, given.integer("expand"), given.integer("state_size"),
                  given.integer("conv_kernel"), is_auto ? 0 : given.integer("time_step_rank"));
  space.convolution_bias = given.flag("use_conv_bias", true);
  space.projection_bias = given.flag("use_bias");
  space.has_norm = false;
  set_mamba_alone(draft, space);
}

void read_mamba2_model(text_draft& draft) {
  config_fields const& given = draft.given;
  read_ends(draft);
  given.skip({"time_step_rank", "expand"});
  set_mamba_alone(draft, {.heads = given.integer("num_heads"),
                          .head_size = given.integer("head_dim"),
                          .state = given.integer("state_size"),
                          .groups = given.integer("n_groups"),
                          .convolution = given.integer("conv_kernel"),
                          .convolution_bias = given.flag("use_conv_bias", true),
                          .projection_bias = given.flag("use_bias")});
}

/// The kinds of the letters of a pattern of Nemotron-H.
std::vector<std::string> kinds_of_letters(config_fields const& given, std::string_view field) {
  std::vector<std::string> kinds;
  for (char const letter : given.text(field)) {
    switch (letter) {
      case 'M': kinds.emplace_back(linear); break;
      case '*': kinds.emplace_back(full); break;
      case 'E': kinds.emplace_back("moe"); break;
      case '-': kinds.emplace_back("mlp"); break;
      default: given.refuse(field, "but only layers M, *, E and - are known");
    }
  }
  return kinds;
}

omnibal::state_space nemotron_space(config_fields const& given) {
  return {.heads = given.integer("mamba_num_heads"),
          .head_size = given.integer("mamba_head_dim"),
          .state = given.integer("ssm_state_size"),
          .groups = given.integer("n_groups"),
          .convolution = given.integer("conv_kernel"),
          .convolution_bias = given.flag("use_conv_bias", true),
          .projection_bias = given.flag("use_bias")};
}

/// One part of a layer of Nemotron-H, or two for a layer of multi-token prediction.
void add_nemotron_part(config_fields const& given, std::string const& kind, transformer& layer) {
  if (kind == linear) layer.space = nemotron_space(given);
  if (kind == full) {
    layer.heads = given.integer("num_attention_heads");
    layer.kv_heads = given.integer_or("num_key_value_heads", 0, 1);
    layer.head_size = given.integer_or("head_dim", 0, 1);
  }
  if (kind == "mlp") {
    layer.mlp = given.integer("intermediate_size");
    layer.mlp_bias = given.flag("mlp_bias");
  }
  if (kind == "moe") {
    layer.experts = read_experts(given, {.count = "n_routed_experts",
                                         .shared_count = "n_shared_experts",
                                         .shared_width = "moe_shared_expert_intermediate_size"});
    layer.experts.latent_width = given.integer_or("moe_latent_size", 0);
    if (given.flag("mlp_bias")) {
      std::int64_t const width =
          layer.experts.shared_mlp == 0 ? layer.experts.mlp : layer.experts.shared_mlp;
      layer.other_parameters += layer.experts.shared * width + layer.hidden;
      if (layer.experts.latent_width != 0) {
        layer.other_parameters += layer.experts.latent_width + layer.hidden;
      }
    }
  }
}

void read_nemotron_h(text_draft& draft) {
  config_fields const& given = draft.given;
  // Mamba-2 has no product of that rank.
  given.skip({"time_step_rank"});
  draft.base.feed_forward = mlp_kind::plain;
  read_ends(draft);
  // The class never ties its ends.
  draft.model.output.weights = omnibal::head_weights::own;
  check_activation(given, "mlp_hidden_act");
  given.skip({"expand",
              "chunk_size",
              "time_step_min",
              "time_step_max",
              "time_step_floor",
              "time_step_limit",
              "mamba_hidden_act",
              "mamba_proj_bias",
              "mamba_ssm_cache_dtype",
              "moe_shared_expert_overlap",
              "use_mamba_kernels",
              "residual_in_fp32",
              "rescale_prenorm_residual",
              "sliding_window",
              "attention_bias",
              "num_hidden_layers",
              "mtp_layers_block_type",
              "mtp_hybrid_override_pattern",
              "intermediate_size",
              "num_attention_heads",
              "num_key_value_heads",
              "head_dim",
              "n_routed_experts",
              "n_shared_experts",
              "moe_intermediate_size",
              "moe_shared_expert_intermediate_size",
              "moe_latent_size",
              "num_experts_per_tok",
              "mlp_bias",
              "use_bias",
              "n_groups",
              "mamba_num_heads",
              "mamba_head_dim",
              "ssm_state_size",
              "conv_kernel",
              "use_conv_bias",
              "hybrid_override_pattern",
              "attention_head_dim",
              "hidden_act"});
  std::vector<std::string> kinds;
  if (given.has("layers_block_type")) {
    draft.layers.resize(given.texts("layers_block_type").size());
    if (draft.layers.empty()) given.refuse("layers_block_type", "must have layers");
    kinds = mixed_kinds(draft, "layers_block_type", {});
  } else {
    kinds = kinds_of_letters(given, "hybrid_override_pattern");
    draft.layers.resize(kinds.size());
  }
  if (kinds.empty()) given.refuse("hybrid_override_pattern", "must have layers");
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    transformer& layer = draft.layers[l];
    layer = draft.base;
    bool const mixes = kinds[l] == linear || kinds[l] == full;
    layer.parts = mixes ? layer_parts::mixer : layer_parts::feed_forward;
    add_nemotron_part(given, kinds[l], layer);
  }
  read_prediction(draft);
  if (draft.model.prediction_layers == 0) return;
  std::vector<std::string> parts{std::string(full), "moe"};
  if (given.has("mtp_hybrid_override_pattern")) {
    parts = kinds_of_letters(given, "mtp_hybrid_override_pattern");
  }
  transformer layer = draft.base;
  for (std::string const& part : parts) add_nemotron_part(given, part, layer);
  draft.model.prediction.layer = layer;
}

// Short convolutions.

void set_convolutions(text_draft& draft, std::vector<std::string> const& kinds) {
  omnibal::short_convolution const convolution{.tokens = draft.given.integer("conv_L_cache"),
                                               .has_bias = draft.given.flag("conv_bias")};
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] != "conv") continue;
    draft.layers[l] = without_attention(draft.layers[l]);
    draft.layers[l].convolution = convolution;
  }
  draft.given.skip({"conv_dim", "conv_dim_out", "conv_use_xavier_init", "block_dim",
                    "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                    "block_use_swiglu", "block_use_xavier_init", "num_heads", "use_pos_enc",
                    "full_attn_idxs", "use_expert_bias", "tie_embedding"});
}

void read_lfm2(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_ends(draft);
  read_heads(draft);
  std::int64_t width = given.integer("intermediate_size");
  if (given.flag("block_auto_adjust_ff_dim", true)) {
    std::int64_t const multiple = given.integer_or("block_multiple_of", 256, 1);
    double const factor =
        given.has("block_ffn_dim_multiplier") ? given.number("block_ffn_dim_multiplier") : 1.0;
    width = static_cast<std::int64_t>(factor * static_cast<double>(2 * width / 3));
    width = (width + multiple - 1) / multiple * multiple;
  }
  given.skip({"block_multiple_of", "block_ffn_dim_multiplier"});
  draft.base.mlp = width;
  fill_layers(draft);
  std::vector<std::int64_t> attending;
  bool const has_list = given.has("full_attn_idxs");
  if (has_list) attending = given.integers("full_attn_idxs");
  set_convolutions(draft, mixed_kinds(draft, "layer_types", [&](std::size_t l) {
                     auto const number = static_cast<std::int64_t>(l);
                     bool const attends =
                         !has_list || std::ranges::find(attending, number) != attending.end();
                     return attends ? full : std::string_view("conv");
                   }));
}

void read_lfm2_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_ends(draft);
  read_heads(draft);
  draft.base.mlp = given.integer("intermediate_size");
  fill_layers(draft);
  std::int64_t const dense = given.integer_or("num_dense_layers", 0);
  set_experts(draft, read_experts(given, {}),
              [dense](std::size_t l) { return static_cast<std::int64_t>(l) >= dense; });
  if (!given.has("layer_types")) static_cast<void>(given.at("layer_types"));
  set_convolutions(draft, mixed_kinds(draft, "layer_types", {}));
}

}  // namespace

std::vector<text_family> state_space_text_families() {
  std::vector<field_alias> const routed{{"num_local_experts", "num_experts"}};
  std::vector<field_alias> const types{{"layer_types", "layers_block_type"}};
  return {
      {{"bamba"}, read_bamba, types},
      {{"falcon_h1"}, read_falcon_h1, types},
      {{"granitemoehybrid"},
       read_granite_hybrid,
       {{"layers_block_type", "layer_types"}, {"num_experts", "num_local_experts"}}},
      {{"jamba"}, read_jamba, routed},
      {{"mamba", "falcon_mamba"}, read_mamba},
      {{"mamba2"}, read_mamba2_model},
      {{"nemotron_h"},
       read_nemotron_h,
       {{"layer_types", "layers_block_type"},
        {"num_local_experts", "n_routed_experts"},
        {"num_mtp_layers", "num_nextn_predict_layers"},
        {"mamba_n_groups", "n_groups"},
        {"mamba_d_conv", "conv_kernel"},
        {"mamba_expand", "expand"},
        {"mamba_conv_bias", "use_conv_bias"},
        {"mamba_chunk_size", "chunk_size"}}},
      {{"lfm2"},
       read_lfm2,
       {{"tie_embedding", "tie_word_embeddings"}, {"block_ff_dim", "intermediate_size"}}},
      {{"lfm2_moe"}, read_lfm2_moe, {{"tie_embedding", "tie_word_embeddings"}}},
  };
}

}  // namespace examples
