#pragma once

/// \file
/// From the part of each sample to the samples of each part.

#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
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

/// The same into memory that is kept; `offsets` and `items` are scratch.
inline void collect_parts_into(std::span<std::uint32_t const> part_of, std::size_t parts,
                               std::vector<std::uint32_t>& offsets,
                               std::vector<std::uint32_t>& items, grouping& result) {
  offsets.assign(parts + 1, 0);
  for (std::uint32_t const part : part_of) ++offsets[part + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  items.resize(part_of.size());
  // The beginning of each part runs to its end as the part is filled.
  for (std::uint32_t i = 0; i != part_of.size(); ++i) items[offsets[part_of[i]]++] = i;
  result.clear();
  result.reserve(parts, items.size());
  std::size_t next = 0;
  for (std::size_t part = 0; part != parts; ++part) {
    while (next != offsets[part]) result.push(items[next++]);
    result.close();
  }
}

}  // namespace omnibal::inline v0::detail
