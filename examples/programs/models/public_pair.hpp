// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Models of several parts of public configurations, by the rules of their families.

#include "json_fields.hpp"
#include "model_file.hpp"
#include "pair_families.hpp"

#include <string>

namespace examples {

/// Checks and reads towers, connectors and a language model. Errors: `input_error`, as
/// `public_model`.
[[nodiscard]] model_description public_pair(json_fields const& given, std::string const& name,
                                            pair_family const& family);

}  // namespace examples
