// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The old placement of the experts of a layer.

#include <omnibal/check.hpp>
#include <omnibal/experts/place_experts/placed_layer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the experts of the slots of a layer in the old placement, or an empty list if there is
/// no old placement. Errors: `std::invalid_argument` for an unknown expert, an expert without a
/// slot, a group on two nodes, and nodes with different numbers of groups.
[[nodiscard]] inline std::vector<std::uint32_t> old_layer(std::string_view function,
                                                          expert_shape const& shape,
                                                          std::span<std::uint32_t const> old,
                                                          std::size_t layer) {
  if (old.empty()) return {};
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  std::size_t const count = shape.ranks * shape.slots;
  auto const own = old.subspan(layer * count, count);
  std::vector<std::uint8_t> is_placed(shape.experts, 0);
  std::vector<std::size_t> node_of(shape.groups, nowhere);
  for (std::size_t s = 0; s != count; ++s) {
    std::uint32_t const expert = own[s];
    if (expert >= shape.experts) {
      throw_invalid(function, "options.old[", layer * count + s, "] is ", expert,
                    ", must be below the ", shape.experts, " experts");
    }
    is_placed[expert] = 1;
    std::size_t const node = s / shape.slots / shape.node_ranks();
    std::size_t& known = node_of[expert / shape.group_experts()];
    if (known == nowhere) known = node;
    if (known == node) continue;
    throw_invalid(function, "options.old has group ", expert / shape.group_experts(), " of layer ",
                  layer, " on the nodes ", known, " and ", node,
                  ", must have each group on one node");
  }
  for (std::size_t e = 0; e != shape.experts; ++e) {
    if (is_placed[e] != 0) continue;
    throw_invalid(function, "options.old has no slot for expert ", e, " of layer ", layer,
                  ", must have one");
  }
  std::vector<std::size_t> node_groups(shape.nodes, 0);
  for (std::size_t const node : node_of) ++node_groups[node];
  for (std::size_t n = 0; n != shape.nodes; ++n) {
    if (node_groups[n] == shape.node_groups()) continue;
    throw_invalid(function, "options.old has ", node_groups[n], " groups of layer ", layer,
                  " on node ", n, ", must have ", shape.node_groups(), " on each node");
  }
  return {own.begin(), own.end()};
}

/// Replaces second copies of an expert on a rank. Each replacement is the expert with the largest
/// load of a copy among the experts that the rank does not have. Returns the number of replaced
/// copies.
[[nodiscard]] inline std::size_t repair_duplicates(expert_shape const& shape,
                                                   std::span<std::int64_t const> loads,
                                                   std::vector<std::uint32_t>& slots) {
  std::vector<std::int64_t> copies(shape.experts, 0);
  for (std::uint32_t const expert : slots) ++copies[expert];
  std::size_t const node_slots = shape.node_ranks() * shape.slots;
  std::size_t result = 0;
  for (std::size_t s = 0; s != slots.size(); ++s) {
    auto const first = slots.begin() + static_cast<std::ptrdiff_t>(s / shape.slots * shape.slots);
    auto const last = first + static_cast<std::ptrdiff_t>(shape.slots);
    auto const here = slots.begin() + static_cast<std::ptrdiff_t>(s);
    if (std::find(first, here, *here) == here) continue;
    std::size_t best = slots.size();
    std::size_t const node = s / node_slots * node_slots;
    for (std::size_t other = node; other != node + node_slots; ++other) {
      std::uint32_t const expert = slots[other];
      if (std::find(first, last, expert) != last) continue;
      if (best == slots.size() ||
          loads[expert] / copies[expert] > loads[slots[best]] / copies[slots[best]]) {
        best = other;
      }
    }
    --copies[*here];
    *here = slots[best];
    ++copies[*here];
    ++result;
  }
  return result;
}

/// Returns the number of copies of each layer on ranks that do not have the expert in the old
/// placement; zeros if there is no old placement.
[[nodiscard]] inline std::vector<std::size_t> moved_copies(expert_shape const& shape,
                                                           std::span<std::uint32_t const> old,
                                                           std::span<std::uint32_t const> slots) {
  std::size_t const count = shape.ranks * shape.slots;
  std::vector<std::size_t> result(slots.size() / count, 0);
  for (std::size_t s = 0; s != old.size(); ++s) {
    auto const rank = old.subspan(s / shape.slots * shape.slots, shape.slots);
    if (std::find(rank.begin(), rank.end(), slots[s]) == rank.end()) ++result[s / count];
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
