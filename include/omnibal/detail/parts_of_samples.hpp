// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Conversions between parts and samples, and checks of the items in groups of user code.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/grouping.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Sorts samples by part: a counting sort. `offsets` has the number of samples of each part and one
/// more element. Each number becomes the beginning of its part in `items`. `items` receives
/// `item(i)` of each sample i, in order.
template <class Item>
void sort_by_part(std::span<std::uint32_t const> part_of, std::vector<std::uint32_t>& offsets,
                  std::vector<std::uint32_t>& items, Item const& item) {
  // The sizes become the ends of the parts. They decrease to the beginnings as the parts are filled
  // from the back.
  std::uint32_t end = 0;
  for (std::uint32_t& offset : offsets) offset = end += offset;
  for (std::size_t i = part_of.size(); i-- != 0;) items[--offsets[part_of[i]]] = item(i);
}

/// Collects the samples of each part by ascending index, in reused memory. `part_of[i]` is the part
/// of sample i.
inline void collect_parts(std::span<std::uint32_t const> part_of, std::size_t parts,
                          std::vector<std::uint32_t>& offsets, std::vector<std::uint32_t>& items) {
  offsets.assign(parts + 1, 0);
  for (std::uint32_t const part : part_of) ++offsets[part];
  items.resize(part_of.size());
  sort_by_part(part_of, offsets, items,
               [](std::size_t i) { return static_cast<std::uint32_t>(i); });
}
[[nodiscard]] inline grouping collect_parts(std::span<std::uint32_t const> part_of,
                                            std::size_t parts) {
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> items;
  collect_parts(part_of, parts, offsets, items);
  return grouping(std::move(offsets), std::move(items));
}

/// Finds the part of each sample, in reused memory. Throws `std::invalid_argument` unless each of
/// `samples` samples is in one part. `part_name` is the name of a part in error texts.
inline void part_of_samples(std::string_view function, std::string_view part_name,
                            grouping_view parts, std::size_t samples,
                            std::vector<std::uint32_t>& part_of) {
  constexpr std::uint32_t no_part = std::numeric_limits<std::uint32_t>::max();
  part_of.assign(samples, no_part);
  for (std::size_t part = 0; part != parts.size(); ++part) {
    for (std::uint32_t const item : parts[part]) {
      if (item >= samples) {
        throw_invalid(function, part_name, " ", part, " has item ", item, ", but there are ",
                      samples, " samples");
      }
      if (part_of[item] != no_part) {
        throw_invalid(function, "sample ", item, " is in two places");
      }
      part_of[item] = static_cast<std::uint32_t>(part);
    }
  }
  if (parts.item_count() != samples) {
    throw_invalid(function, "the ", part_name, "s have ", parts.item_count(), " samples, not ",
                  samples);
  }
}

/// Returns the sample that item `item` of group `group` names; throws if there is no such sample.
template <sample_range Samples>
[[nodiscard]] constexpr sample_reference<Samples> sample_at(std::string_view function,
                                                            Samples const& samples,
                                                            std::size_t group, std::uint32_t item) {
  if (item >= std::ranges::size(samples)) {
    throw_invalid(function, "group ", group, " has item ", item, ", but there are ",
                  std::ranges::size(samples), " samples");
  }
  return element_at(samples, item);
}

/// Checks that user code names each of a number of items exactly once.
class permutation_check {
 public:
  /// In error texts, `who` is the user code, and `things` is the name of the `count` items, such as
  /// "samples".
  permutation_check(std::string_view function, std::string_view who, std::string_view things,
                    std::size_t count)
      : function_(function), who_(who), things_(things), seen_(count, 0) {}

  /// Counts items. Errors: `std::invalid_argument` for an item that does not exist or was named
  /// before.
  void take(std::span<std::uint32_t const> items) {
    for (std::uint32_t const item : items) {
      if (item >= seen_.size() || seen_[item]++ != 0) throw_item(item);
    }
    taken_ += items.size();
  }

  /// Errors: `std::invalid_argument` if an item was not named.
  void finish() const {
    if (taken_ == seen_.size()) return;
    throw_invalid(function_, who_, " has ", taken_, " of ", seen_.size(), " ", things_);
  }

 private:
  [[noreturn]] void throw_item(std::uint32_t item) const {
    bool const is_known = item < seen_.size();
    throw_invalid(function_, who_, " names ", item, (is_known ? " twice, of " : ", there are "),
                  seen_.size(), " ", things_);
  }

  std::string_view function_;
  std::string_view who_;
  std::string_view things_;
  std::vector<std::uint8_t> seen_;
  std::size_t taken_ = 0;
};

}  // namespace omnibal::inline v0::detail
