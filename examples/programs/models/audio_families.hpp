// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of audio towers that are read, by `model_type`, and whole models of speech.

#include "config_fields.hpp"
#include "field_rules.hpp"
#include "model_file.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// An audio tower while it is read.
struct audio_draft {
  config_fields const& fields;
  omnibal::audio_model tower{};
  /// The connector of the class of the tower; its output is 0 where the language model decides.
  std::vector<connector_run> connectors{};
  /// The class of the tower has the norm of the connector and no more of it.
  bool owns_only_norm = false;
  /// A second connector of the same sizes works instead of the last one if there are images.
  bool has_spare_connector = false;
};

/// A family of audio towers.
struct audio_family {
  std::vector<std::string_view> names;
  void (*read)(audio_draft&);
  std::string_view defaults = "{}";
  std::vector<field_alias> aliases{};
};

/// Families of one file each: transformers, Conformers.
[[nodiscard]] std::vector<audio_family> transformer_audio_families();
[[nodiscard]] std::vector<audio_family> conformer_families();

[[nodiscard]] std::vector<audio_family> const& audio_families();

/// Checks and reads an audio tower and its connectors. `width` is that of the language model; 0:
/// not known. Errors: `input_error`, as `public_model`.
[[nodiscard]] audio_part public_audio(json_fields const& given, std::string const& name,
                                      std::int64_t width);

/// A family of models that write down speech: an audio tower, and a language model that attends to
/// its tokens.
struct speech_family {
  std::vector<std::string_view> names;
  void (*read)(config_fields const&, model_description&);
  std::string_view defaults = "{}";
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
};

[[nodiscard]] std::vector<speech_family> const& speech_families();
[[nodiscard]] model_description public_speech(json_fields const& given, std::string const& name);

}  // namespace examples
