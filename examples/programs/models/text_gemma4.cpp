// SPDX-License-Identifier: Apache-2.0
// Gemma 4: windows, global layers with larger heads, shared keys and values, embeddings of layers.
#include "attention_kinds.hpp"
#include "text_families.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace examples {

namespace {

using omnibal::key_value_source;
using omnibal::transformer;

/// Global layers have heads of another size, and may use their keys as values.
void set_global(text_draft const& draft, transformer& layer) {
  config_fields const& given = draft.given;
  layer.head_size = given.integer_or("global_head_dim", 512, 1);
  if (!given.flag("attention_k_eq_v")) return;
  layer.kv_heads = given.integer_or("num_global_key_value_heads", layer.kv_heads, 1);
  layer.source = key_value_source::keys;
}

void set_experts_beside(text_draft& draft) {
  config_fields const& given = draft.given;
  given.skip({"num_experts", "top_k_experts", "moe_intermediate_size"});
  if (!given.flag("enable_moe_block")) return;
  auto const experts = read_experts(given, {.active = "top_k_experts"});
  for (transformer& layer : draft.layers) {
    layer.experts = experts;
    // Three norms around the two parts, a scale of the router's input and one of each expert.
    layer.other_parameters += 4 * layer.hidden + experts.routed;
  }
}

/// The last layers have keys and values of an earlier layer of their kind.
void set_shared_keys(text_draft& draft) {
  auto const shared = static_cast<std::size_t>(draft.given.integer_or("num_kv_shared_layers", 0));
  bool const is_wide = draft.given.flag("use_double_wide_mlp");
  if (shared > draft.layers.size()) {
    draft.given.refuse("num_kv_shared_layers", "must be at most the number of layers");
  }
  for (std::size_t l = draft.layers.size() - shared; l != draft.layers.size(); ++l) {
    draft.layers[l].source = key_value_source::earlier_layer;
    if (is_wide) draft.layers[l].mlp *= 2;
  }
}

void read_gemma4(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.placement = omnibal::norm_placement::both;
  base.head_norm = omnibal::query_key_norm::each_head;
  check_activation(given, "hidden_activation");
  if (given.has("use_bidirectional_attention") &&
      given.at("use_bidirectional_attention") == "all") {
    given.refuse("use_bidirectional_attention", "but attention to later tokens is not read");
  }
  read_attention_bias(draft);
  read_usual(draft);
  given.skip({"per_layer_config", "global_head_dim", "num_global_key_value_heads",
              "vocab_size_per_layer_input"});
  std::int64_t const size = given.integer_or("hidden_size_per_layer_input", 0);
  if (size != 0) {
    draft.model.input.for_layers = {given.integer("vocab_size_per_layer_input"),
                                    static_cast<std::int64_t>(draft.layers.size()), size};
    for (transformer& layer : draft.layers) layer.layer_input_size = size;
  }
  auto kinds = kinds_of_layers(draft, "layer_types", {full, sliding},
                               [](std::size_t l) { return (l + 1) % 6 != 0 ? sliding : full; });
  kinds.back() = full;
  std::int64_t const window = given.integer("sliding_window");
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] == full) {
      set_global(draft, draft.layers[l]);
    } else {
      draft.layers[l].span = {omnibal::span_kind::window, window};
    }
  }
  set_experts_beside(draft);
  set_shared_keys(draft);
}

}  // namespace

std::vector<text_family> gemma4_text_families() { return {{{"gemma4_text"}, read_gemma4}}; }

}  // namespace examples
