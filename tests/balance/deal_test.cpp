// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/part_speeds.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

using omnibal::grouping;

namespace {

using wide = omnibal::detail::int128;

/// The contract of `deal` with speeds, part by part. Part k has the speed `whole[k]`.
grouping naive_deal(std::vector<std::int64_t> const& costs,
                    std::vector<std::int64_t> const& whole) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return costs[a] > costs[b]; });
  std::vector<std::vector<std::uint32_t>> parts(whole.size());
  auto const precedes = [&](std::size_t a, std::size_t b) {
    auto const of_a = static_cast<std::int64_t>(parts[a].size());
    auto const of_b = static_cast<std::int64_t>(parts[b].size());
    wide const time_a = wide{2 * of_a + 1} * whole[b];
    wide const time_b = wide{2 * of_b + 1} * whole[a];
    if (time_a != time_b) return time_a < time_b;
    if (of_a % 2 != of_b % 2) return of_a % 2 == 0;
    if (of_a % 2 != 0) std::swap(a, b);
    return whole[a] > whole[b] || (whole[a] == whole[b] && a < b);
  };
  for (std::uint32_t const sample : order) {
    std::size_t best = 0;
    for (std::size_t part = 1; part != whole.size(); ++part) {
      if (precedes(part, best)) best = part;
    }
    parts[best].push_back(sample);
  }
  grouping result;
  for (auto const& part : parts) {
    for (std::uint32_t const sample : part) result.push(sample);
    result.close();
  }
  return result;
}

/// Speeds of a few kinds, or all different; as whole numbers too.
struct random_speeds {
  random_speeds(test::random_amounts& random, std::size_t parts) {
    std::int64_t const most = random.between(1, 3) == 3 ? 1 << 30 : random.between(1, 4);
    for (std::size_t part = 0; part != parts; ++part) {
      whole.push_back(random.between(1, most));
      given.push_back(0.25 * static_cast<double>(whole.back()));
    }
    are_equal = std::all_of(whole.begin(), whole.end(),
                            [this](std::int64_t speed) { return speed == whole[0]; });
  }

  std::vector<std::int64_t> whole;
  std::vector<double> given;
  bool are_equal;
};

}  // namespace

TEST_CASE("deal goes forth and back over the parts") {
  std::vector<int> const costs{1, 9, 8, 8, 3, 2, 7};
  // In order: 1 (9), 2 (8), 3 (8), 6 (7), 4 (3), 5 (2), 0 (1).
  CHECK(omnibal::deal(costs, 3) == grouping({0, 3, 5, 7}, {1, 5, 0, 2, 4, 3, 6}));
  CHECK(omnibal::deal(costs, 1) == grouping({0, 7}, {1, 2, 3, 6, 4, 5, 0}));
  CHECK(omnibal::deal(std::vector<int>{4, 5}, 4) == grouping({0, 1, 2, 2, 2}, {1, 0}));
  CHECK(omnibal::deal(std::vector<int>{}, 2) == grouping({0, 0, 0}, {}));
}

TEST_CASE("deal leaves the loads at most the largest cost apart") {
  for (std::size_t const count : {5u, 64u, 100u}) {
    for (auto const& set : test::small_sets<1>(3, count)) {
      for (std::size_t const parts : {1u, 2u, 7u, 16u, 70u}) {
        INFO(set.name << ", " << parts << " parts");
        auto const result = omnibal::deal(set.samples, parts, test::first_amount);
        std::int64_t least = test::sum_of_costs(set.samples)[0];
        std::int64_t largest_cost = 0;
        for (auto const& cost : set.samples) largest_cost = std::max(largest_cost, cost[0]);
        for (std::size_t p = 0; p != parts; ++p) {
          std::int64_t load = 0;
          for (std::uint32_t const item : result[p]) load += set.samples[item][0];
          least = std::min(least, load);
        }
        CHECK(test::largest_loads(result, set.samples)[0] - least <= largest_cost);
      }
    }
  }
}

