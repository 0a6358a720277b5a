// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Language models of public configurations, by the rules of their families.

#include "field_rules.hpp"
#include "json_fields.hpp"

#include <omnibal/cost/models.hpp>

#include <optional>
#include <string>

namespace examples {

/// What surrounds the fields of a language model.
struct text_place {
  /// True or false if the object around decides whether both ends share a matrix.
  std::optional<bool> is_tied{};
  /// Rules of further fields that stand in the same object.
  field_rules around{};
  /// The family that errors name; empty: the family of the text.
  std::string name{};
};

/// Checks and reads a language model. Errors: `input_error`, as `public_model`.
[[nodiscard]] omnibal::mixed_language_model public_text(json_fields const& given,
                                                        std::string const& name,
                                                        text_place const& place = {});

/// True if the class of a family ties both ends where a file does not say so. Errors:
/// `input_error` if the family is not known.
[[nodiscard]] bool ties_by_default(json_fields const& given, std::string const& name);

}  // namespace examples
