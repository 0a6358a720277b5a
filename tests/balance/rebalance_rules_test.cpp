// SPDX-License-Identifier: Apache-2.0
#include "best_relabeling.hpp"
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/rebalance.hpp>
#include <omnibal/balance/rebalance/assignment_state.hpp>
#include <omnibal/balance/rebalance/swap.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::rank_counts;
using omnibal::rebalance;
using cost_list = std::vector<std::int64_t>;

grouping random_home(test::random_amounts& random, std::size_t samples, std::size_t ranks) {
  std::vector<std::vector<std::uint32_t>> parts(ranks);
  auto const last = static_cast<std::int64_t>(ranks) - 1;
  for (std::uint32_t i = 0; i != samples; ++i) {
    parts[static_cast<std::size_t>(random.between(0, last))].push_back(i);
  }
  grouping result;
  for (auto const& part : parts) {
    for (std::uint32_t const i : part) result.push(i);
    result.close();
  }
  return result;
}

std::int64_t largest_load(omnibal::grouping_view parts, cost_list const& costs) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    std::int64_t load = 0;
    for (std::uint32_t const item : parts[p]) load += costs[item];
    largest = std::max(largest, load);
  }
  return largest;
}

bool follows(rank_counts rule, grouping const& home, grouping const& parts) {
  std::size_t const floor = home.item_count() / home.size();
  std::size_t const ceiling = floor + (home.item_count() % home.size() == 0 ? 0 : 1);
  for (std::size_t rank = 0; rank != home.size(); ++rank) {
    std::size_t const count = parts[rank].size();
    if (rule == rank_counts::kept && count != home[rank].size()) return false;
    if (rule == rank_counts::equal && count != floor) return false;
    if (rule == rank_counts::at_most_one_apart && (count < floor || count > ceiling)) return false;
  }
  return true;
}

/// The fewest bytes of all placements that follow a rule within a limit, and the least largest load
/// of all placements that follow the rule and move at most a number of bytes.
struct best_placements {
  std::int64_t fewest_bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t least_load = std::numeric_limits<std::int64_t>::max();
};

struct placement_question {
  rank_counts rule = rank_counts::any;
  std::int64_t limit = 0;
  std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max();
};

best_placements try_all(grouping const& home, cost_list const& costs, cost_list const& bytes,
                        placement_question const& asked) {
  best_placements best;
  std::vector<std::size_t> rank_of(costs.size(), 0);
  for (;;) {
    grouping parts;
    for (std::size_t rank = 0; rank != home.size(); ++rank) {
      for (std::uint32_t i = 0; i != costs.size(); ++i) {
        if (rank_of[i] == rank) parts.push(i);
      }
      parts.close();
    }
    if (follows(asked.rule, home, parts)) {
      std::int64_t const moved = test::moved_bytes(home, parts, bytes);
      std::int64_t const load = largest_load(parts, costs);
      if (load <= asked.limit) best.fewest_bytes = std::min(best.fewest_bytes, moved);
      if (moved <= asked.max_bytes) best.least_load = std::min(best.least_load, load);
    }
    std::size_t digit = 0;
    while (digit != rank_of.size() && ++rank_of[digit] == home.size()) rank_of[digit++] = 0;
    if (digit == rank_of.size()) return best;
  }
}

cost_list random_costs(test::random_amounts& random, std::size_t count, std::int64_t most) {
  cost_list result(count);
  for (auto& cost : result) cost = random.between(0, most);
  return result;
}

}  // namespace

// Counts are a promise: a trainer that allocates slots fails if one rank gets a sample too many.
TEST_CASE("rebalance follows the rule for counts, and exchanges never raise the largest load") {
  test::random_amounts random(1);
  for (std::size_t trial = 0; trial != 600; ++trial) {
    std::size_t const ranks = 1 + trial % 9;
    // Every other number of samples is no multiple of the ranks.
    std::size_t const count = ranks * (1 + trial % 7) + trial % 2 * (trial / 2 % ranks);
    auto const home = random_home(random, count, ranks);
    auto const costs = random_costs(random, count, trial % 3 == 0 ? 1 : 1000);
    cost_list const one(count, 1);
    for (auto const rule :
         {rank_counts::kept, rank_counts::equal, rank_counts::at_most_one_apart}) {
      if (rule == rank_counts::equal && count % ranks != 0) continue;
      for (std::size_t const of_node : {1u, 3u}) {
        auto const parts = rebalance(
            home, costs, one, {.max_overload = 0.01, .ranks_per_node = of_node, .counts = rule});
        INFO(trial << ", rule " << static_cast<int>(rule));
        REQUIRE(test::parts_fault(parts, count, ranks) == "");
        REQUIRE(follows(rule, home, parts));
        if (rule == rank_counts::kept) {
          REQUIRE(largest_load(parts, costs) <= largest_load(home, costs));
        }
      }
    }
  }
}

