// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "reference/refine_rounds.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::part_counts;
using test::refine_rounds;

/// Sample i is in part i / (samples / parts), or in the last one.
grouping consecutive(std::size_t samples, std::size_t parts) {
  grouping result;
  for (std::size_t p = 0; p != parts; ++p) {
    for (std::size_t i = p * samples / parts; i != (p + 1) * samples / parts; ++i) {
      result.push(static_cast<std::uint32_t>(i));
    }
    result.close();
  }
  return result;
}

std::string error_of(std::vector<int> const& samples, grouping const& parts,
                     test::refine_rounds_options const& options = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(refine_rounds(samples, parts, std::identity{}, options)); });
}

std::int64_t largest_load(grouping const& parts, test::sample_set<1> const& set) {
  return test::largest_loads(parts, set.samples)[0];
}

/// The larger of two loads after the best move or swap between two parts, or what it is.
std::int64_t min_larger_load(std::vector<std::int64_t> const& heavy,
                             std::vector<std::int64_t> const& light) {
  std::int64_t heavy_load = 0;
  std::int64_t light_load = 0;
  for (std::int64_t const cost : heavy) heavy_load += cost;
  for (std::int64_t const cost : light) light_load += cost;
  std::int64_t best = std::max(heavy_load, light_load);
  for (std::int64_t const leaves : heavy) {
    best = std::min(best, std::max(heavy_load - leaves, light_load + leaves));
    for (std::int64_t const comes : light) {
      std::int64_t const moved = leaves - comes;
      best = std::min(best, std::max(heavy_load - moved, light_load + moved));
    }
  }
  return best;
}

std::vector<std::int64_t> costs_of_part(grouping const& parts, std::size_t part,
                                        test::sample_set<1> const& set) {
  std::vector<std::int64_t> result;
  for (std::uint32_t const item : parts[part]) result.push_back(set.samples[item][0]);
  return result;
}

}  // namespace

TEST_CASE("a round evens the most with the least loaded part, and the next ones") {
  // Loads 20, 14, 4 and 2: 10 goes to the last part, and 8 to the third, which gives 4 for it.
  std::vector<int> const costs{10, 10, 8, 6, 4, 2};
  grouping const start({0, 2, 4, 5, 6}, {0, 1, 2, 3, 4, 5});
  CHECK(refine_rounds(costs, start, std::identity{}, {.max_overload = 0, .rounds = 1}) ==
        grouping({0, 1, 3, 4, 6}, {1, 3, 4, 2, 0, 5}));
  CHECK(refine_rounds(costs, start, std::identity{}, {.max_overload = 0, .rounds = 0}) == start);
}

TEST_CASE("a part below the limit takes no part in a round") {
  // The bound is 11: 20 is above it and 10 is not.
  std::vector<int> const costs{9, 11, 6, 4, 4, 2};
  grouping const start({0, 2, 4, 5, 6}, {0, 1, 2, 3, 4, 5});
  CHECK(refine_rounds(costs, start, std::identity{}, {.max_overload = 0.05, .rounds = 1}) ==
        grouping({0, 2, 4, 5, 6}, {0, 5, 2, 3, 4, 1}));
  CHECK(refine_rounds(costs, start, std::identity{}, {.max_overload = 0.82}) == start);
  CHECK(refine_rounds(costs, start, std::identity{}, {.max_overload = 1e300}) == start);
}

TEST_CASE("the most loaded part turns to another one where the least loaded does not help") {
  // 5 and 4 can be swapped with nothing in the empty part, but 5 with 3.
  CHECK(refine_rounds(std::vector<int>{5, 4, 3}, grouping({0, 2, 2, 3}, {0, 1, 2}), std::identity{},
                      {.counts = part_counts::kept}) == grouping({0, 2, 2, 3}, {1, 2, 0}));
}

