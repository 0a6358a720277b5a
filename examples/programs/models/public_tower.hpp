// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Vision towers of public configurations, by the rules of their families.

#include "json_fields.hpp"
#include "model_file.hpp"

#include <string>

namespace examples {

/// Checks and reads a tower, with the connector of its class if there is one. Otherwise two patches
/// on the side become a token, where their number is even. The output of the connector is 0 where
/// the language model decides. Errors: `input_error`, as `public_model`.
[[nodiscard]] vision_part public_tower(json_fields const& given, std::string const& name);

/// Towers of open_clip and EVA.
[[nodiscard]] omnibal::mixed_vision_model open_clip_tower(json_fields const& given);

}  // namespace examples
