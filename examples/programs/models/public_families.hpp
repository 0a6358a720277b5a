// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of public configurations that are read, by `model_type`: what each states about
/// its layers, and which fields it may have. docs/reference/models.md lists them.

#include "field_rules.hpp"

#include <omnibal/cost/layer_cost.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A flag of a configuration, or what is so without a field.
struct family_flag {
  /// Empty: no field.
  std::string_view field{};
  bool otherwise = false;
};

/// A family of vision towers with tiles of one size.
struct tower_family {
  std::vector<std::string_view> names;
  std::int64_t class_tokens = 1;
  bool has_patch_bias = true;
  /// Norms before and behind all layers. A flag turns the last one off.
  bool has_first_norm = false;
  bool has_last_norm = false;
  std::string_view no_last_norm_field{};
  family_flag qkv_bias{.otherwise = true};
  family_flag head_norm{};
  /// "rms_norm" or "layer_norm".
  std::string_view norm_field{};
  bool has_layer_scale = false;
  /// The fields above must be there.
  bool needs_fields = false;
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
};

/// How a tower, a connector and a language model are put together.
enum class pair_kind { internvl, llava, qwen };

/// Whose `tie_word_embeddings` holds where that of the language model and the one around it differ.
enum class tied_by {
  /// Versions of the class disagree.
  neither,
  /// The language model ties its own matrices.
  language,
  /// Either of them ties.
  either
};

/// A family of vision-language models.
struct pair_family {
  std::vector<std::string_view> names;
  pair_kind kind = pair_kind::llava;
  tied_by tied = tied_by::neither;
  /// Where the language model stands, and its family if it does not say so.
  std::string_view text_field = "text_config";
  std::string_view text_family{};
  std::string_view tower_family{};
  std::vector<std::string_view> understood{};
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
};

/// Towers of images beside a language model that is not read.
struct clip_family {
  std::vector<std::string_view> names;
  std::string_view tower_family;
};

/// A family that is not read, and the reason.
struct refused_family {
  std::vector<std::string_view> names;
  std::string_view reason;
};

[[nodiscard]] std::vector<tower_family> const& tower_families();
[[nodiscard]] std::vector<pair_family> const& pair_families();
[[nodiscard]] std::vector<clip_family> const& clip_families();
[[nodiscard]] std::vector<refused_family> const& refused_families();

/// The family of a name; null where there is none.
template <class Family>
[[nodiscard]] Family const* family_of(std::vector<Family> const& families, std::string_view name) {
  for (Family const& family : families) {
    for (std::string_view const known : family.names) {
      if (known == name) return &family;
    }
  }
  return nullptr;
}

/// The names of all families that are read, in the order of docs/reference/models.md.
[[nodiscard]] std::vector<std::string> names_of_families();

/// The names of activations without parameters of their own.
[[nodiscard]] bool is_known_activation(std::string_view name);

}  // namespace examples
