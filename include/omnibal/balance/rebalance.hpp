// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Even parts that move few bytes.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/rebalance/swap.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/load_order.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/rank_placer.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the priority with which a sample leaves. A sample with more cost per byte has a higher
/// priority, in steps of about a fifth. With equal steps, a larger sample has a higher priority.
/// Precondition: a positive cost.
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

/// A `node_layout` of nodes with one rank each, known at compile time.
struct single_ranks {
  std::size_t ranks;
  [[nodiscard]] static std::size_t ranks_per_node() { return 1; }

  [[nodiscard]] std::size_t nodes() const { return ranks; }
  [[nodiscard]] static std::size_t node_of(std::size_t rank) { return rank; }
  [[nodiscard]] static std::size_t first_rank(std::size_t node) { return node; }
  [[nodiscard]] static std::size_t ranks_in(std::size_t) { return 1; }
};

/// Sends samples from nodes or ranks above their limit to the least loaded ones. The samples that
/// save most bytes go first. A sample that exceeds an excess, or would cause one, stays. Keeps its
/// memory.
template <std::size_t R>
class offload {
 public:
  /// Sends samples from each node whose load exceeds the sum of the targets of its ranks to other
  /// nodes.
  template <class Layout>
  void send_between_nodes(assignment_state<R>& state, Layout const& layout, std::int64_t target) {
    auto const most = static_cast<std::int64_t>(layout.ranks_per_node());
    if (most > 1 && target > std::numeric_limits<std::int64_t>::max() / (2 * most)) return;
    send(state, layout, target,
         [&](std::uint32_t sample) { return light_.best(state.costs[sample]); });
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
      // A sample that is counted twice could overflow the type.
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
      light_.add(node, cost);
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
    light_.reset(layout.nodes());
    for (std::size_t node = 0; node != layout.nodes(); ++node) {
      auto const ranks = static_cast<std::int64_t>(layout.ranks_in(node));
      excess_.push_back(excess_above(node_loads_[node], target * ranks));
      if (sum_of(excess_[node]) != 0) {
        light_.close(node);
        continue;
      }
      // The limit treats the missing ranks of a node as full. Without an excess the sum is at most
      // `target` times the ranks of a full node.
      auto const lacking = static_cast<std::int64_t>(layout.ranks_per_node()) - ranks;
      resources<R> load = node_loads_[node];
      for (std::int64_t& amount : load.amounts) amount += target * lacking;
      light_.add(node, load);
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
      std::uint64_t const key = ~offload_priority(relief, state.bytes[i][0]);
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

  part_loads<R> light_{0};
  integer_costs<R> excess_;
  integer_costs<R> node_loads_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
};

/// Moves samples from their ranks until no load is above a target. Keeps its memory.
template <std::size_t R>
class migration {
 public:
  /// The loads of the ranks. The caller fills the costs and bytes before `run`.
  assignment_state<R> state;

  /// Finds the rank of each sample.
  void run(std::string_view function, grouping_view home, double max_overload,
           given_nodes const& nodes) {
    layout_.set(nodes, home.size());
    part_of_samples(function, "rank", home, state.costs.size(), state.home_of);
    if (!layout_.is_sorted()) {
      for (std::uint32_t& rank : state.home_of) rank = layout_.place_of(rank);
    }
    state.loads.resize(home.size());
    state.start_at_home();
    if (home.empty()) return;
    std::int64_t const target = with_overload(lower_bound(), max_overload);
    if (!settle(target)) choose_fallback(target);
  }

  /// Writes the samples of each rank by ascending index.
  void write(grouping& result) {
    collect_parts(state.rank_of, state.ranks(), offsets_, order_);
    result.clear();
    result.reserve(state.ranks(), order_.size());
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      std::size_t const place = layout_.place_of(rank);
      for (std::size_t i = offsets_[place]; i != offsets_[place + 1]; ++i) result.push(order_[i]);
      result.close();
    }
  }

 private:
  using sender = offload<R>;
  /// The step limit of `relabel`, lower than the default because `rebalance` runs in every step.
  static constexpr std::uint64_t placer_steps = rank_placer::max_steps >> 5;

  /// Returns `min_load`, for which only the largest samples must be in order.
  [[nodiscard]] std::int64_t lower_bound() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    if (state.ranks() < order_.size()) {
      auto const after = order_.begin() + static_cast<std::ptrdiff_t>(state.ranks());
      std::nth_element(order_.begin(), after, order_.end(), state.costs_more());
      std::nth_element(order_.begin(), after - 1, after, state.costs_more());
    }
    return min_load(state.costs, std::span(std::as_const(order_)), state.ranks());
  }

