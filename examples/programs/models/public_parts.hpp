// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Common parts of the readers of public configurations: families by name, flags, activations.

#include "field_rules.hpp"
#include "input_error.hpp"
#include "json_fields.hpp"
#include "public_families.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace examples {

inline std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

inline std::string listed(std::vector<std::string> const& names) {
  std::string result;
  for (std::string const& name : names) result += (result.empty() ? "" : ", ") + in_quotes(name);
  return result;
}

/// The name of the family that a part of a configuration states, or `otherwise`, also for "".
inline std::string stated_family(json_fields const& given, std::string_view otherwise) {
  std::string const stated = given.has("model_type") ? given.text("model_type") : "";
  return stated.empty() ? std::string(otherwise) : stated;
}

[[noreturn]] inline void fail_family(json_fields const& given, std::string const& name) {
  std::string const families = "; the families are " + listed(names_of_families());
  std::string const field = given.path_of("model_type");
  if (name.empty()) {
    fail({given.file()},
         "no field " + in_quotes(field) +
             ": no family says what the fields mean; --as FAMILY says it, or in a model file "
             "\"vision_as\" or \"language_as\"" +
             families);
  }
  if (auto const* const refused = family_of(refused_families(), name)) {
    fail({given.file()},
         "family " + in_quotes(name) + " is not read because of " + std::string(refused->reason));
  }
  fail({given.file()},
       "family " + in_quotes(name) + " is not known" + families +
           "; --as FAMILY reads the file by the rules of one of them, or in a model "
           "file \"vision_as\" or \"language_as\"");
}

/// Errors: `input_error` where the family of a part is none of these.
template <class Family>
Family const& family_in(std::vector<Family> const& families, json_fields const& given,
                        std::string const& name) {
  auto const* const found = family_of(families, name);
  if (found == nullptr) fail_family(given, name);
  return *found;
}

inline void check_activation(json_fields const& given, char const* name) {
  if (!given.has(name) || is_known_activation(given.text(name))) return;
  given.refuse(name, "but no activation of that name is known to have no parameters");
}

}  // namespace examples
