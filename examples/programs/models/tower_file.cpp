// SPDX-License-Identifier: Apache-2.0
#include "tower_file.hpp"

#include "input_error.hpp"
#include "layer_fields.hpp"
#include "tower_connector.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

constexpr std::array<std::string_view, 2> item_names{"images", "clips"};
/// By `relative_positions`.
constexpr std::array<std::string_view, 3> distance_names{"none", "table", "projected"};

/// The numbers in which the layers of one tower may differ.
template <class Io, class Layer>
void visit_kind(Io const& io, Layer& layer) {
  io("head_norm", layer.head_norm, head_norm_names);
  io("norm_placement", layer.placement, norm_placement_names);
  io("layer_scale", layer.layer_scale);
  io("key_bias", layer.key_bias);
  io("other_parameters", layer.other_parameters, 0);
}

template <class Io, class Model>
void visit_vision(Io const& io, Model& model, omnibal::vision_transformer& layer) {
  visit_layer(io, layer);
  io("image_size", layer.image_size, 1);
  io("patch_size", layer.patch_size, 1);
  io("class_tokens", layer.class_tokens, 0);
  io("norm_placement", layer.placement, norm_placement_names);
  io("layer_scale", layer.layer_scale);
  io("key_bias", layer.key_bias);
  io("other_parameters", layer.other_parameters, 0);
  io("channels", model.patches.channels, 1);
  io("positions", model.patches.positions, 0);
  io("patch_bias", model.patches.has_bias);
  io("patch_parameters", model.patches.other_parameters, 0);
  io("first_norm", model.patches.has_norm);
  io("last_norm", model.has_last_norm);
  io("tiles_of_image", layer.tiles_of_image, 1);
}

template <class Io>
void visit_audio(Io const& io, omnibal::audio_model& model) {
  auto& layer = model.layer;
  io("layers", model.layers, 1);
  io("hidden", layer.hidden, 1);
  io("heads", layer.heads, 1);
  io("head_size", layer.head_size, 0);
  io("mlp", layer.mlp, 1);
  io("mlp_kind", layer.feed_forward, mlp_names);
  io("norm", layer.norm, norm_names);
  io("qkv_bias", layer.qkv_bias);
  io("key_bias", layer.key_bias);
  io("output_bias", layer.output_bias);
  io("mlp_bias", layer.mlp_bias);
  io("training", layer.training, training_names);
  io("other_parameters", layer.other_parameters, 0);
  io("positions", model.stem.positions, 0);
  io("stem_norm", model.stem.has_norm);
  io("stem_parameters", model.stem.other_parameters, 0);
  io("last_norm", model.has_last_norm);
  io("kernel", layer.kernel, kernel_names);
  io("norm_placement", layer.placement, norm_placement_names);
}

template <class Io>
void visit_conformer(Io const& io, omnibal::conformer_parts& parts) {
  io("kernel", parts.kernel, 1);
  io("width", parts.width, 0);
  io("bias", parts.has_bias);
  io("kernel_bias", parts.kernel_bias);
  io("has_norm", parts.has_norm);
  io("norm", parts.norm, norm_names);
  io("separable", parts.is_separable);
  io("distances", parts.distances, distance_names);
  io("positions", parts.positions, 0);
  io("seen_keys", parts.seen_keys, 0);
}

template <class Io>
void visit_convolution(Io const& io, omnibal::stem_convolution& one) {
  io("inputs", one.inputs, 1);
  io("outputs", one.outputs, 1);
  io("kernel", one.kernel, 1);
  io("stride", one.stride, 1);
  io("bias", one.has_bias);
  io("activation", one.has_activation);
  io("groups", one.groups, 1);
  io("has_norm", one.has_norm);
  io("norm", one.norm, norm_names);
}

