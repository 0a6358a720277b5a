#include "model_file.hpp"

#include "file_text.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "progress.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

constexpr std::int64_t most = std::int64_t{1} << 24;
constexpr std::int64_t most_layers = std::int64_t{1} << 20;
constexpr std::array<std::string_view, 2> mlp_names{"gated", "plain"};
constexpr std::array<std::string_view, 2> norm_names{"rms", "layer"};
constexpr std::array<std::string_view, 3> head_norm_names{"none", "each_head", "whole_width"};
constexpr std::array<std::string_view, 3> training_names{"all", "input_gradients", "forward_only"};
/// By `cross_placement`.
constexpr std::array<std::string_view, 2> resampler_names{"q_former", "perceiver"};

/// The numbers of each part by the names that they have in a model file: `io(name, member, least)`
/// reads or writes one. A member that may be left out keeps its default.
template <class Io, class Layer>
void visit_layer(Io const& io, Layer& layer) {
  io("hidden", layer.hidden, 1);
  io("heads", layer.heads, 1);
  io("head_size", layer.head_size, 0);
  io("mlp", layer.mlp, 0);
  io("mlp_kind", layer.feed_forward, mlp_names);
  io("norm", layer.norm, norm_names);
  io("head_norm", layer.head_norm, head_norm_names);
  io("qkv_bias", layer.qkv_bias);
  io("output_bias", layer.output_bias);
  io("mlp_bias", layer.mlp_bias);
  io("training", layer.training, training_names);
}

template <class Io, class Model>
void visit_vision(Io const& io, Model& model) {
  io("layers", model.layers, 1);
  visit_layer(io, model.layer);
  io("image_size", model.layer.image_size, 1);
  io("patch_size", model.layer.patch_size, 1);
  io("class_tokens", model.layer.class_tokens, 0);
  io("layer_scale", model.layer.layer_scale);
  io("channels", model.patches.channels, 1);
  io("positions", model.patches.positions, 0);
  io("patch_bias", model.patches.has_bias);
}

template <class Io, class Projector>
void visit_projector(Io const& io, Projector& projector) {
  io("patches_per_token", projector.patches_per_token, 1);
  io("tokens_per_tile", projector.tile_tokens, 1);
  io("input", projector.input, 1);
  io("hidden", projector.hidden, 0);
  io("output", projector.output, 1);
  io("has_norm", projector.has_norm);
  io("norm", projector.norm, norm_names);
  io("bias", projector.has_bias);
  io("training", projector.training, training_names);
}

template <class Io, class Tower>
void visit_resampler(Io const& io, Tower& tower) {
  io("queries", tower.queries, 1);
  io("layers", tower.layers, 1);
  visit_layer(io, tower.layer);
  io("kind", tower.layer.cross.placement, resampler_names);
  io("cross_every", tower.cross_every, 1);
}

template <class Io, class Cross>
void visit_cross(Io const& io, Cross& cross) {
  io("every", cross.every, 1);
  visit_layer(io, cross.layer);
  io("kv_heads", cross.layer.kv_heads, 0);
  io("width", cross.layer.cross.context_width, 1);
}

template <class Io, class Model>
void visit_language(Io const& io, Model& model) {
  io("vocabulary", model.input.vocabulary, 1);
  io("layers", model.layers, 1);
  visit_layer(io, model.layer);
  io("kv_heads", model.layer.kv_heads, 0);
}

template <class Io, class Experts>
void visit_experts(Io const& io, Experts& experts) {
  io("routed", experts.routed, 1);
  io("active", experts.active, 1);
  io("shared", experts.shared, 0);
  io("mlp", experts.mlp, 1);
}

template <class Io, class Latent>
void visit_latent(Io const& io, Latent& latent) {
  io("key_value_rank", latent.key_value_rank, 1);
  io("query_rank", latent.query_rank, 0);
  io("rope_size", latent.rope_size, 0);
  io("value_size", latent.value_size, 0);
}

/// Reads the members of a part.
struct field_reader {
  json_fields const& given;

