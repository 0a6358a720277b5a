#pragma once

/// \file
/// A language model.

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/head.hpp>
#include <omnibal/cost/transformer.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

/// A language model: embedding, layers of up to two kinds, head.
struct language_model {
  embedding input{};
  /// Layers before the others, such as the dense ones of a mixture of experts.
  std::int64_t first_layers = 0;
  transformer first_layer{};
  std::int64_t layers = 0;
  transformer layer{};
  head output{};

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(input, std::int64_t{1});
    if (first_layers != 0) visit(first_layer, first_layers);
    visit(layer, layers);
    visit(output, std::int64_t{1});
  }
};

}  // namespace omnibal::inline v0
