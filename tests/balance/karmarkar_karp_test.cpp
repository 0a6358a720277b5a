// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/config.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
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

/// The same with speeds: dense tuples of loads, each with its part in the tuple of the starts.
/// Speeds are whole numbers without a common divisor. Returns the load of each part.
std::vector<std::int64_t> textbook_loads(std::vector<std::int64_t> const& costs,
                                         std::vector<std::int64_t> const& speeds) {
  struct started_load {
    std::int64_t load = 0;
    std::int64_t start = 0;
    std::size_t part = 0;
  };
  using tuple = std::vector<started_load>;
  auto const by_load = [](started_load const& a, started_load const& b) { return a.load < b.load; };
  auto const by_difference = [](tuple const& a, tuple const& b) {
    return a.back().load - a.front().load < b.back().load - b.front().load;
  };
  using wide = omnibal::detail::int128;
  wide const total = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
  std::int64_t const sum = std::accumulate(speeds.begin(), speeds.end(), std::int64_t{0});
  std::int64_t const fastest = *std::max_element(speeds.begin(), speeds.end());
  std::vector<tuple> tuples(1);
  for (std::size_t part = 0; part != speeds.size(); ++part) {
    auto const start = static_cast<std::int64_t>(total * (fastest - speeds[part]) / sum);
    tuples[0].push_back({start, start, part + 1});
  }
  std::sort(tuples[0].begin(), tuples[0].end(), by_load);
  for (std::int64_t const cost : costs) {
    tuples.emplace_back(speeds.size()).back().load = cost;
    std::push_heap(tuples.begin(), tuples.end(), by_difference);
  }
  while (tuples.size() > 1) {
    std::pop_heap(tuples.begin(), tuples.end(), by_difference);
    tuple const first = std::move(tuples.back());
    tuples.pop_back();
    std::pop_heap(tuples.begin(), tuples.end(), by_difference);
    tuple& second = tuples.back();
    for (std::size_t p = 0; p != speeds.size(); ++p) {
      started_load const& other = first[speeds.size() - 1 - p];
      second[p].load += other.load;
      if (other.part != 0) {
        second[p].start = other.start;
        second[p].part = other.part;
      }
    }
    std::sort(second.begin(), second.end(), by_load);
    std::push_heap(tuples.begin(), tuples.end(), by_difference);
  }
  std::vector<std::int64_t> loads(speeds.size());
  for (started_load const& one : tuples.front()) loads[one.part - 1] = one.load - one.start;
  return loads;
}

/// Sorts the loads of parts of equal speed.
std::vector<std::pair<std::int64_t, std::int64_t>> by_speed(
    std::vector<std::int64_t> const& loads, std::vector<std::int64_t> const& speeds) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (std::size_t p = 0; p != loads.size(); ++p) result.emplace_back(speeds[p], loads[p]);
  std::sort(result.begin(), result.end());
  return result;
}

omnibal::detail::part_time largest_time(std::vector<std::int64_t> const& loads,
                                        std::vector<std::int64_t> const& speeds) {
  omnibal::detail::part_time largest;
  for (std::size_t p = 0; p != loads.size(); ++p) {
    largest = std::max(largest, omnibal::detail::part_time{loads[p], speeds[p]});
  }
  return largest;
}

std::vector<std::int64_t> loads_by_part(grouping const& result,
                                        std::vector<std::int64_t> const& costs) {
  std::vector<std::int64_t> loads(result.size(), 0);
  for (std::size_t p = 0; p != loads.size(); ++p) {
    for (std::uint32_t const item : result[p]) loads[p] += costs[item];
  }
  return loads;
}

