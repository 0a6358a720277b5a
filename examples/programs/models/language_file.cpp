// SPDX-License-Identifier: Apache-2.0
#include "language_file.hpp"

#include "input_error.hpp"
#include "layer_fields.hpp"
#include "tower_connector.hpp"

#include <omnibal/cost/transformer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::transformer;

constexpr std::int64_t most = max_of_model;
constexpr std::int64_t max_layers = max_layers_of_model;
constexpr std::array<std::string_view, 2> mask_names{"causal", "full"};
constexpr std::array<std::string_view, 2> kernel_names{"flash", "unfused"};
constexpr std::array<std::string_view, 3> gate_names{"none", "each_head", "each_number"};
constexpr std::array<std::string_view, 3> source_names{"own", "keys", "earlier_layer"};
constexpr std::array<std::string_view, 3> parts_names{"both", "mixer", "feed_forward"};
constexpr std::array<std::string_view, 4> decay_names{"each_head", "each_number",
                                                      "each_number_direct", "fixed"};
constexpr std::array<std::string_view, 3> target_names{"all", "attention", "feed_forward"};

/// Visits the members of a layer that are numbers, flags and choices. `hidden` is of the model.
template <class Io, class Layer>
void visit_members(Io const& io, Layer& layer) {
  io("heads", layer.heads, 0);
  io("kv_heads", layer.kv_heads, 0);
  io("head_size", layer.head_size, 0);
  io("value_size", layer.value_size, 0);
  io("mlp", layer.mlp, 0);
  io("mlp_kind", layer.feed_forward, mlp_names);
  io("norm", layer.norm, norm_names);
  io("head_norm", layer.head_norm, head_norm_names);
  io("norm_placement", layer.placement, norm_placement_names);
  io("qkv_bias", layer.qkv_bias);
  io("key_bias", layer.key_bias);
  io("output_bias", layer.output_bias);
  io("mlp_bias", layer.mlp_bias);
  io("training", layer.training, training_names);
  io("mask", layer.mask, mask_names);
  io("kernel", layer.kernel, kernel_names);
  io("dropout", layer.dropout);
  io("parts", layer.parts, parts_names);
  io("gate", layer.gate, gate_names);
  io("sinks", layer.sinks);
  io("key_value_source", layer.source, source_names);
  io("layer_input_size", layer.layer_input_size, 0);
  io("other_parameters", layer.other_parameters, 0);
}

template <class Io, class Experts>
void visit_experts(Io const& io, Experts& experts) {
  io("routed", experts.routed, 1);
  io("active", experts.active, 1);
  io("shared", experts.shared, 0);
  io("mlp", experts.mlp, 1);
  io("shared_gate", experts.shared_gate);
  io("shared_mlp", experts.shared_mlp, 0);
  io("latent_width", experts.latent_width, 0);
  io("bias", experts.has_bias);
  io("idle_parameters", experts.idle_parameters, 0);
}

template <class Io, class Latent>
void visit_latent(Io const& io, Latent& latent) {
  io("key_value_rank", latent.key_value_rank, 1);
  io("query_rank", latent.query_rank, 0);
  io("rope_size", latent.rope_size, 0);
  io("value_size", latent.value_size, 0);
}

template <class Io, class Indexer>
void visit_indexer(Io const& io, Indexer& indexer) {
  io("heads", indexer.heads, 1);
  io("head_size", indexer.head_size, 1);
}

template <class Io, class Net>
void visit_delta(Io const& io, Net& net) {
  io("key_heads", net.key_heads, 1);
  io("value_heads", net.value_heads, 0);
  io("key_size", net.key_size, 1);
  io("value_size", net.value_size, 0);
  io("convolution", net.convolution, 0);
  io("decay", net.decay, decay_names);
  io("gate", net.has_gate);
}

template <class Io, class Space>
void visit_space(Io const& io, Space& space) {
  io("heads", space.heads, 1);
  io("head_size", space.head_size, 1);
  io("state", space.state, 1);
  io("groups", space.groups, 1);
  io("convolution", space.convolution, 0);
  io("step_rank", space.step_rank, 0);
  io("convolution_bias", space.convolution_bias);
  io("projection_bias", space.projection_bias);
  io("has_norm", space.has_norm);
}