// Several kinds take another path through the exchanges.
TEST_CASE("rebalance follows the rule for counts of two kinds of cost") {
  test::random_amounts random(2);
  for (std::size_t trial = 0; trial != 200; ++trial) {
    std::size_t const ranks = 2 + trial % 5;
    std::size_t const count = ranks * (1 + trial % 6) + trial % 2;
    auto const home = random_home(random, count, ranks);
    std::vector<omnibal::resources<2>> costs(count);
    for (auto& cost : costs) cost = {random.between(0, 90), random.between(0, 9)};
    cost_list const one(count, 1);
    for (auto const rule : {rank_counts::kept, rank_counts::at_most_one_apart}) {
      auto const parts = rebalance(home, costs, one, {.max_overload = 0.0, .counts = rule});
      REQUIRE(test::parts_fault(parts, count, ranks) == "");
      REQUIRE(follows(rule, home, parts));
    }
  }
}

// The bound decides when exchanges end; a bound above the optimum would end them too early.
TEST_CASE("the bound of counted ranks is below every placement") {
  test::random_amounts random(3);
  for (std::size_t trial = 0; trial != 400; ++trial) {
    std::size_t const ranks = 1 + trial % 3;
    std::size_t const count = ranks + trial % (8 - ranks);
    auto const costs = random_costs(random, count, 20);
    auto const home = random_home(random, count, ranks);
    auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
    auto const order = omnibal::detail::largest_first(whole);
    std::int64_t const bound = omnibal::detail::min_load_of_counts(
        whole, std::span(order), {.ranks = ranks, .min_count = count / ranks});
    auto const best = try_all(home, costs, costs, {.rule = rank_counts::at_most_one_apart});
    CAPTURE(trial, costs);
    REQUIRE(bound <= best.least_load);
  }
}

/// Samples that move, and the fewest that must move for an equally large load.
struct moved_samples {
  std::int64_t moved = 0;
  std::int64_t fewest = 0;

  /// Adds the samples that `rebalance` with kept counts moves.
  void add(grouping const& home, cost_list const& costs, double max_overload) {
    cost_list const one(costs.size(), 1);
    auto const parts =
        rebalance(home, costs, one, {.max_overload = max_overload, .counts = rank_counts::kept});
    std::int64_t const reached = largest_load(parts, costs);
    auto const best = try_all(home, costs, one, {.rule = rank_counts::kept, .limit = reached});
    REQUIRE(best.fewest_bytes <= test::moved_bytes(home, parts, one));
    moved += test::moved_bytes(home, parts, one);
    fewest += best.fewest_bytes;
  }
};

// The bytes that move are what a user pays: they are compared with the fewest of all placements.
TEST_CASE("rebalance with kept counts moves little more than the fewest samples") {
  test::random_amounts random(4);
  moved_samples sum;
  for (std::size_t trial = 0; trial != 150; ++trial) {
    std::size_t const ranks = 2 + trial % 3;
    std::size_t const count = ranks * (ranks == 2 ? 4 : 2);
    auto const home = random_home(random, count, ranks);
    sum.add(home, random_costs(random, count, 100), 0.1);
  }
  CAPTURE(sum.moved, sum.fewest);
  CHECK(sum.moved * 100 <= sum.fewest * 106);
}

// Experts of very different loads: an exchange of two ranks cannot help the rank with the largest
// expert if only a third rank has the right room.
TEST_CASE("rebalance with kept counts rotates samples among three ranks") {
  cost_list const costs{17, 4, 15, 1, 6, 2};
  cost_list const one(costs.size(), 1);
  grouping const home({0, 2, 4, 6}, {0, 1, 2, 3, 4, 5});
  auto const parts =
      rebalance(home, costs, one, {.max_overload = 0.0, .counts = rank_counts::kept});
  CHECK(parts == grouping({0, 2, 4, 6}, {1, 4, 0, 3, 2, 5}));
}

