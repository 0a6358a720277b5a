// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/deal.hpp>
#include <omnibal/concepts.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

using omnibal::grouping;

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

static_assert(omnibal::balancer<omnibal::deal_fn, std::vector<int>, std::identity>);
static_assert(!std::invocable<omnibal::deal_fn, std::vector<omnibal::resources<2>>, std::size_t>);