template <class Io>
void visit_projector(Io const& io, omnibal::projector& projector) {
  io("patches_per_token", projector.patches_per_token, 1);
  io("tokens_per_tile", projector.tile_tokens,
     projector.source == omnibal::projector_source::clips ? 0 : 1);
  io("input", projector.input, 1);
  io("hidden", projector.hidden, 0);
  io("output", projector.output, 1);
  io("mlp_kind", projector.feed_forward, mlp_names);
  io("has_norm", projector.has_norm);
  io("norm", projector.norm, norm_names);
  io("norm_width", projector.norm_width, 0);
  io("has_output_norm", projector.has_output_norm);
  io("output_norm", projector.output_norm, norm_names);
  io("bias", projector.has_bias);
  io("other_parameters", projector.other_parameters, 0);
  io("source", projector.source, item_names);
  io("training", projector.training, training_names);
}

/// A tower has no windows that move with the token.
void read_chunk(json_fields const& given, omnibal::attention_span& span) {
  if (!given.has("chunk")) return;
  std::int64_t const tokens = given.integer("chunk", 0, max_of_model);
  span = tokens == 0 ? omnibal::attention_span{}
                     : omnibal::attention_span{omnibal::span_kind::chunk, tokens};
}

void write_chunk(nlohmann::ordered_json& result, omnibal::attention_span const& span) {
  result["chunk"] = span.kind == omnibal::span_kind::chunk ? span.tokens : 0;
}

/// The elements of a list of objects. Errors: `input_error` where the field is no list of these.
std::vector<json_fields> objects_of(json_fields const& given, char const* name) {
  auto const& list = given.at(name);
  if (!list.is_array() || list.empty()) given.refuse(name, "must be a list of objects");
  std::vector<json_fields> result;
  for (auto const& element : list) result.emplace_back(given.file(), given.path_of(name), element);
  return result;
}

/// A layer of the tower for each of the connectors.
void read_inner_layers(json_fields const& given, std::int64_t tower_layers, connector_run& run) {
  if (tower_layers == 0) given.refuse("inner_layers", "but only images have them");
  run.inner_layers = given.integers<std::int64_t>("inner_layers", 0, tower_layers - 1);
  if (static_cast<std::int64_t>(run.inner_layers.size()) != run.count) {
    given.refuse("inner_layers",
                 "must have " + std::to_string(run.count) + " layers, one for each connector");
  }
}

}  // namespace

omnibal::mixed_vision_model own_vision(json_fields const& given) {
  omnibal::mixed_vision_model model;
  omnibal::vision_transformer base;
  model.patches.positions = -1;
  auto const visit = [&](auto const& io) { visit_vision(io, model, base); };
  allow_fields(given, visit, {"layers", "chunk", "layer_runs"});
  visit(field_reader{given});
  read_chunk(given, base.span);
  if (!given.has("layer_runs")) {
    model.runs.push_back({given.integer("layers", 1, max_layers_of_model), base});
  } else {
    std::int64_t sum = 0;
    for (json_fields const& fields : objects_of(given, "layer_runs")) {
      omnibal::vision_run run{fields.integer("layers", 1, max_layers_of_model), base};
      auto const visit_run = [&](auto const& io) { visit_kind(io, run.layer); };
      allow_fields(fields, visit_run, {"layers", "chunk"});
      visit_run(field_reader{fields});
      read_chunk(fields, run.layer.span);
      sum += run.count;
      model.runs.push_back(run);
    }
    if (given.has("layers") && given.integer("layers", 1, max_layers_of_model) != sum) {
      given.refuse("layers", "but the runs have " + std::to_string(sum) + " layers");
    }
  }
  complete_patches(given, model);
  if (model.patches.positions < 0) model.patches.positions = base.tile_tokens();
  return model;
}