TEST_CASE("rebalance with kept counts moves the fewest of samples with very different costs") {
  test::random_amounts random(5);
  moved_samples sum;
  for (std::size_t trial = 0; trial != 60; ++trial) {
    std::size_t const ranks = 3 + trial % 2;
    auto const home = random_home(random, 2 * ranks, ranks);
    auto costs = random_costs(random, 2 * ranks, 10);
    for (auto& cost : costs) cost = 10 << cost;
    sum.add(home, costs, 0.05);
  }
  CHECK(sum.moved == sum.fewest);
}

// The issue of experts after drift: eight experts on each of 32 ranks, and few exchanges.
TEST_CASE("rebalance with kept counts needs about one exchange for each rank above the limit") {
  double exchanges = 0;
  double above = 0;
  double of_refine = 0;
  for (std::uint64_t seed = 0; seed != 10; ++seed) {
    test::random_amounts random(seed);
    std::size_t const ranks = 32;
    std::size_t const count = 256;
    cost_list costs(count);
    for (auto& cost : costs) cost = 200 + random.between(0, 800) + random.between(0, 800);
    grouping start;
    for (std::uint32_t i = 0; i != count; ++i) {
      start.push(i);
      if (i % 8 == 7) start.close();
    }
    auto const home = omnibal::refine_parts(costs, start, std::identity{},
                                            {.counts = omnibal::part_counts::kept});
    for (auto& cost : costs) cost = cost * random.between(60, 140) / 100;
    cost_list const one(count, 1);
    auto const parts =
        rebalance(home, costs, one, {.max_overload = 0.05, .counts = rank_counts::kept});
    std::int64_t total = 0;
    for (std::int64_t const cost : costs) total += cost;
    double const limit = 1.05 * std::ceil(static_cast<double>(total) / 32);
    CHECK(static_cast<double>(largest_load(parts, costs)) <= limit);
    auto const refined = omnibal::refine_parts(
        costs, home, std::identity{}, {.max_overload = 0.05, .counts = omnibal::part_counts::kept});
    of_refine += static_cast<double>(test::moved_bytes(home, refined, one)) / 2;
    exchanges += static_cast<double>(test::moved_bytes(home, parts, one)) / 2;
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      double load = 0;
      for (std::uint32_t const i : home[rank]) load += static_cast<double>(costs[i]);
      above += load > limit ? 1 : 0;
    }
  }
  CAPTURE(exchanges, above, of_refine);
  CHECK(exchanges <= 0.9 * above);
  CHECK(exchanges * 10 <= of_refine * 6);
}

// Counts come before the budget: slots are memory, and bytes are only time.
TEST_CASE("rebalance makes the moves that counts require even without a budget") {
  test::random_amounts random(7);
  for (std::size_t trial = 0; trial != 100; ++trial) {
    std::size_t const ranks = 2 + trial % 5;
    std::size_t const count = ranks * 3 + trial % 2;
    auto const home = random_home(random, count, ranks);
    auto const costs = random_costs(random, count, 100);
    cost_list const one(count, 1);
    auto const parts = rebalance(home, costs, one,
                                 {.counts = rank_counts::at_most_one_apart, .max_moved_bytes = 0});
    REQUIRE(follows(rank_counts::at_most_one_apart, home, parts));
    auto const best = count > 8 ? best_placements{}
                                : try_all(home, costs, one,
                                          {.rule = rank_counts::at_most_one_apart,
                                           .limit = std::numeric_limits<std::int64_t>::max()});
    if (count <= 8) REQUIRE(test::moved_bytes(home, parts, one) == best.fewest_bytes);
  }
}

