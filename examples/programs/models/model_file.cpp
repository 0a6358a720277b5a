// SPDX-License-Identifier: Apache-2.0
#include "model_file.hpp"

#include "input_error.hpp"
#include "json_fields.hpp"
#include "language_file.hpp"
#include "layer_fields.hpp"
#include "public_model.hpp"
#include "published_total.hpp"
#include "tower_connector.hpp"
#include "tower_file.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// By `cross_placement`.
constexpr std::array<std::string_view, 2> resampler_names{"q_former", "perceiver"};

template <class Io, class Tower>
void visit_resampler(Io const& io, Tower& tower) {
  io("queries", tower.queries, 1);
  io("layers", tower.layers, 1);
  visit_layer(io, tower.layer);
  io("kind", tower.layer.cross.placement, resampler_names);
  io("cross_every", tower.cross_every, 1);
}

template <class Io>
void visit_windows(Io const& io, window_tower& tower) {
  io("queries", tower.queries, 1);
  io("window", tower.window, 1);
  io("layers", tower.layers, 1);
  visit_layer(io, tower.layer);
  io("norm_placement", tower.layer.placement, norm_placement_names);
  io("width", tower.layer.cross.context_width, 1);
  io("cross_every", tower.cross_every, 1);
}

template <class Io, class Cross>
void visit_cross(Io const& io, Cross& cross) {
  io("every", cross.every, 1);
  visit_layer(io, cross.layer);
  io("kv_heads", cross.layer.kv_heads, 0);
  io("width", cross.layer.cross.context_width, 1);
}

// The files of this project.

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

/// Queries of each window of a clip.
window_tower own_windows(json_fields const& given, std::int64_t width) {
  window_tower result;
  result.layer.feed_forward = omnibal::mlp_kind::plain;
  result.layer.norm = omnibal::norm_kind::layer;
  result.layer.mask = omnibal::attention_mask::full;
  result.layer.cross.context_width = width;
  auto const visit = [&](auto const& io) { visit_windows(io, result); };
  allow_fields(given, visit);
  visit(field_reader{given});
  return result;
}

/// The connector of a resampler, to which the language model is still unknown.
omnibal::projector connector_of(query_tower const& resampler) {
  return {.input = resampler.layer.hidden, .tile_tokens = resampler.queries};
}

/// As the layers of the language model unless the file says otherwise.
cross_layers own_cross(json_fields const& given, omnibal::mixed_language_model const& language) {
  cross_layers result{.layer = last_attention_layer(language)};
  auto& layer = result.layer;
  layer.latent = {};
  layer.experts = {};
  layer.indexer = {};
  layer.span = {};
  layer.delta = {};
  layer.space = {};
  layer.convolution = {};
  layer.adapters = {};
  layer.parts = omnibal::layer_parts::both;
  layer.training = omnibal::training_mode::all;
  layer.cross = {language.input.hidden, omnibal::cross_placement::instead_self};
  auto const visit = [&](auto const& io) { visit_cross(io, result); };
  allow_fields(given, visit);
  visit(field_reader{given});
  if (layer.hidden != language.input.hidden) {
    given.refuse("hidden",
                 "must be that of the language model, " + std::to_string(language.input.hidden));
  }
  if (layer.mlp == 0) static_cast<void>(given.integer("mlp", 1, max_of_model));
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
  std::string const as = name + std::string("_as");
  std::string const family = given.has(as.c_str()) ? given.text(as.c_str()) : "";
  return find_model(part, is_language ? model_parts::language : model_parts::vision, family);
}

