// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Language models of public configurations, by the rules of their families.

#include "field_rules.hpp"
#include "json_fields.hpp"
#include "public_families.hpp"

#include <omnibal/cost/models.hpp>

#include <string>

namespace examples {

/// The fields that a family understands or ignores.
[[nodiscard]] field_rules rules_of(text_family const& family);

/// Reads fields that were checked.
[[nodiscard]] omnibal::mixed_language_model read_text(json_fields const& given,
                                                      text_family const& family, bool is_tied);

/// Checks and reads a language model. Errors: `input_error`, as `public_model`.
[[nodiscard]] omnibal::mixed_language_model public_text(json_fields const& given,
                                                        std::string const& name);

}  // namespace examples