omnibal::audio_model own_audio(json_fields const& given) {
  omnibal::audio_model model;
  auto const visit = [&](auto const& io) { visit_audio(io, model); };
  allow_fields(given, visit, {"convolutions", "chunk", "conformer"});
  visit(field_reader{given});
  if (given.has("conformer")) {
    auto const fields = given.object("conformer");
    auto const visit_parts = [&](auto const& io) { visit_conformer(io, model.layer.conformer); };
    allow_fields(fields, visit_parts);
    visit_parts(field_reader{fields});
  }
  read_chunk(given, model.layer.span);
  model.stem.training = model.layer.training;
  auto const convolutions = objects_of(given, "convolutions");
  if (convolutions.size() > model.stem.convolutions.size()) {
    given.refuse("convolutions", "must be at most eight convolutions");
  }
  for (std::size_t i = 0; i != convolutions.size(); ++i) {
    auto const visit_one = [&](auto const& io) {
      visit_convolution(io, model.stem.convolutions[i]);
    };
    allow_fields(convolutions[i], visit_one);
    visit_one(field_reader{convolutions[i]});
  }
  if (model.stem.hidden() != model.layer.hidden) {
    given.refuse("hidden", "must be the outputs of the last convolution, " +
                               std::to_string(model.stem.hidden()));
  }
  return model;
}

void read_projector(json_fields const& given, omnibal::projector& connector) {
  auto const visit = [&](auto const& io) { visit_projector(io, connector); };
  allow_fields(given, visit);
  visit(field_reader{given});
}

std::vector<connector_run> own_connectors(json_fields const& given, char const* name,
                                          omnibal::projector const& base,
                                          std::int64_t tower_layers) {
  std::vector<connector_run> result;
  for (json_fields const& fields : objects_of(given, name)) {
    connector_run run{.layer = base};
    auto const visit = [&](auto const& io) { visit_projector(io, run.layer); };
    allow_fields(fields, visit, {"count", "inner_layers"});
    run.count = fields.integer_or("count", 1, 1, max_layers_of_model);
    visit(field_reader{fields});
    if (fields.has("inner_layers")) read_inner_layers(fields, tower_layers, run);
    bool const is_behind_step = !result.empty() && result.back().inner_layers.empty();
    if (is_behind_step && !run.inner_layers.empty()) {
      fields.refuse("inner_layers", "but a connector without inner layers stands before");
    }
    result.push_back(run);
  }
  return result;
}

nlohmann::ordered_json vision_json(omnibal::mixed_vision_model const& model) {
  nlohmann::ordered_json result{{"layers", model.layers()}};
  omnibal::mixed_vision_model shown = model;
  visit_vision(field_writer{result}, shown, shown.runs.front().layer);
  write_chunk(result, model.layer().span);
  if (model.runs.size() == 1) return result;
  for (omnibal::vision_run& run : shown.runs) {
    nlohmann::ordered_json one{{"layers", run.count}};
    visit_kind(field_writer{one}, run.layer);
    write_chunk(one, run.layer.span);
    result["layer_runs"].push_back(std::move(one));
  }
  return result;
}

nlohmann::ordered_json audio_json(omnibal::audio_model const& model) {
  nlohmann::ordered_json result;
  omnibal::audio_model shown = model;
  visit_audio(field_writer{result}, shown);
  write_chunk(result, model.layer.span);
  if (model.layer.conformer.kernel != 0) {
    visit_conformer(field_writer{result["conformer"]}, shown.layer.conformer);
  }
  for (omnibal::stem_convolution& convolution : shown.stem.convolutions) {
    if (convolution.outputs == 0) continue;
    nlohmann::ordered_json one;
    visit_convolution(field_writer{one}, convolution);
    result["convolutions"].push_back(std::move(one));
  }
  return result;
}

nlohmann::ordered_json projector_json(omnibal::projector const& connector) {
  nlohmann::ordered_json result;
  omnibal::projector shown = connector;
  visit_projector(field_writer{result}, shown);
  return result;
}

nlohmann::ordered_json connectors_json(std::vector<connector_run> const& connectors) {
  nlohmann::ordered_json result;
  for (connector_run const& run : connectors) {
    nlohmann::ordered_json one{{"count", run.count}};
    one.update(projector_json(run.layer));
    if (!run.inner_layers.empty()) one["inner_layers"] = run.inner_layers;
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace examples
