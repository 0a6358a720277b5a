// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The places for equal samples in the groups of a plan.

#include <omnibal/pack/pattern_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The places for the samples of each entry, in the order of patterns, of groups of a pattern, and
/// of places in a group. The groups of the places are read one after the other.
class sample_places {
 public:
  /// Complexity: linear in the parts. Memory: 24 bytes for each entry and 32 bytes for each part.
  sample_places(std::span<std::size_t const> offsets, std::span<pattern_part const> parts,
                std::span<std::uint64_t const> multiplicities, std::size_t entries)
      : passed_(entries, 0), ends_(entries, 0), at_(entries, 0), slots_(parts.size()) {
    for (pattern_part const& part : parts) ++ends_[part.entry];
    std::size_t sum = 0;
    for (std::size_t entry = 0; entry != entries; ++entry) {
      at_[entry] = sum;
      sum += ends_[entry];
      ends_[entry] = at_[entry];
    }
    std::uint64_t group = 0;
    for (std::size_t p = 0; p != multiplicities.size(); ++p) {
      for (pattern_part const& part : parts.subspan(offsets[p], offsets[p + 1] - offsets[p])) {
        std::size_t const next = ends_[part.entry]++;
        std::uint64_t const begin = next == at_[part.entry] ? 0 : slots_[next - 1].end;
        slots_[next] = {begin, begin + multiplicities[p] * part.count, group, part.count};
      }
      group += multiplicities[p];
    }
  }

  /// Passes `count` places of an entry.
  void skip(std::size_t entry, std::uint64_t count) { passed_[entry] += count; }

  /// Returns the number of passed places of an entry.
  [[nodiscard]] std::uint64_t passed(std::size_t entry) const { return passed_[entry]; }

  /// Passes a place of an entry and returns its group, or `none` if the entry is in no pattern.
  /// Precondition: places are left.
  [[nodiscard]] std::uint64_t next(std::size_t entry, std::uint64_t none) {
    std::uint64_t const place = passed_[entry]++;
    std::size_t& at = at_[entry];
    if (at == ends_[entry]) return none;
    while (slots_[at].end <= place) ++at;
    return slots_[at].group + (place - slots_[at].begin) / slots_[at].count;
  }

 private:
  /// The places of an entry in the groups of one pattern.
  struct slot {
    std::uint64_t begin;
    std::uint64_t end;
    /// The first group of the pattern.
    std::uint64_t group;
    /// The number of places in each group.
    std::uint64_t count;
  };

  std::vector<std::uint64_t> passed_;
  /// The slots of an entry are from `at_`, the first slot with places left, to before `ends_`.
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> at_;
  std::vector<slot> slots_;
};

}  // namespace omnibal::inline v0::detail
