// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/concepts.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::karmarkar_karp;

/// The method with dense tuples, as in a textbook: the loads of the parts that it ends with,
/// ascending. Equal differences are not resolved as in the library.
std::vector<std::int64_t> textbook_loads(std::vector<std::int64_t> const& costs,
                                         std::size_t parts) {
  using tuple = std::vector<std::int64_t>;
  auto const by_difference = [](tuple const& a, tuple const& b) {
    return a.back() - a.front() < b.back() - b.front();
  };
  std::vector<tuple> tuples;
  for (std::int64_t const cost : costs) {
    tuples.emplace_back(parts, 0).back() = cost;
    std::push_heap(tuples.begin(), tuples.end(), by_difference);
  }
  while (tuples.size() > 1) {
    std::pop_heap(tuples.begin(), tuples.end(), by_difference);
    tuple const first = std::move(tuples.back());
    tuples.pop_back();
    std::pop_heap(tuples.begin(), tuples.end(), by_difference);
    tuple& second = tuples.back();
    for (std::size_t p = 0; p != parts; ++p) second[p] += first[parts - 1 - p];
    std::sort(second.begin(), second.end());
    std::push_heap(tuples.begin(), tuples.end(), by_difference);
  }
  return tuples.front();
}

std::vector<std::int64_t> loads_of(grouping const& result, std::vector<std::int64_t> const& costs) {
  std::vector<std::int64_t> loads(result.size(), 0);
  for (std::size_t p = 0; p != loads.size(); ++p) {
    for (std::uint32_t const item : result[p]) loads[p] += costs[item];
  }
  std::sort(loads.begin(), loads.end());
  return loads;
}

}  // namespace

TEST_CASE("karmarkar_karp is the textbook's method") {
  test::random_amounts random(7);
  for (std::size_t const count : {1u, 2u, 3u, 5u, 8u, 20u, 100u, 300u}) {
    for (std::size_t const parts : {1u, 2u, 3u, 4u, 7u, 16u, 50u, 120u}) {
      for (bool const has_tail : {false, true}) {
        INFO(count << " samples, " << parts << " parts");
        // So large that no two differences are equal.
        std::vector<std::int64_t> costs(count);
        for (auto& cost : costs) {
          std::int64_t const limit = std::int64_t{1} << 50;
          cost = has_tail ? random.heavy_tail(limit) : random.between(0, limit);
        }
        CHECK(loads_of(karmarkar_karp(costs, parts), costs) == textbook_loads(costs, parts));
      }
    }
  }
}

TEST_CASE("karmarkar_karp numbers parts by their least sample, empty ones last") {
  std::vector<int> const costs{4, 5, 6, 7, 8};
  // 8 - 7 = 1, 6 - 5 = 1, 4: 4 - 1 = 3, 3 - 1 = 2.
  CHECK(karmarkar_karp(costs, 2) == grouping({0, 3, 5}, {0, 1, 3, 2, 4}));
  CHECK(karmarkar_karp(costs, 7) == grouping({0, 1, 2, 3, 4, 5, 5, 5}, {0, 1, 2, 3, 4}));
  CHECK(karmarkar_karp(std::vector<int>{}, 2) == grouping({0, 0, 0}, {}));
  CHECK(karmarkar_karp(std::vector<int>(6, 0), 3) == grouping({0, 2, 4, 6}, {0, 3, 1, 4, 2, 5}));
}

TEST_CASE("karmarkar_karp is better than the greedy order for few parts") {
  test::random_amounts random(8);
  test::cost_vectors<1> costs(100);
  for (auto& cost : costs) cost[0] = random.between(1, 1'000'000'000);
  auto const largest = test::largest_loads(karmarkar_karp(costs, 2, test::first_amount), costs)[0];
  CHECK(2 * largest - test::sum_of_costs(costs)[0] < 1000);
}

static_assert(omnibal::balancer<omnibal::karmarkar_karp_fn, std::vector<int>, std::identity>);
static_assert(
    !std::invocable<omnibal::karmarkar_karp_fn, std::vector<omnibal::resources<2>>, std::size_t>);