  /// Zero by default, but for those that have another default.
  void operator()(char const* name, std::int64_t& member, std::int64_t least) const {
    bool const may_lack = least == 0 || member != 0;
    if (given.has(name) || !may_lack) member = given.integer(name, least, most);
  }
  void operator()(char const* name, bool& member) const { member = given.flag_or(name, member); }
  template <class Choice, std::size_t N>
  void operator()(char const* name, Choice& member,
                  std::array<std::string_view, N> const& names) const {
    if (given.has(name)) member = static_cast<Choice>(given.choice(name, names));
  }
};

struct field_writer {
  nlohmann::ordered_json& result;

  void operator()(char const* name, std::int64_t member, std::int64_t) const {
    result[name] = member;
  }
  void operator()(char const* name, bool member) const { result[name] = member; }
  template <class Choice, std::size_t N>
  void operator()(char const* name, Choice member,
                  std::array<std::string_view, N> const& names) const {
    result[name] = names.at(static_cast<std::size_t>(member));
  }
};

/// Collects the names that a part may have.
struct field_namer {
  std::vector<std::string>& names;

  template <class... Ignored>
  void operator()(char const* name, Ignored const&...) const {
    names.emplace_back(name);
  }
};

template <class Visit>
void allow_fields(json_fields const& given, Visit const& visit,
                  std::vector<std::string> also = {}) {
  visit(field_namer{also});
  given.allow(also);
}

/// Sides of a tile in patches.
std::int64_t patches_on_side(json_fields const& given, omnibal::vision_transformer const& layer) {
  if (layer.image_size % layer.patch_size != 0) {
    given.refuse("image_size",
                 "must be a multiple of the patch size, " + std::to_string(layer.patch_size));
  }
  return layer.image_size / layer.patch_size;
}

/// What of the tower the patch embedding repeats, and positions for all of a tile.
void complete_patches(json_fields const& given, omnibal::vision_model& model) {
  model.patches.hidden = model.layer.hidden;
  model.patches.image_size = model.layer.image_size;
  model.patches.patch_size = model.layer.patch_size;
  model.patches.class_tokens = model.layer.class_tokens;
  model.patches.training = model.layer.training;
  static_cast<void>(patches_on_side(given, model.layer));
}

/// A connector to which the language model is still unknown: `side * side` patches become a token.
omnibal::projector connector_of(json_fields const& given, omnibal::vision_model const& model,
                                std::int64_t side) {
  std::int64_t const patches = patches_on_side(given, model.layer);
  if (patches % side != 0) {
    fail({given.file()}, std::to_string(patches) +
                             " patches on the side of a tile are no multiple of " +
                             std::to_string(side) + ", the patches on the side of a token");
  }
  return {.input = side * side * model.layer.hidden,
          .tile_tokens = patches / side * (patches / side),
          .patches_per_token = side * side,
          .has_norm = true};
}

/// Two patches on the side of a token where their number is even.
std::int64_t usual_side(omnibal::vision_model const& model) {
  return model.layer.image_size / model.layer.patch_size % 2 == 0 ? 2 : 1;
}

/// Behind a resampler there is a single matrix.
void connect(model_description& model) {
  if (!model.vision || !model.language) return;
  auto& connector = model.vision->connector;
  std::int64_t const width =
      model.cross ? model.cross->layer.cross.context_width : model.language->layer.hidden;
  if (connector.output != 0 && connector.output == width) return;
  connector.hidden = model.vision->resampler ? 0 : width;
  connector.output = width;
}

// The files of this project.

omnibal::vision_model own_vision(json_fields const& given) {
  omnibal::vision_model model;
  model.patches.positions = -1;
  auto const visit = [&](auto const& io) { visit_vision(io, model); };
  allow_fields(given, visit);
  visit(field_reader{given});
  complete_patches(given, model);
  if (model.patches.positions < 0) model.patches.positions = model.layer.tile_tokens();
  return model;
}

