#pragma once

/// \file
/// Even parts with few bytes moved.

#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/index_measure.hpp>
#include <omnibal/balance/keep_home/swap.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
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
#include <type_traits>
#include <utility>
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

/// A `node_layout` of nodes with one rank each, where compilers see that.
struct single_ranks {
  std::size_t ranks;
  [[nodiscard]] static std::size_t ranks_per_node() { return 1; }

  [[nodiscard]] std::size_t nodes() const { return ranks; }
  [[nodiscard]] static std::size_t node_of(std::size_t rank) { return rank; }
  [[nodiscard]] static std::size_t first_rank(std::size_t node) { return node; }
  [[nodiscard]] static std::size_t ranks_in(std::size_t) { return 1; }
};

/// Sends samples from nodes or ranks above their limit to the least loaded ones, those first that
/// save most bytes, and none that is more than an excess or makes one. Keeps its memory.
template <std::size_t R>
class offload {
 public:
  /// From nodes above the sum of the targets of their ranks to others.
  template <class Layout>
  void send_between_nodes(assignment_state<R>& state, Layout const& layout, std::int64_t target) {
    auto const most = static_cast<std::int64_t>(layout.ranks_per_node());
    if (most > 1 && target > std::numeric_limits<std::int64_t>::max() / (2 * most)) return;
    send(state, layout, target,
         [&](std::uint32_t sample) { return light_.best(state.costs[sample]); });
  }

  /// From ranks above the target to ranks of the same node.
  void send_inside_nodes(assignment_state<R>& state, node_layout const& layout,
                         std::int64_t target) {
    send(state, single_ranks{state.ranks()}, target, [&](std::uint32_t sample) {
      return lightest_on_node(state, layout, layout.node_of(state.rank_of[sample]), sample);
    });
  }

  /// The rank of a node, if possible another, whose largest load would be least with the sample.
  template <class Layout>
  [[nodiscard]] static std::uint32_t lightest_on_node(assignment_state<R> const& state,
                                                      Layout const& layout, std::size_t node,
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

  /// `node_for(sample)` is where a sample may go.
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
      // As if the ranks that a node lacks were full. Without an excess the sum is at most
      // `target` times the ranks of a full node.
      auto const lacking = static_cast<std::int64_t>(layout.ranks_per_node()) - ranks;
      resources<R> load = node_loads_[node];
      for (std::int64_t& amount : load.amounts) amount += target * lacking;
      light_.add(node, load);
    }
    collect(state, layout);
  }

  /// The samples of nodes with an excess, in the order in which they are to leave.
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

  light_loads light_{0};
  integer_costs<R> excess_;
  integer_costs<R> node_loads_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> spare_;
};

/// Moves samples from where they are until no load is above a target. Keeps its memory.
template <std::size_t R>
class migration {
 public:
  /// Costs and bytes are to be filled by the caller before `run`.
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

  /// The samples of each rank by ascending index.
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
  /// Some milliseconds.
  static constexpr std::uint64_t placer_steps = rank_placer::most_steps >> 5;

  using light_loads = std::conditional_t<R == 1, ranked_loads<uint128>, compared_loads<R>>;

  /// `least_load`, for which only the largest samples have to be in order.
  [[nodiscard]] std::int64_t lower_bound() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    if (state.ranks() < order_.size()) {
      auto const after = order_.begin() + static_cast<std::ptrdiff_t>(state.ranks());
      std::nth_element(order_.begin(), after, order_.end(), state.costs_more());
      std::nth_element(order_.begin(), after - 1, after, state.costs_more());
    }
    return least_load(state.costs, std::span(std::as_const(order_)), state.ranks());
  }

  /// Starts at home and moves samples; true where no load is above the target then.
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

  /// Moved samples that fit at home, or else on their node, return; those with most bytes first.
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

  /// The parts of `lpt` are the measure where the target was not reached, and the result where no
  /// others that are as even move fewer bytes.
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

  /// The parts of `lpt`.
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

  /// Gives each part to a rank so that few bytes move.
  void relabel() {
    collect_parts(state.rank_of, state.ranks(), offsets_, order_);
    grouping_view const parts(offsets_.data(), order_.data(), state.ranks());
    auto const bytes_of = [this](std::uint32_t sample) { return state.bytes[sample][0]; };
    placer_.run(state.home_of, parts, bytes_of, {.node_of = layout_.node_of()}, placer_steps);
    for (std::uint32_t& rank : state.rank_of) rank = placer_.rank_of(rank);
    state.sum_loads();
  }

  /// Ranks are their places in it.
  node_layout layout_;
  sender sender_;
  swap_search<R> swaps_;
  light_loads light_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> kept_;
  rank_placer placer_;
};

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

