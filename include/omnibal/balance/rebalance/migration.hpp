// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The moves of `rebalance`.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_ranking.hpp>
#include <omnibal/balance/detail/part_refiner.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/balance/rebalance/count_mover.hpp>
#include <omnibal/balance/rebalance/excess_sender.hpp>
#include <omnibal/balance/rebalance/swap.hpp>
#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/rank_placer.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A number of ranks, each with at least `min_count` samples.
struct counted_ranks {
  std::size_t ranks;
  std::size_t min_count;
};

/// Returns a lower bound on the largest load of ranks. Some rank has the largest sample, and some
/// rank has two of the `ranks + 1` largest samples. Such a rank also has other samples, up to the
/// minimum count, which cost at least as much as the smallest samples. The array `order` begins
/// with the `ranks + 1` largest samples, if there are more samples than ranks.
[[nodiscard]] inline std::int64_t min_load_of_counts(integer_costs<1> const& costs,
                                                     std::span<std::uint32_t const> order,
                                                     counted_ranks given) {
  if (given.min_count == 0) return 0;
  std::int64_t pair = 0;
  if (given.ranks < order.size()) {
    pair = costs[order[given.ranks - 1]][0] + costs[order[given.ranks]][0];
  }
  std::vector<std::int64_t> values;
  values.reserve(costs.size());
  for (auto const& cost : costs) values.push_back(cost[0]);
  auto const others = values.begin() + static_cast<std::ptrdiff_t>(given.min_count - 1);
  std::nth_element(values.begin(), others, values.end());
  std::int64_t const beside_one = std::accumulate(values.begin(), others, std::int64_t{0});
  std::int64_t const with_largest = *std::max_element(others, values.end()) + beside_one;
  if (given.min_count == 1) return with_largest;
  return std::max(with_largest, pair + beside_one - *std::max_element(values.begin(), others));
}

/// The options of a migration; see `rebalance_options`.
struct migration_rules {
  double max_overload;
  given_nodes nodes;
  rank_counts counts;
  std::int64_t max_moved_bytes;
  speed_list speeds;
};

/// Moves samples from their ranks until no load is above a target. Later calls reuse its memory.
template <std::size_t R>
class migration {
 public:
  /// The samples, their ranks and the loads of the ranks. The caller fills the costs and bytes
  /// before `run`.
  assignment_state<R> state;

