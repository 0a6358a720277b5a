// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Groups of paths of a forest.

#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// A sparse table for range minima of the tokens that neighboring paths share. Two paths share the
/// minimum of these numbers over the paths after the first path up to the second path.
class shared_minima {
 public:
  explicit shared_minima(std::span<std::uint64_t const> shared) {
    rows_.emplace_back(shared.begin(), shared.end());
    for (std::size_t width = 1; 2 * width <= shared.size(); width *= 2) {
      auto const& below = rows_.back();
      std::vector<std::uint64_t> row(shared.size() - 2 * width + 1);
      for (std::size_t i = 0; i != row.size(); ++i) row[i] = std::min(below[i], below[i + width]);
      rows_.push_back(std::move(row));
    }
  }

  /// Returns the tokens that two paths share. Precondition: `left < right`.
  [[nodiscard]] std::uint64_t operator()(std::uint32_t left, std::uint32_t right) const {
    std::size_t const first = left + std::size_t{1};
    std::size_t const count = right - left;
    auto const level = static_cast<std::size_t>(std::bit_width(count) - 1);
    return std::min(rows_[level][first], rows_[level][right + 1 - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<std::uint64_t>> rows_;
};

/// A group of paths in ascending order, and the number of tokens of their union.
struct path_group {
  std::vector<std::uint32_t> ends;
  std::uint64_t tokens = 0;
};

/// Groups of paths, stored as the group of each path and the number of tokens of each group.
struct path_assignment {
  std::vector<std::uint32_t> group_of;
  std::vector<std::uint64_t> tokens;
};

/// Returns the paths of each group.
[[nodiscard]] inline std::vector<path_group> list_path_groups(path_assignment const& groups) {
  std::vector<path_group> result(groups.tokens.size());
  for (std::size_t g = 0; g != result.size(); ++g) result[g].tokens = groups.tokens[g];
  for (std::uint32_t t = 0; t != groups.group_of.size(); ++t) {
    result[groups.group_of[t]].ends.push_back(t);
  }
  return result;
}

/// Writes the group of each path and the number of tokens of each group.
inline void assign_path_groups(std::span<path_group const> groups, path_assignment& result) {
  result.tokens.clear();
  for (std::uint32_t g = 0; g != groups.size(); ++g) {
    for (std::uint32_t const t : groups[g].ends) result.group_of[t] = g;
    result.tokens.push_back(groups[g].tokens);
  }
}

/// Returns the number of tokens that a path shares with the other paths of a group, whose paths
/// ascend. The path itself may be in the group. The path `without` is ignored.
[[nodiscard]] inline std::uint64_t shared_with(std::span<std::uint32_t const> group,
                                               std::uint32_t path, shared_minima const& shared,
                                               std::uint32_t without = prefix_forest::no_parent) {
  auto after = std::lower_bound(group.begin(), group.end(), path);
  auto before = after;
  while (after != group.end() && (*after == path || *after == without)) ++after;
  while (before != group.begin() && *std::prev(before) == without) --before;
  std::uint64_t common = 0;
  if (after != group.end()) common = shared(path, *after);
  if (before != group.begin()) common = std::max(common, shared(*std::prev(before), path));
  return common;
}

}  // namespace omnibal::inline v0::detail