struct keep_home_options {
  /// By which share of a lower bound the largest load may exceed it. The smaller it is, the more
  /// bytes move.
  double max_overload = 0.01;
  /// Ranks 0 .. ranks_per_node - 1 are one node, the next ones another, the last may have fewer.
  /// Positive: with 1 every rank is a node of its own. What leaves its rank stays on its node where
  /// it fits.
  std::size_t ranks_per_node = 1;
  /// The node of each rank, any numbers, where nodes are other ones: a view of an array.
  detail::node_numbers node_of = {};
};

/// Memory of `keep_home` for a cost of `R` kinds, and its last result. To be kept from step to
/// step.
template <std::size_t R = 1>
class keep_home_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] grouping const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct keep_home_fn;

  detail::migration<R> keeper_;
  grouping result_;
};

struct keep_home_fn {
  /// Parts with even loads, one for each rank, that move few bytes: `home` has the samples that lie
  /// on each rank, and samples stay where they fit. `cost` and `bytes` are functors of the index of
  /// a sample, or ranges with an element for each. `home` names the indices 0, 1, ... once each, in
  /// any order; ranks without samples are legal.
  ///
  /// The largest load is at most 1 + `options.max_overload` times a lower bound (the mean load, the
  /// largest cost, two of the `ranks + 1` largest) wherever that of `lpt` is, and never above both
  /// that limit and the load of `lpt`. Nothing moves where `home` is within the limit. Otherwise
  /// samples leave the ranks above it for the least loaded ones, those first that have the most
  /// cost for their bytes; then ranks that are still above it exchange single samples, or one
  /// against several, of which those go first that lower the load most for their bytes; then what
  /// fits at home returns. Only where the limit is not reached so and `lpt` is evener its parts are
  /// taken, and given to ranks so that few bytes leave a node, and of those few a rank.
  ///
  /// With nodes of several ranks, first what a node has too much leaves it, then ranks of one node
  /// even their loads, and only then ranks of different nodes do. With 8 of 2560 ranks on a node a
  /// third as many bytes cross nodes as without, on mixtures where samples have to cross at all.
  ///
  /// The parts have their samples by ascending index. Costs may be resources, which count as in
  /// `lpt`. `cost` and `bytes` are called once for each sample, in order. On 64 ranks with 64
  /// samples each, lengths with a heavy tail as bytes and their squares as costs, 2 to 18 % of the
  /// bytes move at the balance of `lpt`, which moves 74 to 85 % after the best relabelling.
  ///
  /// Complexity: linear but for ranks above the limit, whose samples are sorted by a radix sort,
  /// and for at most 16 exchanges for each rank, each of which looks at all ranks and at the
  /// samples of a few. Memory: about 70 + 16R bytes per sample and 100 + 8R per rank, result
  /// included; where `lpt` is asked 20 bytes per sample more. Determinism: portable for integers.
  /// Errors: `std::invalid_argument` for a cost or bytes that are negative, not finite or above
  /// 2^63 - 1, a `max_overload` that is negative or not finite, a range with another number of
  /// elements and a `home` that names an index twice or leaves one out; `std::overflow_error` where
  /// the sum of all costs or bytes leaves its type.
  template <index_measure Cost, detail::index_weight Bytes>
  [[nodiscard]] grouping operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                                    keep_home_options const& options = {}) const {
    keep_home_workspace<detail::kinds_of<detail::index_amount<Cost>>> workspace;
    (*this)(home, cost, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// The same in memory that is kept, for a training loop. A call allocates only where it needs
  /// more than all calls before it: where there are more samples or ranks, or more samples on one
  /// rank, and where samples leave, are exchanged or placed by `lpt` for the first time. The result
  /// lies in the workspace.
  template <index_measure Cost, detail::index_weight Bytes>
  grouping const& operator()(
      groups_argument home, Cost const& cost, Bytes const& bytes, keep_home_options const& options,
      keep_home_workspace<detail::kinds_of<detail::index_amount<Cost>>>& workspace) const {
    return keep({"keep_home", "cost"}, home, cost, bytes, options, workspace);
  }

  /// The same with default options.
  template <index_measure Cost, detail::index_weight Bytes, std::size_t R>
    requires(R == detail::kinds_of<detail::index_amount<Cost>>)
  grouping const& operator()(groups_argument home, Cost const& cost, Bytes const& bytes,
                             keep_home_workspace<R>& workspace) const {
    return (*this)(home, cost, bytes, {}, workspace);
  }

 private:
  friend struct make_plan_fn;

  /// What error texts call the function and its costs.
  struct names {
    std::string_view function;
    std::string_view cost;
  };

  template <class Cost, class Bytes, class Workspace>
  static grouping const& keep(names const& called, grouping_view home, Cost const& cost,
                              Bytes const& bytes, keep_home_options const& options,
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

/// Even parts with few bytes moved; see `keep_home_fn`.
inline constexpr keep_home_fn keep_home{};

}  // namespace omnibal::inline v0
