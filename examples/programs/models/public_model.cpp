// SPDX-License-Identifier: Apache-2.0
#include "public_model.hpp"

#include "field_rules.hpp"
#include "input_error.hpp"
#include "public_families.hpp"
#include "public_parts.hpp"
#include "public_text.hpp"
#include "text_families.hpp"
#include "tower_connector.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

constexpr std::int64_t most = max_of_model;
constexpr std::int64_t max_layers = max_layers_of_model;

// Vision towers.

/// The side of a tile in pixels: one number or two equal ones.
std::int64_t side_of(json_fields const& given, char const* name) {
  if (!given.at(name).is_array()) return given.integer(name, 1, most);
  auto const sides = given.integers<std::int64_t>(name, 1, most);
  if (sides.size() != 2 || sides[0] != sides[1]) given.refuse(name, "must be one side of a square");
  return sides[0];
}

field_rules rules_of(tower_family const& family) {
  field_rules rules{
      .understood = {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                     "image_size", "patch_size", "num_channels", "hidden_act"},
      .neutral = family.neutral,
      .ignored = family.ignored};
  for (std::string_view const name : {family.qkv_bias.field, family.head_norm.field,
                                      family.norm_field, family.no_last_norm_field}) {
    add_name(rules.understood, name);
  }
  rules.add(common_rules());
  return rules;
}

omnibal::norm_kind norm_of(json_fields const& given, char const* name) {
  constexpr std::array<std::string_view, 2> names{"rms_norm", "layer_norm"};
  return static_cast<omnibal::norm_kind>(given.choice(name, names));
}

/// Norms of queries and keys and the last norm are of one kind in the class, whatever the others
/// are.
void check_norms(json_fields const& given, tower_family const& family,
                 omnibal::vision_model const& model) {
  if (family.norm_field.empty()) return;
  bool const has_layer_norms = model.layer.norm == omnibal::norm_kind::layer;
  std::string const field(family.norm_field);
  if (has_layer_norms && model.layer.head_norm != omnibal::query_key_norm::none) {
    given.refuse(field.c_str(),
                 "but norms of queries and keys are RMS norms; towers with both kinds "
                 "are not read");
  }
  if (!has_layer_norms && model.has_last_norm) {
    given.refuse(
        field.c_str(),
        "but the norm behind all layers is a layer norm; towers with both kinds are not read");
  }
}

omnibal::vision_model read_tower(json_fields const& given, tower_family const& family) {
  omnibal::vision_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("hidden_size", 1, most);
  model.layers = given.integer("num_hidden_layers", 1, max_layers);
  layer.heads = given.integer("num_attention_heads", 1, most);
  layer.mlp = given.integer("intermediate_size", 1, most);
  check_activation(given, "hidden_act");
  layer.image_size = side_of(given, "image_size");
  layer.patch_size = side_of(given, "patch_size");
  // Pixels that fill no patch are not seen.
  layer.image_size -= layer.image_size % layer.patch_size;
  layer.class_tokens = family.class_tokens;
  if (family.needs_fields) {
    for (std::string_view const name :
         {family.qkv_bias.field, family.head_norm.field, family.norm_field}) {
      static_cast<void>(given.at(std::string(name).c_str()));
    }
  }
  layer.qkv_bias = flag_of(given, family.qkv_bias);
  if (!family.norm_field.empty()) {
    layer.norm = norm_of(given, std::string(family.norm_field).c_str());
  }
  if (flag_of(given, family.head_norm)) layer.head_norm = omnibal::query_key_norm::whole_width;
  std::string const no_last_norm(family.no_last_norm_field);
  model.has_last_norm =
      family.has_last_norm && (no_last_norm.empty() || !given.flag_or(no_last_norm.c_str(), true));
  check_norms(given, family, model);
  layer.layer_scale = family.has_layer_scale;
  model.patches.channels = given.integer_or("num_channels", 3, 1, most);
  model.patches.has_bias = family.has_patch_bias;
  model.patches.has_norm = family.has_first_norm;
  complete_patches(given, model);
  model.patches.positions = layer.tile_tokens();
  return model;
}

