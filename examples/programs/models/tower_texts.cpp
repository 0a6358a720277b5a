// SPDX-License-Identifier: Apache-2.0
// Towers of texts beside towers of images. They are not read, but their parameters are counted.
#include "tower_families.hpp"

#include <omnibal/cost/transformer.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// The tower of texts of a file with the defaults of its class.
struct text_tower {
  nlohmann::json fields;

  text_tower(json_fields const& given, std::string_view defaults)
      : fields(nlohmann::json::parse(defaults)) {
    if (given.has("text_config")) fields.update(given.at("text_config"));
  }
  [[nodiscard]] std::int64_t at(json_fields const& given, char const* name) const {
    return json_fields(given.file(), given.path_of("text_config"), fields)
        .integer(name, 1, std::int64_t{1} << 24);
  }
  /// Embeddings, positions, layers and the last norm.
  [[nodiscard]] std::int64_t parameters(json_fields const& given,
                                        omnibal::transformer layer) const {
    layer.hidden = at(given, "hidden_size");
    layer.heads = at(given, "num_attention_heads");
    layer.mlp = at(given, "intermediate_size");
    std::int64_t const rows = at(given, "vocab_size") + at(given, "max_position_embeddings");
    std::int64_t const norm = (layer.norm == omnibal::norm_kind::layer ? 2 : 1) * layer.hidden;
    return rows * layer.hidden + at(given, "num_hidden_layers") * layer({}).parameters + norm;
  }
};

omnibal::transformer plain_layer() {
  return {.feed_forward = omnibal::mlp_kind::plain,
          .norm = omnibal::norm_kind::layer,
          .qkv_bias = true,
          .output_bias = true,
          .mlp_bias = true};
}

constexpr std::string_view clip_text =
    R"({"vocab_size": 49408, "hidden_size": 512, "intermediate_size": 2048,
      "num_hidden_layers": 12, "num_attention_heads": 8, "max_position_embeddings": 77})";

/// Projections of both towers, and a scale.
std::int64_t shared_space(json_fields const& given, std::int64_t text, std::int64_t vision) {
  std::int64_t const width = given.integer_or("projection_dim", 512, 1, std::int64_t{1} << 24);
  return (text + vision) * width + 1;
}

std::int64_t beside_clip(json_fields const& given, std::int64_t vision) {
  text_tower const text(given, clip_text);
  return text.parameters(given, plain_layer()) +
         shared_space(given, text.at(given, "hidden_size"), vision);
}

/// A matrix behind the tower of texts, a scale and a bias.
std::int64_t beside_siglip(json_fields const& given, std::int64_t) {
  text_tower text(given, R"({"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 3072,
    "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 64})");
  std::int64_t const hidden = text.at(given, "hidden_size");
  if (!text.fields.contains("projection_size") || text.fields["projection_size"].is_null()) {
    text.fields["projection_size"] = hidden;
  }
  return text.parameters(given, plain_layer()) + (hidden + 1) * text.at(given, "projection_size") +
         2;
}

std::int64_t beside_aimv2(json_fields const& given, std::int64_t vision) {
  text_tower const text(given, R"({"vocab_size": 49408, "hidden_size": 768,
    "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 6,
    "max_position_embeddings": 77})");
  omnibal::transformer layer{};
  layer.qkv_bias = text.fields.value("qkv_bias", false);
  layer.output_bias = layer.qkv_bias;
  layer.mlp_bias = text.fields.value("mlp_bias", false);
  return text.parameters(given, layer) + shared_space(given, text.at(given, "hidden_size"), vision);
}

}  // namespace

std::vector<clip_family> const& clip_families() {
  static std::vector<clip_family> const families{
      {{"clip"}, "clip_vision_model", beside_clip},
      {{"siglip"}, "siglip_vision_model", beside_siglip},
      {{"siglip2"}, "siglip2_vision_model", beside_siglip},
      {{"aimv2"}, "aimv2_vision_model", beside_aimv2}};
  return families;
}

}  // namespace examples
