// SPDX-License-Identifier: Apache-2.0
// Families with mixtures of experts and grouped keys and values.
#include "attention_kinds.hpp"
#include "text_families.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace examples {

namespace {

using omnibal::norm_kind;
using omnibal::norm_placement;
using omnibal::query_key_norm;

void read_mixtral(text_draft& draft) {
  read_sparse_base(draft);
  fill_layers(draft);
  all_sparse(draft, read_experts(draft.given,
                                 {.count = "num_local_experts", .width = "intermediate_size"}));
  read_windows(draft, [](std::size_t) { return sliding; });
}

void read_phimoe(text_draft& draft) {
  draft.base.norm = norm_kind::layer;
  read_attention_bias(draft);
  read_mixtral(draft);
  draft.model.output.has_bias = draft.given.flag("lm_head_bias");
}

void read_minimax_m2(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::whole_width;
  if (given.has("qk_norm_type") && given.text("qk_norm_type") != "per_layer") {
    given.refuse("qk_norm_type", "but only norms of the whole width are read");
  }
  if (!given.flag("use_qk_norm", true)) draft.base.head_norm = query_key_norm::none;
  given.skip({"attn_type_list", "mtp_transformer_layers", "use_mtp", "use_routing_bias",
              "shared_moe_mode", "layernorm_full_attention_beta", "num_mtp_modules"});
  read_sparse_base(draft);
  fill_layers(draft);
  if (given.has("attn_type_list")) {
    auto const types = given.integers("attn_type_list");
    if (!std::ranges::all_of(types, [](std::int64_t type) { return type == 1; })) {
      given.refuse("attn_type_list", "but layers with other attention are not read");
    }
  }
  if (given.integer_or("shared_intermediate_size", 0) != 0) {
    given.refuse("shared_intermediate_size", "but shared experts of this family are not read");
  }
  all_sparse(draft,
             read_experts(given, {.count = "num_local_experts", .width = "intermediate_size"}));
  if (!given.is_in_file("num_mtp_modules") || !given.flag("use_mtp", true)) return;
  std::int64_t const modules = given.integer_or("num_mtp_modules", 0);
  draft.model.prediction_layers = modules * given.integer_or("mtp_transformer_layers", 1);
  draft.model.prediction.layer = draft.layers.back();
}

/// Windows by `max_window_layers`, off without a flag.
void read_qwen_windows(text_draft& draft, bool is_alternating) {
  config_fields const& given = draft.given;
  given.skip({"sliding_window", "max_window_layers"});
  bool const has_windows = given.flag("use_sliding_window");
  if (!has_windows) {
    static_cast<void>(
        kinds_of_layers(draft, "layer_types", {full, sliding}, [](std::size_t) { return full; }));
    return;
  }
  std::int64_t const limit =
      is_alternating ? given.integer_or("max_window_layers", 0) : std::int64_t{0};
  read_windows(draft, [=](std::size_t l) {
    bool const is_early = static_cast<std::int64_t>(l) < limit && (l + 1) % 2 != 0;
    return is_alternating && !is_early ? full : sliding;
  });
}

void read_qwen2_moe(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("qkv_bias", true);
  read_usual(draft);
  auto experts = read_experts(draft.given, {.shared_width = "shared_expert_intermediate_size"});
  experts.shared_gate = true;
  read_sparse_steps(draft, experts);
  read_qwen_windows(draft, true);
}

void read_qwen3_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  // A model of sparse layers alone needs no width of dense ones.
  draft.base.mlp = given.integer_or("intermediate_size", 1, 1);
  check_activation(given, "hidden_act");
  fill_layers(draft);
  read_sparse_steps(draft, read_experts(given, {}));
  if (draft.base.mlp == 1 && !given.has("intermediate_size")) {
    for (auto const& layer : draft.layers) {
      if (layer.experts.routed == 0) static_cast<void>(given.integer("intermediate_size"));
    }
  }
  read_qwen_windows(draft, false);
}

void read_olmoe(text_draft& draft) {
  draft.base.head_norm = query_key_norm::whole_width;
  read_attention_bias(draft);
  read_sparse_base(draft);
  fill_layers(draft);
  all_sparse(draft, read_experts(draft.given, {.width = "intermediate_size"}));
}

void read_flex_olmo(text_draft& draft) {
  draft.base.placement = norm_placement::after;
  read_olmoe(draft);
}

