// SPDX-License-Identifier: Apache-2.0
#include "text_draft.hpp"

#include "public_families.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

void read_ends(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.hidden = given.integer("hidden_size");
  draft.model.input.vocabulary = given.integer("vocab_size");
  draft.model.input.hidden = base.hidden;
  draft.model.output = {
      .vocabulary = draft.model.input.vocabulary, .hidden = base.hidden, .norm = base.norm};
  if (given.flag("tie_word_embeddings")) draft.model.output.weights = omnibal::head_weights::tied;
}

void read_heads(text_draft& draft) {
  auto& base = draft.base;
  base.heads = draft.given.integer("num_attention_heads");
  base.kv_heads = draft.given.integer_or("num_key_value_heads", 0, 1);
  // The classes round the width of a head down if the heads do not divide the width.
  std::int64_t const rounded = base.hidden % base.heads == 0 ? 0 : base.hidden / base.heads;
  base.head_size = draft.given.integer_or("head_dim", rounded, 1);
}

void read_latent(text_draft& draft) {
  config_fields const& given = draft.given;
  auto& base = draft.base;
  base.heads = given.integer("num_attention_heads");
  base.head_size = given.integer("qk_nope_head_dim");
  base.latent = {.key_value_rank = given.integer("kv_lora_rank"),
                 .query_rank = given.integer_or("q_lora_rank", 0, 1),
                 .rope_size = given.integer("qk_rope_head_dim", 0),
                 .value_size = given.integer("v_head_dim")};
  given.skip({"qk_head_dim", "head_dim", "num_key_value_heads"});
  if (!given.flag("attention_bias")) return;
  // The classes give biases to the first product of each rank and to the output.
  base.output_bias = true;
  base.other_parameters +=
      base.latent.query_rank + base.latent.key_value_rank + base.latent.rope_size;
}

void check_activation(config_fields const& given, std::string_view name) {
  if (!given.has(name) || is_known_activation(given.text(name))) return;
  given.refuse(name, "but no activation of that name is known to have no parameters");
}

void read_dense(text_draft& draft, std::string_view width) {
  draft.base.mlp = draft.given.integer(width);
  check_activation(draft.given, "hidden_act");
}

void fill_layers(text_draft& draft) {
  // More than any model has; the layers are kept one by one while they are read.
  constexpr std::int64_t max_read_layers = 16384;
  std::int64_t const count = draft.given.integer("num_hidden_layers");
  if (count > max_read_layers) {
    draft.given.refuse("num_hidden_layers",
                       "must be an integer from 1 to " + std::to_string(max_read_layers));
  }
  draft.layers.assign(static_cast<std::size_t>(count), draft.base);
}

void read_usual(text_draft& draft) {
  read_ends(draft);
  read_heads(draft);
  read_dense(draft);
  fill_layers(draft);
}

void read_attention_bias(text_draft& draft, std::string_view field) {
  draft.base.qkv_bias = draft.given.flag(field);
  draft.base.output_bias = draft.base.qkv_bias;
}

omnibal::expert_layer read_experts(config_fields const& given, expert_fields const& fields) {
  omnibal::expert_layer experts;
  experts.routed = given.integer(fields.count);
  experts.active = given.integer(fields.active);
  experts.mlp = given.integer(fields.width);
  if (!fields.shared_count.empty()) experts.shared = given.integer_or(fields.shared_count, 0);
  if (!fields.shared_width.empty()) {
    std::int64_t const width = given.integer_or(fields.shared_width, 0);
    if (width != 0 && fields.shared_count.empty()) experts.shared = 1;
    if (width != experts.mlp) experts.shared_mlp = width;
  }
  return experts;
}

std::vector<std::string> kinds_of_layers(text_draft const& draft, std::string_view field,
                                         std::initializer_list<std::string_view> known,
                                         std::function<std::string_view(std::size_t)> const& rule) {
  std::size_t const count = draft.layers.size();
  if (!draft.given.has(field)) {
    std::vector<std::string> result(count);
    for (std::size_t l = 0; l != count; ++l) result[l] = rule(l);
    return result;
  }
  auto result = draft.given.texts(field);
  if (result.size() != count) {
    draft.given.refuse(field, "must have a kind for each of " + std::to_string(count) + " layers");
  }
  for (std::string const& kind : result) {
    if (std::ranges::find(known, kind) != known.end()) continue;
    draft.given.refuse(field, "but layers of the kind \"" + kind + "\" are not read");
  }
  return result;
}