  /// Finds the new rank of each sample, `state.rank_of`, from its rank in `home`.
  void run(std::string_view function, grouping_view home, migration_rules const& rules) {
    layout_.set(rules.nodes, home.size());
    part_of_samples(function, "rank", home, state.costs.size(), state.home_of);
    if (!layout_.is_sorted()) {
      for (std::uint32_t& rank : state.home_of) rank = layout_.place_of(rank);
    }
    state.loads.resize(home.size());
    state.counts.set(function, rules.counts, state.home_of, home.size());
    set_speeds(function, rules.speeds);
    state.start_at_home();
    if (home.empty()) return;
    part_time const limit = with_overload(lower_bound(), rules.max_overload);
    if (!settle(limit)) {
      choose_fallback(limit);
      undo_useless(limit);
    }
    if (state.moved_bytes() > rules.max_moved_bytes) spend(rules.max_moved_bytes, limit);
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
  using sender = excess_sender<R>;
  /// The step limit of `relabel`, lower than the default because `rebalance` runs in every step.
  static constexpr std::uint64_t placer_steps = rank_placer::max_steps >> 5;
  /// The largest sum of costs for which the sum of a load and an offset fits 64 bits.
  static constexpr std::int64_t max_with_speeds = std::int64_t{1} << 62;
  /// The maximum number of exchanges of `refine`.
  static constexpr std::size_t refine_exchanges = 1'000'000;
  /// The maximum number of limits that `spend` tries.
  static constexpr int budget_targets = 20;

  /// Sets the speeds of the ranks in the order of the layout.
  void set_speeds(std::string_view function, speed_list given) {
    state.offsets.clear();
    speeds_ = part_speeds(function, given, state.ranks(), "ranks");
    if (speeds_.are_equal()) return;
    total_ = 0;
    for (std::int64_t const amount : total_of(state.costs).amounts) {
      total_ = std::max(total_, amount);
    }
    if (total_ > max_with_speeds) throw_overflow(function, "twice the sum of the costs");
    speeds_.reorder([this](std::size_t place) { return layout_.rank_at(place); });
    state.offsets.assign(state.ranks(), 0);
  }

  /// Converts a limit on times to a limit on loads, the same for all ranks. With different speeds,
  /// this is the limit of the fastest rank, and the function sets offsets that reduce the limits of
  /// other ranks.
  [[nodiscard]] std::int64_t use(part_time limit) {
    if (speeds_.are_equal()) return limit.load;
    std::int64_t target = 0;
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      target = std::max(target, std::min(load_at(limit, speeds_[rank]), total_));
    }
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      std::int64_t const offset =
          std::min(target - std::min(load_at(limit, speeds_[rank]), total_), max_with_speeds - 1);
      for (std::int64_t& amount : state.loads[rank].amounts) amount += offset - state.offsets[rank];
      state.offsets[rank] = offset;
    }
    return target;
  }

  /// Returns the largest load over speed.
  [[nodiscard]] part_time largest_time() const {
    if (speeds_.are_equal()) return {state.largest_load(), 1};
    part_time result;
    for (std::size_t rank = 0; rank != state.ranks(); ++rank) {
      std::int64_t const load = largest_amount(state.loads[rank]) - state.offsets[rank];
      result = std::max(result, speeds_.time_of(rank, load));
    }
    return result;
  }

  /// Returns `min_load` or, with different speeds, `min_time`. With limited counts and one kind of
  /// cost, the bound is at least `min_load_of_counts`.
  [[nodiscard]] part_time lower_bound() {
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    part_time bound;
    if (speeds_.are_equal()) {
      // The bound reads only the samples at the positions ranks - 1 and ranks of the descending
      // order. Therefore the other samples need not be sorted.
      if (state.ranks() < order_.size()) {
        auto const after = order_.begin() + static_cast<std::ptrdiff_t>(state.ranks());
        std::nth_element(order_.begin(), after, order_.end(), state.costs_more());
        std::nth_element(order_.begin(), after - 1, after, state.costs_more());
      }
      bound.load = min_load(state.costs, std::span(std::as_const(order_)), state.ranks());
    } else {
      std::sort(order_.begin(), order_.end(), state.costs_more());
      bound = min_time(state.costs, std::span(std::as_const(order_)), speeds_);
    }
    if constexpr (R == 1) {
      if (state.counts.is_limited()) {
        std::int64_t const load = min_load_of_counts(state.costs, std::span(std::as_const(order_)),
                                                     {state.ranks(), state.counts.min_count()});
        bound = std::max(bound, part_time{load, speeds_.largest()});
      }
    }
    return bound;
  }

  /// Starts with the samples at home and moves samples; returns whether no load over speed is above
  /// the limit.
  [[nodiscard]] bool settle(part_time limit) {
    std::int64_t const target = use(limit);
    if (state.counts.is_limited()) {
      required_.run(state, target);
    } else if (state.largest_load() > target) {
      if (layout_.ranks_per_node() != 1) {
        sender_.send_between_nodes(state, layout_, target);
        sender_.send_inside_nodes(state, layout_, target);
      }
      sender_.send_between_nodes(state, single_ranks{state.ranks()}, target);
    }
    if (state.largest_load() <= target) return true;
    swaps_.run(state, layout_, target);
    bring_back(target);
    return state.largest_load() <= target;
  }

  /// Moves samples that are away from home back to their home if they fit, or else to a rank of its
  /// node. Samples with the most bytes go first.
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
    if (!state.counts.may_leave(state.rank_of[sample]) || !state.counts.may_arrive(rank)) {
      return false;
    }
    state.move(sample, rank);
    return true;
  }

  /// Tries the parts of `lpt` if the limit was not reached. The present parts stay unless the parts
  /// of `lpt` are more even. If the parts of `lpt` are above the limit too, the function also
  /// searches for moves from home that reach the same largest load. It uses these moves if they
  /// send no more bytes.
  void choose_fallback(part_time limit) {
    if (state.counts.is_limited()) {
      refine(limit);
      return;
    }
    part_time const reached = largest_time();
    kept_.swap(state.rank_of);
    place_afresh();
    part_time const fresh = largest_time();
    if (!(fresh < reached)) {
      state.rank_of.swap(kept_);
      return;
    }
    part_time const next = std::max(limit, fresh);
    if (speeds_.are_equal()) relabel();
    bring_back(use(next));
    if (next == limit) return;
    std::int64_t const moved = state.moved_bytes();
    kept_.swap(state.rank_of);
    state.start_at_home();
    if (!settle(next) || state.moved_bytes() > moved) state.rank_of.swap(kept_);
  }

  /// Returns to the samples at home, except for moves that the counts require, unless the moves
  /// lowered the largest load over speed.
  void undo_useless(part_time limit) {
    state.sum_loads();
    part_time const reached = largest_time();
    kept_.swap(state.rank_of);
    start_again(limit);
    if (reached < largest_time()) state.rank_of.swap(kept_);
  }

  /// Starts with the samples at home and the moves that the counts require.
  void start_again(part_time limit) {
    state.start_at_home();
    if (state.counts.is_limited()) required_.run(state, use(limit));
  }

  /// Exchanges samples as `refine_parts` does, until no load is above the limit or no exchange
  /// lowers the largest load.
  void refine(part_time limit) {
    if (speeds_.are_equal()) {
      refine(limit.load, equal_speeds{});
    } else {
      refine(limit, speeds_);
    }
  }
  template <class Time, class Speeds>
  void refine(Time const& limit, Speeds const& speeds) {
    auto const order = largest_first(state.costs);
    std::vector<std::uint32_t> part_of = state.rank_of;
    search_budget budget(refine_exchanges);
    part_refiner refiner(state.costs, order, part_of, state.ranks(), free_exchanges{}, speeds);
    refiner.run(limit, budget, part_counts::kept);
    refiner.for_each_sample(
        [&](std::uint32_t place, std::uint32_t rank) { state.rank_of[order[place]] = rank; });
    state.sum_loads();
  }

  /// Bisects the limit on the largest load over speed, from `limit` to the value at home. Keeps the
  /// best parts that move at most `max_bytes`. If no limit gives such parts, keeps only the moves
  /// that the counts require.
  void spend(std::int64_t max_bytes, part_time limit) {
    start_again(limit);
    kept_ = state.rank_of;
    part_time least = largest_time();
    // The bisected limits are loads of the fastest rank.
    std::int64_t const fastest = speeds_.largest();
    std::int64_t low = load_at(limit, fastest);
    std::int64_t high = load_at(least, fastest) + 1;
    for (int i = 0; i != budget_targets && high - low > 1; ++i) {
      std::int64_t const middle = low + (high - low) / 2;
      state.start_at_home();
      static_cast<void>(settle({middle, fastest}));
      if (state.moved_bytes() > max_bytes) {
        low = middle;
        continue;
      }
      high = middle;
      part_time const reached = largest_time();
      if (!(reached < least)) continue;
      least = reached;
      kept_ = state.rank_of;
    }
    state.rank_of.swap(kept_);
  }

  /// Returns the largest load that a rank of this speed finishes within a time.
  [[nodiscard]] static std::int64_t load_at(part_time time, std::int64_t speed) {
    return static_cast<std::int64_t>(std::min<int128>(
        int128{time.load} * speed / time.speed, std::numeric_limits<std::int64_t>::max() - 1));
  }

  /// Computes the parts of `lpt`.
  void place_afresh() {
    if (!speeds_.are_equal()) {
      state.rank_of = place_longest_first(state.costs, count_limits(state.ranks()), speeds_);
      state.sum_loads();
      return;
    }
    order_.resize(state.costs.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::sort(order_.begin(), order_.end(), state.costs_more());
    lightest_.reset(state.ranks());
    state.rank_of.resize(state.costs.size());
    for (std::uint32_t const sample : order_) {
      state.rank_of[sample] = lightest_.best(state.costs[sample]);
      lightest_.add(state.rank_of[sample], state.costs[sample]);
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
  /// The speeds of the ranks by their places and, if they differ, the largest sum of a kind.
  part_speeds speeds_{"", {}, 0};
  std::int64_t total_ = 0;
  sender sender_;
  count_mover<R> required_;
  swap_search<R> swaps_;
  part_loads<R> lightest_{0};
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> kept_;
  rank_placer placer_;
};

}  // namespace omnibal::inline v0::detail
