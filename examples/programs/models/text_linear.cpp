// SPDX-License-Identifier: Apache-2.0
// Families with linear attention.
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

using omnibal::attention_gate;
using omnibal::delta_decay;
using omnibal::norm_placement;
using omnibal::query_key_norm;
using omnibal::transformer;

omnibal::delta_net read_delta(config_fields const& given) {
  return {.key_heads = given.integer("linear_num_key_heads"),
          .value_heads = given.integer("linear_num_value_heads"),
          .key_size = given.integer("linear_key_head_dim"),
          .value_size = given.integer("linear_value_head_dim"),
          .convolution = given.integer("linear_conv_kernel_dim")};
}

/// Replaces attention by a delta net in the layers that the kinds name.
void set_delta(text_draft& draft, std::vector<std::string> const& kinds,
               omnibal::delta_net const& net) {
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] != linear) continue;
    draft.layers[l] = without_attention(draft.layers[l]);
    draft.layers[l].delta = net;
  }
}

/// The layers of multi-token prediction of Qwen have attention.
void read_qwen_prediction(text_draft& draft) {
  config_fields const& given = draft.given;
  read_prediction(draft, "mtp_num_hidden_layers");
  draft.model.prediction.owns_embeddings = given.flag("mtp_use_dedicated_embeddings");
  if (draft.model.prediction_layers == 0) return;
  transformer attending = draft.base;
  attending.mlp = draft.layers.back().mlp;
  attending.experts = draft.layers.back().experts;
  draft.model.prediction.layer = attending;
}

void read_qwen_attention(text_draft& draft) {
  draft.base.head_norm = query_key_norm::each_head;
  bool const is_gated = draft.given.flag("attn_output_gate", true);
  draft.base.gate = is_gated ? attention_gate::each_number : attention_gate::none;
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  // The gate is a part of the product of queries, and has their bias.
  if (is_gated && draft.base.qkv_bias) {
    std::int64_t const size =
        draft.base.head_size == 0 ? draft.base.hidden / draft.base.heads : draft.base.head_size;
    draft.base.other_parameters = draft.base.heads * size;
  }
  check_activation(draft.given, "hidden_act");
}

void set_qwen_kinds(text_draft& draft) {
  std::int64_t const period = draft.given.integer_or("full_attention_interval", 4, 1);
  set_delta(draft,
            mixed_kinds(draft, "layer_types",
                        [period](std::size_t l) {
                          return (static_cast<std::int64_t>(l) + 1) % period != 0 ? linear : full;
                        }),
            read_delta(draft.given));
  draft.given.skip({"mamba_ssm_dtype", "output_gate_type"});
}

omnibal::expert_layer read_qwen_experts(config_fields const& given) {
  auto experts = read_experts(given, {.shared_width = "shared_expert_intermediate_size"});
  experts.shared_gate = experts.shared != 0;
  return experts;
}

void read_qwen3_next(text_draft& draft) {
  read_qwen_attention(draft);
  draft.base.mlp = draft.given.integer_or("intermediate_size", 1, 1);
  fill_layers(draft);
  read_sparse_steps(draft, read_qwen_experts(draft.given));
  set_qwen_kinds(draft);
  read_qwen_prediction(draft);
}

void read_qwen3_5(text_draft& draft) {
  read_qwen_attention(draft);
  draft.base.mlp = draft.given.integer("intermediate_size");
  fill_layers(draft);
  set_qwen_kinds(draft);
  read_qwen_prediction(draft);
}

void read_qwen3_5_moe(text_draft& draft) {
  read_qwen_attention(draft);
  draft.given.skip({"intermediate_size"});
  fill_layers(draft);
  set_experts(draft, read_qwen_experts(draft.given), [](std::size_t) { return true; });
  set_qwen_kinds(draft);
  read_qwen_prediction(draft);
}

void read_olmo_hybrid(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.placement = norm_placement::after;
  draft.base.head_norm = query_key_norm::whole_width;
  read_attention_bias(draft);
  read_usual(draft);
  std::int64_t const heads = draft.base.heads;
  omnibal::delta_net net;
  net.key_heads = given.integer_or("linear_num_key_heads", heads, 1);
  net.value_heads = given.integer_or("linear_num_value_heads", heads, 1);
  std::int64_t const usual_key = 3 * draft.base.hidden / (4 * net.key_heads);
  net.key_size = given.integer_or("linear_key_head_dim", usual_key, 1);
  net.value_size = given.integer_or("linear_value_head_dim", 2 * net.key_size, 1);
  net.convolution = given.integer("linear_conv_kernel_dim");
  set_delta(
      draft,
      mixed_kinds(draft, "layer_types", [](std::size_t l) { return l % 4 == 3 ? full : linear; }),
      net);
  // Layers with linear attention have their norms before each part.
  for (transformer& layer : draft.layers) {
    if (layer.delta.key_heads != 0) layer.placement = norm_placement::before;
  }
}

/// Layer numbers from 1 that two lists give to attention and to linear attention.
std::vector<std::string> kinds_of_lists(text_draft const& draft, json_fields const& lists) {
  std::vector<std::string> kinds(draft.layers.size());
  auto const set = [&](char const* name, std::string_view kind) {
    for (auto const layer : lists.integers<std::size_t>(name, 1, kinds.size())) {
      kinds[layer - 1] = kind;
    }
  };
  set("full_attn_layers", full);
  set("kda_layers", linear);
  for (std::string const& kind : kinds) {
    if (kind.empty()) lists.refuse("kda_layers", "but a layer is in none of the two lists");
  }
  return kinds;
}

