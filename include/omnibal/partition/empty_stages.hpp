#pragma once

/// \file
/// Whether stages may have no layers.

#include <omnibal/check.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace omnibal::inline v0 {

/// Whether as many stages as asked for must have layers, or at most as many.
enum class empty_stages { forbidden, allowed };

namespace detail {

/// Throws unless so many layers can be cut into so many stages.
inline void check_stages(std::string_view function, std::size_t layers, std::size_t stages,
                         empty_stages empty) {
  if (stages == 0) throw_invalid(function, "stages is 0, must be positive");
  check_index_count(function, "the result", stages);
  if (empty == empty_stages::allowed || layers >= stages) return;
  throw_invalid(function, to_text(layers) + " layers do not give " + to_text(stages) +
                              " stages a layer each, and empty stages are forbidden");
}

/// Throws unless `value` is positive and finite. `argument` and `index` name it.
inline void check_positive(std::string_view function, std::string_view argument, std::size_t index,
                           double value) {
  if (value > 0 && is_valid_weight(value)) return;
  throw_invalid(function, std::string(argument) + "[" + to_text(index) + "] is " + to_text(value) +
                              ", must be positive and finite");
}

}  // namespace detail

}  // namespace omnibal::inline v0
