// SPDX-License-Identifier: Apache-2.0
// Families with mixtures of experts, of whose layers some have windows, chunks or other heads.
#include "attention_kinds.hpp"
#include "text_families.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

namespace {

using omnibal::attention_gate;
using omnibal::norm_placement;
using omnibal::query_key_norm;

void read_gpt_oss(text_draft& draft) {
  read_attention_bias(draft);
  draft.base.sinks = true;
  read_sparse_base(draft);
  fill_layers(draft);
  auto experts =
      read_experts(draft.given, {.count = "num_local_experts", .width = "intermediate_size"});
  experts.has_bias = true;
  all_sparse(draft, experts);
  draft.given.skip({"experts_per_token", "initial_context_length"});
  read_windows(draft, [](std::size_t l) { return (l + 1) % 2 != 0 ? sliding : full; });
}

void read_llama4(text_draft& draft) {
  config_fields const& given = draft.given;
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  check_activation(given, "hidden_act");
  draft.base.mlp = given.integer("intermediate_size_mlp");
  fill_layers(draft);
  auto experts = read_experts(given, {.count = "num_local_experts", .width = "intermediate_size"});
  experts.shared = 1;
  // Norms of queries and keys have no weights.
  given.skip({"use_qk_norm", "for_llm_compressor"});
  std::int64_t const step = given.integer_or("interleave_moe_layer_step", 1, 1);
  std::vector<std::int64_t> sparse;
  bool const has_list = given.has("moe_layers");
  if (has_list) sparse = given.integers("moe_layers");
  set_experts(draft, experts, [&](std::size_t l) {
    auto const number = static_cast<std::int64_t>(l);
    if (!has_list) return (number + 1) % step == 0;
    return std::ranges::find(sparse, number) != sparse.end();
  });
  std::vector<std::int64_t> rotary;
  if (given.has("no_rope_layers")) rotary = given.integers("no_rope_layers");
  std::int64_t const period = given.integer_or("no_rope_layer_interval", 4, 1);
  auto const kinds =
      kinds_of_layers(draft, "layer_types", {full, "chunked_attention"}, [&](std::size_t l) {
        bool const is_rotary =
            l < rotary.size() ? rotary[l] != 0 : (static_cast<std::int64_t>(l) + 1) % period != 0;
        return is_rotary ? std::string_view("chunked_attention") : full;
      });
  std::int64_t const chunk = given.integer_or("attention_chunk_size", 0);
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] == "chunked_attention" && chunk != 0) {
      draft.layers[l].span = {omnibal::span_kind::chunk, chunk};
    }
  }
}

void read_afmoe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.placement = norm_placement::both;
  draft.base.head_norm = query_key_norm::each_head;
  draft.base.gate = attention_gate::each_number;
  read_attention_bias(draft);
  read_usual(draft);
  auto const experts = read_experts(given, {.shared_count = "num_shared_experts"});
  std::int64_t const dense = given.integer_or("num_dense_layers", 0);
  set_experts(draft, experts,
              [dense](std::size_t l) { return static_cast<std::int64_t>(l) >= dense; });
  add_router_biases(draft);
  std::int64_t const period = given.integer_or("global_attn_every_n_layers", 4, 1);
  read_windows(draft, [period](std::size_t l) {
    return (static_cast<std::int64_t>(l) + 1) % period != 0 ? sliding : full;
  });
}

void read_exaone_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_usual(draft);
  read_sparse_layers(draft, read_experts(given, {.shared_count = "num_shared_experts"}), 1);
  std::int64_t period = 4;
  if (given.has("sliding_window_pattern")) {
    bool const is_text = given.at("sliding_window_pattern").is_string();
    period = is_text ? static_cast<std::int64_t>(given.text("sliding_window_pattern").size())
                     : given.integer("sliding_window_pattern", 0);
  }
  if (!given.has("sliding_window")) period = 0;
  read_windows(draft, [period](std::size_t l) {
    return period != 0 && (static_cast<std::int64_t>(l) + 1) % period != 0 ? sliding : full;
  });
  read_prediction(draft);
}