omnibal::vision_model public_tower(json_fields const& given, std::string const& name) {
  auto const& family = family_in(tower_families(), given, name);
  check_fields(given, name, rules_of(family));
  return read_tower(given, family);
}

/// The width of the feed-forward part, rounded down as the classes do.
std::int64_t width_by_ratio(json_fields const& given, std::int64_t hidden) {
  double const ratio = given.has("mlp_ratio") ? given.number("mlp_ratio", 0.01, 1000) : 4.0;
  return static_cast<std::int64_t>(ratio * static_cast<double>(hidden));
}

field_rules rules_of_qwen_tower(bool is_first) {
  field_rules rules{
      .understood = {"depth", "hidden_size", "num_heads", "hidden_act", "patch_size", "image_size",
                     "temporal_patch_size", "in_channels", "in_chans", "spatial_merge_size"},
      .neutral = {{"attention_bias", neutral_value::on, "towers without biases are not read"}},
      .ignored = {{"sizes that others repeat", {"spatial_patch_size"}},
                  {"positions of frames", {"tokens_per_second"}}}};
  if (is_first) {
    rules.understood.insert(rules.understood.end(), {"embed_dim", "mlp_ratio"});
  } else {
    rules.understood.insert(rules.understood.end(), {"intermediate_size", "out_hidden_size"});
    rules.neutral.push_back({"window_size", neutral_value::absent,
                             "windows of a tower are not modeled; set it to null to count "
                             "attention of all patches of a tile",
                             true});
    rules.ignored.push_back({"layers without windows", {"fullatt_block_indexes"}});
  }
  rules.add(common_rules());
  return rules;
}