std::vector<std::int64_t> loads_of(grouping const& result, std::vector<std::int64_t> const& costs) {
  std::vector<std::int64_t> loads = loads_by_part(result, costs);
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

// The starts must be one tuple of the method, and each must keep its part. The parts of lpt must
// take their place if they are more even.
TEST_CASE("karmarkar_karp with speeds is the textbook's method or lpt, whichever is more even") {
  test::random_amounts random(9);
  std::size_t unequal = 0;
  std::size_t placed_by_lpt = 0;
  for (std::size_t const count : {0u, 1u, 3u, 8u, 20u, 100u, 300u}) {
    for (std::size_t const parts : {2u, 3u, 7u, 16u, 50u, 120u}) {
      for (bool const has_tail : {false, true}) {
        for (std::int64_t const kinds : {2, 3, 1 << 20}) {
          INFO(count << " samples, " << parts << " parts, speeds up to " << kinds);
          std::vector<std::int64_t> costs(count);
          for (auto& cost : costs) {
            std::int64_t const limit = std::int64_t{1} << 50;
            cost = has_tail ? random.heavy_tail(limit) : random.between(0, limit);
          }
          std::vector<std::int64_t> speeds(parts);
          for (auto& speed : speeds) speed = random.between(1, kinds);
          speeds[0] = 1;
          std::vector<double> const given(speeds.begin(), speeds.end());
          auto const result = karmarkar_karp(costs, parts, std::identity{}, {.speeds = given});
          REQUIRE(test::parts_fault(result, count, parts) == "");
          REQUIRE(test::is_ascending(result));
          if (std::equal(speeds.begin() + 1, speeds.end(), speeds.begin())) continue;
          ++unequal;
          auto const textbook = textbook_loads(costs, speeds);
          auto const placed =
              loads_by_part(omnibal::lpt(costs, parts, std::identity{}, {.speeds = given}), costs);
          bool const is_placed = largest_time(placed, speeds) < largest_time(textbook, speeds);
          placed_by_lpt += is_placed ? 1 : 0;
          CHECK(by_speed(loads_by_part(result, costs), speeds) ==
                by_speed(is_placed ? placed : textbook, speeds));
          // The parts of equal speed have ascending first samples, empty parts last.
          for (std::size_t p = 0; p != parts; ++p) {
            for (std::size_t q = p + 1; q != parts; ++q) {
              if (speeds[p] != speeds[q] || result[q].empty()) continue;
              REQUIRE_FALSE(result[p].empty());
              REQUIRE(result[p].front() < result[q].front());
            }
          }
        }
      }
    }
  }
  CHECK(unequal > 200);
  CHECK(placed_by_lpt > 20);
  CHECK(placed_by_lpt < unequal / 2);
}

// Speeds that do not differ must change nothing, and a start must not overflow.
TEST_CASE("karmarkar_karp with equal speeds is karmarkar_karp, and large sums are no error") {
  test::random_amounts random(18);
  for (std::size_t turn = 0; turn != 100; ++turn) {
    std::size_t const parts = static_cast<std::size_t>(random.between(1, 30));
    std::vector<std::int64_t> costs(static_cast<std::size_t>(random.between(0, 300)));
    for (auto& cost : costs) cost = random.heavy_tail(1 << (turn % 20));
    auto const expected = karmarkar_karp(costs, parts);
    std::vector<double> const one{7.0};
    std::vector<double> const all(parts, 0.3);
    REQUIRE(karmarkar_karp(costs, parts, std::identity{}, {.speeds = one}) == expected);
    REQUIRE(karmarkar_karp(costs, parts, std::identity{}, {.speeds = all}) == expected);
  }
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> const large{most / 4, most / 4, most / 4, most / 4};
  std::vector<double> const speeds{1, 1 << 20, 1};
  auto const parts = karmarkar_karp(large, 3, std::identity{}, {.speeds = speeds});
  CHECK(parts == grouping({0, 0, 4, 4}, {0, 1, 2, 3}));
}

// Samples with zero cost go to the part with the fewest samples, whatever its speed.
TEST_CASE("karmarkar_karp with speeds places samples with zero cost by count") {
  std::vector<double> const speeds{2, 1};
  CHECK(karmarkar_karp(std::vector<int>(4, 0), 2, std::identity{}, {.speeds = speeds}) ==
        grouping({0, 2, 4}, {0, 2, 1, 3}));
  CHECK(karmarkar_karp(std::vector<int>{4, 4, 4, 0, 0}, 2, std::identity{}, {.speeds = speeds}) ==
        grouping({0, 3, 5}, {0, 1, 4, 2, 3}));
}

// With many samples of a broad distribution, the times must be equal for three mixes of speeds.
TEST_CASE("karmarkar_karp with speeds ends within 1e-4 of the mean time and below lpt") {
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 1, 1, 1, 1, 1, 0.8}, {0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66, 1.08}};
  test::random_amounts random(10);
  for (auto const& mix : mixes) {
    for (bool const has_tail : {false, true}) {
      std::vector<double> speeds(16);
      for (std::size_t p = 0; p != 16; ++p) speeds[p] = mix[p % mix.size()];
      std::vector<std::int64_t> costs(64 * 16);
      for (auto& cost : costs) {
        cost = has_tail ? random.heavy_tail(1 << 15) : random.between(1, 1 << 20);
      }
      auto const time_of = [&](grouping const& result) {
        auto const loads = loads_by_part(result, costs);
        double largest = 0;
        for (std::size_t p = 0; p != 16; ++p) {
          largest = std::max(largest, static_cast<double>(loads[p]) / speeds[p]);
        }
        return largest;
      };
      double const mean =
          static_cast<double>(std::accumulate(costs.begin(), costs.end(), std::int64_t{0})) /
          std::accumulate(speeds.begin(), speeds.end(), 0.0);
      double const found = time_of(karmarkar_karp(costs, 16, std::identity{}, {.speeds = speeds}));
      CHECK(found <= 1.0001 * mean);
      if (has_tail) continue;
      CHECK(found < time_of(omnibal::lpt(costs, 16, std::identity{}, {.speeds = speeds})));
    }
  }
}

// The errors of speeds must name the function.
TEST_CASE("karmarkar_karp refuses wrong speeds by name") {
  std::vector<int> const costs{1, 2, 3};
  std::vector<double> const speeds{1.0, -1.0};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(karmarkar_karp(costs, 2, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::karmarkar_karp: options.speeds[1] is -1, must be positive and finite");
}

static_assert(omnibal::balancer<omnibal::karmarkar_karp_fn, std::vector<int>, std::identity>);
static_assert(
    !std::invocable<omnibal::karmarkar_karp_fn, std::vector<omnibal::resources<2>>, std::size_t>);
