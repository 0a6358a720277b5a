#pragma once

/// \file
/// A vision-language model.

#include <omnibal/cost/language_model.hpp>
#include <omnibal/cost/projector.hpp>
#include <omnibal/cost/vision_model.hpp>

#include <cstdint>

namespace omnibal::inline v0 {

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
