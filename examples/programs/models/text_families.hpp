// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The families of language models that are read, by `model_type`. docs/reference/models.md lists
/// them.

#include "field_rules.hpp"
#include "text_draft.hpp"

#include <string_view>
#include <vector>

namespace examples {

/// A family of language models. All names mean the same rules.
struct text_family {
  std::vector<std::string_view> names;
  /// Reads the layers of the family into a draft.
  void (*read)(text_draft&);
  std::vector<field_alias> aliases{};
  std::vector<neutral_field> neutral{};
  std::vector<ignored_fields> ignored{};
};

/// Families of one file each: layers that are alike, windows, experts, experts with windows,
/// latent attention, linear attention, state spaces, Gemma 4, attention to tiles, Gemma 3n.
[[nodiscard]] std::vector<text_family> dense_text_families();
[[nodiscard]] std::vector<text_family> windowed_text_families();
[[nodiscard]] std::vector<text_family> sparse_text_families();
[[nodiscard]] std::vector<text_family> mixed_sparse_text_families();
[[nodiscard]] std::vector<text_family> latent_text_families();
[[nodiscard]] std::vector<text_family> linear_text_families();
[[nodiscard]] std::vector<text_family> state_space_text_families();
[[nodiscard]] std::vector<text_family> gemma4_text_families();
[[nodiscard]] std::vector<text_family> cross_text_families();
[[nodiscard]] std::vector<text_family> gemma3n_text_families();

[[nodiscard]] std::vector<text_family> const& text_families();

/// The defaults of the class of a family as JSON; "{}" if they are not known.
[[nodiscard]] std::string_view text_defaults(std::string_view family);

}  // namespace examples
