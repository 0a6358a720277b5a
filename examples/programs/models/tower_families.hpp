// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of vision towers that are read, by `model_type`, and the draft that they fill.
/// docs/reference/models.md lists them.

#include "config_fields.hpp"
#include "field_rules.hpp"
#include "model_file.hpp"
#include "text_draft.hpp"

#include <omnibal/cost/models.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A vision tower while it is read. A family fills `layer`, `patches` and what differs from their
/// defaults; sizes that follow are completed behind it.
struct tower_draft {
  config_fields const& fields;
  omnibal::patch_embedding patches{};
  std::int64_t layers = 0;
  omnibal::vision_transformer layer{};
  bool has_last_norm = false;
  /// The layers in which each patch attends to its whole image, if the others have chunks. Without
  /// a value all layers are equal.
  std::optional<std::vector<std::int64_t>> whole_layers{};
  /// A learned position for each token of a tile.
  bool has_tile_positions = false;
  /// The connector of the class of the tower, up to the language model.
  std::optional<omnibal::projector> connector{};
  std::vector<connector_run> further{};
  std::int64_t idle_parameters = 0;
  /// Layers of another kind behind the others.
  std::vector<omnibal::vision_run> last_runs{};

  [[nodiscard]] std::int64_t patches_of_tile() const {
    std::int64_t const side = layer.image_size / layer.patch_size;
    return side * side;
  }
  /// A step of a connector to which `side * side` patches become a token.
  [[nodiscard]] omnibal::projector merger(std::int64_t side) const {
    return {.input = side * side * layer.hidden,
            .tile_tokens = patches_of_tile() / (side * side),
            .patches_per_token = side * side};
  }
};

/// A family of vision towers.
struct tower_family {
  std::vector<std::string_view> names;
  void (*read)(tower_draft&);
  /// The defaults of the class as JSON; "{}" if a file must state all sizes.
  std::string_view defaults = "{}";
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
  std::vector<field_alias> aliases{};
};

/// Families of one file each: tiles of one size, images of their own size, tiles that attend to one
/// another.
[[nodiscard]] std::vector<tower_family> tile_tower_families();
[[nodiscard]] std::vector<tower_family> image_tower_families();
[[nodiscard]] std::vector<tower_family> joined_tile_tower_families();

[[nodiscard]] std::vector<tower_family> const& tower_families();

/// Towers of images beside a language model that is not read.
struct clip_family {
  std::vector<std::string_view> names;
  std::string_view tower_family;
  /// The parameters of the tower of texts and of what joins both towers, by the whole file and the
  /// width of the tower of images.
  std::int64_t (*omitted_parameters)(json_fields const&, std::int64_t);
};

[[nodiscard]] std::vector<clip_family> const& clip_families();

/// Reads fields of towers: a side in pixels (one number or two equal ones), a width as a multiple
/// of another, rounded down as the classes do.
[[nodiscard]] std::int64_t side_of(config_fields const& fields, std::string_view name);
[[nodiscard]] std::int64_t width_by_ratio(double ratio, std::int64_t hidden);

/// Reads the sizes under their usual names: `hidden_size`, `num_hidden_layers`,
/// `num_attention_heads`, `intermediate_size`, `hidden_act`, `image_size`, `patch_size`,
/// `num_channels`. Pixels that fill no patch are not seen.
void read_usual_sizes(tower_draft& draft);
void read_tile_size(tower_draft& draft);

}  // namespace examples
