// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fields of one layer of a language model in a model file.

#include "json_fields.hpp"

#include <omnibal/cost/transformer.hpp>

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace examples {

/// The names of the fields of a layer.
[[nodiscard]] std::vector<std::string> names_of_layer();

/// Changes a layer as the fields say. A part that is 0 is dropped.
void read_layer(json_fields const& given, omnibal::transformer& layer);

/// Asks for the numbers without which a layer has no part. Errors: `input_error`.
void check_layer(json_fields const& given, omnibal::transformer const& layer);

/// All fields of a layer.
[[nodiscard]] nlohmann::ordered_json layer_json(omnibal::transformer const& layer);

/// The fields of a layer that are not as `usual` has them; 0 for a part that only `usual` has.
[[nodiscard]] nlohmann::ordered_json changed_json(omnibal::transformer const& layer,
                                                  omnibal::transformer const& usual);

}  // namespace examples
