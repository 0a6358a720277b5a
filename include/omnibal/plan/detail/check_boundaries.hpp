#pragma once

/// \file
/// Checks of given boundaries of stages.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <cstddef>
#include <ranges>
#include <string_view>
#include <type_traits>

namespace omnibal::inline v0::detail {

/// Throws unless the boundaries begin with zero and never descend.
template <sample_range Boundaries>
void check_boundaries(std::string_view function, Boundaries const& boundaries) {
  if (std::ranges::size(boundaries) == 0) throw_invalid(function, "there are no boundaries");
  std::ranges::range_value_t<Boundaries const> before{};
  std::size_t index = 0;
  for (auto const boundary : boundaries) {
    if (boundary < before || (index == 0 && boundary != 0)) {
      throw_invalid(function, "boundaries[" + to_text(index) + "] is " + to_text(boundary) +
                                  ", must be " + (index == 0 ? "" : "at least ") + to_text(before));
    }
    before = boundary;
    ++index;
  }
}

}  // namespace omnibal::inline v0::detail
