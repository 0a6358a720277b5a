// SPDX-License-Identifier: Apache-2.0
// Llama 3.2 Vision: some layers attend to the tokens of tiles instead of the document.
#include "text_families.hpp"

#include <cstdint>
#include <vector>

namespace examples {

namespace {

void read_mllama(text_draft& draft) {
  config_fields const& given = draft.given;
  if (given.flag("tie_word_embeddings")) {
    given.refuse("tie_word_embeddings",
                 "but the class has 8 more embeddings than logits, and ties none");
  }
  read_usual(draft);
  draft.model.input.vocabulary += 8;
  auto const count = static_cast<std::int64_t>(draft.layers.size());
  for (std::int64_t const number : given.integers("cross_attention_layers")) {
    if (number < 0 || number >= count) {
      given.refuse("cross_attention_layers",
                   "must have numbers from 0 to " + std::to_string(count - 1));
    }
    auto& layer = draft.layers[static_cast<std::size_t>(number)];
    layer.cross = {.context_width = layer.hidden,
                   .placement = omnibal::cross_placement::instead_self};
    layer.head_norm = omnibal::query_key_norm::each_head;
    // The gates of the two parts.
    layer.other_parameters = 2;
  }
}

}  // namespace

std::vector<text_family> cross_text_families() { return {{{"mllama_text_model"}, read_mllama}}; }

}  // namespace examples