  /// Starts with the samples at home and moves samples; returns whether no load is above the
  /// target.
  [[nodiscard]] bool settle(std::int64_t target) {
    if (state.largest_load() <= target) return true;
    if (layout_.ranks_per_node() != 1) {
      sender_.send_between_nodes(state, layout_, target);
      sender_.send_inside_nodes(state, layout_, target);
    }
    sender_.send_between_nodes(state, single_ranks{state.ranks()}, target);
    swaps_.run(state, layout_, target);
    bring_back(target);
    return state.largest_load() <= target;
  }

  /// Returns moved samples that fit at home, or else on their node; samples with most bytes go
  /// first.
  void bring_back(std::int64_t target) {
    order_.clear();
    for (std::uint32_t i = 0; i != state.rank_of.size(); ++i) {
      if (!state.is_home(i)) order_.push_back(i);
    }
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
      auto const& bytes = state.bytes;
      return bytes[a][0] > bytes[b][0] || (bytes[a] == bytes[b] && a < b);
    });
    for (std::uint32_t const sample : order_) {
      std::uint32_t const home = state.home_of[sample];
      if (try_move(sample, home, target)) continue;
      std::size_t const node = layout_.node_of(home);
      if (layout_.node_of(state.rank_of[sample]) == node) continue;
      try_move(sample, sender::lightest_on_node(state, layout_, node, sample), target);
    }
  }

  bool try_move(std::uint32_t sample, std::uint32_t rank, std::int64_t target) {
    if (!sender::fits(state.loads[rank], state.costs[sample], target)) return false;
    state.move(sample, rank);
    return true;
  }

  /// Tries the parts of `lpt` if the target was not reached. The present parts stay unless the
  /// parts of `lpt` are more even. If these are above the target too, moves from home up to the
  /// same largest load replace them, unless such moves send more bytes.
  void choose_fallback(std::int64_t target) {
    std::int64_t const reached = state.largest_load();
    kept_.swap(state.rank_of);
    place_afresh();
    std::int64_t const fresh = state.largest_load();
    if (fresh >= reached) {
      state.rank_of.swap(kept_);
      return;
    }
    std::int64_t const limit = std::max(target, fresh);
    relabel();
    bring_back(limit);
    if (limit == target) return;
    std::int64_t const moved = state.moved_bytes();
    kept_.swap(state.rank_of);
    state.start_at_home();
    if (!settle(limit) || state.moved_bytes() > moved) state.rank_of.swap(kept_);
  }

  /// Computes the parts of `lpt`.
  void place_afresh() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), state.costs_more());
    light_.reset(state.ranks());
    state.rank_of.resize(state.costs.size());
    for (std::uint32_t const sample : order_) {
      state.rank_of[sample] = light_.best(state.costs[sample]);
      light_.add(state.rank_of[sample], state.costs[sample]);
    }
    state.sum_loads();
  }

  /// Assigns each part to a rank such that few bytes move.
  void relabel() {
    collect_parts(state.rank_of, state.ranks(), offsets_, order_);
    grouping_view const parts(offsets_.data(), order_.data(), state.ranks());
    auto const bytes_of = [this](std::uint32_t sample) { return state.bytes[sample][0]; };
    placer_.run(state.home_of, parts, bytes_of, {.node_of = layout_.node_of()}, placer_steps);
    for (std::uint32_t& rank : state.rank_of) rank = placer_.rank_of(rank);
    state.sum_loads();
  }

  /// The layout of the nodes; ranks are numbered by their places in the layout.
  node_layout layout_;
  sender sender_;
  swap_search<R> swaps_;
  part_loads<R> light_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> kept_;
  rank_placer placer_;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct rebalance_options {
  /// The share of a lower bound by which the largest load may exceed the bound. A smaller share
  /// moves more bytes.
  double max_overload = 0.01;
  /// The number of ranks per node: ranks 0 .. ranks_per_node - 1 are one node, the next ones
  /// another, and the last node may have fewer. The number is positive; with 1 every rank is its
  /// own node. Samples that leave their rank stay on their node if they fit.
  std::size_t ranks_per_node = 1;
  /// The node of each rank, in any numbers, if nodes have several sizes or ranks are not numbered
  /// by node. The member is a view of an array.
  detail::node_numbers node_of = {};
};

/// Memory of `rebalance` for a cost of `R` kinds, and its last result. Keep one workspace from step
/// to step.
template <std::size_t R = 1>
class rebalance_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] grouping const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct rebalance_fn;

  detail::migration<R> keeper_;
  grouping result_;
};