omnibal::language_model own_language(json_fields const& given) {
  omnibal::language_model model;
  auto const visit = [&](auto const& io) { visit_language(io, model); };
  allow_fields(
      given, visit,
      {"tied_head", "positions", "first_layers", "first_mlp", "experts", "latent", "cross"});
  visit(field_reader{given});
  auto& layer = model.layer;
  model.input.hidden = layer.hidden;
  model.input.positions = given.integer_or("positions", 0, 0, most);
  model.input.training = layer.training;
  model.output = {.vocabulary = model.input.vocabulary,
                  .hidden = layer.hidden,
                  .norm = layer.norm,
                  .training = layer.training};
  if (given.flag_or("tied_head", false)) model.output.weights = omnibal::head_weights::tied;
  if (given.has("latent")) {
    auto const latent = given.object("latent");
    auto const visit_part = [&](auto const& io) { visit_latent(io, layer.latent); };
    allow_fields(latent, visit_part);
    visit_part(field_reader{latent});
  }
  model.first_layers = given.integer_or("first_layers", 0, 0, most_layers);
  model.first_layer = layer;
  if (model.first_layers != 0) model.first_layer.mlp = given.integer("first_mlp", 1, most);
  if (given.has("experts")) {
    auto const experts = given.object("experts");
    auto const visit_part = [&](auto const& io) { visit_experts(io, layer.experts); };
    allow_fields(experts, visit_part);
    visit_part(field_reader{experts});
  } else if (layer.mlp == 0) {
    static_cast<void>(given.integer("mlp", 1, most));
  }
  return model;
}

/// Patches keep what they are where the queries attend to them.
query_tower own_resampler(json_fields const& given, omnibal::vision_transformer const& tower) {
  query_tower result;
  auto& layer = result.layer;
  layer.feed_forward = omnibal::mlp_kind::plain;
  layer.norm = omnibal::norm_kind::layer;
  layer.mask = omnibal::attention_mask::full;
  layer.cross = {tower.hidden, omnibal::cross_placement::instead_self};
  auto const visit = [&](auto const& io) { visit_resampler(io, result); };
  allow_fields(given, visit);
  visit(field_reader{given});
  if (result.is_perceiver() && layer.hidden != tower.hidden) {
    given.refuse("hidden", "must be the width of the tower, " + std::to_string(tower.hidden) +
                               ", where the kind is \"perceiver\"");
  }
  if (result.is_perceiver() && result.cross_every != 1) {
    given.refuse("cross_every", "must be 1 where the kind is \"perceiver\"");
  }
  return result;
}

/// The connector of a resampler, to which the language model is still unknown.
omnibal::projector connector_of(query_tower const& resampler) {
  return {.input = resampler.layer.hidden, .tile_tokens = resampler.queries};
}

/// As the layers of the language model unless the file says otherwise.
cross_layers own_cross(json_fields const& given, omnibal::language_model const& language) {
  cross_layers result{.layer = language.layer};
  auto& layer = result.layer;
  layer.latent = {};
  layer.experts = {};
  layer.training = omnibal::training_mode::all;
  layer.cross = {language.layer.hidden, omnibal::cross_placement::instead_self};
  auto const visit = [&](auto const& io) { visit_cross(io, result); };
  allow_fields(given, visit);
  visit(field_reader{given});
  if (layer.hidden != language.layer.hidden) {
    given.refuse("hidden",
                 "must be that of the language model, " + std::to_string(language.layer.hidden));
  }
  if (layer.mlp == 0) static_cast<void>(given.integer("mlp", 1, most));
  return result;
}

/// A part that may also be the name of a known model or file, which lies beside this one.
model_description part_of(json_fields const& given, char const* name) {
  std::string part = given.text(name);
  bool const is_file = part.ends_with(".json");
  if (is_file && !std::filesystem::path(part).is_absolute()) {
    part = (std::filesystem::path(given.file()).parent_path() / part).string();
  }
  bool const is_language = std::string_view(name) == "language";
  return find_model(part, is_language ? model_parts::language : model_parts::vision);
}

