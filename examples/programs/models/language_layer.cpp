// SPDX-License-Identifier: Apache-2.0
#include "language_layer.hpp"

#include "layer_fields.hpp"
#include "tower_connector.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

using omnibal::transformer;

constexpr std::array<std::string_view, 2> mask_names{"causal", "full"};
constexpr std::array<std::string_view, 3> gate_names{"none", "each_head", "each_number"};
constexpr std::array<std::string_view, 3> key_source_names{"own", "keys", "earlier_layer"};
constexpr std::array<std::string_view, 3> parts_names{"both", "mixer", "feed_forward"};
constexpr std::array<std::string_view, 4> decay_names{"each_head", "each_number",
                                                      "each_number_direct", "fixed"};
constexpr std::array<std::string_view, 3> target_names{"all", "attention", "feed_forward"};
/// By `cross_placement`.
constexpr std::array<std::string_view, 2> placement_names{"after_self", "instead_self"};

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
  io("key_value_source", layer.source, key_source_names);
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

template <class Io, class Streams>
void visit_streams(Io const& io, Streams& streams) {
  io("count", streams.count, 1);
  io("low_rank", streams.low_rank, 0);
}

template <class Io, class Cross>
void visit_context(Io const& io, Cross& cross) {
  io("width", cross.context_width, 1);
  io("placement", cross.placement, placement_names);
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
  part("context", layer.cross, [](auto const& io, auto& m) { visit_context(io, m); });
  part("streams", layer.streams, [](auto const& io, auto& m) { visit_streams(io, m); });
  part("adapters", layer.adapters, [](auto const& io, auto& m) { visit_adapters(io, m); });
}

void read_span(json_fields const& given, transformer& layer) {
  using omnibal::span_kind;
  for (auto const& [name, kind] :
       {std::pair{"window", span_kind::window}, std::pair{"chunk", span_kind::chunk}}) {
    if (!given.has(name)) continue;
    std::int64_t const tokens = given.integer(name, 0, max_of_model);
    if (tokens != 0 && kind == span_kind::chunk && given.has("window") &&
        layer.span.kind == span_kind::window) {
      given.refuse(name, "but the layer has a window");
    }
    if (tokens == 0 && layer.span.kind != kind) continue;
    layer.span = tokens == 0 ? omnibal::attention_span{} : omnibal::attention_span{kind, tokens};
  }
}

}  // namespace

std::vector<std::string> names_of_layer() {
  transformer layer;
  std::vector<std::string> result{"window", "chunk"};
  visit_members(field_namer{result}, layer);
  visit_parts([&](char const* name, auto&, auto const&) { result.emplace_back(name); }, layer);
  return result;
}

void check_layer(json_fields const& given, transformer const& layer) {
  using omnibal::layer_parts;
  bool const has_other_mixer =
      layer.delta.key_heads != 0 || layer.space.heads != 0 || layer.convolution.tokens != 0;
  if (layer.heads == 0 && !has_other_mixer && layer.parts != layer_parts::feed_forward) {
    static_cast<void>(given.integer("heads", 1, max_of_model));
  }
  if (layer.mlp == 0 && layer.experts.routed == 0 && layer.parts != layer_parts::mixer) {
    static_cast<void>(given.integer("mlp", 1, max_of_model));
  }
}

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

}  // namespace examples
