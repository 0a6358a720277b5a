// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Which fields of a public configuration are understood, which may be ignored and why, and which
/// may have one value only. A field without a rule is an error.

#include "json_fields.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Fields that change no cost, and the reason.
struct ignored_fields {
  std::string_view reason;
  std::vector<std::string_view> names;
  /// They may be ignored only if this field is there, which turns them off; empty: always.
  std::string_view switched_by{};
};

/// The only value that a field may have. `null` counts as absent.
enum class neutral_value {
  absent,
  off,             ///< false
  on,              ///< true
  zero,            ///< the number 0
  one,             ///< the number 1
  empty,           ///< an empty list or object
  full_attention,  ///< a list of "full_attention"
  usual,           ///< "default"
  layer_norm,      ///< "layer_norm"
};

/// A field whose other values would change what a layer is.
struct neutral_field {
  std::string_view name;
  neutral_value value = neutral_value::absent;
  /// The end of the sentence "field ... is ..., but".
  std::string_view reason;
  /// The field must be there, if only with `null`: without it the model has another value.
  bool is_needed = false;
};

/// The rules of one object of a configuration.
struct field_rules {
  std::vector<std::string_view> understood{};
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};

  void add(field_rules const& other);
};

/// Fields that every family may have: names, versions, token ids, generation, initialization.
[[nodiscard]] field_rules const& common_rules();

/// Errors: `input_error` that names the field and the family, for a field without a rule and for a
/// value that is not neutral.
void check_fields(json_fields const& given, std::string_view family, field_rules const& rules);

}  // namespace examples
