#pragma once

/// \file
/// Models of several kinds of layers.

#include <omnibal/cost/embedding.hpp>
#include <omnibal/cost/patch_embedding.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/transformer.hpp>
#include <omnibal/cost/vision_transformer.hpp>

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

/// A vision tower: patch embedding and equal layers.
struct vision_model {
  patch_embedding patches{};
  std::int64_t layers = 0;
  vision_transformer layer{};

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    visit(patches, std::int64_t{1});
    visit(layer, layers);
  }
};

/// A vision tower, a projector and a language model, in the order in which a pipeline has them.
struct vision_language_model {
  vision_model vision{};
  projector connector{};
  language_model language{};

  template <class Visit>
  void for_each_layer(Visit&& visit) const {
    vision.for_each_layer(visit);
    visit(connector, std::int64_t{1});
    language.for_each_layer(visit);
  }
};

}  // namespace omnibal::inline v0
