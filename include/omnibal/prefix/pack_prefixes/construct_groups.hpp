// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The first groups of paths, from the leaves of the forest to its roots.

#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
#include <omnibal/prefix/detail/piece_packer.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the split ratios of the constructions: the ratio at which a split pays, twice this
/// ratio, and zero for no splits. A split whose part has w tokens and that copies c tokens pays if
/// w * price > c * (capacity + price).
[[nodiscard]] inline std::array<std::uint64_t, 3> split_ratios(std::uint64_t capacity,
                                                               std::uint64_t price) {
  // With a ratio above this number a split never pays.
  constexpr std::uint64_t max_ratio = std::uint64_t{1} << 62;
  constexpr std::uint64_t unit = prefix_pieces::ratio_unit;
  if (price == 0) return {0, 0, 0};
  auto const even = saturate_cast<std::uint64_t>(unit + uint128{capacity} * unit / price);
  return {even, even > max_ratio ? even : 2 * even, 0};
}

/// Sets the tokens of each group to the tokens of the union of its paths.
inline void count_union_tokens(prefix_forest const& forest, path_ends const& ends,
                               path_assignment& groups) {
  constexpr std::uint32_t none = prefix_forest::no_parent;
  std::vector<std::uint32_t> last(groups.tokens.size(), none);
  groups.tokens.assign(groups.tokens.size(), 0);
  for (std::uint32_t t = 0; t != ends.size(); ++t) {
    std::uint32_t const g = groups.group_of[t];
    std::uint32_t const before = std::exchange(last[g], t);
    groups.tokens[g] += ends.depths[t];
    if (before == none) continue;
    groups.tokens[g] -=
        before + 1 == t ? ends.shared[t] : shared_tokens(forest, ends.nodes[before], ends.nodes[t]);
  }
}

/// Runs the construction once with each of the given split ratios. Returns the groups with the best
/// value.
[[nodiscard]] inline path_assignment construct_groups(prefix_forest const& forest,
                                                      path_ends const& ends, std::uint64_t capacity,
                                                      std::uint64_t price,
                                                      std::span<std::uint64_t const> ratios) {
  rng::engine random(0);
  piece_packer packer;
  path_assignment found;
  path_assignment best;
  std::optional<uint128> best_value;
  for (std::uint64_t const ratio : ratios) {
    packer.pack(ends.depths, ends.shared, {.capacity = capacity, .split_ratio = ratio}, random,
                found);
    uint128 value = static_cast<uint128>(price) * found.tokens.size();
    for (std::uint64_t const tokens : found.tokens) value += tokens;
    if (best_value && value >= *best_value) continue;
    best_value = value;
    std::swap(best, found);
  }
  // Several pieces of one node may be in the same group, which contains the node only once.
  count_union_tokens(forest, ends, best);
  return best;
}

}  // namespace omnibal::inline v0::detail
