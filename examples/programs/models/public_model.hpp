// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Public configurations of models, as they are published, by the rules of their families.

#include "json_fields.hpp"
#include "model_file.hpp"

#include <string_view>

namespace examples {

/// True where an object looks like a public configuration.
[[nodiscard]] bool is_public_model(json_fields const& given);

/// The model of a public configuration. `family` says whose rules apply instead of its
/// `model_type`; empty: those of the `model_type`. The connector of a tower by itself leads
/// nowhere.
///
/// Errors: `input_error` for a family that is not known or not read, for a field that its rules do
/// not have, and for a value that they do not allow.
[[nodiscard]] model_description public_model(json_fields const& given, std::string_view family);

}  // namespace examples