model_description own_model(json_fields const& given) {
  given.allow({"name", "published_parameters", "vision", "vision_as", "resampler", "projector",
               "further_projectors", "audio", "audio_projectors", "audio_resampler", "language",
               "language_as"});
  for (char const* const part : {"vision", "language"}) {
    std::string const as = part + std::string("_as");
    if (!given.has(as.c_str()) || (given.has(part) && given.at(part).is_string())) continue;
    given.refuse(as.c_str(), std::string("but \"") + part + "\" is no name of a file");
  }
  model_description model;
  if (given.has("published_parameters")) {
    model.published = {
        .parameters = given.integer("published_parameters", 1, std::int64_t{1} << 60),
        .bytes = 0,
        .source = "published_parameters"};
  }
  if (given.has("vision")) {
    if (given.at("vision").is_string()) {
      model.vision = part_of(given, "vision").vision;
    } else {
      auto const fields = given.object("vision");
      auto const tower = own_vision(fields);
      model.vision = {tower, connector_of(fields, tower, usual_side(tower))};
    }
  }
  if (given.has("audio")) model.audio = {.tower = own_audio(given.object("audio"))};
  if (given.has("audio_resampler")) {
    if (!model.audio) given.refuse("audio_resampler", "but there is no audio tower");
    model.audio->resampler =
        own_windows(given.object("audio_resampler"), model.audio->tower.layer.hidden);
  }
  if (given.has("resampler")) {
    if (!model.vision) given.refuse("resampler", "but there is no vision tower");
    auto const resampler = own_resampler(given.object("resampler"), model.vision->tower.layer());
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
    lead_connectors(model);
    auto& connector = model.vision->connector;
    if (fields.has("patches_per_token") && !model.vision->resampler) {
      std::int64_t const patches = fields.integer("patches_per_token", 1, max_of_model);
      auto const& layer = model.vision->tower.layer();
      connector.input = patches * layer.hidden;
      connector.tile_tokens = (layer.tile_tokens() - layer.class_tokens + patches - 1) / patches;
    }
    read_projector(fields, connector);
  }
  if (given.has("further_projectors")) {
    if (!model.vision) given.refuse("further_projectors", "but there is no vision tower");
    lead_connectors(model);
    model.vision->further = own_connectors(given, "further_projectors", model.vision->connector,
                                           model.vision->tower.layers());
  }
  if (given.has("audio_projectors")) {
    if (!model.audio) given.refuse("audio_projectors", "but there is no audio tower");
    model.audio->connectors =
        own_connectors(given, "audio_projectors",
                       {.input = model.audio->tower.layer.hidden,
                        .output = model.language ? model.language->input.hidden : 0,
                        .source = omnibal::projector_source::clips},
                       0);
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
  omnibal::micro_batch_work const batch{
      .tiles = checked.vision ? 1 : 0,
      .clips = omnibal::equal_sequences({.count = checked.audio ? 1 : 0, .length = 1}),
      .documents = omnibal::equal_sequences({.count = 1, .length = 1})};
  static_cast<void>(omnibal::count_parameters(checked));
  checked.for_each_layer([&](auto const& layer, std::int64_t) {
    static_cast<void>(layer(batch, omnibal::parallel_degrees{}, omnibal::byte_sizes{}));
  });
}

}  // namespace

void lead_connectors(model_description& model) {
  if (!model.language) return;
  std::int64_t const width =
      model.cross ? model.cross->layer.cross.context_width : model.language->input.hidden;
  if (!model.vision) return;
  auto& connector = model.vision->connector;
  if (connector.output != 0 && connector.output == width) return;
  // Mergers within the tower are like the last one.
  for (connector_run& run : model.vision->further) {
    bool const is_merger = run.layer.input == connector.input &&
                           run.layer.hidden == connector.hidden &&
                           run.layer.output == connector.output;
    if (is_merger) run.layer.output = width;
  }
  connector.hidden = model.vision->resampler ? 0 : width;
  connector.output = width;
}

nlohmann::ordered_json model_json(model_description const& model) {
  nlohmann::ordered_json result{{"name", model.name}};
  if (model.published && model.published->parameters != 0) {
    result["published_parameters"] = model.published->parameters;
  }
  if (model.vision) {
    result["vision"] = vision_json(model.vision->tower);
    if (model.vision->resampler) {
      visit_resampler(field_writer{result["resampler"]}, *model.vision->resampler);
    }
    result["projector"] = projector_json(model.vision->connector);
    if (!model.vision->further.empty()) {
      result["further_projectors"] = connectors_json(model.vision->further);
    }
  }
  if (model.audio) {
    result["audio"] = audio_json(model.audio->tower);
    if (model.audio->resampler) {
      window_tower shown = *model.audio->resampler;
      visit_windows(field_writer{result["audio_resampler"]}, shown);
    }
    if (!model.audio->connectors.empty()) {
      result["audio_projectors"] = connectors_json(model.audio->connectors);
    }
  }
  if (!model.language) return result;
  auto& language = result["language"];
  language = language_json(*model.language);
  if (model.cross) visit_cross(field_writer{language["cross"]}, *model.cross);
  return result;
}

model_description model_of(std::string const& file, std::string const& field,
                           nlohmann::json const& value, std::string_view family) {
  json_fields const given(file, field, value);
  bool const is_own = given.has("vision") || given.has("language") || given.has("audio");
  if (!is_own && !is_public_model(given)) {
    fail({file},
         "is no model: it has neither \"vision\" or \"language\" nor what public configurations "
         "have, such as \"model_type\", \"hidden_size\" or \"vision_config\"");
  }
  if (is_own && !family.empty()) {
    fail({file},
         "is a model file: --as is for public configurations; \"vision_as\" and "
         "\"language_as\" in this file name the family of a configuration that it names");
  }
  try {
    model_description model = is_own ? own_model(given) : public_model(given, family);
    // A public configuration states the widths of its connectors.
    if (is_own) lead_connectors(model);
    if (model.language) model.language->order = omnibal::prediction_order::before_head;
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