/// Different numbers of heads in the layers.
void read_heads_of_layers(text_draft& draft) {
  if (!draft.given.has("num_attention_heads_per_layer")) return;
  auto const heads = draft.given.integers("num_attention_heads_per_layer");
  if (heads.size() != draft.layers.size()) {
    draft.given.refuse("num_attention_heads_per_layer", "must have a number for each layer");
  }
  for (std::size_t l = 0; l != heads.size(); ++l) draft.layers[l].heads = heads[l];
}

/// The gate of the output of attention: for each head unless the field says "per-element".
void read_gating(text_draft& draft) {
  config_fields const& given = draft.given;
  bool const is_flag = !given.has("gating") || given.at("gating").is_boolean();
  bool const each_head = is_flag ? given.flag("gating", true) : given.text("gating") == "per-head";
  draft.base.gate = each_head ? attention_gate::each_head : attention_gate::each_number;
}

void read_laguna(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_gating(draft);
  read_attention_bias(draft);
  read_usual(draft);
  read_heads_of_layers(draft);
  read_sparse_layers(draft,
                     read_experts(given, {.shared_width = "shared_expert_intermediate_size"}), 1);
  add_router_biases(draft);
  read_windows(draft, [](std::size_t) { return full; });
}

/// The sizes of the layers with windows, where the file states them. Errors: `input_error` for
/// sizes that the class does not have.
void check_mimo_windows(config_fields const& given) {
  struct stated_size {
    std::string_view of_windows;
    std::string_view usual;
    std::int64_t times = 1;
  };
  constexpr std::array<stated_size, 6> sizes{{{"swa_num_attention_heads", "num_attention_heads"},
                                              {"swa_num_key_value_heads", "num_key_value_heads", 2},
                                              {"swa_head_dim", "head_dim"},
                                              {"swa_v_head_dim", "v_head_dim"},
                                              {"sliding_window_size", "sliding_window"},
                                              {"attention_chunk_size", "sliding_window"}}};
  for (stated_size const& one : sizes) {
    if (!given.has(one.of_windows)) continue;
    std::int64_t const expected = one.times * given.integer(one.usual);
    if (given.integer(one.of_windows) == expected) continue;
    given.refuse(one.of_windows, "must be " + std::to_string(expected) + ", because " +
                                     std::string(one.usual) + " is " +
                                     std::to_string(expected / one.times));
  }
  if (given.flag("add_full_attention_sink_bias")) {
    given.refuse("add_full_attention_sink_bias", "but only layers with windows have sinks");
  }
  if (!given.flag("add_swa_attention_sink_bias", true)) {
    given.refuse("add_swa_attention_sink_bias", "but layers with windows have sinks");
  }
}

void read_mimo_v2(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.qkv_bias = given.flag("attention_bias");
  read_usual(draft);
  draft.base.value_size = given.integer("v_head_dim");
  auto const experts = read_experts(given, {.count = "n_routed_experts"});
  if (given.integer_or("n_shared_experts", 0) != 0) {
    given.refuse("n_shared_experts", "but shared experts of this family are not read");
  }
  read_sparse_layers(draft, experts, 1);
  check_mimo_windows(given);
  given.skip({"layernorm_epsilon", "attention_value_scale", "swa_rope_theta"});
  std::vector<std::int64_t> pattern;
  if (given.has("hybrid_layer_pattern")) pattern = given.integers("hybrid_layer_pattern");
  if (!pattern.empty() && pattern.size() != draft.layers.size()) {
    given.refuse("hybrid_layer_pattern", "must have a flag for each layer");
  }
  read_windows(draft, [&](std::size_t l) {
    bool const is_full = pattern.empty() ? l == 0 || (l + 1) % 6 == 0 : pattern[l] == 0;
    return is_full ? full : sliding;
  });
  for (auto& layer : draft.layers) {
    layer.value_size = draft.base.value_size;
    if (layer.span.kind == omnibal::span_kind::whole) continue;
    layer.kv_heads *= 2;
    layer.sinks = true;
  }
}