template <class Io, class Convolution>
void visit_convolution(Io const& io, Convolution& convolution) {
  io("tokens", convolution.tokens, 1);
  io("bias", convolution.has_bias);
}

template <class Io, class Adapters>
void visit_adapters(Io const& io, Adapters& adapters) {
  io("rank", adapters.rank, 1);
  io("targets", adapters.targets, target_names);
}

/// Calls `part(name, member, visit)` for the parts of a layer that are objects of a file.
template <class Part, class Layer>
void visit_parts(Part const& part, Layer& layer) {
  part("experts", layer.experts, [](auto const& io, auto& m) { visit_experts(io, m); });
  part("latent", layer.latent, [](auto const& io, auto& m) { visit_latent(io, m); });
  part("indexer", layer.indexer, [](auto const& io, auto& m) { visit_indexer(io, m); });
  part("delta_net", layer.delta, [](auto const& io, auto& m) { visit_delta(io, m); });
  part("state_space", layer.space, [](auto const& io, auto& m) { visit_space(io, m); });
  part("short_convolution", layer.convolution,
       [](auto const& io, auto& m) { visit_convolution(io, m); });
  part("adapters", layer.adapters, [](auto const& io, auto& m) { visit_adapters(io, m); });
}

/// The names of the fields of a layer.
std::vector<std::string> names_of_layer() {
  transformer layer;
  std::vector<std::string> result{"window", "chunk"};
  visit_members(field_namer{result}, layer);
  visit_parts([&](char const* name, auto&, auto const&) { result.emplace_back(name); }, layer);
  return result;
}

// Reading.

void read_span(json_fields const& given, transformer& layer) {
  using omnibal::span_kind;
  for (auto const& [name, kind] :
       {std::pair{"window", span_kind::window}, std::pair{"chunk", span_kind::chunk}}) {
    if (!given.has(name)) continue;
    std::int64_t const tokens = given.integer(name, 0, most);
    if (tokens != 0 && kind == span_kind::chunk && given.has("window") &&
        layer.span.kind == span_kind::window) {
      given.refuse(name, "but the layer has a window");
    }
    if (tokens == 0 && layer.span.kind != kind) continue;
    layer.span = tokens == 0 ? omnibal::attention_span{} : omnibal::attention_span{kind, tokens};
  }
}

/// Asks for the numbers without which a layer has no part.
void check_layer(json_fields const& given, transformer const& layer) {
  using omnibal::layer_parts;
  bool const has_other_mixer =
      layer.delta.key_heads != 0 || layer.space.heads != 0 || layer.convolution.tokens != 0;
  if (layer.heads == 0 && !has_other_mixer && layer.parts != layer_parts::feed_forward) {
    static_cast<void>(given.integer("heads", 1, most));
  }
  if (layer.mlp == 0 && layer.experts.routed == 0 && layer.parts != layer_parts::mixer) {
    static_cast<void>(given.integer("mlp", 1, most));
  }
}

/// Changes a layer as the fields say. A part that is 0 is dropped.
void read_layer(json_fields const& given, transformer& layer) {
  visit_members(field_reader{given}, layer);
  read_span(given, layer);
  auto const part = [&](char const* name, auto& member, auto const& visit) {
    if (!given.has(name)) return;
    if (given.at(name) == 0) {
      member = {};
      return;
    }
    auto const fields = given.object(name);
    allow_fields(fields, [&](auto const& io) { visit(io, member); });
    visit(field_reader{fields}, member);
  };
  visit_parts(part, layer);
}

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
    std::int64_t const times = repeated.integer("repeat", 1, max_layers);
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
    if (count > max_layers / times) {
      given.refuse("repeat", "more than " + std::to_string(max_layers) + " layers");
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
  if (sum > max_layers || (given.has("layers") && given.integer("layers", 1, max_layers) != sum)) {
    given.refuse(given.has("layers") ? "layers" : "pattern",
                 "but the pattern has " + std::to_string(sum) + " layers");
  }
  return runs;
}

