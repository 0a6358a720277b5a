// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What follows from a vision tower: its patch embedding and the connector behind it. For the
/// sources that read models.

#include "input_error.hpp"
#include "json_fields.hpp"

#include <omnibal/cost/models.hpp>

#include <cstdint>
#include <string>

namespace examples {

inline constexpr std::int64_t max_of_model = std::int64_t{1} << 24;
inline constexpr std::int64_t max_layers_of_model = std::int64_t{1} << 20;

/// Patches on the side of a tile. Errors: `input_error` where they do not fill it.
inline std::int64_t patches_on_side(json_fields const& given,
                                    omnibal::vision_transformer const& layer) {
  if (layer.image_size % layer.patch_size != 0) {
    given.refuse("image_size",
                 "must be a multiple of the patch size, " + std::to_string(layer.patch_size));
  }
  return layer.image_size / layer.patch_size;
}

/// What the patch embedding repeats of the tower.
inline void complete_patches(json_fields const& given, omnibal::mixed_vision_model& model) {
  model.patches.hidden = model.layer().hidden;
  model.patches.image_size = model.layer().image_size;
  model.patches.patch_size = model.layer().patch_size;
  model.patches.class_tokens = model.layer().class_tokens;
  model.patches.training = model.layer().training;
  model.patches.norm = model.layer().norm;
  static_cast<void>(patches_on_side(given, model.layer()));
}

/// A connector to which the language model is still unknown: `side * side` patches become a token.
inline omnibal::projector connector_of(json_fields const& given,
                                       omnibal::mixed_vision_model const& model,
                                       std::int64_t side) {
  std::int64_t const patches = patches_on_side(given, model.layer());
  if (patches % side != 0) {
    fail({given.file()}, std::to_string(patches) +
                             " patches on the side of a tile are no multiple of " +
                             std::to_string(side) + ", the patches on the side of a token");
  }
  return {.input = side * side * model.layer().hidden,
          .tile_tokens = patches / side * (patches / side),
          .patches_per_token = side * side,
          .has_norm = true};
}

/// Two patches on the side of a token where their number is even.
inline std::int64_t usual_side(omnibal::mixed_vision_model const& model) {
  return model.layer().image_size / model.layer().patch_size % 2 == 0 ? 2 : 1;
}

}  // namespace examples
