// SPDX-License-Identifier: Apache-2.0
#include "tower_families.hpp"

#include "public_families.hpp"
#include "tower_connector.hpp"

#include <nlohmann/json.hpp>

namespace examples {

std::vector<tower_family> const& tower_families() {
  static std::vector<tower_family> const families = [] {
    auto result = tile_tower_families();
    for (auto* const part : {image_tower_families, joined_tile_tower_families}) {
      for (tower_family& family : part()) result.push_back(std::move(family));
    }
    return result;
  }();
  return families;
}

std::int64_t side_of(config_fields const& fields, std::string_view name) {
  if (!fields.at(name).is_array()) return fields.integer(name);
  auto const sides = fields.integers(name);
  if (sides.size() != 2 || sides[0] != sides[1] || sides[0] == 0) {
    fields.refuse(name, "must be one side of a square");
  }
  return sides[0];
}

std::int64_t width_by_ratio(double ratio, std::int64_t hidden) {
  return static_cast<std::int64_t>(ratio * static_cast<double>(hidden));
}

void read_tile_size(tower_draft& draft) {
  draft.layer.image_size = side_of(draft.fields, "image_size");
  draft.layer.patch_size = side_of(draft.fields, "patch_size");
  draft.layer.image_size -= draft.layer.image_size % draft.layer.patch_size;
}

void read_usual_sizes(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  draft.layer.hidden = fields.integer("hidden_size");
  draft.layers = fields.integer("num_hidden_layers");
  draft.layer.heads = fields.integer("num_attention_heads");
  draft.layer.mlp = fields.integer("intermediate_size");
  check_activation(fields, "hidden_act");
  draft.patches.channels = fields.integer_or("num_channels", 3, 1);
  read_tile_size(draft);
}

}  // namespace examples
