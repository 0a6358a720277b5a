#pragma once

/// \file
/// From the samples of each part to the part of each sample.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
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