model_description own_model(json_fields const& given) {
  given.allow({"name", "vision", "resampler", "projector", "language"});
  model_description model;
  if (given.has("vision")) {
    if (given.at("vision").is_string()) {
      model.vision = part_of(given, "vision").vision;
    } else {
      auto const fields = given.object("vision");
      auto const tower = own_vision(fields);
      model.vision = {tower, connector_of(fields, tower, usual_side(tower))};
    }
  }
  if (given.has("resampler")) {
    if (!model.vision) given.refuse("resampler", "but there is no vision tower");
    auto const resampler = own_resampler(given.object("resampler"), model.vision->tower.layer);
    model.vision->resampler = resampler;
    model.vision->connector = connector_of(resampler);
  }
  if (given.has("language") && given.at("language").is_string()) {
    model.language = part_of(given, "language").language;
  } else if (given.has("language")) {
    auto const fields = given.object("language");
    model.language = own_language(fields);
    if (fields.has("cross")) {
      if (!model.vision) fields.refuse("cross", "but there is no vision tower");
      model.cross = own_cross(fields.object("cross"), *model.language);
    }
  }
  if (given.has("projector")) {
    auto const fields = given.object("projector");
    if (!model.vision) given.refuse("projector", "but there is no vision tower");
    connect(model);
    auto& connector = model.vision->connector;
    auto const visit = [&](auto const& io) { visit_projector(io, connector); };
    allow_fields(fields, visit);
    if (fields.has("patches_per_token") && !model.vision->resampler) {
      std::int64_t const patches = fields.integer("patches_per_token", 1, most);
      auto const& layer = model.vision->tower.layer;
      connector.input = patches * layer.hidden;
      connector.tile_tokens = (layer.tile_tokens() - layer.class_tokens + patches - 1) / patches;
    }
    visit(field_reader{fields});
  }
  return model;
}

// Public configurations.

/// True where the text of the field begins with one of these.
bool begins_with(json_fields const& given, char const* name,
                 std::initializer_list<std::string_view> beginnings) {
  if (!given.has(name) || !given.at(name).is_string()) return false;
  std::string const text = given.text(name);
  return std::ranges::any_of(beginnings,
                             [&](auto beginning) { return text.starts_with(beginning); });
}

/// The first of these fields that is there.
char const* present(json_fields const& given, std::initializer_list<char const*> names) {
  for (char const* const name : names) {
    if (given.has(name)) return name;
  }
  return *names.begin();
}

/// Experts of DeepSeek, Mixtral and Qwen; every layer but the first ones must have them.
void read_experts(json_fields const& given, omnibal::language_model& model) {
  char const* const count =
      present(given, {"n_routed_experts", "num_local_experts", "num_experts"});
  if (!given.has(count)) return;
  for (char const* const period : {"moe_layer_freq", "decoder_sparse_step"}) {
    static_cast<void>(given.integer_or(period, 1, 1, 1));
  }
  auto& layer = model.layer;
  auto& experts = layer.experts;
  experts.routed = given.integer(count, 1, most);
  experts.active = given.integer("num_experts_per_tok", 1, most);
  char const* const width = present(given, {"moe_intermediate_size", "intermediate_size"});
  experts.mlp = given.integer(width, 1, most);
  experts.shared = given.integer_or("n_shared_experts", 0, 0, most);
  if (given.has("shared_expert_intermediate_size")) {
    std::int64_t const shared = given.integer("shared_expert_intermediate_size", 0, most);
    if (shared % experts.mlp != 0) {
      given.refuse("shared_expert_intermediate_size",
                   "must be a multiple of moe_intermediate_size, " + std::to_string(experts.mlp));
    }
    experts.shared = shared / experts.mlp;
  }
  model.first_layer = layer;
  model.first_layer.experts = {};
  model.first_layers = given.integer_or("first_k_dense_replace", 0, 0, model.layers - 1);
  model.layers -= model.first_layers;
  layer.mlp = 0;
}

