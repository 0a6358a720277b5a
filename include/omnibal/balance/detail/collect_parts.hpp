#pragma once

/// \file
/// From the part of each sample to the samples of each part.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The samples of each part by ascending index; `part_of[i]` is the part of sample i.
[[nodiscard]] inline grouping collect_parts(std::span<std::uint32_t const> part_of,
                                            std::size_t parts) {
  std::vector<std::uint32_t> offsets(parts + 1, 0);
  for (std::uint32_t const part : part_of) ++offsets[part];
  // The counts become the ends of the parts, and run to their beginnings as the parts are filled
  // from the back.
  std::uint32_t end = 0;
  for (std::uint32_t& offset : offsets) offset = end += offset;
  std::vector<std::uint32_t> items(part_of.size());
  for (std::size_t i = part_of.size(); i-- != 0;) {
    items[--offsets[part_of[i]]] = static_cast<std::uint32_t>(i);
  }
  return grouping(std::move(offsets), std::move(items));
}

}  // namespace omnibal::inline v0::detail