// A rank within the limit must not pay for the others.
TEST_CASE("exchanges leave ranks within the target there") {
  test::random_amounts random(8);
  for (std::size_t trial = 0; trial != 300; ++trial) {
    std::size_t const ranks = 2 + trial % 6;
    std::size_t const count = ranks * (2 + trial % 5);
    auto const costs = random_costs(random, count, 1000);
    omnibal::detail::assignment_state<1> state;
    state.costs = omnibal::detail::measure_costs("test", costs, std::identity{});
    state.bytes.assign(count, {1});
    for (std::size_t i = 0; i != count; ++i) {
      state.home_of.push_back(
          static_cast<std::uint32_t>(random.between(0, static_cast<std::int64_t>(ranks) - 1)));
    }
    state.loads.resize(ranks);
    state.counts.set("test", rank_counts::kept, state.home_of, ranks);
    state.start_at_home();
    auto const before = state.loads;
    std::int64_t const target = state.largest_load() * 3 / 4;
    omnibal::detail::node_layout layout;
    layout.set({}, ranks);
    omnibal::detail::swap_search<1> search;
    search.run(state, layout, target);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      if (before[rank][0] <= target) REQUIRE(state.loads[rank][0] <= target);
    }
  }
}

// A budget is a limit of the network: it must hold, and more of it must buy evenness.
TEST_CASE("rebalance moves at most its budget of bytes") {
  test::random_amounts random(5);
  for (std::size_t trial = 0; trial != 300; ++trial) {
    std::size_t const ranks = 2 + trial % 7;
    std::size_t const count = ranks * (2 + trial % 8);
    auto const home = random_home(random, count, ranks);
    auto const costs = random_costs(random, count, 1000);
    auto const bytes = random_costs(random, count, 50);
    for (auto const rule : {rank_counts::any, rank_counts::kept}) {
      auto const free = rebalance(home, costs, bytes, {.counts = rule});
      std::int64_t const needed = test::moved_bytes(home, free, bytes);
      CHECK(rebalance(home, costs, bytes, {.counts = rule, .max_moved_bytes = needed}) == free);
      for (std::int64_t const share : {0, 1, 2, 3}) {
        std::int64_t const budget = needed * share / 4;
        auto const parts =
            rebalance(home, costs, bytes, {.counts = rule, .max_moved_bytes = budget});
        REQUIRE(test::parts_fault(parts, count, ranks) == "");
        REQUIRE(test::moved_bytes(home, parts, bytes) <= budget);
        REQUIRE(largest_load(parts, costs) <= largest_load(home, costs));
      }
    }
  }
}

// On the whole, a budget is used well: compared with the least load of all placements within it.
TEST_CASE("rebalance with a budget is near the least load of all placements within it") {
  test::random_amounts random(6);
  double reached = 0;
  double least = 0;
  for (std::size_t trial = 0; trial != 100; ++trial) {
    auto const home = random_home(random, 8, 3);
    auto const costs = random_costs(random, 8, 100);
    cost_list const one(8, 1);
    placement_question const asked{.max_bytes = 2};
    auto const best = try_all(home, costs, one, asked);
    auto const parts =
        rebalance(home, costs, one, {.max_overload = 0.0, .max_moved_bytes = asked.max_bytes});
    REQUIRE(largest_load(parts, costs) >= best.least_load);
    reached += static_cast<double>(largest_load(parts, costs));
    least += static_cast<double>(best.least_load);
  }
  CAPTURE(reached, least);
  CHECK(reached <= 1.06 * least);
}

