// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What layers make for layers that do not follow them: outputs of inner layers of a tower, the
/// context of cross-attention, inputs of multi-token prediction.

#include "query_layers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace examples {

struct model_description;

/// Numbers that a cut behind each of the layers [first, last) sends, in addition to the output of
/// that layer.
struct carried_feature {
  std::size_t first = 0;
  std::size_t last = 0;
  carried_numbers numbers{};
};

/// The features of a model, by the numbers of its layers in the order of a pipeline:
///
/// - the outputs of inner layers of a vision tower, to their mergers behind the tower, and the
///   outputs of the mergers, to the first layers of the language model (DeepStack);
/// - the output of the tower beside these mergers, and the tokens of images beside an audio tower;
/// - the tokens of a tower to which layers of the language model attend (Whisper);
/// - inputs of layers that the embedding computes (Gemma 4), and keys and values of an earlier
///   layer;
/// - the output of the language model and of each layer of multi-token prediction, to the head.
///
/// Not counted are the choice of tokens of an indexer that later layers use, images of their own
/// size, the outputs of inner layers that a single projector joins (Llama 3.2 Vision), and the
/// tokens that the layers of a resampler read again.
[[nodiscard]] std::vector<carried_feature> carried_features(model_description const& model);

/// Calls `visit(layer, count)` for what `for_each` visits, with `passing` layers where features are
/// carried.
template <class ForEach, class Visit>
void visit_carrying(std::span<carried_feature const> features, ForEach const& for_each,
                    Visit&& visit) {
  std::size_t first = 0;
  for_each([&]<class Layer>(Layer const& layer, std::int64_t count) {
    std::size_t const end = first + static_cast<std::size_t>(count);
    if (features.empty()) return visit(layer, count);
    while (first != end) {
      std::size_t next = end;
      carried_numbers carried;
      for (carried_feature const& one : features) {
        if (one.first <= first && first < one.last) carried += one.numbers;
        for (std::size_t const border : {one.first, one.last}) {
          if (border > first) next = std::min(next, border);
        }
      }
      auto const equal = static_cast<std::int64_t>(next - first);
      if (carried == carried_numbers{}) {
        visit(layer, equal);
      } else {
        visit(passing<Layer>{layer, carried}, equal);
      }
      first = next;
    }
  });
}

}  // namespace examples
