#pragma once

/// \file
/// Samples that leave the ranks above a target.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/keep_home/assignment.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0::detail {

/// Larger for a sample that goes first: one with more cost for its bytes, in steps of about a
/// fifth, and of alike ones a larger one. Precondition: a positive cost.
[[nodiscard]] constexpr std::uint32_t offload_priority(std::int64_t cost, std::int64_t bytes) {
  // Four steps for each doubling, from the bits after the leading one.
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

/// Sends samples from places above their limit, nodes or ranks, to the least loaded ones, those
/// first that save the most bytes, as long as that neither takes more from a place than its excess
/// nor gives it to another. Keeps its memory.
template <std::size_t R>
class offload {
 public:
  /// To any rank.
  void send_anywhere(assignment_state<R>& state, std::int64_t target) {
    send(state, target, [&](std::uint32_t sample) { return light_.best(state.costs[sample]); });
  }
  /// To ranks of the same node.
  void send_inside_nodes(assignment_state<R>& state, node_layout const& layout,
                         std::int64_t target) {
    send(state, target, [&](std::uint32_t sample) {
      return lightest_on_node(state, layout, layout.node_of(state.rank_of[sample]), sample);
    });
  }

  /// From nodes above the sum of the targets of their ranks to others.
  void send_between_nodes(assignment_state<R>& state, node_layout const& layout,
                          std::int64_t target) {
    auto const most = static_cast<std::int64_t>(layout.ranks_per_node);
    if (target > std::numeric_limits<std::int64_t>::max() / (2 * most)) return;
    sum_nodes(state, layout);
    excess_.clear();
    light_.reset(layout.nodes());
    for (std::size_t node = 0; node != layout.nodes(); ++node) {
      auto const ranks = static_cast<std::int64_t>(layout.ranks_in(node));
      excess_.push_back(excess_above(node_loads_[node], target * ranks));
      if (sum_of(excess_[node]) != 0) {
        light_.close(node);
        continue;
      }
      // As if the ranks that the last node lacks were full. Without an excess the sum is at most
      // `target * most`.
      resources<R> load = node_loads_[node];
      for (std::int64_t& amount : load.amounts) amount += target * (most - ranks);
      light_.add(node, load);
    }
    collect(state, [&](std::uint32_t rank) { return layout.node_of(rank); });
    for (std::uint64_t const word : words_) {
      auto const sample = static_cast<std::uint32_t>(word);
      resources<R> const& cost = state.costs[sample];
      std::size_t const from = layout.node_of(state.rank_of[sample]);
      if (!can_leave(state, sample, from)) continue;
      std::uint32_t const node = light_.best(cost);
      auto const limit = target * static_cast<std::int64_t>(layout.ranks_in(node));
      if (!fits(node_loads_[node], cost, limit)) continue;
      take_excess(from, cost);
      node_loads_[from] -= cost;
      node_loads_[node] += cost;
      light_.add(node, cost);
      state.move(sample, lightest_on_node(state, layout, node, sample));
    }
  }

  /// The rank of a node whose largest load would be least with the sample, which is not the rank
  /// where it is if there is another.
  [[nodiscard]] static std::uint32_t lightest_on_node(assignment_state<R> const& state,
                                                      node_layout const& layout, std::size_t node,
                                                      std::uint32_t sample) {
    std::size_t const first = layout.first_rank(node);
    std::size_t result =
        layout.node_of(state.rank_of[sample]) == node ? state.rank_of[sample] : first;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t rank = first; rank != first + layout.ranks_in(node); ++rank) {
      // Counted twice, a sample may leave the type.
      if (rank == state.rank_of[sample]) continue;
      std::int64_t const load = largest_amount(state.loads[rank] + state.costs[sample]);
      if (load >= least) continue;
      least = load;
      result = rank;
    }
    return static_cast<std::uint32_t>(result);
  }

  [[nodiscard]] static bool fits(resources<R> const& load, resources<R> const& cost,
                                 std::int64_t limit) {
    bool result = true;
    for (std::size_t r = 0; r != R; ++r) result = result && load[r] <= limit - cost[r];
    return result;
  }

 private:
  using light_loads = std::conditional_t<R == 1, ranked_loads<uint128>, compared_loads<R>>;

  /// `rank_for(sample)` is where a sample may go.
  template <class RankFor>
  void send(assignment_state<R>& state, std::int64_t target, RankFor const& rank_for) {
    start(state, target);
    for (std::uint64_t const word : words_) {
      auto const sample = static_cast<std::uint32_t>(word);
      if (!can_leave(state, sample, state.rank_of[sample])) continue;
      std::uint32_t const rank = rank_for(sample);
      if (!fits(state.loads[rank], state.costs[sample], target)) continue;
      take_excess(state.rank_of[sample], state.costs[sample]);
      state.move(sample, rank);
      light_.add(rank, state.costs[sample]);
    }
  }

  /// With the ranks as places.
  void start(assignment_state<R> const& state, std::int64_t target) {
    excess_.clear();
    light_.reset(state.ranks());
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      excess_.push_back(excess_above(state.loads[rank], target));
      light_.add(rank, state.loads[rank]);
      if (sum_of(excess_[rank]) != 0) light_.close(rank);
    }
    collect(state, [](std::uint32_t rank) { return std::size_t{rank}; });
  }

  void sum_nodes(assignment_state<R> const& state, node_layout const& layout) {
    node_loads_.assign(layout.nodes(), resources<R>{});
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      node_loads_[layout.node_of(rank)] += state.loads[rank];
    }
  }

  /// The samples of places with an excess, in the order in which they are to leave.
  template <class PlaceOf>
  void collect(assignment_state<R> const& state, PlaceOf const& place_of) {
    words_.clear();
    for (std::uint32_t i = 0; i != state.costs.size(); ++i) {
      resources<R> const& excess = excess_[place_of(state.rank_of[i])];
      std::int64_t relief = 0;
      for (std::size_t r = 0; r != R; ++r) {
        if (excess[r] > 0) relief += state.costs[i][r];
      }
      if (relief == 0) continue;
      std::uint64_t const key = ~offload_priority(relief, state.bytes[i][0]);
      words_.push_back(key << 32 | i);
    }
    radix_sort(words_, spare_, 32, 32);
  }

  [[nodiscard]] bool can_leave(assignment_state<R> const& state, std::uint32_t sample,
                               std::size_t place) const {
    bool is_relief = false;
    for (std::size_t r = 0; r != R; ++r) {
      std::int64_t const excess = excess_[place][r];
      if (excess == 0) continue;
      if (state.costs[sample][r] > excess) return false;
      is_relief = is_relief || state.costs[sample][r] > 0;
    }
    return is_relief;
  }
  void take_excess(std::size_t place, resources<R> const& cost) {
    for (std::size_t r = 0; r != R; ++r) {
      excess_[place][r] = std::max<std::int64_t>(0, excess_[place][r] - cost[r]);
    }
  }

  light_loads light_{0};
  integer_costs<R> excess_;
  integer_costs<R> node_loads_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
};

}  // namespace omnibal::inline v0::detail