// A slow rank must get less work, and the promises about moves must hold for speeds too.
TEST_CASE("rebalance with speeds is within its limit or as even as lpt with speeds") {
  test::random_amounts random(9);
  for (std::size_t trial = 0; trial != 300; ++trial) {
    std::size_t const ranks = 1 + trial % 7;
    std::size_t const count = 1 + trial % 40;
    auto const home = random_home(random, count, ranks);
    auto const costs = random_costs(random, count, 1000);
    auto const bytes = random_costs(random, count, 50);
    std::vector<double> speeds(ranks);
    for (double& speed : speeds) speed = static_cast<double>(random.between(1, 4)) / 2;
    std::vector<std::uint32_t> node_of(ranks);
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      node_of[rank] = static_cast<std::uint32_t>(rank % 2);
    }
    double const tolerance = trial % 3 == 0 ? 0.0 : 0.05;
    for (bool const has_nodes : {false, true}) {
      omnibal::rebalance_options options{.max_overload = tolerance, .speeds = speeds};
      if (has_nodes) options.node_of = node_of;
      auto const parts = rebalance(home, costs, bytes, options);
      REQUIRE(test::parts_fault(parts, count, ranks) == "");
      auto const whole = omnibal::detail::measure_costs("test", costs, std::identity{});
      auto const order = omnibal::detail::largest_first(whole);
      omnibal::detail::part_speeds const exact("test", speeds, ranks);
      auto const limit = omnibal::detail::with_overload(
          omnibal::detail::min_time(whole, std::span(order), exact), tolerance);
      auto const time_of = [&](grouping const& some) {
        omnibal::detail::part_time largest;
        for (std::size_t rank = 0; rank != ranks; ++rank) {
          std::int64_t load = 0;
          for (std::uint32_t const i : some[rank]) load += costs[i];
          largest = std::max(largest, exact.time_of(rank, load));
        }
        return largest;
      };
      auto const of_lpt = time_of(omnibal::lpt(costs, ranks, std::identity{}, {.speeds = speeds}));
      CAPTURE(trial, has_nodes);
      REQUIRE(time_of(parts) <= std::max(limit, of_lpt));
      if (time_of(home) <= limit) REQUIRE(test::moved_bytes(home, parts, bytes) == 0);
      auto counted = options;
      counted.counts = rank_counts::kept;
      auto const swapped = rebalance(home, costs, bytes, counted);
      REQUIRE(follows(rank_counts::kept, home, swapped));
      REQUIRE(time_of(swapped) <= time_of(home));
      options.max_moved_bytes = 40;
      auto const frugal = rebalance(home, costs, bytes, options);
      REQUIRE(test::moved_bytes(home, frugal, bytes) <= 40);
      REQUIRE(time_of(frugal) <= time_of(home));
    }
  }
}

// The size of a rank's share is exact for speeds with exact ratios.
TEST_CASE("rebalance with speeds of 3 and 2 gives shares of 3 and 2") {
  grouping home;
  for (std::uint32_t i = 0; i != 50; ++i) home.push(i);
  home.close();
  home.close();
  cost_list const one(50, 1);
  std::vector<double> const speeds{1.0, 1.5};
  auto const parts = rebalance(home, one, one, {.max_overload = 0.0, .speeds = speeds});
  CHECK(parts[0].size() == 20);
  CHECK(parts[1].size() == 30);
}

// Users pass speeds always, also for clusters of one kind: nothing may change then.
TEST_CASE("rebalance with equal speeds is rebalance without speeds") {
  test::random_amounts random(10);
  for (std::size_t trial = 0; trial != 100; ++trial) {
    auto const home = random_home(random, 40, 8);
    auto const costs = random_costs(random, 40, 1000);
    auto const plain = rebalance(home, costs, costs);
    std::vector<double> const all(8, 0.3);
    std::vector<double> const one{7.0};
    REQUIRE(rebalance(home, costs, costs, {.speeds = all}) == plain);
    REQUIRE(rebalance(home, costs, costs, {.speeds = one}) == plain);
  }
}

TEST_CASE("rebalance refuses counts that are not possible and negative budgets") {
  grouping home;
  for (std::uint32_t const i : {0u, 1u, 2u}) home.push(i);
  home.close();
  home.close();
  cost_list const costs{1, 2, 3};
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)rebalance(home, costs, costs, {.counts = rank_counts::equal});
        }) == "omnibal::rebalance: 3 samples do not give 2 ranks with equal counts");
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)rebalance(home, costs, costs, {.max_moved_bytes = -1});
        }) == "omnibal::rebalance: options.max_moved_bytes is -1, must be finite and not negative");
  std::vector<double> const three(3, 1.0);
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)rebalance(home, costs, costs, {.speeds = three});
        }) == "omnibal::rebalance: options.speeds has 3 values for 2 ranks");
  std::vector<double> const zero{1.0, 0.0};
  CHECK(test::error_text<std::invalid_argument>([&] {
          (void)rebalance(home, costs, costs, {.speeds = zero});
        }) == "omnibal::rebalance: options.speeds[1] is 0, must be positive and finite");
  std::vector<double> const two{1.0, 2.0};
  cost_list const huge{std::int64_t{1} << 62, 1, 1};
  CHECK_THROWS_AS(rebalance(home, huge, costs, {.speeds = two}), std::overflow_error);
  CHECK(rebalance(grouping{}, cost_list{}, cost_list{}, {.counts = rank_counts::equal}).empty());
}
