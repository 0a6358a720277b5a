// SPDX-License-Identifier: Apache-2.0
#include "language_file.hpp"

#include "input_error.hpp"
#include "language_layer.hpp"
#include "layer_fields.hpp"
#include "tower_connector.hpp"

#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::transformer;

// Reading.

/// The layers of a file by the names that a pattern uses.
using named_layers = std::map<std::string, transformer, std::less<>>;

class pattern_reader {
 public:
  pattern_reader(json_fields const& given, named_layers const& layers)
      : given_(given), layers_(layers) {}

  void add(nlohmann::json const& list, std::vector<omnibal::layer_run>& runs) {
    if (!list.is_array() || list.empty()) {
      given_.refuse("pattern", "must be a list of names of layer_kinds");
    }
    for (auto const& element : list) add_element(element, runs);
  }

 private:
  void add_element(nlohmann::json const& element, std::vector<omnibal::layer_run>& runs) {
    if (element.is_string()) {
      auto const name = element.get<std::string>();
      auto const found = layers_.find(name);
      if (found == layers_.end()) {
        std::vector<std::string> names;
        for (auto const& known : layers_) names.push_back(known.first);
        fail({given_.file()}, "field \"" + given_.path_of("pattern") + "\" has \"" + name + "\"" +
                                  hint_at(name, names, "layer_kinds"));
      }
      append(runs, {1, found->second});
      return;
    }
    json_fields const repeated(given_.file(), given_.path_of("pattern"), element);
    repeated.allow({"repeat", "pattern"});
    std::int64_t const times = repeated.integer("repeat", 1, max_layers_of_model);
    std::vector<omnibal::layer_run> once;
    add(repeated.at("pattern"), once);
    if (once.size() == 1) {
      once.front().count = counted(once.front().count, times, repeated);
      append(runs, once.front());
      return;
    }
    static_cast<void>(
        counted(static_cast<std::int64_t>(once.size() + runs.size()), times, repeated));
    for (std::int64_t i = 0; i != times; ++i) {
      for (omnibal::layer_run const& run : once) append(runs, run);
    }
  }

  static std::int64_t counted(std::int64_t count, std::int64_t times, json_fields const& given) {
    if (count > max_layers_of_model / times) {
      given.refuse("repeat", "more than " + std::to_string(max_layers_of_model) + " layers");
    }
    return count * times;
  }

  static void append(std::vector<omnibal::layer_run>& runs, omnibal::layer_run const& run) {
    if (!runs.empty() && runs.back().layer == run.layer) {
      runs.back().count += run.count;
    } else {
      runs.push_back(run);
    }
  }

  json_fields const& given_;
  named_layers const& layers_;
};

std::vector<omnibal::layer_run> read_pattern(json_fields const& given, transformer const& base) {
  named_layers layers;
  auto const kinds = given.object("layer_kinds");
  for (std::string const& name : kinds.names()) {
    auto const fields = kinds.object(name.c_str());
    fields.allow(names_of_layer());
    transformer layer = base;
    read_layer(fields, layer);
    check_layer(fields, layer);
    layers.emplace(name, layer);
  }
  std::vector<omnibal::layer_run> runs;
  pattern_reader(given, layers).add(given.at("pattern"), runs);
  std::int64_t sum = 0;
  for (omnibal::layer_run const& run : runs) sum += run.count;
  if (sum > max_layers_of_model ||
      (given.has("layers") && given.integer("layers", 1, max_layers_of_model) != sum)) {
    given.refuse(given.has("layers") ? "layers" : "pattern",
                 "but the pattern has " + std::to_string(sum) + " layers");
  }
  return runs;
}

/// The dense layers that may precede layers of a single kind.
std::vector<omnibal::layer_run> read_two_kinds(json_fields const& given, transformer const& layer) {
  std::vector<omnibal::layer_run> runs;
  std::int64_t const first_layers = given.integer_or("first_layers", 0, 0, max_layers_of_model);
  if (first_layers != 0) {
    transformer first = layer;
    first.experts = {};
    first.mlp = given.integer("first_mlp", 1, max_of_model);
    runs.push_back({first_layers, first});
  }
  std::int64_t const layers = given.integer("layers", 1, max_layers_of_model);
  check_layer(given, layer);
  runs.push_back({layers, layer});
  return runs;
}

void read_prediction(json_fields const& given, omnibal::mixed_language_model& model) {
  auto const fields = given.object("prediction");
  fields.allow({"layers", "owns_embeddings", "loss_chunk", "layer"});
  model.prediction_layers = fields.integer("layers", 1, max_layers_of_model);
  model.prediction = {
      .layer = model.runs.back().layer,
      .vocabulary = model.input.vocabulary,
      .loss_chunk = fields.integer_or("loss_chunk", model.output.loss_chunk, 0, max_of_model),
      .owns_embeddings = fields.flag_or("owns_embeddings", false)};
  if (!fields.has("layer")) return;
  auto const layer = fields.object("layer");
  layer.allow(names_of_layer());
  read_layer(layer, model.prediction.layer);
  check_layer(layer, model.prediction.layer);
}

// Writing.