omnibal::language_model public_language(json_fields const& given) {
  omnibal::language_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("hidden_size", 1, most);
  model.layers = given.integer("num_hidden_layers", 1, most_layers);
  layer.heads = given.integer("num_attention_heads", 1, most);
  layer.kv_heads = given.integer_or("num_key_value_heads", 0, 1, most);
  layer.head_size = given.integer_or("head_dim", 0, 1, most);
  layer.mlp = given.integer("intermediate_size", 1, most);
  bool const is_layer_norm = !given.has("rms_norm_eps") &&
                             (given.has("layer_norm_eps") || given.has("layer_norm_epsilon"));
  layer.norm = is_layer_norm ? omnibal::norm_kind::layer : omnibal::norm_kind::rms;
  bool const is_plain = begins_with(given, "hidden_act", {"gelu", "relu", "quick_gelu"}) &&
                        !begins_with(given, "model_type", {"gemma"});
  layer.feed_forward = is_plain ? omnibal::mlp_kind::plain : omnibal::mlp_kind::gated;
  bool const has_biases = given.flag_or("attention_bias", false) || given.flag_or("bias", false);
  layer.qkv_bias = has_biases || begins_with(given, "model_type", {"qwen2"});
  layer.output_bias = has_biases;
  layer.mlp_bias = given.flag_or("mlp_bias", false);
  if (begins_with(given, "model_type", {"qwen3"})) {
    layer.head_norm = omnibal::query_key_norm::each_head;
  }
  if (given.has("kv_lora_rank")) {
    layer.kv_heads = 0;
    layer.head_size = given.integer("qk_nope_head_dim", 1, most);
    layer.latent = {.key_value_rank = given.integer("kv_lora_rank", 1, most),
                    .query_rank = given.integer_or("q_lora_rank", 0, 1, most),
                    .rope_size = given.integer("qk_rope_head_dim", 0, most),
                    .value_size = given.integer("v_head_dim", 1, most)};
  }
  model.input = {.vocabulary = given.integer("vocab_size", 1, most), .hidden = layer.hidden};
  model.output = {.vocabulary = model.input.vocabulary, .hidden = layer.hidden, .norm = layer.norm};
  if (given.flag_or("tie_word_embeddings", begins_with(given, "model_type", {"gemma"}))) {
    model.output.weights = omnibal::head_weights::tied;
  }
  read_experts(given, model);
  return model;
}

/// The side of a tile in pixels: one number or two equal ones.
std::int64_t side_of(json_fields const& given, char const* name) {
  if (!given.at(name).is_array()) return given.integer(name, 1, most);
  auto const sides = given.integers<std::int64_t>(name, 1, most);
  if (sides.size() != 2 || sides[0] != sides[1]) given.refuse(name, "must be one side of a square");
  return sides[0];
}

/// Towers of Qwen2-VL and later: images of their own size, here tiles of 448 pixels.
omnibal::vision_model public_qwen_vision(json_fields const& given) {
  omnibal::vision_model model;
  auto& layer = model.layer;
  bool const is_first = given.has("embed_dim");
  layer.hidden = given.integer(is_first ? "embed_dim" : "hidden_size", 1, most);
  model.layers = given.integer("depth", 1, most_layers);
  layer.heads = given.integer("num_heads", 1, most);
  layer.mlp =
      is_first
          ? std::llround(given.number("mlp_ratio", 0.01, 1000) * static_cast<double>(layer.hidden))
          : given.integer("intermediate_size", 1, most);
  bool const is_gated = begins_with(given, "hidden_act", {"silu"});
  layer.feed_forward = is_gated ? omnibal::mlp_kind::gated : omnibal::mlp_kind::plain;
  layer.norm = is_gated ? omnibal::norm_kind::rms : omnibal::norm_kind::layer;
  layer.patch_size = given.integer("patch_size", 1, most);
  layer.image_size = given.integer_or("image_size", 32 * layer.patch_size, 1, most);
  std::int64_t const frames = given.integer_or("temporal_patch_size", 2, 1, most);
  model.patches.channels =
      frames * given.integer_or(present(given, {"in_channels", "in_chans"}), 3, 1, most);
  model.patches.has_bias = false;
  complete_patches(given, model);
  return model;
}