void read_windows(text_draft& draft, std::function<std::string_view(std::size_t)> const& rule,
                  std::string_view width) {
  auto const kinds =
      kinds_of_layers(draft, "layer_types", {"full_attention", "sliding_attention"}, rule);
  draft.given.skip({width});
  for (std::size_t l = 0; l != kinds.size(); ++l) {
    if (kinds[l] != "sliding_attention") continue;
    // Without a number the layers attend to the whole sequence.
    std::int64_t const tokens = draft.given.integer_or(width, 0);
    if (tokens != 0) draft.layers[l].span = {omnibal::span_kind::window, tokens};
  }
}

namespace {

/// Whether a layer is sparse by `moe_layer_freq`, a period or a list of flags.
bool is_in_period(config_fields const& given, std::size_t layer) {
  if (!given.has("moe_layer_freq")) return true;
  if (!given.at("moe_layer_freq").is_array()) {
    return static_cast<std::int64_t>(layer) % given.integer("moe_layer_freq") == 0;
  }
  auto const flags = given.integers("moe_layer_freq");
  if (layer >= flags.size()) given.refuse("moe_layer_freq", "must have a flag for each layer");
  return flags[layer] != 0;
}

}  // namespace

void read_sparse_layers(text_draft& draft, omnibal::expert_layer const& experts,
                        std::int64_t usual_first) {
  std::int64_t const first = draft.given.integer_or("first_k_dense_replace", usual_first);
  auto const kinds = kinds_of_layers(draft, "mlp_layer_types", {"dense", "sparse"}, [&](auto l) {
    bool const is_sparse = static_cast<std::int64_t>(l) >= first && is_in_period(draft.given, l);
    return is_sparse ? "sparse" : "dense";
  });
  draft.given.skip({"moe_layer_freq"});
  set_experts(draft, experts, [&](std::size_t l) { return kinds[l] == "sparse"; });
}

void read_sparse_steps(text_draft& draft, omnibal::expert_layer const& experts) {
  std::int64_t const step = draft.given.integer_or("decoder_sparse_step", 1);
  std::vector<std::int64_t> dense;
  if (draft.given.has("mlp_only_layers")) dense = draft.given.integers("mlp_only_layers");
  set_experts(draft, experts, [&](std::size_t l) {
    auto const number = static_cast<std::int64_t>(l);
    bool const is_dense = std::ranges::find(dense, number) != dense.end();
    return !is_dense && step != 0 && (number + 1) % step == 0;
  });
}

void add_router_biases(text_draft& draft) {
  for (auto& layer : draft.layers) layer.other_parameters += layer.experts.routed;
}

void add_shared_biases(text_draft& draft) {
  for (auto& layer : draft.layers) {
    auto const& experts = layer.experts;
    if (experts.shared == 0) continue;
    std::int64_t const one = experts.shared_mlp == 0 ? experts.mlp : experts.shared_mlp;
    layer.other_parameters += 2 * experts.shared * one + layer.hidden;
  }
}

void all_sparse(text_draft& draft, omnibal::expert_layer const& experts) {
  set_experts(draft, experts, [](std::size_t) { return true; });
}

void read_sparse_base(text_draft& draft) {
  read_ends(draft);
  read_heads(draft);
  check_activation(draft.given, "hidden_act");
}

void read_prediction(text_draft& draft, std::string_view field) {
  if (!draft.given.is_in_file(field)) return;
  draft.model.prediction_layers = draft.given.integer_or(field, 0);
  if (draft.model.prediction_layers == 0) return;
  draft.model.prediction.layer = draft.layers.back();
}

omnibal::mixed_language_model finished(text_draft&& draft) {
  auto& runs = draft.model.runs;
  for (omnibal::transformer const& layer : draft.layers) {
    if (runs.empty() || runs.back().layer != layer) runs.push_back({0, layer});
    ++runs.back().count;
  }
  if (draft.model.prediction_layers != 0) {
    draft.model.prediction.vocabulary = draft.model.input.vocabulary;
  }
  return std::move(draft.model);
}

}  // namespace examples
