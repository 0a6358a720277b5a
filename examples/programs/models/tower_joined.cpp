// SPDX-License-Identifier: Apache-2.0
// The tower of Llama 3.2 Vision: the tiles of an image attend to one another, and its second part
// has gates.
#include "tower_families.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace examples {

namespace {

/// The language model gets the last output beside outputs of inner layers. The norm behind the
/// first part stands behind the second part here.
void read_mllama(tower_draft& draft) {
  config_fields const& fields = draft.fields;
  auto& layer = draft.layer;
  layer.hidden = fields.integer("hidden_size");
  layer.heads = fields.integer("num_attention_heads");
  layer.mlp = fields.integer("intermediate_size");
  layer.qkv_bias = false;
  layer.output_bias = false;
  check_activation(fields, "hidden_act");
  draft.patches.channels = fields.integer_or("num_channels", 3, 1);
  read_tile_size(draft);
  draft.layers = fields.integer("num_hidden_layers");
  layer.class_tokens = 1;
  layer.tiles_of_image = fields.integer("max_num_tiles");
  omnibal::vision_transformer gated = layer;
  gated.other_parameters = 2;
  if (std::int64_t const count = fields.integer("num_global_layers", 0); count != 0) {
    draft.last_runs = {{count, gated}};
  }
  draft.patches.has_bias = false;
  draft.patches.has_norm = true;
  draft.has_tile_positions = true;
  draft.has_last_norm = true;
  std::int64_t const tokens = draft.patches_of_tile() + 1;
  auto const shapes = static_cast<std::int64_t>(fields.at("supported_aspect_ratios").size());
  // Embeddings of the tiles of each shape, for all tokens and twice for whole tiles, and the gates.
  draft.patches.other_parameters =
      (shapes + 1) * layer.tiles_of_image * layer.hidden * (tokens + 2) + 3;
  auto const inner = fields.integers("intermediate_layers_indices");
  std::int64_t const width = layer.hidden * (1 + static_cast<std::int64_t>(inner.size()));
  if (fields.integer("vision_output_dim") != width) {
    fields.refuse("vision_output_dim",
                  "must be " + std::to_string(width) +
                      ", the width times one more than intermediate_layers_indices");
  }
  draft.connector = omnibal::projector{.input = width, .tile_tokens = tokens};
}

}  // namespace

std::vector<tower_family> joined_tile_tower_families() {
  return {{.names = {"mllama_vision_model"},
           .read = read_mllama,
           .defaults = R"({"hidden_size": 1280, "num_hidden_layers": 32, "num_global_layers": 8,
             "num_attention_heads": 16, "intermediate_size": 5120, "vision_output_dim": 7680,
             "image_size": 448, "patch_size": 14, "max_num_tiles": 4,
             "intermediate_layers_indices": [3, 7, 15, 23, 30],
             "supported_aspect_ratios": [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1],
                                         [4, 1]]})",
           .aliases = {{"attention_heads", "num_attention_heads"}}}};
}

}  // namespace examples