/// ViT, CLIP, SigLIP, EVA-CLIP and InternViT as transformers have them.
omnibal::vision_model public_vision(json_fields const& given) {
  if (given.has("depth")) return public_qwen_vision(given);
  omnibal::vision_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("hidden_size", 1, most);
  model.layers = given.integer("num_hidden_layers", 1, most_layers);
  layer.heads = given.integer("num_attention_heads", 1, most);
  layer.mlp = given.integer("intermediate_size", 1, most);
  layer.image_size = side_of(given, "image_size");
  layer.patch_size = side_of(given, "patch_size");
  // Pixels that fill no patch are not seen.
  layer.image_size -= layer.image_size % layer.patch_size;
  layer.class_tokens = begins_with(given, "model_type", {"siglip"}) ? 0 : 1;
  layer.qkv_bias = given.flag_or("qkv_bias", given.flag_or("attention_bias", true));
  if (begins_with(given, "norm_type", {"rms"})) layer.norm = omnibal::norm_kind::rms;
  bool const has_head_norm = given.flag_or("qk_normalization", given.flag_or("use_qk_norm", false));
  if (has_head_norm) layer.head_norm = omnibal::query_key_norm::whole_width;
  layer.layer_scale = begins_with(given, "model_type", {"intern"});
  model.patches.channels = given.integer_or("num_channels", 3, 1, most);
  complete_patches(given, model);
  model.patches.positions = layer.tile_tokens();
  return model;
}

/// Towers of open_clip and EVA.
omnibal::vision_model open_clip_vision(json_fields const& given) {
  omnibal::vision_model model;
  auto& layer = model.layer;
  layer.hidden = given.integer("width", 1, most);
  model.layers = given.integer("layers", 1, most_layers);
  std::int64_t const head = given.integer_or("head_width", 64, 1, most);
  if (layer.hidden % head != 0) {
    given.refuse("width", "must be a multiple of head_width, " + std::to_string(head));
  }
  layer.heads = layer.hidden / head;
  double const ratio = given.has("mlp_ratio") ? given.number("mlp_ratio", 0.01, 1000) : 4.0;
  layer.mlp = std::llround(ratio * static_cast<double>(layer.hidden));
  if (given.flag_or("naiveswiglu", false)) layer.feed_forward = omnibal::mlp_kind::gated;
  layer.qkv_bias = given.flag_or("qkv_bias", true);
  layer.image_size = side_of(given, "image_size");
  layer.patch_size = given.integer_or("patch_size", 16, 1, most);
  layer.class_tokens = 1;
  complete_patches(given, model);
  model.patches.positions = layer.tile_tokens();
  return model;
}

/// The patches on the side of a token.
std::int64_t public_side(json_fields const& given, json_fields const& vision,
                         omnibal::vision_model const& tower) {
  if (vision.has("spatial_merge_size")) return vision.integer("spatial_merge_size", 1, most);
  if (given.has("downsample_ratio")) {
    return std::llround(1 / given.number("downsample_ratio", 0.01, 1));
  }
  // LLaVA makes a token of every patch.
  return begins_with(given, "model_type", {"llava"}) ? 1 : usual_side(tower);
}

/// Layers behind the one whose output is taken do not run.
void drop_last_layers(json_fields const& given, omnibal::vision_model& tower) {
  char const* const name = present(given, {"select_layer", "vision_feature_layer"});
  if (!given.has(name)) return;
  std::int64_t const taken = given.integer(name, -tower.layers, tower.layers);
  tower.layers = taken < 0 ? tower.layers + 1 + taken : taken;
}

model_description public_pair(json_fields const& given) {
  auto const vision = given.object("vision_config");
  auto tower = public_vision(vision);
  if (given.has("force_image_size")) {
    tower.layer.image_size = given.integer("force_image_size", 1, most);
    complete_patches(vision, tower);
    tower.patches.positions = tower.layer.tile_tokens();
  }
  drop_last_layers(given, tower);
  model_description model;
  auto connector = connector_of(vision, tower, public_side(given, vision, tower));
  if (begins_with(given, "model_type", {"llava"})) connector.has_norm = false;
  if (vision.has("depth")) {
    // The merger of Qwen.
    connector.hidden = connector.input;
    connector.norm = tower.layer.norm;
  }
  char const* const name = present(given, {"llm_config", "text_config"});
  model.language = public_language(given.has(name) ? given.object(name) : given);
  connector.output = model.language->layer.hidden;
  if (connector.hidden == 0) connector.hidden = connector.output;
  model.vision = {tower, connector};
  return model;
}

