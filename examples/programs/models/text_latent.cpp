// SPDX-License-Identifier: Apache-2.0
// Families with latent attention.
#include "text_families.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace examples {

namespace {

expert_fields const of_deepseek{.count = "n_routed_experts", .shared_count = "n_shared_experts"};

void read_deepseek(text_draft& draft) {
  read_ends(draft);
  read_latent(draft);
  read_dense(draft);
  fill_layers(draft);
  // A model without experts has no number of them.
  if (draft.given.has("n_routed_experts")) {
    read_sparse_layers(draft, read_experts(draft.given, of_deepseek));
  }
  read_prediction(draft);
}

/// As DeepSeek-V3 with one dense layer unless a list says otherwise.
void read_one_dense(text_draft& draft) {
  read_ends(draft);
  read_latent(draft);
  read_dense(draft);
  fill_layers(draft);
  read_sparse_layers(draft, read_experts(draft.given, of_deepseek), 1);
  read_prediction(draft);
}

/// A.X K1: sparse layers have a norm behind the experts.
void read_axk1(text_draft& draft) {
  read_one_dense(draft);
  for (auto& layer : draft.layers) {
    if (layer.experts.routed != 0) layer.other_parameters += layer.hidden;
  }
}

void read_dense_latent(text_draft& draft) {
  if (!draft.given.has("v_head_dim")) {
    draft.given.refuse("v_head_dim", "but the numbers of a value must be stated");
  }
  read_ends(draft);
  read_latent(draft);
  draft.base.mlp_bias = draft.given.flag("mlp_bias");
  read_dense(draft);
  fill_layers(draft);
}

/// Layers that choose their tokens by an indexer, and layers that use the choice of an earlier one.
void read_indexers(text_draft& draft) {
  config_fields const& given = draft.given;
  std::int64_t const chosen = given.integer("index_topk");
  omnibal::sparse_indexer const indexer{.heads = given.integer("index_n_heads"),
                                        .head_size = given.integer("index_head_dim")};
  std::string pattern;
  if (given.has("index_topk_pattern")) pattern = given.text("index_topk_pattern");
  std::int64_t const period = std::max<std::int64_t>(given.integer_or("index_topk_freq", 1), 1);
  std::int64_t const offset = given.integer_or("index_skip_topk_offset", 2);
  auto const kinds = kinds_of_layers(draft, "indexer_types", {"full", "shared"}, [&](auto l) {
    if (!pattern.empty()) return l < pattern.size() && pattern[l] == 'F' ? "full" : "shared";
    std::int64_t const behind =
        std::max<std::int64_t>(static_cast<std::int64_t>(l) - offset + 1, 0);
    return behind % period == 0 ? "full" : "shared";
  });
  static_cast<void>(kinds_of_layers(draft, "layer_types",
                                    {"indexed_attention", "deepseek_sparse_attention"},
                                    [](auto) { return "indexed_attention"; }));
  for (std::size_t l = 0; l != draft.layers.size(); ++l) {
    draft.layers[l].span = {omnibal::span_kind::window, chosen};
    if (kinds[l] == "full") draft.layers[l].indexer = indexer;
  }
}

void read_indexed(text_draft& draft) {
  read_ends(draft);
  read_latent(draft);
  // The class does not use the flag.
  draft.given.skip({"mlp_bias"});
  read_dense(draft);
  fill_layers(draft);
  read_sparse_layers(draft, read_experts(draft.given, of_deepseek));
  read_indexers(draft);
  read_prediction(draft);
}

}  // namespace

std::vector<text_family> latent_text_families() {
  std::vector<field_alias> const names{{"num_local_experts", "n_routed_experts"},
                                       {"num_mtp_layers", "num_nextn_predict_layers"},
                                       {"num_experts", "n_routed_experts"},
                                       {"num_shared_experts", "n_shared_experts"}};
  ignored_fields const index_details{"how an indexer scores",
                                     {"indexer_rope_interleave", "index_share_for_mtp_iteration"}};
  neutral_field const usual_interval{"moe_layer_interval", neutral_value::one,
                                     "other periods are not read"};
  neutral_field const no_mlp_bias{"mlp_bias", neutral_value::off,
                                  "biases of its layers are not read"};
  return {
      {{"deepseek_v2", "deepseek_v3", "kimi_k2", "sarvam_mla"},
       read_deepseek,
       names,
       {usual_interval, no_mlp_bias}},
      {{"glm4_moe_lite", "mistral4"}, read_one_dense, names},
      {{"axk1"}, read_axk1, names},
      {{"minicpm3", "youtu"}, read_dense_latent},
      {{"deepseek_v32", "glm_moe_dsa"}, read_indexed, names, {}, {index_details}},
  };
}

}  // namespace examples
