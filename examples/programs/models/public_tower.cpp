// SPDX-License-Identifier: Apache-2.0
#include "public_tower.hpp"

#include "config_fields.hpp"
#include "field_rules.hpp"
#include "public_parts.hpp"
#include "tower_connector.hpp"
#include "tower_families.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// The layers in runs of equal ones.
std::vector<omnibal::vision_run> runs_of(tower_draft const& draft) {
  if (!draft.whole_layers) return {{draft.layers, draft.layer}};
  omnibal::vision_transformer whole = draft.layer;
  whole.span = {};
  std::vector<omnibal::vision_run> result;
  for (std::int64_t l = 0; l != draft.layers; ++l) {
    bool const is_whole = std::ranges::find(*draft.whole_layers, l) != draft.whole_layers->end();
    auto const& layer = is_whole ? whole : draft.layer;
    if (result.empty() || !(result.back().layer == layer)) result.push_back({0, layer});
    ++result.back().count;
  }
  return result;
}

vision_part part_of(json_fields const& given, tower_draft const& draft) {
  vision_part result;
  auto runs = runs_of(draft);
  runs.insert(runs.end(), draft.last_runs.begin(), draft.last_runs.end());
  result.tower = {.patches = draft.patches, .runs = runs, .has_last_norm = draft.has_last_norm};
  complete_patches(given, result.tower);
  if (draft.has_tile_positions) result.tower.patches.positions = draft.layer.tile_tokens();
  result.connector = draft.connector ? *draft.connector
                                     : connector_of(given, result.tower, usual_side(result.tower));
  result.further = draft.further;
  result.idle_parameters = draft.idle_parameters;
  return result;
}

/// The side of a tile in pixels: one number or two equal ones.
std::int64_t pixels_of(json_fields const& given, char const* name) {
  if (!given.at(name).is_array()) return given.integer(name, 1, max_of_model);
  auto const sides = given.integers<std::int64_t>(name, 1, max_of_model);
  if (sides.size() != 2 || sides[0] != sides[1]) given.refuse(name, "must be one side of a square");
  return sides[0];
}

field_rules const& open_clip_rules() {
  static field_rules const rules{
      .understood = {"width", "layers", "head_width", "mlp_ratio", "naiveswiglu", "qkv_bias",
                     "image_size", "patch_size", "eva_model_name", "no_ln_pre"},
      .neutral = {{"subln", neutral_value::off, "norms inside attention are not modeled"},
                  {"ls_init_value", neutral_value::absent, "layer scales are not read here"},
                  {"timm_model_name", neutral_value::absent, "models of timm are not read"},
                  {"attentional_pool", neutral_value::off, "pooling by attention is not modeled"}},
      .ignored = {{"training", {"drop_path_rate", "patch_dropout"}},
                  {"kernels", {"xattn", "fusedLN"}},
                  {"places of norms that cost the same", {"postnorm"}},
                  {"rotary positions", {"rope", "pt_hw_seq_len", "intp_freq"}},
                  {"what the tower returns",
                   {"use_mean_pooling", "global_average_pool", "pool_type", "output_tokens",
                    "output_dim"}}}};
  return rules;
}

}  // namespace

vision_part public_tower(json_fields const& given, std::string const& name) {
  auto const& family = family_in(tower_families(), given, name);
  config_fields const fields(given, nlohmann::json::parse(family.defaults), family.aliases);
  tower_draft draft{.fields = fields};
  family.read(draft);
  field_rules rules{.neutral = family.neutral, .ignored = family.ignored};
  rules.ignored.push_back({"towers have no matrices to tie", {"tie_word_embeddings"}});
  rules.add(common_rules());
  fields.check_all_read(name, rules);
  if (draft.layers > max_layers_of_model) {
    given.refuse("num_hidden_layers", "must be at most " + std::to_string(max_layers_of_model));
  }
  return part_of(given, draft);
}

omnibal::mixed_vision_model open_clip_tower(json_fields const& given) {
  check_fields(given, "open_clip", open_clip_rules());
  bool const is_eva = given.has("eva_model_name");
  if (!is_eva && !given.flag_or("qkv_bias", true)) {
    given.refuse("qkv_bias", "but only towers with \"eva_model_name\" have none");
  }
  omnibal::mixed_vision_model model;
  auto& [layers, layer] = model.runs.emplace_back();
  layer.hidden = given.integer("width", 1, max_of_model);
  layers = given.integer("layers", 1, max_layers_of_model);
  std::int64_t const head = given.integer_or("head_width", 64, 1, max_of_model);
  if (layer.hidden % head != 0) {
    given.refuse("width", "must be a multiple of head_width, " + std::to_string(head));
  }
  layer.heads = layer.hidden / head;
  layer.mlp = width_by_ratio(given.has("mlp_ratio") ? given.number("mlp_ratio", 0.01, 1000) : 4.0,
                             layer.hidden);
  if (given.flag_or("naiveswiglu", false)) layer.feed_forward = omnibal::mlp_kind::gated;
  layer.qkv_bias = given.flag_or("qkv_bias", true);
  layer.key_bias = !is_eva;
  model.patches.has_bias = is_eva;
  model.patches.has_norm = !is_eva && !given.flag_or("no_ln_pre", false);
  model.has_last_norm = true;
  layer.image_size = pixels_of(given, "image_size");
  layer.patch_size = given.integer_or("patch_size", 16, 1, max_of_model);
  layer.class_tokens = 1;
  complete_patches(given, model);
  model.patches.positions = layer.tile_tokens();
  return model;
}

}  // namespace examples