TEST_CASE("rounds are never worse, end where nothing helps, and come near the best") {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed != 10; ++seed) {
    for (auto const& set : test::cost_sets<1>(seed, 10)) {
      std::size_t const samples = set.samples.size();
      for (std::size_t const parts : {1u, 2u, 3u, 4u}) {
        INFO(set.name << ", " << parts << " parts");
        auto const start = consecutive(samples, parts);
        auto const refine_parts = [&](part_counts counts) {
          return refine_rounds(set.samples, start, test::first_amount,
                               {.max_overload = 0, .counts = counts});
        };
        auto const result = refine_parts(part_counts::free);
        CHECK(test::parts_fault(result, samples, parts) == "");
        CHECK(test::is_ascending(result));
        auto const load = largest_load(result, set);
        CHECK(load <= largest_load(start, set));
        auto const kept = refine_parts(part_counts::kept);
        CHECK(test::to_vector(kept.offsets()) == test::to_vector(start.offsets()));
        CHECK(largest_load(kept, set) <= largest_load(start, set));

        auto const exact = omnibal::balance_optimally(set.samples, parts);
        REQUIRE(exact.proven);
        auto const best = largest_load(exact.parts, set);
        CHECK(load >= best);
        if (best == 0) continue;
        sum += static_cast<double>(load) / static_cast<double>(best);
        ++count;
        if (load == best) continue;
        // The last of the most loaded parts has no exchange that helps it.
        std::size_t heavy = parts;
        while (
            test::largest_loads(grouping({0, static_cast<std::uint32_t>(result[heavy - 1].size())},
                                         test::to_vector(result[heavy - 1])),
                                set.samples)[0] != load) {
          --heavy;
        }
        for (std::size_t other = 0; other != parts; ++other) {
          if (other == heavy - 1) continue;
          CHECK(min_larger_load(costs_of_part(result, heavy - 1, set),
                                costs_of_part(result, other, set)) >= load);
        }
      }
    }
  }
  CHECK(sum / count < 1.02);
}

TEST_CASE("a few rounds bring dealt parts near the bound") {
  test::random_amounts random(4);
  std::vector<std::int64_t> costs(4096);
  for (auto& cost : costs) {
    std::int64_t const length = 16 + random.heavy_tail(10'000);
    cost = length * length;
  }
  auto const start = omnibal::deal(costs, 64);
  auto const bound_of = [&](grouping const& parts) {
    std::int64_t largest = 0;
    std::int64_t sum = 0;
    for (std::size_t p = 0; p != parts.size(); ++p) {
      std::int64_t load = 0;
      for (std::uint32_t const item : parts[p]) load += costs[item];
      largest = std::max(largest, load);
      sum += load;
    }
    return static_cast<double>(largest) * 64 / static_cast<double>(sum);
  };
  CHECK(bound_of(start) > 1.02);
  CHECK(bound_of(refine_rounds(costs, start, std::identity{},
                               {.counts = part_counts::kept, .rounds = 12})) <= 1.005);
}

TEST_CASE("rounds keep parts without samples legal") {
  CHECK(refine_rounds(std::vector<int>{}, grouping{}) == grouping{});
  CHECK(refine_rounds(std::vector<int>{}, grouping({0, 0}, {})) == grouping({0, 0}, {}));
  grouping const one_each = refine_rounds(std::vector<int>{4, 4}, grouping({0, 2, 2}, {1, 0}));
  CHECK(one_each[0].size() == 1);
  CHECK(refine_rounds(std::vector<int>{4, 4}, grouping({0, 2}, {1, 0})) ==
        grouping({0, 2}, {0, 1}));
}

TEST_CASE("rounds bear the largest sums") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> const costs{largest / 2, largest / 4, largest / 8, 7};
  CHECK(refine_rounds(costs, grouping({0, 4, 4}, {0, 1, 2, 3}), std::identity{},
                      {.max_overload = 0}) == grouping({0, 3, 4}, {1, 2, 3, 0}));
}

TEST_CASE("refine_rounds refuses what are not parts of the samples") {
  std::vector<int> const costs{1, 2, 3};
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 2})) == "no error");
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 1})) ==
        "omnibal::refine_rounds: sample 1 is in two places");
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 3})).find("item 3") != std::string::npos);
  CHECK(error_of(costs, grouping({0, 2}, {0, 1})).find("2 samples, not 3") != std::string::npos);
  grouping const good({0, 3}, {0, 1, 2});
  CHECK(error_of(costs, good, {.max_overload = -1}).find("max_overload is -1") !=
        std::string::npos);
  CHECK(error_of({1, -2, 3}, good).find("cost[1] is -2") != std::string::npos);
}

static_assert(std::invocable<test::refine_rounds_fn, std::vector<int>, grouping>);
static_assert(!std::invocable<test::refine_rounds_fn, std::vector<int>, std::size_t>);
static_assert(
    !std::invocable<test::refine_rounds_fn, std::vector<omnibal::resources<2>>, grouping>);
static_assert(!std::invocable<test::refine_rounds_fn, std::vector<std::string>, grouping>);
