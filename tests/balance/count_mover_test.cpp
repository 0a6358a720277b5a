// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/balance/rebalance/count_mover.hpp>
#include <omnibal/balance/rebalance/swap.hpp>
#include <omnibal/detail/load_order.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::rank_counts;
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

template <std::size_t R>
using state_of = omnibal::detail::assignment_state<R>;

/// The rank with the largest or smallest load that is eligible, found by a pass over the ranks.
template <std::size_t R>
std::uint32_t best_rank(state_of<R> const& state, std::function<bool(std::size_t)> const& eligible,
                        bool is_largest) {
  std::uint32_t best = none;
  for (std::uint32_t rank = 0; rank != state.ranks(); ++rank) {
    if (!eligible(rank)) continue;
    auto const load = omnibal::detail::largest_amount(state.loads[rank]);
    if (best == none || (is_largest ? load > omnibal::detail::largest_amount(state.loads[best])
                                    : load < omnibal::detail::largest_amount(state.loads[best]))) {
      best = rank;
    }
  }
  return best;
}

/// The moves of `count_mover` with a pass over all samples for each.
template <std::size_t R>
void move_slowly(state_of<R>& state, std::int64_t target) {
  auto const& counts = state.counts;
  for (;;) {
    auto from = best_rank<R>(
        state, [&](std::size_t r) { return counts.is_above(r); }, true);
    auto to = best_rank<R>(
        state, [&](std::size_t r) { return counts.is_below(r); }, false);
    if (from == none && to == none) return;
    if (from == none) {
      from = best_rank<R>(
          state, [&](std::size_t r) { return counts.may_leave(r); }, true);
    }
    if (to == none) {
      to = best_rank<R>(
          state, [&](std::size_t r) { return counts.may_arrive(r); }, false);
    }
    std::tuple<std::int64_t, std::int64_t, std::uint32_t> best;
    bool is_found = false;
    for (std::uint32_t i = 0; i != state.rank_of.size(); ++i) {
      if (state.rank_of[i] != from) continue;
      REQUIRE(state.is_home(i));
      std::tuple const key{omnibal::detail::excess_of(state.loads[from] - state.costs[i], target) +
                               omnibal::detail::excess_of(state.loads[to] + state.costs[i], target),
                           state.bytes[i][0], i};
      if (is_found && !(key < best)) continue;
      best = key;
      is_found = true;
    }
    state.move(std::get<2>(best), to);
  }
}

template <std::size_t R>
void compare_with_passes(std::uint64_t seed, std::size_t trials) {
  test::random_amounts random(seed);
  omnibal::detail::count_mover<R> mover;
  for (std::size_t trial = 0; trial != trials; ++trial) {
    auto const ranks = static_cast<std::size_t>(random.between(1, 9));
    auto const count = static_cast<std::size_t>(random.between(0, 60));
    std::int64_t const most = std::vector<std::int64_t>{1, 3, 20, 1000}[trial % 4];
    std::int64_t const last = trial % 3 == 0 ? 0 : static_cast<std::int64_t>(ranks) - 1;
    state_of<R> state;
    for (std::size_t i = 0; i != count; ++i) {
      state.costs.emplace_back();
      for (std::size_t r = 0; r != R; ++r) state.costs.back()[r] = random.between(0, most);
      state.bytes.push_back({random.between(0, static_cast<std::int64_t>(trial % 5))});
      state.home_of.push_back(static_cast<std::uint32_t>(random.between(0, last)));
    }
    state.loads.resize(ranks);
    state.counts.set("test", rank_counts::at_most_one_apart, state.home_of, ranks);
    if (trial % 2 == 0) {
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        state.offsets.push_back(random.between(0, most));
      }
    }
    state.start_at_home();
    std::int64_t const target = random.between(0, state.largest_load());
    auto slow = state;
    move_slowly<R>(slow, target);
    mover.run(state, target);
    INFO("trial " << trial << ", " << R << " kinds");
    REQUIRE(state.rank_of == slow.rank_of);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      REQUIRE(state.loads[rank] == slow.loads[rank]);
      REQUIRE_FALSE(state.counts.is_above(rank));
      REQUIRE_FALSE(state.counts.is_below(rank));
    }
  }
}

}  // namespace

// Trees and queues must choose what passes over all ranks and samples choose, ties included.
TEST_CASE("required moves are those of passes over all samples") {
  compare_with_passes<1>(1, 2000);
  compare_with_passes<2>(2, 2000);
  compare_with_passes<3>(3, 1000);
}

// A pass over all samples for each move would take hours here.
TEST_CASE("100,000 samples leave one rank") {
  test::random_amounts random(4);
  std::size_t const count = 100'000;
  state_of<1> state;
  for (std::size_t i = 0; i != count; ++i) {
    state.costs.push_back({random.between(1, 1000)});
    state.bytes.push_back({random.between(1, 1000)});
  }
  state.home_of.assign(count, 0);
  state.loads.resize(1000);
  state.counts.set("test", rank_counts::equal, state.home_of, 1000);
  state.start_at_home();
  omnibal::detail::count_mover<1> mover;
  mover.run(state, state.largest_load() / 1000);
  for (std::size_t rank = 0; rank != 1000; ++rank) {
    REQUIRE_FALSE(state.counts.is_above(rank));
    REQUIRE_FALSE(state.counts.is_below(rank));
  }
}