/// The pattern of runs of layers, and the kinds to which it refers.
void write_runs(omnibal::mixed_language_model const& model, transformer const& usual,
                nlohmann::ordered_json& result) {
  std::vector<transformer> kinds;
  auto pattern = nlohmann::ordered_json::array();
  for (omnibal::layer_run const& run : model.runs) {
    auto const found = std::ranges::find(kinds, run.layer);
    std::string const name = "kind_" + std::to_string(found - kinds.begin());
    if (found == kinds.end()) {
      kinds.push_back(run.layer);
      result["layer_kinds"][name] = changed_json(run.layer, usual);
    }
    if (run.count == 1) {
      pattern.push_back(name);
    } else {
      pattern.push_back({{"repeat", run.count}, {"pattern", {name}}});
    }
  }
  result["pattern"] = pattern;
}

}  // namespace

omnibal::mixed_language_model own_language(json_fields const& given) {
  auto names = names_of_layer();
  names.insert(names.end(), {"vocabulary", "hidden", "layers", "tied_head", "positions",
                             "loss_chunk", "head_bias", "last_norm", "first_layers", "first_mlp",
                             "layer_kinds", "pattern", "prediction", "layer_embeddings",
                             "other_input_parameters", "head_vocabulary", "cross"});
  given.allow(names);
  omnibal::mixed_language_model model;
  transformer layer;
  model.input.vocabulary = given.integer("vocabulary", 1, max_of_model);
  layer.hidden = given.integer("hidden", 1, max_of_model);
  read_layer(given, layer);
  model.input.hidden = layer.hidden;
  model.input.positions = given.integer_or("positions", 0, 0, max_of_model);
  model.input.training = layer.training;
  model.input.other_parameters = given.integer_or("other_input_parameters", 0, 0, max_of_model);
  if (given.has("layer_embeddings")) {
    auto const fields = given.object("layer_embeddings");
    fields.allow({"vocabulary", "layers", "size"});
    model.input.for_layers = {fields.integer("vocabulary", 1, max_of_model),
                              fields.integer("layers", 1, max_layers_of_model),
                              fields.integer("size", 1, max_of_model)};
  }
  model.output = {
      .vocabulary = given.integer_or("head_vocabulary", model.input.vocabulary, 1, max_of_model),
      .hidden = layer.hidden,
      .norm = layer.norm,
      .training = layer.training,
      .loss_chunk = given.integer_or("loss_chunk", 0, 0, max_of_model),
      .has_bias = given.flag_or("head_bias", false)};
  field_reader{given}("last_norm", model.output.norm, norm_names);
  if (given.flag_or("tied_head", false)) model.output.weights = omnibal::head_weights::tied;
  bool const is_mixed = given.has("layer_kinds") || given.has("pattern");
  if (is_mixed && given.has("first_layers")) {
    given.refuse("first_layers", "but the file has a pattern of layers");
  }
  model.runs = is_mixed ? read_pattern(given, layer) : read_two_kinds(given, layer);
  if (std::int64_t const streams = model.runs.front().layer.streams.count; streams != 0) {
    model.input.streams = streams;
    model.output.streams = streams;
  }
  if (given.has("prediction")) read_prediction(given, model);
  return model;
}

nlohmann::ordered_json language_json(omnibal::mixed_language_model const& model) {
  nlohmann::ordered_json result{{"vocabulary", model.input.vocabulary},
                                {"hidden", model.input.hidden}};
  transformer usual{
      .hidden = model.input.hidden, .norm = model.output.norm, .training = model.input.training};
  if (model.runs.size() == 1) {
    result["layers"] = model.runs.front().count;
    usual = model.runs.front().layer;
  }
  nlohmann::ordered_json const fields = changed_json(usual, transformer{.hidden = usual.hidden});
  result.update(fields);
  if (model.runs.size() != 1) write_runs(model, usual, result);
  if (model.output.norm != usual.norm) {
    result["last_norm"] = norm_names.at(static_cast<std::size_t>(model.output.norm));
  }
  result["positions"] = model.input.positions;
  result["tied_head"] = model.output.weights == omnibal::head_weights::tied;
  auto const& inputs = model.input.for_layers;
  if (inputs.size != 0) {
    result["layer_embeddings"] = {
        {"vocabulary", inputs.vocabulary}, {"layers", inputs.layers}, {"size", inputs.size}};
  }
  if (model.input.other_parameters != 0) {
    result["other_input_parameters"] = model.input.other_parameters;
  }
  if (model.output.vocabulary != model.input.vocabulary) {
    result["head_vocabulary"] = model.output.vocabulary;
  }
  if (model.output.loss_chunk != 0) result["loss_chunk"] = model.output.loss_chunk;
  if (model.output.has_bias) result["head_bias"] = true;
  if (model.prediction_layers != 0) {
    auto& written = result["prediction"];
    written = {{"layers", model.prediction_layers},
               {"owns_embeddings", model.prediction.owns_embeddings},
               {"loss_chunk", model.prediction.loss_chunk},
               {"layer", changed_json(model.prediction.layer, model.runs.back().layer)}};
  }
  return result;
}

}  // namespace examples
