// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Splits of groups until a given number of groups is reached.

#include <omnibal/check.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// A cut of a group before one of its sequences, and the number of tokens that the cut copies,
/// because both parts contain them.
struct group_cut {
  std::uint64_t copied;
  std::size_t group;
  std::size_t position;

  [[nodiscard]] std::tuple<std::size_t, std::size_t> place() const { return {group, position}; }
};

/// Returns the cuts that copy the fewest tokens, at most `count`, in the order of their places.
/// Sequences of a group are in depth-first order.
[[nodiscard]] inline std::vector<group_cut> choose_cuts(prefix_forest const& forest,
                                                        grouping const& groups, std::size_t count) {
  std::vector<group_cut> cuts;
  for (std::size_t g = 0; g != groups.size(); ++g) {
    auto const group = groups[g];
    for (std::size_t k = 1; k < group.size(); ++k) {
      cuts.push_back({shared_by_sequences(forest, group[k - 1], group[k]), g, k});
    }
  }
  std::size_t const used = std::min(count, cuts.size());
  std::partial_sort(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(used), cuts.end(),
                    [](group_cut const& left, group_cut const& right) {
                      if (left.copied != right.copied) return left.copied < right.copied;
                      return left.place() < right.place();
                    });
  cuts.resize(used);
  std::ranges::sort(cuts, {}, &group_cut::place);
  return cuts;
}

/// Returns the groups after the given cuts, which must be in the order of their places.
[[nodiscard]] inline grouping cut_groups(grouping const& groups, std::span<group_cut const> cuts) {
  grouping result;
  auto next = cuts.begin();
  for (std::size_t g = 0; g != groups.size(); ++g) {
    auto const group = groups[g];
    for (std::size_t k = 0; k != group.size(); ++k) {
      if (next != cuts.end() && next->group == g && next->position == k) {
        result.close();
        ++next;
      }
      result.push(group[k]);
    }
    result.close();
  }
  return result;
}

/// Splits groups into `missing` more groups, at the places that copy the fewest tokens. If there
/// are not enough places for cuts, the last groups are empty.
[[nodiscard]] inline grouping split_groups(std::string_view function, prefix_forest const& forest,
                                           grouping const& groups, std::size_t missing) {
  std::size_t const count = groups.size() + missing;
  check_number(function, "the number of groups", count);
  grouping result = cut_groups(groups, choose_cuts(forest, groups, missing));
  while (result.size() != count) result.close();
  return result;
}

}  // namespace omnibal::inline v0::detail
