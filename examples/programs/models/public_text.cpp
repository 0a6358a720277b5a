// SPDX-License-Identifier: Apache-2.0
#include "public_text.hpp"

#include "input_error.hpp"
#include "public_parts.hpp"
#include "tower_connector.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace examples {

namespace {

constexpr std::int64_t most = max_of_model;
constexpr std::int64_t max_layers = max_layers_of_model;

/// A number whose absence means another default in each class, so it must be stated; null: 0.
std::int64_t stated_or_none(json_fields const& given, std::string_view field, std::int64_t least,
                            std::int64_t largest) {
  std::string const name(field);
  if (!given.mentions(name.c_str())) static_cast<void>(given.at(name.c_str()));
  return given.integer_or(name.c_str(), 0, least, largest);
}

void read_attention(json_fields const& given, text_family const& family,
                    omnibal::transformer& layer) {
  layer.heads = given.integer("num_attention_heads", 1, most);
  if (family.has_latent) {
    layer.head_size = given.integer("qk_nope_head_dim", 1, most);
    layer.latent = {.key_value_rank = given.integer("kv_lora_rank", 1, most),
                    .query_rank = stated_or_none(given, "q_lora_rank", 1, most),
                    .rope_size = given.integer("qk_rope_head_dim", 0, most),
                    .value_size = given.integer("v_head_dim", 1, most)};
  } else {
    layer.kv_heads = family.needs_key_heads ? given.integer("num_key_value_heads", 1, most)
                                            : given.integer_or("num_key_value_heads", 0, 1, most);
    layer.head_size = family.needs_head_size ? given.integer("head_dim", 1, most)
                                             : given.integer_or("head_dim", 0, 1, most);
  }
  std::string const norm_field(family.head_norm_field);
  bool const has_norms = norm_field.empty() || given.flag_or(norm_field.c_str(), false);
  layer.head_norm = has_norms ? family.head_norm : omnibal::query_key_norm::none;
  layer.qkv_bias = flag_of(given, family.qkv_bias);
  layer.output_bias = flag_of(given, family.output_bias);
}

void read_experts(json_fields const& given, family_experts const& family,
                  omnibal::language_model& model) {
  auto const name = [](std::string_view field) { return std::string(field); };
  auto& experts = model.layer.experts;
  experts.routed = given.integer(name(family.count).c_str(), 1, most);
  experts.active = given.integer("num_experts_per_tok", 1, most);
  experts.mlp = given.integer(name(family.width).c_str(), 1, most);
  if (!family.shared_count.empty()) {
    experts.shared = stated_or_none(given, family.shared_count, 0, most);
  }
  if (!family.shared_width.empty()) {
    std::string const width = name(family.shared_width);
    std::int64_t const shared = given.integer(width.c_str(), 1, most);
    if (shared % experts.mlp != 0) {
      given.refuse(width.c_str(),
                   "must be a multiple of the width of an expert, " + std::to_string(experts.mlp));
    }
    experts.shared = shared / experts.mlp;
    experts.shared_gate = family.has_shared_gate;
  }
  if (family.dense_layers.empty()) return;
  model.first_layers = stated_or_none(given, family.dense_layers, 0, model.layers - 1);
  if (model.first_layers == 0) return;
  model.layers -= model.first_layers;
  model.first_layer = model.layer;
  model.first_layer.experts = {};
  model.first_layer.mlp = given.integer("intermediate_size", 1, most);
}

}  // namespace

field_rules rules_of(text_family const& family) {
  field_rules rules{.understood = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                   "vocab_size", "tie_word_embeddings"},
                    .neutral = family.neutral,
                    .ignored = family.ignored};
  auto& names = rules.understood;
  for (family_flag const& flag : {family.qkv_bias, family.output_bias, family.mlp_bias}) {
    add_name(names, flag.field);
  }
  names.insert(names.end(), family.activations.begin(), family.activations.end());
  add_name(names, family.head_norm_field);
  if (family.has_latent) {
    names.insert(names.end(), {"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
                               "qk_rope_head_dim", "v_head_dim"});
  } else {
    names.insert(names.end(), {"num_key_value_heads", "head_dim"});
  }
  family_experts const& experts = family.experts;
  if (family.has_experts()) {
    names.emplace_back("num_experts_per_tok");
    for (std::string_view const name : {experts.count, experts.width, experts.shared_count,
                                        experts.shared_width, experts.dense_layers}) {
      add_name(names, name);
    }
  }
  if (!family.has_experts() || !experts.dense_layers.empty()) {
    names.emplace_back("intermediate_size");
  }
  rules.add(common_rules());
  return rules;
}

omnibal::mixed_language_model read_text(json_fields const& given, text_family const& family,
                                        bool is_tied) {
  omnibal::language_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("hidden_size", 1, most);
  model.layers = given.integer("num_hidden_layers", 1, max_layers);
  layer.norm = family.norm;
  layer.placement = family.placement;
  layer.feed_forward = family.feed_forward;
  for (std::string_view const name : family.activations) {
    check_activation(given, std::string(name).c_str());
  }
  read_attention(given, family, layer);
  layer.mlp_bias = flag_of(given, family.mlp_bias);
  model.input = {.vocabulary = given.integer("vocab_size", 1, most), .hidden = layer.hidden};
  model.output = {.vocabulary = model.input.vocabulary, .hidden = layer.hidden, .norm = layer.norm};
  if (is_tied) {
    model.output.weights = omnibal::head_weights::tied;
  }
  if (family.has_experts()) {
    read_experts(given, family.experts, model);
  } else {
    layer.mlp = given.integer("intermediate_size", 1, most);
  }
  return model;
}

omnibal::mixed_language_model public_text(json_fields const& given, std::string const& name) {
  auto const& family = family_in(text_families(), given, name);
  check_fields(given, name, rules_of(family));
  return read_text(given, family, given.flag_or("tie_word_embeddings", family.has_tied_head));
}

}  // namespace examples
