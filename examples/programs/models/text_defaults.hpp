// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The defaults of the classes of language models.

#include <string_view>
#include <vector>

namespace examples {

/// The fields of a class that have a default, as JSON.
struct class_defaults {
  std::string_view family;
  std::string_view json;
};

[[nodiscard]] std::vector<class_defaults> first_text_defaults();
[[nodiscard]] std::vector<class_defaults> second_text_defaults();

}  // namespace examples
