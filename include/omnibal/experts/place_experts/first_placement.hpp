// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A placement of the experts of a layer without an old placement.

#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/experts/place_experts/placed_layer.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the indices of `keys` in descending order of their keys; equal keys are in ascending
/// order of the index.
[[nodiscard]] inline std::vector<std::uint32_t> by_descending(std::span<std::int64_t const> keys) {
  return order_descending(keys.size(), [&](std::size_t i) { return keys[i]; });
}

/// Returns the node of each group. The groups are assigned in descending order of load, each to the
/// node with the smallest load that has room. Then the node with the largest load exchanges groups
/// with other nodes.
[[nodiscard]] inline std::vector<std::uint32_t> nodes_of_groups(
    expert_shape const& shape, std::span<std::int64_t const> loads) {
  std::vector<std::int64_t> group_loads(shape.groups, 0);
  for (std::size_t e = 0; e != loads.size(); ++e) {
    group_loads[e / shape.group_experts()] += loads[e];
  }
  std::vector<std::uint32_t> result(shape.groups, 0);
  std::vector<std::int64_t> node_loads(shape.nodes, 0);
  std::vector<std::size_t> counts(shape.nodes, 0);
  for (std::uint32_t const g : by_descending(group_loads)) {
    std::size_t best = shape.nodes;
    for (std::size_t n = 0; n != shape.nodes; ++n) {
      if (counts[n] == shape.node_groups()) continue;
      if (best == shape.nodes || node_loads[n] < node_loads[best]) best = n;
    }
    result[g] = static_cast<std::uint32_t>(best);
    node_loads[best] += group_loads[g];
    ++counts[best];
  }
  for (bool is_improved = true; is_improved;) {
    is_improved = false;
    auto const heavy = static_cast<std::uint32_t>(
        std::max_element(node_loads.begin(), node_loads.end()) - node_loads.begin());
    std::int64_t best = node_loads[heavy];
    std::pair<std::size_t, std::size_t> pair;
    for (std::size_t g = 0; g != shape.groups; ++g) {
      if (result[g] != heavy) continue;
      for (std::size_t h = 0; h != shape.groups; ++h) {
        std::int64_t const difference = group_loads[g] - group_loads[h];
        if (difference <= 0 || result[h] == heavy) continue;
        std::int64_t const larger =
            std::max(node_loads[heavy] - difference, node_loads[result[h]] + difference);
        if (larger >= best) continue;
        best = larger;
        pair = {g, h};
        is_improved = true;
      }
    }
    if (!is_improved) break;
    std::int64_t const difference = group_loads[pair.first] - group_loads[pair.second];
    node_loads[heavy] -= difference;
    node_loads[result[pair.second]] += difference;
    std::swap(result[pair.first], result[pair.second]);
  }
  return result;
}

/// Returns the number of copies of each expert, `slots` in all, with which the largest load of a
/// copy is smallest. Each further copy goes to the expert whose copies have the largest load. No
/// expert has more than `ranks` copies. Precondition: `slots` is at least the number of experts and
/// at most `ranks` times this number.
template <class Load>
[[nodiscard]] std::vector<std::uint32_t> even_copies(std::span<Load const> loads, std::size_t slots,
                                                     std::size_t ranks) {
  std::vector<std::uint32_t> result(loads.size(), 1);
  struct entry {
    Load share;
    std::size_t expert;

    [[nodiscard]] bool operator<(entry const& other) const {
      return share != other.share ? share < other.share : expert > other.expert;
    }
  };
  std::priority_queue<entry> queue;
  for (std::size_t e = 0; e != loads.size() && ranks > 1; ++e) queue.push({loads[e], e});
  for (std::size_t used = loads.size(); used != slots; ++used) {
    std::size_t const expert = queue.top().expert;
    queue.pop();
    std::uint32_t const count = ++result[expert];
    if (count < ranks) queue.push({loads[expert] / static_cast<Load>(count), expert});
  }
  return result;
}

