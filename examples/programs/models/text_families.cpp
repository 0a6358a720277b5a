// SPDX-License-Identifier: Apache-2.0
#include "text_families.hpp"

#include "text_defaults.hpp"

#include <utility>

namespace examples {

std::vector<text_family> const& text_families() {
  static std::vector<text_family> const families = [] {
    std::vector<text_family> result;
    for (auto* const part : {dense_text_families, windowed_text_families, sparse_text_families,
                             mixed_sparse_text_families, latent_text_families, linear_text_families,
                             state_space_text_families, gemma4_text_families, cross_text_families,
                             gemma3n_text_families}) {
      for (text_family& family : part()) result.push_back(std::move(family));
    }
    return result;
  }();
  return families;
}

std::string_view text_defaults(std::string_view family) {
  for (auto* const half : {first_text_defaults, second_text_defaults}) {
    for (class_defaults const& one : half()) {
      if (one.family == family) return one.json;
    }
  }
  return "{}";
}

}  // namespace examples
