// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of public configurations that are read, by `model_type`: what each states about
/// its layers, and which fields it may have. docs/reference/models.md lists them.

#include "field_rules.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// A family that is not read, and the reason.
struct refused_family {
  std::vector<std::string_view> names;
  std::string_view reason;
};

[[nodiscard]] std::vector<refused_family> const& refused_families();

/// The family of a name; null where there is none.
template <class Family>
[[nodiscard]] Family const* family_of(std::vector<Family> const& families, std::string_view name) {
  for (Family const& family : families) {
    for (std::string_view const known : family.names) {
      if (known == name) return &family;
    }
  }
  return nullptr;
}

/// The names of all families that are read, in the order of docs/reference/models.md.
[[nodiscard]] std::vector<std::string> names_of_families();

/// The names of activations without parameters of their own.
[[nodiscard]] bool is_known_activation(std::string_view name);

}  // namespace examples
