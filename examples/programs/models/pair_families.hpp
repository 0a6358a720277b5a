// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of models of a language model with a vision tower, an audio tower or both.

#include "field_rules.hpp"
#include "json_fields.hpp"
#include "model_file.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace examples {

/// The object around the parts of a model, and its vision part while it is read.
struct pair_draft {
  json_fields const& given;
  /// The width of the language model.
  std::int64_t width = 0;
  vision_part& vision;

  [[nodiscard]] std::int64_t patches_of_tile() const {
    auto const& layer = vision.tower.layer();
    return layer.tile_tokens() - layer.class_tokens;
  }
};

/// Whose `tie_word_embeddings` holds where that of the language model and the one around it differ.
enum class tied_by {
  /// Versions of the class disagree.
  neither,
  /// The language model ties its own matrices.
  language,
  /// Either of them ties.
  either,
  /// The object around the parts decides.
  pair
};

/// A family of models of several parts.
struct pair_family {
  std::vector<std::string_view> names;
  /// Completes the vision part. Null: the connector of the tower leads to the language model.
  void (*connect)(pair_draft&) = nullptr;
  tied_by tied = tied_by::neither;
  /// Where the language model stands, and its family if it does not say so.
  std::string_view text_field = "text_config";
  std::string_view text_family{};
  /// The families of towers that do not state one; empty: the model has no such tower.
  std::string_view tower_family{};
  std::string_view audio_family{};
  /// The tower of a file without one, as JSON.
  std::string_view vision_defaults = "{}";
  /// Fields of the language model that the class of the pair completes, as JSON.
  std::string_view text_defaults = "{}";
  /// Fields of the language model that the class of the pair adds and that change nothing.
  std::vector<std::string_view> text_ignored{};
  /// The class ties both ends where no part says so.
  bool ties_by_default = false;
  /// An object in which all parts stand.
  std::string_view inner{};
  std::vector<std::string_view> understood{};
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
  /// A file may have null instead of a tower.
  bool has_optional_towers = false;
  std::string_view audio_field = "audio_config";
  /// Completes the audio part, by the whole file and the width of the language model.
  void (*connect_audio)(json_fields const&, std::int64_t, audio_part&) = nullptr;
};

[[nodiscard]] std::vector<pair_family> const& pair_families();

}  // namespace examples
