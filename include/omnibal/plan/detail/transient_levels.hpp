// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A few levels to which transient bytes are rounded.

#include <omnibal/detail/choice_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Levels to which all transient bytes are rounded down. Similar layers have similar transient
/// bytes, so a new level begins after each of the widest gaps between the sorted values.
struct transient_levels {
  std::vector<std::int64_t> least;
  /// The largest transient bytes that are rounded down to each level.
  std::vector<std::int64_t> most;

  explicit transient_levels(std::vector<std::int64_t> const& all) {
    constexpr std::size_t max_levels = 6;
    if (all.empty()) return;
    std::vector<sort_key> gaps;
    for (std::size_t i = 1; i != all.size(); ++i) gaps.push_back({all[i - 1] - all[i], i});
    sort_keys(gaps);
    std::vector<sort_key> widest;
    for (sort_key const& gap : gaps) {
      if (widest.size() + 1 == max_levels) break;
      widest.push_back({static_cast<std::int64_t>(gap.place), gap.place});
    }
    sort_keys(widest);
    least.push_back(all.front());
    for (sort_key const& gap : widest) {
      most.push_back(all[gap.place - 1]);
      least.push_back(all[gap.place]);
    }
    most.push_back(all.back());
  }

  [[nodiscard]] std::size_t size() const { return least.size(); }
};

}  // namespace omnibal::inline v0::detail
