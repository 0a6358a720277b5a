// SPDX-License-Identifier: Apache-2.0
#include "carried_features.hpp"

#include "model_file.hpp"

#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/models.hpp>

#include <concepts>
#include <optional>

namespace examples {

namespace {

/// A layer of the language model in the pipeline.
struct placed_layer {
  std::size_t place = 0;
  omnibal::transformer layer{};
};

/// The places of the layers that make or read features.
struct layer_places {
  std::size_t count = 0;
  std::vector<std::size_t> tower;
  /// Connectors of images and clips.
  std::vector<std::size_t> connectors;
  std::size_t embedding = 0;
  std::vector<placed_layer> language;
  std::vector<std::size_t> prediction;
  std::size_t head = 0;
};

/// Notes where layers are. `has_inserted` tells that layers of cross-attention stand between the
/// layers of the language model.
struct place_recorder {
  layer_places& places;
  bool has_inserted;

  template <class Layer>
  void operator()(Layer const& layer, std::int64_t count) const {
    for (std::int64_t i = 0; i != count; ++i) note(layer, places.count++);
  }

 private:
  template <class Layer>
  void note(passing<Layer> const& layer, std::size_t place) const {
    note(layer.layer, place);
  }
  void note(omnibal::vision_transformer const& /*layer*/, std::size_t place) const {
    places.tower.push_back(place);
  }
  void note(omnibal::projector const& /*layer*/, std::size_t place) const {
    places.connectors.push_back(place);
  }
  void note(omnibal::embedding const& /*layer*/, std::size_t place) const {
    places.embedding = place;
  }
  void note(omnibal::transformer const& layer, std::size_t place) const {
    places.language.push_back({place, layer});
  }
  void note(heard_layer const& layer, std::size_t place) const { note(layer.layer, place); }
  void note(cross_layer const& layer, std::size_t place) const {
    if (!has_inserted) note(layer.layer, place);
  }
  void note(omnibal::language_head const& /*layer*/, std::size_t place) const {
    places.head = place;
  }
  void note(omnibal::prediction_layer const& /*layer*/, std::size_t place) const {
    places.prediction.push_back(place);
  }
  /// Layers that read only the output of the layer before them.
  template <class Layer>
    requires(std::same_as<Layer, omnibal::patch_embedding> ||
             std::same_as<Layer, omnibal::tower_norm> || std::same_as<Layer, query_layer> ||
             std::same_as<Layer, window_layer> || std::same_as<Layer, omnibal::audio_stem> ||
             std::same_as<Layer, omnibal::audio_transformer> ||
             std::same_as<Layer, omnibal::audio_norm>)  //
  void note(Layer const& /*layer*/, std::size_t /*place*/) const {}
};

/// Adds features that at least one cut sends.
struct feature_list {
  std::vector<carried_feature> features;

  void add(std::size_t first, std::size_t last, carried_numbers const& numbers) {
    if (first < last && numbers != carried_numbers{}) features.push_back({first, last, numbers});
  }
};

/// The outputs of inner layers, of their mergers and of the tower.
void add_mergers(vision_part const& vision, layer_places const& places, feature_list& list) {
  auto const& tower = vision.tower;
  std::int64_t const patches = product_of({tower.layer().tile_tokens(), tower.layer().hidden});
  std::size_t merger = 0;
  for (connector_run const& run : vision.further) {
    for (std::int64_t const inner : run.inner_layers) {
      std::size_t const place = places.connectors[merger];
      // The output of the last layer is the output of the tower, which crosses these cuts anyway.
      bool const is_output = inner + 1 == tower.layers() && !tower.has_last_norm;
      if (!is_output) {
        list.add(places.tower[static_cast<std::size_t>(inner)] + 1, place, {.of_tile = patches});
      }
      std::int64_t const merged = product_of({run.layer.tile_tokens, run.layer.output});
      if (merger < places.language.size()) {
        list.add(place + 1, places.language[merger].place, {.of_tile = merged});
      }
      ++merger;
    }
  }
  if (merger == 0) return;
  // Behind the mergers, the resampler or a connector reads the output of the tower.
  list.add(places.connectors[0], places.connectors[merger - 1] + 1, {.of_tile = patches});
}

/// The tokens of clips to which layers of the language model attend. Layers that attend to tiles
/// count these themselves.
void add_context(model_description const& model, layer_places const& places, feature_list& list) {
  if (!model.audio) return;
  std::size_t last = 0;
  std::int64_t width = 0;
  for (auto const& [place, layer] : places.language) {
    if (layer.cross.context_width == 0) continue;
    last = place;
    width = layer.cross.context_width;
  }
  list.add(places.embedding, last, {.of_clip_token = width});
}

/// The numbers of the keys and values of a token.
std::int64_t keys_and_values(omnibal::transformer const& layer) {
  std::int64_t const heads = layer.kv_heads == 0 ? layer.heads : layer.kv_heads;
  std::int64_t const keys = layer.head_size == 0 ? layer.hidden / layer.heads : layer.head_size;
  return product_of({heads, keys + (layer.value_size == 0 ? keys : layer.value_size)});
}

/// Inputs of layers that the embedding computes, and keys and values of the last layer before that
/// has its own and the same kind of span.
void add_shared_inputs(layer_places const& places, feature_list& list) {
  for (std::size_t i = 0; i != places.language.size(); ++i) {
    auto const& [place, layer] = places.language[i];
    list.add(places.embedding, place, {.of_token = layer.layer_input_size});
    if (layer.source == omnibal::key_value_source::earlier_layer) continue;
    std::size_t last = place;
    for (std::size_t later = i + 1; later != places.language.size(); ++later) {
      auto const& reader = places.language[later];
      if (reader.layer.span.kind != layer.span.kind || reader.layer.heads == 0) continue;
      if (reader.layer.source != omnibal::key_value_source::earlier_layer) break;
      last = reader.place;
    }
    if (last != place) list.add(place, last, {.of_token_in_heads = keys_and_values(layer)});
  }
}

/// The output of the language model, and the output of each prediction layer, to the head.
void add_predictions(omnibal::mixed_language_model const& model, layer_places const& places,
                     feature_list& list) {
  if (places.prediction.empty()) return;
  carried_numbers const width{.of_token = model.input.hidden};
  if (model.order == omnibal::prediction_order::behind_head) {
    return list.add(places.head, places.prediction[0], width);
  }
  list.add(places.prediction[0], places.head, width);
  for (std::size_t const made : places.prediction) list.add(made + 1, places.head, width);
}

}  // namespace

std::vector<carried_feature> carried_features(model_description const& model) {
  layer_places places;
  model.for_each_part(place_recorder{places, model.cross.has_value()});
  feature_list list;
  if (model.vision) add_mergers(*model.vision, places, list);
  if (!model.language) return list.features;
  if (model.vision && model.audio) {
    auto const& connector = model.vision->connector;
    std::int64_t const numbers = product_of({connector.tile_tokens, connector.output});
    std::size_t number = 0;
    for (connector_run const& run : model.vision->further) {
      number += static_cast<std::size_t>(run.count);
    }
    list.add(places.connectors[number] + 1, places.embedding, {.of_tile = numbers});
  }
  add_context(model, places, list);
  add_shared_inputs(places, list);
  add_predictions(*model.language, places, list);
  return list.features;
}

}  // namespace examples