model_description public_model(json_fields const& given) {
  model_description model;
  auto const take_tower = [&](json_fields const& fields, omnibal::vision_model const& tower) {
    model.vision = {tower, connector_of(fields, tower, usual_side(tower))};
  };
  bool const is_clip = given.has("projection_dim") || given.has("vision_cfg") ||
                       begins_with(given, "model_type", {"clip", "siglip"});
  if (given.has("vision_cfg")) {
    auto const fields = given.object("vision_cfg");
    take_tower(fields, open_clip_vision(fields));
  } else if (given.has("vision_config") && is_clip) {
    auto const fields = given.object("vision_config");
    take_tower(fields, public_vision(fields));
  } else if (given.has("vision_config")) {
    model = public_pair(given);
  } else if (given.has("vocab_size")) {
    model.language = public_language(given);
  } else if (given.has("patch_size")) {
    take_tower(given, public_vision(given));
  } else {
    fail({given.file()},
         "is no model: it has neither \"vision\" or \"language\" nor what public configurations "
         "have, such as \"hidden_size\", \"vocab_size\" or \"vision_config\"");
  }
  return model;
}

/// Lets the cost functions check what they will be asked for. Errors: theirs.
void check_costs(model_description const& model) {
  // A tower by itself has a connector that leads nowhere.
  model_description checked = model;
  if (checked.vision && checked.vision->connector.output == 0) {
    checked.vision->connector.output = 1;
  }
  omnibal::workload const batch{.tiles = checked.vision ? 1 : 0,
                                .documents = omnibal::equal_sequences({.count = 1, .length = 1})};
  static_cast<void>(omnibal::count_parameters(checked));
  checked.for_each_layer([&](auto const& layer, std::int64_t) {
    static_cast<void>(layer(batch, omnibal::parallel_degrees{}, omnibal::byte_sizes{}));
  });
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

model_description const* known_model(std::string const& name) {
  for (model_description const& model : known_models()) {
    if (lower(model.name) == lower(name)) return &model;
  }
  return nullptr;
}

bool names_file(std::string const& given) {
  return given.ends_with(".json") || given.find('/') != std::string::npos;
}

model_description read_model_file(std::string const& path) {
  progress hidden(visibility::hidden);
  file_text const text(path, hidden);
  model_description model = model_of(path, "", parse_json(text.name(), text.view()));
  if (!model.name.empty()) return model;
  // A configuration is called config.json, its folder as the model.
  std::filesystem::path const whole = std::filesystem::absolute(path);
  bool const is_in_folder = whole.stem() == "config" && whole.has_parent_path();
  model.name = (is_in_folder ? whole.parent_path().filename() : whole.stem()).string();
  return model;
}

/// One name or file. Precondition: it is one.
model_description single_model(std::string const& given) {
  auto const* const known = known_model(given);
  return known != nullptr ? *known : read_model_file(given);
}

bool is_single_model(std::string const& given) {
  return known_model(given) != nullptr || names_file(given);
}

[[noreturn]] void fail_unknown(std::string const& given) {
  std::vector<std::string> names;
  for (model_description const& model : known_models()) names.push_back(model.name);
  throw input_error("there is no model \"" + given + "\"" + hint_at(given, names, "models"));
}

/// The first place where a plus has a name or a file on either side, or on one side of it if there
/// is none; `npos` where nothing is known.
std::size_t border_of(std::string const& given) {
  std::size_t half = std::string::npos;
  for (std::size_t plus = given.find('+'); plus != std::string::npos;
       plus = given.find('+', plus + 1)) {
    bool const is_first = is_single_model(given.substr(0, plus));
    bool const is_second = is_single_model(given.substr(plus + 1));
    if (is_first && is_second) return plus;
    if ((is_first || is_second) && half == std::string::npos) half = plus;
  }
  return half;
}

model_description joined(std::string const& given, std::size_t plus) {
  std::string const first = given.substr(0, plus);
  std::string const second = given.substr(plus + 1);
  for (std::string const& name : {first, second}) {
    if (!is_single_model(name)) fail_unknown(name);
  }
  auto result = single_model(first);
  auto const language = single_model(second);
  if (!result.vision) throw input_error("model \"" + first + "\" has no vision tower");
  if (!language.language) throw input_error("model \"" + second + "\" has no language model");
  result.language = language.language;
  result.cross.reset();
  result.name += '+' + language.name;
  connect(result);
  return result;
}

/// A name, a file that there is, two of these, or a file that there is not.
model_description any_model(std::string const& given) {
  std::error_code ignored;
  if (known_model(given) != nullptr || std::filesystem::exists(given, ignored)) {
    return single_model(given);
  }
  std::size_t const plus = border_of(given);
  if (plus != std::string::npos) return joined(given, plus);
  if (names_file(given)) return single_model(given);
  fail_unknown(given);
}

}  // namespace