struct rebalance_fn {
  /// Balances loads over ranks and moves few bytes. The function returns one part for each rank.
  /// `home` contains the samples of each rank, and samples stay if they fit. `cost` and `bytes` are
  /// functors of the index of a sample, or ranges with an element for each. `home` names the
  /// indices 0, 1, ... once each, in any order; ranks without samples are legal.
  ///
  /// The largest load is at most 1 + `options.max_overload` times a lower bound if the largest load
  /// of `lpt` is. The largest load never exceeds both that limit and the largest load of `lpt`. The
  /// lower bound is the largest of three loads: the mean load, the largest cost and, with one kind
  /// of cost, the sum of the two smallest among the `ranks + 1` largest costs. If `home` is within
  /// the limit, nothing moves. Otherwise samples leave the ranks above the limit for the least
  /// loaded ranks; samples with the largest cost per byte go first. Ranks that are still above the
  /// limit then exchange single samples, or one sample for several. The exchanges that lower the
  /// load most per byte go first. Finally, samples that fit at home return. If the limit is still
  /// not reached and `lpt` is more even, the function uses the parts of `lpt`. It assigns these
  /// parts to ranks such that few bytes leave a node and, among such assignments, few leave a rank.
  ///
  /// With nodes of several ranks, samples first leave nodes with an excess. Ranks of one node then
  /// balance their loads. Only after that do ranks of different nodes exchange samples, and fewer
  /// bytes cross nodes.
  ///
  /// The samples of a part have ascending indices. Costs may be resources, which count as in `lpt`.
  /// `cost` and `bytes` are called once for each sample, in order.
  ///
  /// Complexity: linear, except for ranks above the limit. A radix sort orders their samples, and
  /// at most 16 exchanges are made for each rank. Each exchange looks at all ranks and at the
  /// samples of a few. Memory: about 70 + 16R bytes per sample and 100 + 8R per rank, result
  /// included; with the parts of `lpt` 20 bytes per sample more. Determinism: portable for
  /// integers. Errors: `std::invalid_argument` if a cost or bytes are negative, not finite or above
  /// 2^63 - 1, if `max_overload` is negative or not finite, if a range has another number of
  /// elements, or if `home` names an index twice or leaves one out. `std::overflow_error` if the
  /// sum of all costs or bytes exceeds its type.
  template <index_measure Cost, detail::index_weight Bytes>
  [[nodiscard]] grouping operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                                    rebalance_options const& options = {}) const {
    rebalance_workspace<detail::kinds_of<detail::index_amount<Cost>>> workspace;
    (*this)(home, cost, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Balances loads in `workspace`, for a training loop. A call allocates only if it requires more
  /// memory than all earlier calls. This happens if there are more samples or ranks, or more
  /// samples on one rank. It also happens if samples leave, are exchanged or are placed by `lpt`
  /// for the first time. The workspace contains the result.
  template <index_measure Cost, detail::index_weight Bytes>
  grouping const& operator()(
      groups_argument home, Cost const& cost, Bytes const& bytes, rebalance_options const& options,
      rebalance_workspace<detail::kinds_of<detail::index_amount<Cost>>>& workspace) const {
    return keep({"rebalance", "cost"}, home, cost, bytes, options, workspace);
  }

  /// Balances loads in `workspace` with default options.
  template <index_measure Cost, detail::index_weight Bytes, std::size_t R>
    requires(R == detail::kinds_of<detail::index_amount<Cost>>)
  grouping const& operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                             rebalance_workspace<R>& workspace) const {
    return (*this)(home, cost, bytes, {}, workspace);
  }

 private:
  friend struct make_plan_fn;

  /// The names of the function and its costs in error texts.
  struct names {
    std::string_view function;
    std::string_view cost;
  };

  template <class Cost, class Bytes, class Workspace>
  static grouping const& keep(names const& called, grouping_view home, Cost const& cost,
                              Bytes const& bytes, rebalance_options const& options,
                              Workspace& workspace) {
    std::string_view const name = called.function;
    detail::check_max_overload(name, options.max_overload);
    detail::check_nodes(name, options, home.size());
    auto& keeper = workspace.keeper_;
    std::size_t const count = home.item_count();
    detail::measure_costs_into(name, {called.cost, "the sum of the costs"}, count,
                               detail::amounts_by_index(name, called.cost, cost, count),
                               keeper.state.costs);
    detail::measure_bytes_into(name, bytes, count, keeper.state.bytes);
    keeper.run(name, home, options.max_overload, detail::given_nodes::of(options));
    keeper.write(workspace.result_);
    return workspace.result_;
  }
};

/// Balances loads over ranks and moves few bytes; see `rebalance_fn`.
inline constexpr rebalance_fn rebalance{};

}  // namespace omnibal::inline v0
