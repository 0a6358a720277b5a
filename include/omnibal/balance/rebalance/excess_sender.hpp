// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Samples that leave ranks above their limit in `rebalance`.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the priority with which a sample leaves. A sample with more cost per byte has a higher
/// priority, with a resolution of about a fifth. Within this resolution, a sample with a larger
/// cost has a higher priority. Precondition: `cost` is positive.
[[nodiscard]] constexpr std::uint32_t leaving_priority(std::int64_t cost, std::int64_t bytes) {
  // The two bits after the leading bit divide each doubling into four steps.
  auto const steps = [](std::int64_t value) {
    auto const number = static_cast<std::uint64_t>(value);
    auto const bits = static_cast<int>(std::bit_width(number));
    if (bits == 0) return 0u;
    auto const after_leading = static_cast<unsigned>(std::rotr(number, bits - 1) >> 62);
    return static_cast<unsigned>(bits) * 4 + after_leading;
  };
  auto const number = static_cast<std::uint64_t>(cost);
  auto const bits = static_cast<unsigned>(std::bit_width(number));
  auto const leading = static_cast<std::uint32_t>(std::rotr(number, static_cast<int>(bits)) >> 48);
  return (steps(cost) + 256 - steps(bytes)) << 22 | bits << 16 | leading;
}

/// A `node_layout` of nodes with one rank each, known at compile time.
struct single_ranks {
  std::size_t ranks;
  [[nodiscard]] static std::size_t ranks_per_node() { return 1; }

  [[nodiscard]] std::size_t nodes() const { return ranks; }
  [[nodiscard]] static std::size_t node_of(std::size_t rank) { return rank; }
  [[nodiscard]] static std::size_t first_rank(std::size_t node) { return node; }
  [[nodiscard]] static std::size_t ranks_in(std::size_t) { return 1; }
};

/// Sends samples from nodes or ranks above their limit to the least loaded nodes or ranks. The
/// samples with the largest cost per byte go first. A sample stays if it costs more than the excess
/// of its sender, or would cause an excess of its receiver. Later calls reuse its memory.
template <std::size_t R>
class excess_sender {
 public:
  /// Sends samples from each node whose load exceeds the sum of the targets of its ranks to other
  /// nodes.
  template <class Layout>
  void send_between_nodes(assignment_state<R>& state, Layout const& layout, std::int64_t target) {
    auto const most = static_cast<std::int64_t>(layout.ranks_per_node());
    if (most > 1 && target > std::numeric_limits<std::int64_t>::max() / (2 * most)) return;
    send(state, layout, target,
         [&](std::uint32_t sample) { return lightest_.best(state.costs[sample]); });
  }

  /// Sends samples from ranks above the target to ranks of the same node.
  void send_inside_nodes(assignment_state<R>& state, node_layout const& layout,
                         std::int64_t target) {
    send(state, single_ranks{state.ranks()}, target, [&](std::uint32_t sample) {
      return lightest_on_node(state, layout, layout.node_of(state.rank_of[sample]), sample);
    });
  }

  /// Returns the rank of a node whose largest load with the sample is smallest. The present rank of
  /// the sample is returned only if the node has no other rank.
  template <class Layout>
  [[nodiscard]] static std::uint32_t lightest_on_node(assignment_state<R> const& state,
                                                      Layout const& layout, std::size_t node,
                                                      std::uint32_t sample) {
    std::uint32_t const present = state.rank_of[sample];
    auto const first = static_cast<std::uint32_t>(layout.first_rank(node));
    load_order<std::int64_t> lightest{std::numeric_limits<std::int64_t>::max(),
                                      layout.node_of(present) == node ? present : first};
    for (std::uint32_t rank = first; rank != first + layout.ranks_in(node); ++rank) {
      // With its present rank, the sample would count twice, which could overflow the type.
      if (rank == present) continue;
      std::int64_t const load = largest_amount(state.loads[rank] + state.costs[sample]);
      lightest = std::min(lightest, {load, rank});
    }
    return lightest.part;
  }

  [[nodiscard]] static bool fits(resources<R> const& load, resources<R> const& cost,
                                 std::int64_t limit) {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && load[r] <= limit - cost[r];
    return result;
  }

 private:
  /// Sends samples; `node_for(sample)` returns the node to which a sample may go.
  template <class Layout, class NodeFor>
  void send(assignment_state<R>& state, Layout const& layout, std::int64_t target,
            NodeFor const& node_for) {
    start(state, layout, target);
    for (std::uint64_t const word : words_) {
      auto const sample = static_cast<std::uint32_t>(word);
      resources<R> const& cost = state.costs[sample];
      std::size_t const from = layout.node_of(state.rank_of[sample]);
      if (!can_leave(state, sample, from)) continue;
      std::uint32_t const node = node_for(sample);
      auto const limit = target * static_cast<std::int64_t>(layout.ranks_in(node));
      if (!fits(node_loads_[node], cost, limit)) continue;
      excess_[from] = excess_above(excess_[from] - cost, 0);
      node_loads_[from] -= cost;
      node_loads_[node] += cost;
      lightest_.add(node, cost);
      state.move(sample, lightest_on_node(state, layout, node, sample));
    }
  }

  template <class Layout>
  void start(assignment_state<R> const& state, Layout const& layout, std::int64_t target) {
    node_loads_.assign(layout.nodes(), resources<R>{});
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      node_loads_[layout.node_of(rank)] += state.loads[rank];
    }
    excess_.clear();
    lightest_.reset(layout.nodes());
    for (std::size_t node = 0; node != layout.nodes(); ++node) {
      auto const ranks = static_cast<std::int64_t>(layout.ranks_in(node));
      excess_.push_back(excess_above(node_loads_[node], target * ranks));
      if (sum_of(excess_[node]) != 0) {
        lightest_.close(node);
        continue;
      }
      // The limit treats the missing ranks of a node as full. Without an excess the sum is at most
      // `target` times the ranks of a full node.
      auto const lacking = static_cast<std::int64_t>(layout.ranks_per_node()) - ranks;
      resources<R> load = node_loads_[node];
      for (std::int64_t& amount : load.amounts) amount += target * lacking;
      lightest_.add(node, load);
    }
    collect(state, layout);
  }

  /// Sorts the samples of nodes with an excess in the order in which they leave.
  template <class Layout>
  void collect(assignment_state<R> const& state, Layout const& layout) {
    words_.clear();
    for (std::uint32_t i = 0; i != state.costs.size(); ++i) {
      resources<R> const& excess = excess_[layout.node_of(state.rank_of[i])];
      std::int64_t relief = 0;
      for (std::size_t r = 0; r != R; ++r) {
        if (excess[r] > 0) relief += state.costs[i][r];
      }
      if (relief == 0) continue;
      std::uint64_t const key = ~leaving_priority(relief, state.bytes[i][0]);
      words_.push_back(key << 32 | i);
    }
    radix_sort(words_, spare_, 32, 32);
  }

  [[nodiscard]] bool can_leave(assignment_state<R> const& state, std::uint32_t sample,
                               std::size_t node) const {
    bool is_relief = false;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const excess = excess_[node][r];
      if (excess == 0) continue;
      if (state.costs[sample][r] > excess) return false;
      is_relief = is_relief || state.costs[sample][r] > 0;
    }
    return is_relief;
  }

  part_loads<R> lightest_{0};
  integer_costs<R> excess_;
  integer_costs<R> node_loads_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
};

}  // namespace omnibal::inline v0::detail