/// Towers of Qwen2-VL and Qwen2.5-VL: images of their own size, here tiles of 448 pixels.
omnibal::vision_model public_qwen_tower(json_fields const& given, std::string const& name) {
  bool const is_first = name == "qwen2_vl";
  if (!is_first && name != "qwen2_5_vl") fail_family(given, name);
  check_fields(given, name, rules_of_qwen_tower(is_first));
  omnibal::vision_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer(is_first ? "embed_dim" : "hidden_size", 1, most);
  model.layers = given.integer("depth", 1, max_layers);
  layer.heads = given.integer("num_heads", 1, most);
  check_activation(given, "hidden_act");
  if (is_first) {
    layer.mlp = width_by_ratio(given, layer.hidden);
  } else {
    layer.mlp = given.integer("intermediate_size", 1, most);
    layer.feed_forward = omnibal::mlp_kind::gated;
    layer.norm = omnibal::norm_kind::rms;
  }
  layer.patch_size = given.integer("patch_size", 1, most);
  layer.image_size = given.integer_or("image_size", 32 * layer.patch_size, 1, most);
  std::int64_t const frames = given.integer_or("temporal_patch_size", 2, 1, most);
  char const* const channels = given.has("in_channels") ? "in_channels" : "in_chans";
  model.patches.channels = frames * given.integer_or(channels, 3, 1, most);
  model.patches.has_bias = false;
  complete_patches(given, model);
  return model;
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

/// Towers of open_clip and EVA.
omnibal::vision_model open_clip_tower(json_fields const& given) {
  check_fields(given, "open_clip", open_clip_rules());
  bool const is_eva = given.has("eva_model_name");
  if (!is_eva && !given.flag_or("qkv_bias", true)) {
    given.refuse("qkv_bias", "but only towers with \"eva_model_name\" have none");
  }
  omnibal::vision_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("width", 1, most);
  model.layers = given.integer("layers", 1, max_layers);
  std::int64_t const head = given.integer_or("head_width", 64, 1, most);
  if (layer.hidden % head != 0) {
    given.refuse("width", "must be a multiple of head_width, " + std::to_string(head));
  }
  layer.heads = layer.hidden / head;
  layer.mlp = width_by_ratio(given, layer.hidden);
  if (given.flag_or("naiveswiglu", false)) layer.feed_forward = omnibal::mlp_kind::gated;
  layer.qkv_bias = given.flag_or("qkv_bias", true);
  layer.key_bias = !is_eva;
  model.patches.has_bias = is_eva;
  model.patches.has_norm = !is_eva && !given.flag_or("no_ln_pre", false);
  model.has_last_norm = true;
  layer.image_size = side_of(given, "image_size");
  layer.patch_size = given.integer_or("patch_size", 16, 1, most);
  layer.class_tokens = 1;
  complete_patches(given, model);
  model.patches.positions = layer.tile_tokens();
  return model;
}

// Vision-language models.

/// Layers behind the one whose output is taken do not run, and neither does the norm behind them.
void drop_last_layers(json_fields const& given, pair_kind kind, omnibal::vision_model& tower) {
  // Without the field the class takes the output of the last layer but one.
  if (kind == pair_kind::llava) static_cast<void>(given.at("vision_feature_layer"));
  std::int64_t const all = tower.layers;
  for (char const* const name : {"select_layer", "vision_feature_layer"}) {
    if (!given.has(name)) continue;
    std::int64_t const taken = given.integer(name, -all, all);
    tower.layers = taken < 0 ? all + 1 + taken : taken;
    tower.has_last_norm &= kind != pair_kind::llava && taken == -1;
  }
}

/// The rules of the object around tower and language model. What it repeats of the language model
/// must be equal; `repeated` keeps the names of these fields.
field_rules pair_rules(json_fields const& given, pair_family const& family, json_fields const* text,
                       std::vector<std::string>& repeated) {
  field_rules rules{
      .understood = family.understood, .neutral = family.neutral, .ignored = family.ignored};
  rules.understood.insert(rules.understood.end(),
                          {"vision_config", family.text_field, "tie_word_embeddings"});
  rules.add(common_rules());
  if (text == nullptr) return rules;
  for (std::string const& field : text->names()) {
    char const* const c_name = field.c_str();
    if (!given.has(c_name) || !text->has(c_name) || field == "model_type") continue;
    if (given.at(c_name) == text->at(c_name)) repeated.push_back(field);
  }
  rules.understood.insert(rules.understood.end(), repeated.begin(), repeated.end());
  return rules;
}

/// True where the pair ties the matrices of its language model. What the two parts say may differ.
bool is_tied(json_fields const& given, json_fields const& text, pair_family const& family,
             bool otherwise) {
  constexpr char const* name = "tie_word_embeddings";
  bool const of_text = text.flag_or(name, otherwise);
  if (!given.has(name) || family.tied == tied_by::language) return of_text;
  bool const of_pair = given.flag_or(name, otherwise);
  if (family.tied == tied_by::either && of_text) return true;
  if (!text.has(name) || of_text == of_pair) return of_pair;
  given.refuse(name, "but " + in_quotes(text.path_of(name)) +
                         " is not, and versions of transformers differ about which of them holds; "
                         "make the two equal");
}

omnibal::mixed_language_model text_of_pair(json_fields const& given, std::string const& name,
                                           pair_family const& family) {
  std::string const field(family.text_field);
  // The rules refer to these names.
  std::vector<std::string> repeated;
  if (!given.has(field.c_str()) && !family.text_family.empty()) {
    return public_text(given, std::string(family.text_family),
                       {.around = pair_rules(given, family, nullptr, repeated), .name = name});
  }
  auto const text = given.object(field.c_str());
  check_fields(given, name, pair_rules(given, family, &text, repeated));
  std::string const stated = stated_family(text, family.text_family);
  return public_text(text, stated,
                     {.is_tied = is_tied(given, text, family, ties_by_default(text, stated))});
}

/// The patches on the side of a token.
std::int64_t side_of_token(json_fields const& given, json_fields const& vision, pair_kind kind) {
  switch (kind) {
    case pair_kind::internvl: return std::llround(1 / given.number("downsample_ratio", 0.01, 1));
    case pair_kind::qwen: return vision.integer_or("spatial_merge_size", 2, 1, most);
    case pair_kind::llava: return 1;
  }
  return 1;
}

/// The merger of Qwen has a hidden layer of its input's width and norms one patch at a time.
void complete_connector(json_fields const& given, pair_kind kind,
                        omnibal::vision_model const& tower, omnibal::projector& connector) {
  connector.hidden = connector.output;
  check_activation(given, "projector_hidden_act");
  if (kind == pair_kind::llava) {
    connector.has_norm = false;
    connector.has_bias = given.flag_or("multimodal_projector_bias", true);
  }
  if (kind == pair_kind::qwen) {
    connector.hidden = connector.input;
    connector.norm = tower.layer.norm;
    connector.norm_width = tower.layer.hidden;
  }
}

model_description public_pair(json_fields const& given, std::string const& name,
                              pair_family const& family) {
  model_description model;
  auto const vision = given.object("vision_config");
  model.language = text_of_pair(given, name, family);
  std::string const stated = stated_family(vision, family.tower_family);
  auto tower = family.kind == pair_kind::qwen ? public_qwen_tower(vision, stated)
                                              : public_tower(vision, stated);
  if (given.has("force_image_size")) {
    tower.layer.image_size = given.integer("force_image_size", 1, most);
    complete_patches(vision, tower);
  }
  drop_last_layers(given, family.kind, tower);
  auto connector = connector_of(vision, tower, side_of_token(given, vision, family.kind));
  connector.output = model.language->input.hidden;
  complete_connector(given, family.kind, tower, connector);
  if (given.has("image_seq_length") &&
      given.integer("image_seq_length", 1, most) != connector.tile_tokens) {
    given.refuse("image_seq_length", "but a tile of the tower becomes " +
                                         std::to_string(connector.tile_tokens) + " tokens");
  }
  for (char const* const width : {"out_hidden_size", "hidden_size"}) {
    // In the first tower of Qwen the hidden size is the width of the language model.
    bool const is_output = family.kind == pair_kind::qwen && vision.has(width) &&
                           (width == std::string_view("out_hidden_size") || stated == "qwen2_vl");
    if (!is_output || vision.integer(width, 1, most) == connector.output) continue;
    vision.refuse(width,
                  "must be the width of the language model, " + std::to_string(connector.output));
  }
  model.vision = {tower, connector};
  return model;
}

/// A tower whose connector is unknown: two patches on the side of a token.
model_description lone_tower(json_fields const& given, omnibal::vision_model const& tower) {
  model_description model;
  model.vision = {tower, connector_of(given, tower, usual_side(tower))};
  return model;
}

model_description clip_tower(json_fields const& given, std::string const& name,
                             clip_family const& family) {
  field_rules rules{
      .understood = {"vision_config"},
      .ignored = {{"the tower of texts is not read", {"text_config", "text_config_dict"}},
                  {"the space that texts and images share", {"projection_dim"}}}};
  rules.add(common_rules());
  check_fields(given, name, rules);
  auto const vision = given.object("vision_config");
  return lone_tower(vision, public_tower(vision, stated_family(vision, family.tower_family)));
}

model_description open_clip_model(json_fields const& given) {
  field_rules rules{
      .understood = {"vision_cfg"},
      .ignored = {{"the tower of texts is not read", {"text_cfg", "quick_gelu"}},
                  {"the space that texts and images share", {"embed_dim", "custom_text"}}}};
  check_fields(given, "open_clip", rules);
  auto const fields = given.object("vision_cfg");
  return lone_tower(fields, open_clip_tower(fields));
}

}  // namespace

bool is_public_model(json_fields const& given) {
  constexpr std::array names{"model_type",  "hidden_size", "vocab_size", "vision_config",
                             "text_config", "llm_config",  "vision_cfg", "thinker_config"};
  return std::ranges::any_of(names, [&](char const* name) { return given.has(name); });
}

model_description public_model(json_fields const& given, std::string_view family) {
  std::string const name = family.empty() ? stated_family(given, "") : std::string(family);
  if (name.empty() && given.has("vision_cfg")) return open_clip_model(given);
  model_description model;
  if (family_of(text_families(), name) != nullptr) {
    model.language = public_text(given, name);
  } else if (auto const* const pair = family_of(pair_families(), name)) {
    model = public_pair(given, name, *pair);
  } else if (auto const* const clip = family_of(clip_families(), name)) {
    model = clip_tower(given, name, *clip);
  } else if (family_of(tower_families(), name) != nullptr) {
    model = lone_tower(given, public_tower(given, name));
  } else {
    fail_family(given, name);
  }
  return model;
}

}  // namespace examples
