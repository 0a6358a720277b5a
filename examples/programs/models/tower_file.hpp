// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The towers and connectors of a model file. docs/reference/models.md describes the fields.

#include "json_fields.hpp"
#include "model_file.hpp"

#include <omnibal/cost/models.hpp>

#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace examples {

/// Reads "vision" and "audio". Errors: `input_error` that names the field.
[[nodiscard]] omnibal::mixed_vision_model own_vision(json_fields const& given);
[[nodiscard]] omnibal::audio_model own_audio(json_fields const& given);

/// Changes a connector as the fields say. Errors: `input_error` that names the field.
void read_projector(json_fields const& given, omnibal::projector& connector);

/// Reads a list of connectors, each with the numbers of `base` unless it states others.
/// `tower_layers` are the layers of the tower whose outputs connectors may merge, 0 for none.
/// Errors: `input_error` that names the field.
[[nodiscard]] std::vector<connector_run> own_connectors(json_fields const& given, char const* name,
                                                        omnibal::projector const& base,
                                                        std::int64_t tower_layers);

/// Writes parts so that reading gives equal ones.
[[nodiscard]] nlohmann::ordered_json vision_json(omnibal::mixed_vision_model const& model);
[[nodiscard]] nlohmann::ordered_json audio_json(omnibal::audio_model const& model);
[[nodiscard]] nlohmann::ordered_json projector_json(omnibal::projector const& connector);
[[nodiscard]] nlohmann::ordered_json connectors_json(std::vector<connector_run> const& connectors);

}  // namespace examples
