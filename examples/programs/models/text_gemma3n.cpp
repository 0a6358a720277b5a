// SPDX-License-Identifier: Apache-2.0
// Gemma 3n: several streams of hidden numbers (AltUp), low-rank products beside attention (LAuReL),
// embeddings of layers, shared keys and values.
#include "attention_kinds.hpp"
#include "text_families.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// One width for all layers, or one for each.
void read_widths(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& layers = draft.layers;
  if (!given.at("intermediate_size").is_array()) {
    std::int64_t const width = given.integer("intermediate_size");
    for (auto& layer : layers) layer.mlp = width;
    return;
  }
  auto const widths = given.integers("intermediate_size");
  if (widths.size() != layers.size()) {
    given.refuse("intermediate_size",
                 "must have a width for each of " + std::to_string(layers.size()) + " layers");
  }
  for (std::size_t l = 0; l != layers.size(); ++l) layers[l].mlp = widths[l];
}

void read_gemma3n(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.placement = omnibal::norm_placement::both;
  base.head_norm = omnibal::query_key_norm::each_head;
  check_activation(given, "hidden_activation");
  read_attention_bias(draft);
  read_ends(draft);
  read_heads(draft);
  std::int64_t const streams = given.integer("altup_num_inputs");
  base.streams = {.count = streams, .low_rank = given.integer("laurel_rank")};
  base.layer_input_size = given.integer("hidden_size_per_layer_input");
  fill_layers(draft);
  read_widths(draft);
  auto const count = static_cast<std::int64_t>(draft.layers.size());
  draft.model.input.for_layers = {given.integer("vocab_size_per_layer_input"), count,
                                  base.layer_input_size};
  draft.model.input.streams = streams;
  draft.model.output.streams = streams;
  auto const kinds = kinds_of_layers(draft, "layer_types", {full, sliding}, [](std::size_t l) {
    return (l + 1) % 5 != 0 ? sliding : full;
  });
  std::int64_t const window = given.integer("sliding_window");
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] == sliding) draft.layers[l].span = {omnibal::span_kind::window, window};
  }
  std::int64_t const shared = given.integer_or("num_kv_shared_layers", 0);
  if (shared > count) {
    given.refuse("num_kv_shared_layers", "must be at most the number of layers");
  }
  for (std::int64_t l = count - shared; l != count; ++l) {
    draft.layers[static_cast<std::size_t>(l)].source = omnibal::key_value_source::earlier_layer;
  }
  // Sparse activations are computed by dense products.
  given.skip({"activation_sparsity_pattern", "altup_active_idx", "altup_coef_clip",
              "altup_correct_scale"});
}

}  // namespace

std::vector<text_family> gemma3n_text_families() { return {{{"gemma3n_text"}, read_gemma3n}}; }

}  // namespace examples
