// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The language model of a model file. docs/reference/models.md describes the fields.

#include "json_fields.hpp"

#include <omnibal/cost/models.hpp>

#include <nlohmann/json_fwd.hpp>

namespace examples {

/// Reads "language". Errors: `input_error` that names the field.
[[nodiscard]] omnibal::mixed_language_model own_language(json_fields const& given);

/// Writes a model so that `own_language` reads an equal one.
[[nodiscard]] nlohmann::ordered_json language_json(omnibal::mixed_language_model const& model);

}  // namespace examples
