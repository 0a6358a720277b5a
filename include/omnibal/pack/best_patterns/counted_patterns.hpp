// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Patterns with multiplicities, and the samples that are in none.

#include <omnibal/detail/pattern_master.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Patterns with multiplicities, and the number of samples of each type that are in none of them.
struct counted_patterns {
  std::vector<pattern> patterns;
  std::vector<std::uint64_t> multiplicities;
  std::vector<std::uint64_t> left;

  /// Adds groups of a pattern. Precondition: its samples are left.
  void add(pattern made, std::uint64_t groups) {
    for (pattern_entry const entry : made) left[entry.type] -= groups * entry.count;
    patterns.push_back(std::move(made));
    multiplicities.push_back(groups);
  }

  /// Adds the whole groups of the patterns of a linear program, whose type i is the type `types[i]`
  /// with `counts[i]` samples that are left. Returns false if there are none.
  bool add(pattern_master const& master, std::span<std::uint32_t const> types,
           std::span<std::uint64_t const> counts) {
    auto const groups = master.whole_groups(counts);
    bool has_added = false;
    for (std::size_t row = 0; row != groups.size(); ++row) {
      if (groups[row] == 0) continue;
      pattern made = master.basis()[row];
      for (pattern_entry& entry : made) entry.type = types[entry.type];
      add(std::move(made), groups[row]);
      has_added = true;
    }
    return has_added;
  }

  /// Returns one group of the last pattern to the samples that are left.
  void take_back_group() {
    for (pattern_entry const entry : patterns.back()) left[entry.type] += entry.count;
    if (--multiplicities.back() != 0) return;
    patterns.pop_back();
    multiplicities.pop_back();
  }
};

}  // namespace omnibal::inline v0::detail