model_description find_model(std::string const& given, model_parts needed) {
  model_description model = any_model(given);
  if (needed != model_parts::vision && !model.language) {
    throw input_error("model \"" + given +
                      "\" is a vision tower alone; add a language model, as in " + model.name +
                      "+llama3-8b");
  }
  if (needed != model_parts::language && !model.vision) {
    throw input_error("model \"" + given + "\" has no vision tower; add one, as in internvit-6b+" +
                      model.name);
  }
  return model;
}

model_description padded(model_description model, std::int64_t tensor_ranks) {
  auto const pad = [&](auto& layer) {
    std::int64_t const odd = layer.heads % tensor_ranks;
    if (odd == 0) return;
    if (layer.head_size == 0) layer.head_size = layer.hidden / layer.heads;
    layer.heads += tensor_ranks - odd;
  };
  if (!model.vision) return model;
  pad(model.vision->tower.layer);
  if (model.vision->resampler) pad(model.vision->resampler->layer);
  return model;
}

nlohmann::ordered_json model_json(model_description const& model) {
  nlohmann::ordered_json result{{"name", model.name}};
  if (model.vision) {
    visit_vision(field_writer{result["vision"]}, model.vision->tower);
    if (model.vision->resampler) {
      visit_resampler(field_writer{result["resampler"]}, *model.vision->resampler);
    }
    visit_projector(field_writer{result["projector"]}, model.vision->connector);
  }
  if (!model.language) return result;
  auto& language = result["language"];
  visit_language(field_writer{language}, *model.language);
  language["positions"] = model.language->input.positions;
  language["tied_head"] = model.language->output.weights == omnibal::head_weights::tied;
  if (model.language->first_layers != 0) {
    language["first_layers"] = model.language->first_layers;
    language["first_mlp"] = model.language->first_layer.mlp;
  }
  auto const& layer = model.language->layer;
  if (layer.experts.routed != 0) visit_experts(field_writer{language["experts"]}, layer.experts);
  if (layer.latent.key_value_rank != 0) {
    visit_latent(field_writer{language["latent"]}, layer.latent);
  }
  if (model.cross) visit_cross(field_writer{language["cross"]}, *model.cross);
  return result;
}

model_description model_of(std::string const& file, std::string const& field,
                           nlohmann::json const& value) {
  json_fields const given(file, field, value);
  bool const is_own = given.has("vision") || given.has("language");
  try {
    model_description model = is_own ? own_model(given) : public_model(given);
    connect(model);
    if (is_own && given.has("name")) model.name = given.text("name");
    std::ranges::replace(model.name, '/', '-');
    check_costs(model);
    return model;
  } catch (input_error const&) {
    throw;
  } catch (std::exception const& error) {
    fail({file}, error.what());
  }
}

}  // namespace examples
