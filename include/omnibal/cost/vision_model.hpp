#pragma once

/// \file
/// A vision tower.

#include <omnibal/cost/patch_embedding.hpp>
#include <omnibal/cost/vision_transformer.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

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

}  // namespace omnibal::inline v0