void read_granite_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  read_attention_bias(draft);
  read_sparse_base(draft);
  // The dense part runs beside the experts.
  draft.base.mlp = given.integer_or("shared_intermediate_size", 0);
  fill_layers(draft);
  auto const experts =
      read_experts(given, {.count = "num_local_experts", .width = "intermediate_size"});
  for (auto& layer : draft.layers) layer.experts = experts;
}

void read_glm4_moe(text_draft& draft) {
  if (draft.given.flag("use_qk_norm")) draft.base.head_norm = query_key_norm::each_head;
  draft.base.qkv_bias = draft.given.flag("attention_bias");
  read_ends(draft);
  read_heads(draft);
  // The class rounds the size of a head down.
  if (draft.base.head_size == 0) draft.base.head_size = draft.base.hidden / draft.base.heads;
  read_dense(draft);
  fill_layers(draft);
  auto const experts =
      read_experts(draft.given, {.count = "n_routed_experts", .shared_count = "n_shared_experts"});
  read_sparse_layers(draft, experts, 1);
  read_prediction(draft);
}

void read_solar_open(text_draft& draft) {
  draft.base.qkv_bias = draft.given.flag("attention_bias");
  read_sparse_base(draft);
  draft.given.skip({"intermediate_size", "num_nextn_predict_layers"});
  fill_layers(draft);
  if (draft.given.integer_or("first_k_dense_replace", 0) != 0) {
    draft.given.refuse("first_k_dense_replace", "but it has no dense layers");
  }
  all_sparse(draft, read_experts(draft.given, {.count = "n_routed_experts",
                                               .shared_count = "n_shared_experts"}));
  read_prediction(draft);
}

void read_dots1(text_draft& draft) {
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  read_usual(draft);
  if (draft.given.has("n_routed_experts")) {
    read_sparse_layers(draft, read_experts(draft.given, {.count = "n_routed_experts",
                                                         .shared_count = "n_shared_experts"}));
  }
  std::int64_t const first = draft.given.integer_or("max_window_layers", 0);
  bool const has_windows = draft.given.has("sliding_window");
  read_windows(draft, [=](std::size_t l) {
    return has_windows && static_cast<std::int64_t>(l) >= first ? sliding : full;
  });
}

void read_ernie_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.qkv_bias = given.flag("use_bias");
  base.output_bias = base.qkv_bias;
  base.mlp_bias = base.qkv_bias;
  if (base.mlp_bias) given.refuse("use_bias", "but experts with biases are not read");
  read_usual(draft);
  auto const experts = read_experts(
      given,
      {.count = "moe_num_experts", .active = "moe_k", .shared_count = "moe_num_shared_experts"});
  std::int64_t const first = given.integer_or("moe_layer_start_index", 0);
  std::int64_t const end = given.integer_or("moe_layer_end_index", -1, -1);
  std::int64_t const last = end == -1 ? static_cast<std::int64_t>(draft.layers.size()) - 1 : end;
  std::int64_t const step = given.integer_or("moe_layer_interval", 1, 1);
  set_experts(draft, experts, [=](std::size_t l) {
    auto const number = static_cast<std::int64_t>(l);
    return (number + 1) % step == 0 && number >= first && number <= last;
  });
  add_router_biases(draft);
  given.skip(
      {"moe_capacity", "moe_gate", "moe_use_aux_free", "moe_gate_act", "moe_aux_loss_lambda"});
  read_prediction(draft);
}

/// Experts of two widths: a token of text uses the first ones, and a token of an image the others.
void read_ernie_vl(text_draft& draft) {
  config_fields const& given = draft.given;
  if (given.flag("use_bias")) given.refuse("use_bias", "but experts with biases are not read");
  read_usual(draft);
  auto const widths = given.integers("moe_intermediate_size");
  if (widths.size() != 2) given.refuse("moe_intermediate_size", "must be two widths");
  omnibal::expert_layer experts{.routed = given.integer("moe_num_experts"),
                                .active = given.integer("moe_k"),
                                .shared = given.integer_or("moe_num_shared_experts", 0),
                                .mlp = widths[0]};
  // The experts for images with their router and its bias.
  std::int64_t const each = (3 * widths[1] + 1) * draft.base.hidden + 1;
  if (each > (std::int64_t{1} << 40) / experts.routed) {
    given.refuse("moe_intermediate_size", "but the experts have too many parameters");
  }
  experts.idle_parameters = experts.routed * each;
  read_sparse_layers(draft, experts, 1);
  add_router_biases(draft);
}