void read_kimi_linear(text_draft& draft) {
  config_fields const& given = draft.given;
  given.skip({"mla_use_nope"});
  read_ends(draft);
  // The class never ties its ends.
  draft.model.output.weights = omnibal::head_weights::own;
  read_latent(draft);
  read_dense(draft);
  fill_layers(draft);
  read_sparse_layers(draft, read_experts(given, {.shared_count = "n_shared_experts"}), 1);
  omnibal::delta_net net{.decay = delta_decay::each_number};
  std::vector<std::string> kinds;
  if (given.has("linear_attn_config")) {
    auto const linear_fields = given.object("linear_attn_config");
    linear_fields.allow(
        {"head_dim", "num_heads", "short_conv_kernel_size", "full_attn_layers", "kda_layers"});
    net.key_heads = linear_fields.integer("num_heads", 1, max_of_model);
    net.key_size = linear_fields.integer("head_dim", 1, max_of_model);
    net.convolution = linear_fields.integer("short_conv_kernel_size", 1, max_of_model);
    if (!given.has("layer_types")) kinds = kinds_of_lists(draft, linear_fields);
    given.skip({"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"});
  } else {
    net.key_heads = given.integer("linear_num_heads");
    net.key_size = given.integer("linear_head_dim");
    net.convolution = given.integer("linear_conv_kernel_dim");
  }
  if (kinds.empty()) {
    kinds = mixed_kinds(draft, "layer_types",
                        [](std::size_t l) { return l != 0 && l % 4 == 0 ? full : linear; });
  }
  set_delta(draft, kinds, net);
  read_prediction(draft);
}

void read_bailing_hybrid(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.gate = attention_gate::each_head;
  std::int64_t const size = given.integer("head_dim");
  read_ends(draft);
  // The class never ties its ends.
  draft.model.output.weights = omnibal::head_weights::own;
  read_latent(draft);
  read_dense(draft);
  fill_layers(draft);
  read_sparse_layers(draft, read_experts(given, {.shared_count = "n_shared_experts"}), 2);
  omnibal::delta_net const net{
      .key_heads = given.integer_or("linear_num_heads", draft.base.heads, 1),
      .key_size = given.integer_or("linear_head_dim", size, 1),
      .convolution =
          given.integer_or("linear_conv_kernel_dim", given.integer("short_conv_kernel_size"), 1),
      .decay = delta_decay::each_number_direct};
  std::int64_t const period = given.integer("layer_group_size");
  set_delta(draft,
            mixed_kinds(draft, "layer_types",
                        [period](std::size_t l) {
                          return (static_cast<std::int64_t>(l) + 1) % period == 0 ? full : linear;
                        }),
            net);
  read_prediction(draft);
}

void read_minimax(text_draft& draft) {
  config_fields const& given = draft.given;
  read_ends(draft);
  read_heads(draft);
  check_activation(given, "hidden_act");
  fill_layers(draft);
  set_experts(draft,
              read_experts(given, {.count = "num_local_experts", .width = "intermediate_size"}),
              [](std::size_t) { return true; });
  std::int64_t const heads = draft.base.heads;
  std::int64_t const size =
      draft.base.head_size == 0 ? draft.base.hidden / heads : draft.base.head_size;
  given.skip({"block_size", "full_attn_alpha_factor", "full_attn_beta_factor",
              "linear_attn_alpha_factor", "linear_attn_beta_factor", "mlp_alpha_factor",
              "mlp_beta_factor", "sliding_window"});
  set_delta(draft,
            mixed_kinds(draft, "layer_types",
                        [](std::size_t l) { return (l + 1) % 2 != 0 ? full : linear; }),
            {.key_heads = heads, .key_size = size, .convolution = 0, .decay = delta_decay::fixed});
}

}  // namespace

std::vector<text_family> linear_text_families() {
  std::vector<field_alias> const kimi_names{{"num_expert_group", "n_group"},
                                            {"num_local_experts", "num_experts"},
                                            {"num_experts_per_token", "num_experts_per_tok"},
                                            {"num_shared_experts", "n_shared_experts"},
                                            {"num_mtp_layers", "num_nextn_predict_layers"}};
  std::vector<field_alias> const routed{{"num_local_experts", "num_experts"}};
  return {
      {{"qwen3_next"}, read_qwen3_next, routed},
      {{"qwen3_5_text"},
       read_qwen3_5,
       {},
       {{"mlp_only_layers", neutral_value::empty, "all of its layers are dense"}}},
      {{"qwen3_5_moe_text"},
       read_qwen3_5_moe,
       routed,
       {{"mlp_only_layers", neutral_value::empty, "all of its layers are sparse"},
        {"decoder_sparse_step", neutral_value::one, "all of its layers are sparse"}}},
      {{"olmo_hybrid"}, read_olmo_hybrid},
      {{"kimi_linear"}, read_kimi_linear, kimi_names},
      {{"bailing_hybrid"}, read_bailing_hybrid, kimi_names},
      {{"minimax"}, read_minimax, {{"num_experts", "num_local_experts"}}},
  };
}

}  // namespace examples
