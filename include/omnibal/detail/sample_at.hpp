#pragma once

/// \file
/// Checked access to a sample that a group names.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The sample that item `item` of group `group` names; throws where there is no such sample.
template <sample_range Samples>
[[nodiscard]] constexpr sample_reference<Samples> sample_at(std::string_view function,
                                                            Samples const& samples,
                                                            std::size_t group, std::uint32_t item) {
  if (item >= std::ranges::size(samples)) {
    throw_invalid(function, "group " + to_text(group) + " has item " + to_text(item) +
                                ", but there are " + to_text(std::ranges::size(samples)) +
                                " samples");
  }
  auto const position = static_cast<std::ranges::range_difference_t<Samples const>>(item);
  return std::ranges::begin(samples)[position];
}

}  // namespace omnibal::inline v0::detail