/// The dense layers that may precede layers of a single kind.
std::vector<omnibal::layer_run> read_two_kinds(json_fields const& given, transformer const& layer) {
  std::vector<omnibal::layer_run> runs;
  std::int64_t const first_layers = given.integer_or("first_layers", 0, 0, max_layers);
  if (first_layers != 0) {
    transformer first = layer;
    first.experts = {};
    first.mlp = given.integer("first_mlp", 1, most);
    runs.push_back({first_layers, first});
  }
  std::int64_t const layers = given.integer("layers", 1, max_layers);
  check_layer(given, layer);
  runs.push_back({layers, layer});
  return runs;
}

void read_prediction(json_fields const& given, omnibal::mixed_language_model& model) {
  auto const fields = given.object("prediction");
  fields.allow({"layers", "owns_embeddings", "loss_chunk", "layer"});
  model.prediction_layers = fields.integer("layers", 1, max_layers);
  model.prediction = {
      .layer = model.runs.back().layer,
      .vocabulary = model.input.vocabulary,
      .loss_chunk = fields.integer_or("loss_chunk", model.output.loss_chunk, 0, most),
      .owns_embeddings = fields.flag_or("owns_embeddings", false)};
  if (!fields.has("layer")) return;
  auto const layer = fields.object("layer");
  layer.allow(names_of_layer());
  read_layer(layer, model.prediction.layer);
  check_layer(layer, model.prediction.layer);
}

// Writing.

nlohmann::ordered_json layer_json(transformer const& layer) {
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  visit_members(field_writer{result}, layer);
  if (layer.span.kind == omnibal::span_kind::window) result["window"] = layer.span.tokens;
  if (layer.span.kind == omnibal::span_kind::chunk) result["chunk"] = layer.span.tokens;
  auto const part = [&](char const* name, auto const& member, auto const& visit) {
    if (member == std::remove_cvref_t<decltype(member)>{}) return;
    visit(field_writer{result[name]}, member);
  };
  visit_parts(part, layer);
  return result;
}

/// The fields of a layer that are not as `usual` has them; 0 for a part that only `usual` has.
nlohmann::ordered_json changed_json(transformer const& layer, transformer const& usual) {
  nlohmann::ordered_json result = nlohmann::ordered_json::object();
  nlohmann::ordered_json const same = layer_json(usual);
  nlohmann::ordered_json const own = layer_json(layer);
  for (auto const& [name, value] : own.items()) {
    if (!same.contains(name) || same[name] != value) result[name] = value;
  }
  for (auto const& [name, value] : same.items()) {
    if (!own.contains(name)) result[name] = 0;
  }
  return result;
}

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
  names.insert(names.end(),
               {"vocabulary", "hidden", "layers", "tied_head", "positions", "loss_chunk",
                "head_bias", "last_norm", "first_layers", "first_mlp", "layer_kinds", "pattern",
                "prediction", "layer_embeddings", "other_input_parameters", "cross"});
  given.allow(names);
  omnibal::mixed_language_model model;
  transformer layer;
  model.input.vocabulary = given.integer("vocabulary", 1, most);
  layer.hidden = given.integer("hidden", 1, most);
  read_layer(given, layer);
  model.input.hidden = layer.hidden;
  model.input.positions = given.integer_or("positions", 0, 0, most);
  model.input.training = layer.training;
  model.input.other_parameters = given.integer_or("other_input_parameters", 0, 0, most);
  if (given.has("layer_embeddings")) {
    auto const fields = given.object("layer_embeddings");
    fields.allow({"vocabulary", "layers", "size"});
    model.input.for_layers = {fields.integer("vocabulary", 1, most),
                              fields.integer("layers", 1, max_layers),
                              fields.integer("size", 1, most)};
  }
  model.output = {.vocabulary = model.input.vocabulary,
                  .hidden = layer.hidden,
                  .norm = layer.norm,
                  .training = layer.training,
                  .loss_chunk = given.integer_or("loss_chunk", 0, 0, most),
                  .has_bias = given.flag_or("head_bias", false)};
  field_reader{given}("last_norm", model.output.norm, norm_names);
  if (given.flag_or("tied_head", false)) model.output.weights = omnibal::head_weights::tied;
  bool const is_mixed = given.has("layer_kinds") || given.has("pattern");
  if (is_mixed && given.has("first_layers")) {
    given.refuse("first_layers", "but the file has a pattern of layers");
  }
  model.runs = is_mixed ? read_pattern(given, layer) : read_two_kinds(given, layer);
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
