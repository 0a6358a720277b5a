#pragma once

/// \file
/// From the samples of each part to the part of each sample.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The part of each sample, into memory that is kept. Throws `std::invalid_argument` unless each of
/// so many samples is in one part; `part_name` is what error texts call a part.
inline void part_of_samples(std::string_view function, std::string_view part_name,
                            grouping_view parts, std::size_t samples,
                            std::vector<std::uint32_t>& part_of) {
  constexpr std::uint32_t no_part = std::numeric_limits<std::uint32_t>::max();
  part_of.assign(samples, no_part);
  for (std::size_t part = 0; part != parts.size(); ++part) {
    for (std::uint32_t const item : parts[part]) {
      if (item >= samples) {
        throw_invalid(function, std::string(part_name) + " " + to_text(part) + " has item " +
                                    to_text(item) + ", but there are " + to_text(samples) +
                                    " samples");
      }
      if (part_of[item] != no_part) {
        throw_invalid(function, "sample " + to_text(item) + " is in two places");
      }
      part_of[item] = static_cast<std::uint32_t>(part);
    }
  }
  if (parts.item_count() != samples) {
    throw_invalid(function, "the " + std::string(part_name) + "s have " +
                                to_text(parts.item_count()) + " samples, not " + to_text(samples));
  }
}

}  // namespace omnibal::inline v0::detail