void read_step(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.head_norm = query_key_norm::each_head;
  read_gating(draft);
  read_attention_bias(draft);
  draft.base.mlp_bias = given.flag("mlp_bias");
  read_usual(draft);
  auto experts =
      read_experts(given, {.count = "n_routed_experts", .shared_width = "share_expert_dim"});
  std::set<std::int64_t> sparse;
  if (given.has("moe_layers_enum")) {
    std::string const list = given.text("moe_layers_enum") + ",";
    for (std::size_t at = 0; at < list.size(); at = list.find(',', at) + 1) {
      sparse.insert(std::strtoll(list.c_str() + at, nullptr, 10));
    }
  }
  auto const kinds = kinds_of_layers(draft, "mlp_layer_types", {"dense", "sparse"}, [&](auto l) {
    auto const number = static_cast<std::int64_t>(l);
    bool const is_sparse = sparse.empty() ? number >= 3 : sparse.contains(number);
    return is_sparse ? "sparse" : "dense";
  });
  set_experts(draft, experts, [&](std::size_t l) { return kinds[l] == "sparse"; });
  read_windows(draft, [](std::size_t) { return full; });
  std::int64_t const heads = given.integer_or("num_sliding_attention_heads", draft.base.heads, 1);
  for (auto& layer : draft.layers) {
    if (layer.span.kind == omnibal::span_kind::window) layer.heads = heads;
  }
  given.skip(
      {"moe_router_scaling_factor", "per_layer_config", "mtp_layer_types", "mtp_mlp_layer_types"});
  if (draft.base.mlp_bias) add_shared_biases(draft);
  read_prediction(draft);
}

void read_cohere2_moe(text_draft& draft) {
  config_fields const& given = draft.given;
  draft.base.placement = norm_placement::parallel;
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  check_activation(given, "hidden_act");
  std::int64_t const width = given.integer("intermediate_size");
  draft.base.mlp = given.integer_or("prefix_dense_intermediate_size", width, 1);
  fill_layers(draft);
  auto experts =
      read_experts(given, {.width = "intermediate_size", .shared_count = "num_shared_experts"});
  read_sparse_layers(draft, experts);
  std::int64_t const period = given.integer_or("sliding_window_pattern", 4, 1);
  given.skip({"prefix_dense_sliding_window_pattern", "shared_expert_combination_strategy"});
  read_windows(draft, [period](std::size_t l) {
    return (static_cast<std::int64_t>(l) + 1) % period != 0 ? sliding : full;
  });
}

void read_aria(text_draft& draft) {
  read_attention_bias(draft);
  read_sparse_base(draft);
  fill_layers(draft);
  all_sparse(draft, read_experts(draft.given, {.count = "moe_num_experts",
                                               .active = "moe_topk",
                                               .width = "intermediate_size",
                                               .shared_count = "moe_num_shared_experts"}));
  if (draft.given.flag("mlp_bias")) add_shared_biases(draft);
}

}  // namespace

std::vector<text_family> mixed_sparse_text_families() {
  std::vector<field_alias> const deepseek_names{{"num_local_experts", "n_routed_experts"},
                                                {"num_mtp_layers", "num_nextn_predict_layers"},
                                                {"num_experts", "n_routed_experts"},
                                                {"num_shared_experts", "n_shared_experts"}};
  std::vector<field_alias> const local{{"num_experts", "num_local_experts"}};
  std::vector<field_alias> const routed{{"num_local_experts", "num_experts"}};
  return {
      {{"gpt_oss"}, read_gpt_oss, local},
      {{"llama4_text"}, read_llama4, local},
      {{"afmoe"}, read_afmoe, routed},
      {{"exaone_moe"}, read_exaone_moe, routed},
      {{"laguna"}, read_laguna, routed},
      {{"mimo_v2_flash"}, read_mimo_v2, deepseek_names},
      {{"step3p5"},
       read_step,
       {{"num_local_experts", "n_routed_experts"},
        {"num_attention_groups", "num_key_value_heads"},
        {"moe_num_experts", "n_routed_experts"},
        {"moe_top_k", "num_experts_per_tok"},
        {"share_expert_dims", "share_expert_dim"},
        {"num_mtp_layers", "num_nextn_predict_layers"}}},
      {{"cohere2_moe"}, read_cohere2_moe, routed},
      {{"aria_text"}, read_aria},
  };
}

}  // namespace examples