void read_hunyuan_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  read_sparse_base(draft);
  fill_layers(draft);
  auto experts = read_experts(given, {.active = "moe_topk", .width = "intermediate_size"});
  experts.shared = 1;
  all_sparse(draft, experts);
}

void read_hy_v3(text_draft& draft) {
  draft.base.head_norm = query_key_norm::each_head;
  read_attention_bias(draft);
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_usual(draft);
  auto const experts = read_experts(draft.given, {.shared_count = "num_shared_experts"});
  read_sparse_layers(draft, experts, 1);
  if (draft.base.mlp_bias) add_shared_biases(draft);
  read_prediction(draft);
}

/// Ling: norms by a flag, and shared experts of the width of a routed one.
void read_bailing_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.qkv_bias = given.flag("use_qkv_bias");
  draft.base.output_bias = given.flag("use_bias");
  if (given.flag("use_qk_norm")) draft.base.head_norm = query_key_norm::each_head;
  read_usual(draft);
  auto experts = read_experts(given, {.shared_count = "num_shared_experts"});
  if (given.has("moe_shared_expert_intermediate_size")) {
    std::int64_t const width = given.integer("moe_shared_expert_intermediate_size");
    if (width != experts.mlp) experts.shared_mlp = width;
  }
  read_sparse_layers(draft, experts);
  read_prediction(draft);
}

void read_sarvam_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.qkv_bias = given.flag("attention_bias");
  if (given.flag("use_qk_norm", true)) draft.base.head_norm = query_key_norm::each_head;
  read_usual(draft);
  read_sparse_layers(draft, read_experts(given, {.count = "n_routed_experts",
                                                 .shared_count = "n_shared_experts"}));
  read_prediction(draft);
}

}  // namespace

std::vector<text_family> sparse_text_families() {
  std::vector<field_alias> const deepseek_names{{"num_local_experts", "n_routed_experts"},
                                                {"num_mtp_layers", "num_nextn_predict_layers"},
                                                {"num_experts", "n_routed_experts"},
                                                {"num_shared_experts", "n_shared_experts"}};
  std::vector<field_alias> const local{{"num_experts", "num_local_experts"}};
  std::vector<field_alias> const routed{{"num_local_experts", "num_experts"}};
  neutral_field const rms_norms{"use_rmsnorm", neutral_value::on, "its norms are RMS norms"};
  return {
      {{"mixtral"}, read_mixtral, local},
      {{"phimoe"}, read_phimoe, local},
      {{"minimax_m2"}, read_minimax_m2, local},
      {{"qwen2_moe"}, read_qwen2_moe, routed},
      {{"qwen3_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text"},
       read_qwen3_moe,
       routed,
       {{"qkv_bias", neutral_value::off, "its biases are those of attention_bias"},
        {"use_qk_norm", neutral_value::on, "it has norms of queries and keys"},
        {"shared_expert_intermediate_size", neutral_value::zero, "it has no shared experts"}}},
      {{"olmoe"}, read_olmoe, routed},
      {{"flex_olmo"}, read_flex_olmo, routed},
      {{"granitemoe", "granitemoeshared"}, read_granite_moe, local},
      {{"glm4_moe", "glm4v_moe_text"}, read_glm4_moe, deepseek_names},
      {{"solar_open"}, read_solar_open, deepseek_names},
      {{"dots1"}, read_dots1, deepseek_names},
      {{"ernie4_5_moe"},
       read_ernie_moe,
       {{"num_experts", "moe_num_experts"}, {"num_experts_per_tok", "moe_k"}},
       {rms_norms}},
      {{"ernie4_5_vl_moe_text"},
       read_ernie_vl,
       {{"num_experts", "moe_num_experts"}, {"num_experts_per_tok", "moe_k"}}},
      {{"hunyuan_v1_moe"},
       read_hunyuan_moe,
       {{"num_experts_per_tok", "moe_topk"}, {"num_local_experts", "num_experts"}}},
      {{"hy_v3"}, read_hy_v3, routed},
      {{"bailing_moe", "bailing_moe_v2", "bailing_moe_linear_v0"}, read_bailing_moe, routed},
      {{"sarvam_moe"},
       read_sarvam_moe,
       {{"num_local_experts", "n_routed_experts"},
        {"num_mtp_layers", "num_nextn_predict_layers"},
        {"num_experts", "n_routed_experts"},
        {"num_shared_experts", "n_shared_experts"},
        {"use_qkv_bias", "attention_bias"}}},
  };
}

}  // namespace examples