// Faster parts go first, at times in proportion to their speeds.
TEST_CASE("deal with speeds goes to each part in proportion to its speed") {
  std::vector<int> const costs{20, 19, 18, 17, 16, 15, 14, 13, 12, 11};
  std::vector<double> const speeds{1, 3, 1};
  // The times are 1/6 of part 1, 1/2 of all parts, 5/6 and 7/6 of part 1, and 3/2 of all parts, of
  // which the second round of parts 0 and 2 goes after the fifth of part 1.
  CHECK(omnibal::deal(costs, 3, std::identity{}, {.speeds = speeds}) ==
        grouping({0, 2, 8, 10}, {1, 8, 0, 3, 4, 5, 6, 9, 2, 7}));
}

// The rounds of equal speeds must be merged as if each part were looked at.
TEST_CASE("deal with speeds is the simple rule, and times are as near as promised") {
  test::random_amounts random(3);
  std::size_t unequal = 0;
  for (std::size_t turn = 0; turn != 400; ++turn) {
    std::size_t const parts = static_cast<std::size_t>(random.between(1, 12));
    random_speeds const speeds(random, parts);
    std::vector<std::int64_t> costs(static_cast<std::size_t>(random.between(0, 120)));
    for (auto& cost : costs) cost = random.heavy_tail(1 << (turn % 20));
    auto const result = omnibal::deal(costs, parts, std::identity{}, {.speeds = speeds.given});
    INFO("turn " << turn);
    REQUIRE(test::parts_fault(result, costs.size(), parts) == "");
    if (speeds.are_equal) {
      REQUIRE(result == omnibal::deal(costs, parts));
      continue;
    }
    ++unequal;
    REQUIRE(result == naive_deal(costs, speeds.whole));
    std::int64_t const largest = costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
    std::vector<std::int64_t> loads(parts, 0);
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::uint32_t const item : result[p]) loads[p] += costs[item];
    }
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::size_t q = 0; q != parts; ++q) {
        wide const apart = wide{loads[p]} * speeds.whole[q] - wide{loads[q]} * speeds.whole[p];
        REQUIRE(2 * apart <= wide{largest} * (speeds.whole[p] + speeds.whole[q]));
        // Counts of Sainte-Lague: no part got its last sample after the next one of another part.
        auto const last = wide{2 * static_cast<std::int64_t>(result[p].size()) - 1};
        auto const next = wide{2 * static_cast<std::int64_t>(result[q].size()) + 1};
        REQUIRE(last * speeds.whole[q] <= next * speeds.whole[p]);
      }
    }
  }
  CHECK(unequal > 200);
}

// Users pass speeds always, also for clusters of one kind: nothing may change then.
TEST_CASE("deal with equal speeds is deal") {
  test::random_amounts random(17);
  for (std::size_t turn = 0; turn != 100; ++turn) {
    std::size_t const parts = static_cast<std::size_t>(random.between(1, 70));
    std::vector<std::int64_t> costs(static_cast<std::size_t>(random.between(0, 500)));
    for (auto& cost : costs) cost = random.heavy_tail(1 << (turn % 20));
    auto const expected = omnibal::deal(costs, parts);
    std::vector<double> const one{7.0};
    std::vector<double> const all(parts, 0.3);
    REQUIRE(omnibal::deal(costs, parts, std::identity{}, {.speeds = one}) == expected);
    REQUIRE(omnibal::deal(costs, parts, std::identity{}, {.speeds = all}) == expected);
  }
}

// The errors of speeds must name the function.
TEST_CASE("deal refuses wrong speeds by name") {
  std::vector<int> const costs{1, 2, 3};
  std::vector<double> const speeds{1.0, 0.0};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::deal(costs, 2, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::deal: options.speeds[1] is 0, must be positive and finite");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::deal(costs, 3, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::deal: options.speeds has 2 values for 3 parts");
}

static_assert(omnibal::balancer<omnibal::deal_fn, std::vector<int>, std::identity>);
static_assert(!std::invocable<omnibal::deal_fn, std::vector<omnibal::resources<2>>, std::size_t>);