/// Returns a lower bound on the largest load of a rank in any placement: the larger of the mean
/// load of a rank and the smallest possible largest load of a copy.
template <class Load>
[[nodiscard]] Load placement_bound(expert_shape const& shape, std::span<Load const> loads) {
  auto const ranks = static_cast<Load>(shape.ranks);
  Load const sum = std::accumulate(loads.begin(), loads.end(), Load{0});
  Load mean = sum / ranks;
  if constexpr (std::integral<Load>) mean += sum % ranks != 0 ? 1 : 0;
  // The loop counts the copies with which no copy has more than the mean load. If the slots suffice
  // for these copies, the mean is the bound.
  std::size_t needed = loads.size();
  bool is_mean = true;
  for (Load const load : loads) {
    if (load <= mean) continue;
    Load const parts = load / mean;
    if (parts >= static_cast<Load>(shape.node_ranks())) is_mean = false;
    // One copy more than the quotient, rounded down, is enough for loads of copies up to the mean.
    if (is_mean) needed += static_cast<std::size_t>(parts);
  }
  if (is_mean && needed <= shape.ranks * shape.slots) return mean;
  auto const copies = even_copies(loads, shape.ranks * shape.slots, shape.node_ranks());
  Load result = mean;
  for (std::size_t e = 0; e != loads.size(); ++e) {
    result = std::max(result, loads[e] / static_cast<Load>(copies[e]));
  }
  return result;
}

/// Puts the copies of the experts of a node on its ranks, in descending order of their loads. Each
/// copy goes to the rank with the smallest load that has a free slot and does not have the expert.
class node_filler {
 public:
  node_filler(expert_shape const& shape, std::size_t first_rank, std::vector<std::uint32_t>& slots)
      : shape_(shape),
        first_rank_(first_rank),
        slots_(slots),
        loads_(shape.node_ranks(), 0),
        used_(shape.node_ranks(), 0) {}

  void put(std::uint32_t expert, std::int64_t share) {
    std::size_t best = loads_.size();
    std::size_t full = loads_.size();
    for (std::size_t r = 0; r != loads_.size(); ++r) {
      if (used_[r] == shape_.slots) continue;
      full = r;
      if (has(r, expert)) continue;
      if (best == loads_.size() || loads_[r] < loads_[best]) best = r;
    }
    if (best != loads_.size()) return add(best, expert, share);
    exchange(full, expert, share);
  }

 private:
  [[nodiscard]] std::uint32_t& slot(std::size_t rank, std::size_t number) const {
    return slots_[(first_rank_ + rank) * shape_.slots + number];
  }
  [[nodiscard]] bool has(std::size_t rank, std::uint32_t expert) const {
    for (std::size_t s = 0; s != used_[rank]; ++s) {
      if (slot(rank, s) == expert) return true;
    }
    return false;
  }
  void add(std::size_t rank, std::uint32_t expert, std::int64_t share) {
    slot(rank, used_[rank]++) = expert;
    loads_[rank] += share;
  }

  /// Puts an expert if `rank`, the last rank with a free slot, already has it: another rank without
  /// the expert takes it and gives `rank` an expert that `rank` does not have. Such an expert
  /// exists, because full ranks have more experts than `rank`.
  void exchange(std::size_t rank, std::uint32_t expert, std::int64_t share) {
    for (std::size_t r = 0; r != loads_.size(); ++r) {
      if (r == rank || has(r, expert)) continue;
      for (std::size_t s = 0; s != used_[r]; ++s) {
        std::uint32_t const given = slot(r, s);
        if (has(rank, given)) continue;
        slot(r, s) = expert;
        loads_[r] += share;
        return add(rank, given, 0);
      }
    }
  }

  expert_shape const& shape_;
  std::size_t first_rank_;
  std::vector<std::uint32_t>& slots_;
  std::vector<std::int64_t> loads_;
  std::vector<std::size_t> used_;
};

/// Returns the expert of each slot of all ranks. The groups are on the given nodes.
[[nodiscard]] inline std::vector<std::uint32_t> first_placement(
    expert_shape const& shape, std::span<std::int64_t const> loads,
    std::span<std::uint32_t const> node_of_group) {
  std::vector<std::uint32_t> slots(shape.ranks * shape.slots);
  for (std::size_t n = 0; n != shape.nodes; ++n) {
    std::vector<std::uint32_t> experts;
    std::vector<std::int64_t> own;
    for (std::uint32_t e = 0; e != shape.experts; ++e) {
      if (node_of_group[e / shape.group_experts()] != n) continue;
      experts.push_back(e);
      own.push_back(loads[e]);
    }
    auto const copies =
        even_copies<std::int64_t>(own, shape.node_ranks() * shape.slots, shape.node_ranks());
    for (std::size_t i = 0; i != own.size(); ++i) own[i] /= static_cast<std::int64_t>(copies[i]);
    node_filler filler(shape, n * shape.node_ranks(), slots);
    for (std::uint32_t const i : by_descending(own)) {
      for (std::uint32_t c = 0; c != copies[i]; ++c) filler.put(experts[i], own[i]);
    }
  }
  return slots;
}

}  // namespace omnibal::inline v0::detail
