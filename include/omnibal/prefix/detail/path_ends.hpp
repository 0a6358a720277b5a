// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ends of the paths of a forest, in depth-first order.

#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The ends of the paths that fit into the capacity: nodes at which sequences end, in depth-first
/// order. The index of an end identifies its path. The union of paths t1 < t2 < ... has the sum of
/// their depths minus the tokens that each path shares with the path before it in the set.
struct path_ends {
  /// The node of each end. Sequences with equal tokens have the same end.
  std::vector<std::uint32_t> nodes;
  /// The number of tokens of each path.
  std::vector<std::uint64_t> depths;
  /// The number of tokens that each path shares with the path before it; zero for the first path.
  std::vector<std::uint64_t> shared;
  /// The end of each sequence, `prefix_forest::no_parent` for a sequence above the capacity.
  std::vector<std::uint32_t> end_of;
  /// The sequences above the capacity, ascending.
  std::vector<std::uint32_t> oversized;

  [[nodiscard]] std::size_t size() const { return nodes.size(); }
};

/// Returns the tokens that the path to `node` shares with the path to a node before it in
/// depth-first order. Complexity: the nodes of the path that are not shared.
[[nodiscard]] inline std::uint64_t shared_tokens(prefix_forest const& forest, std::uint32_t before,
                                                 std::uint32_t node) {
  // The first ancestor of `node` that is not after `before` is also an ancestor of `before`, or
  // `before` itself.
  std::uint32_t u = node;
  while (u != prefix_forest::no_parent && u > before) u = forest.parents()[u];
  return u == prefix_forest::no_parent ? 0 : forest.depths()[u];
}

/// Returns the number of tokens that two sequences share. `before` must precede `sequence` in
/// depth-first order.
[[nodiscard]] inline std::uint64_t shared_by_sequences(prefix_forest const& forest,
                                                       std::uint32_t before,
                                                       std::uint32_t sequence) {
  return shared_tokens(forest, forest.ends()[before], forest.ends()[sequence]);
}

/// Returns the number of tokens of the union of the paths of `sequences`, which are in depth-first
/// order.
[[nodiscard]] inline std::uint64_t union_tokens(prefix_forest const& forest,
                                                std::span<std::uint32_t const> sequences) {
  std::uint64_t sum = 0;
  for (std::size_t k = 0; k != sequences.size(); ++k) {
    sum += forest.sequence_tokens(sequences[k]);
    if (k != 0) sum -= shared_by_sequences(forest, sequences[k - 1], sequences[k]);
  }
  return sum;
}

[[nodiscard]] inline path_ends collect_path_ends(prefix_forest const& forest,
                                                 std::uint64_t capacity) {
  constexpr std::uint32_t none = prefix_forest::no_parent;
  path_ends result;
  std::vector<std::uint32_t> end_at(forest.size(), none);
  for (std::uint32_t const node : forest.ends()) end_at[node] = 0;
  std::size_t const most = std::min(forest.size(), forest.sequence_count());
  result.nodes.reserve(most);
  result.depths.reserve(most);
  result.shared.reserve(most);
  std::uint32_t before = none;
  for (std::uint32_t v = 0; v != forest.size(); ++v) {
    if (end_at[v] == none) continue;
    if (forest.depths()[v] > capacity) {
      end_at[v] = none;
      continue;
    }
    end_at[v] = static_cast<std::uint32_t>(result.size());
    result.nodes.push_back(v);
    result.depths.push_back(forest.depths()[v]);
    result.shared.push_back(before == none ? 0 : shared_tokens(forest, before, v));
    before = v;
  }
  result.end_of.reserve(forest.sequence_count());
  for (std::uint32_t i = 0; i != forest.sequence_count(); ++i) {
    std::uint32_t const end = end_at[forest.ends()[i]];
    result.end_of.push_back(end);
    if (end == none) result.oversized.push_back(i);
  }
  return result;
}

/// Returns the sequences of each end. The last part of the result has the sequences above the
/// capacity.
[[nodiscard]] inline grouping sequences_of_ends(path_ends const& ends) {
  std::vector<std::uint32_t> end_of = ends.end_of;
  std::ranges::replace(end_of, prefix_forest::no_parent, static_cast<std::uint32_t>(ends.size()));
  return collect_parts(end_of, ends.size() + 1);
}

}  // namespace omnibal::inline v0::detail
