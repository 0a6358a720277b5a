// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of samples as patterns with multiplicities.

#include <omnibal/pack/sample_histogram.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0 {

/// Some samples of a group with equal demands.
struct pattern_part {
  /// The index of their demand among the entries of the histogram.
  std::uint32_t entry;
  /// The number of these samples in each group of the pattern.
  std::uint64_t count;

  [[nodiscard]] friend bool operator==(pattern_part const&, pattern_part const&) = default;
};

/// Groups under a capacity without names of samples: pattern p says which demands a group contains,
/// and `multiplicities[p]` groups are of this pattern. Groups are numbered pattern by pattern.
/// The number of patterns in a plan of `pack_histogram` is at most twice the number of different
/// demands. Memory: 8R + 8 bytes for each different demand, 16 bytes for each pattern, and 16 bytes
/// for each part.
template <std::size_t R = 1>
struct pattern_plan {
  /// The samples that the plan packs.
  sample_histogram<R> histogram;
  /// The parts of pattern p are the parts from `offsets[p]` to before `offsets[p + 1]`.
  std::vector<std::size_t> offsets = {0};
  std::vector<pattern_part> parts;
  std::vector<std::uint64_t> multiplicities;
  /// The entries whose samples exceed the capacity by themselves, ascending.
  std::vector<std::uint32_t> oversized;
  /// The sum of the multiplicities.
  std::uint64_t group_count = 0;
  /// A lower bound on the groups of any packing of these samples.
  std::uint64_t lower_bound = 0;

  /// Returns the parts of a pattern, in descending order of size.
  [[nodiscard]] std::span<pattern_part const> pattern(std::size_t p) const {
    return std::span(parts).subspan(offsets[p], offsets[p + 1] - offsets[p]);
  }

  /// Returns true if no packing of these samples has fewer groups.
  [[nodiscard]] bool is_proven() const { return group_count == lower_bound; }

  [[nodiscard]] friend bool operator==(pattern_plan const&, pattern_plan const&) = default;
};

}  // namespace omnibal::inline v0
