// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_optimally.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

using omnibal::balance_optimally;
using omnibal::count_policy;

TEMPLATE_TEST_CASE("balance_optimally finds what trying all finds", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  for (std::size_t const count : {1u, 2u, 4u, 6u, 7u}) {
    for (auto const& set : test::cost_sets<TestType::value>(count, count)) {
      for (std::size_t const parts : {1u, 2u, 3u}) {
        for (count_policy const policy :
             {count_policy::any, count_policy::equal, count_policy::at_most_one_apart}) {
          std::size_t const samples = set.samples.size();
          if (policy == count_policy::equal && samples % parts != 0) continue;
          INFO(set.name << ", " << samples << " samples, " << parts << " parts");
          auto const result =
              balance_optimally(set.samples, parts, std::identity{}, {.count = policy});
          CHECK(result.proven);
          CHECK(test::parts_fault(result.parts, samples, parts, policy) == "");
          if (samples == 0) continue;
          CHECK(result.lower_bound <= result.largest_load);
          CHECK(static_cast<double>(result.lower_bound) >=
                static_cast<double>(result.largest_load) * (1 - 1e-12));
          CHECK(test::largest_share(result.parts, set.samples) ==
                Approx(test::min_largest_share(set.samples, parts, policy)).epsilon(1e-12));
        }
      }
    }
  }
}

TEST_CASE("balance_optimally beats both heuristics where they fail") {
  // Largest first gives 11 or more; three parts of 9 exist: 5 + 4, 5 + 4, 3 + 3 + 3.
  std::vector<int> const graham{5, 5, 4, 4, 3, 3, 3};
  auto const result = balance_optimally(graham, 3);
  CHECK(result.proven);
  CHECK(result.largest_load == 9);
  CHECK(result.lower_bound == 9);
  CHECK(result.status == omnibal::solve_status::solved);
  for (std::size_t p = 0; p != 3; ++p) {
    int load = 0;
    for (std::uint32_t const item : result.parts[p]) load += graham[item];
    CHECK(load == 9);
  }
}

TEST_CASE("balance_optimally tells parts with equal loads and different counts apart") {
  std::vector<int> const costs{4, 2, 2, 2, 1, 1};
  auto const result = balance_optimally(costs, 2, std::identity{}, {.count = count_policy::equal});
  CHECK(result.proven);
  CHECK(result.parts == omnibal::grouping({0, 3, 6}, {0, 4, 5, 1, 2, 3}));
}

TEST_CASE("balance_optimally stops without a proof when the nodes are used up") {
  test::random_amounts random(11);
  std::vector<std::int64_t> costs(40);
  for (auto& cost : costs) cost = random.between(1, 1'000'000'000'000);
  auto const result = balance_optimally(costs, 7, std::identity{}, {.nodes = 5000});
  CHECK_FALSE(result.proven);
  CHECK(result.lower_bound < result.largest_load);
  CHECK(test::parts_fault(result.parts, costs.size(), 7) == "");
  auto const at_once = balance_optimally(costs, 7, std::identity{}, {.nodes = 0});
  CHECK_FALSE(at_once.proven);
  CHECK(at_once.lower_bound == result.lower_bound);
}

TEST_CASE("balance_optimally needs no search where a bound is reached") {
  std::vector<int> const costs(1000, 3);
  auto const result = balance_optimally(costs, 10, std::identity{}, {.nodes = 0});
  CHECK(result.proven);
  auto const one_more =
      balance_optimally(std::vector<int>(11, 3), 10, std::identity{}, {.nodes = 0});
  CHECK(one_more.proven);
}

static_assert(std::invocable<omnibal::balance_optimally_fn, std::vector<int>, std::size_t>);
static_assert(
    !std::invocable<omnibal::balance_optimally_fn, std::vector<std::string>, std::size_t>);
