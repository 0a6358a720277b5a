// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::grouping;
using omnibal::part_counts;
using omnibal::refine_parts;

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
                     omnibal::refine_parts_options const& options = {}) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(refine_parts(samples, parts, std::identity{}, options)); });
}

/// True where a swap, or a move where these are allowed, of a sample of the part with the largest
/// load lowers it and leaves the other part below it.
bool can_fall(grouping const& parts, std::vector<std::int64_t> const& costs, part_counts counts) {
  auto const load = [&](std::size_t part) {
    std::int64_t sum = 0;
    for (std::uint32_t const i : parts[part]) sum += costs[i];
    return sum;
  };
  std::vector<std::int64_t> loads;
  for (std::size_t p = 0; p != parts.size(); ++p) loads.push_back(load(p));
  auto const heaviest = std::max_element(loads.begin(), loads.end());
  if (std::count(loads.begin(), loads.end(), *heaviest) != 1) return false;
  auto const heavy = static_cast<std::size_t>(heaviest - loads.begin());
  for (std::size_t p = 0; p != parts.size(); ++p) {
    if (p == heavy) continue;
    auto const helps = [&](std::int64_t gone) { return gone > 0 && loads[p] + gone < *heaviest; };
    for (std::uint32_t const i : parts[heavy]) {
      if (counts == part_counts::free && helps(costs[i])) return true;
      for (std::uint32_t const j : parts[p]) {
        if (helps(costs[i] - costs[j])) return true;
      }
    }
  }
  return false;
}

}  // namespace

TEST_CASE("refine_parts moves and swaps, or only swaps") {
  std::vector<int> const costs{6, 5, 4, 3, 2, 1};
  grouping const all_in_one({0, 6, 6}, {0, 1, 2, 3, 4, 5});
  CHECK(test::parts_fault(refine_parts(costs, all_in_one), 6, 2) == "");
  grouping const evened = refine_parts(costs, all_in_one);
  CHECK(evened[0].size() < 6);
  CHECK(refine_parts(costs, all_in_one, std::identity{}, {.counts = part_counts::kept}) ==
        all_in_one);
  grouping const halves({0, 3, 6}, {0, 1, 2, 3, 4, 5});
  // 15 and 6: 6 for 2 makes 11 and 10.
  CHECK(refine_parts(costs, halves, std::identity{}, {.counts = part_counts::kept}) ==
        grouping({0, 3, 6}, {1, 2, 4, 0, 3, 5}));
}

TEST_CASE("refine_parts goes on to the bound, and to other parts than the lightest") {
  CHECK(refine_parts(std::vector<int>{9, 1, 8}, grouping({0, 2, 3}, {0, 1, 2})) ==
        grouping({0, 2, 3}, {1, 2, 0}));
  // Nothing can be swapped with the empty part.
  CHECK(refine_parts(std::vector<int>{5, 4, 3}, grouping({0, 2, 2, 3}, {0, 1, 2}), std::identity{},
                     {.counts = part_counts::kept}) == grouping({0, 2, 2, 3}, {1, 2, 0}));
}

TEST_CASE("refine_parts ends where no exchange with any part lowers the largest load") {
  test::random_amounts random(26);
  for (int set = 0; set != 300; ++set) {
    auto const parts = static_cast<std::size_t>(random.between(2, 6));
    std::vector<std::int64_t> costs(static_cast<std::size_t>(random.between(1, 20)));
    for (auto& cost : costs) cost = random.between(0, 40);
    auto const start = consecutive(costs.size(), parts);
    for (part_counts const counts : {part_counts::free, part_counts::kept}) {
      for (std::size_t const splits : {0u, 2048u}) {
        INFO("set " << set << ", " << parts << " parts, " << splits << " splits");
        auto const result =
            refine_parts(costs, start, std::identity{}, {.counts = counts, .splits = splits});
        CHECK_FALSE(can_fall(result, costs, counts));
      }
    }
  }
}

TEST_CASE("refine_parts ends at the tolerance, or when the exchanges are used up") {
  std::vector<int> const costs{6, 5, 4, 3, 2, 1};
  grouping const halves({0, 3, 6}, {0, 1, 2, 3, 4, 5});
  CHECK(refine_parts(costs, halves, std::identity{}, {.max_overload = 0.37}) == halves);
  CHECK(refine_parts(costs, halves, std::identity{}, {.max_overload = 1e300}) == halves);
  CHECK_FALSE(refine_parts(costs, halves, std::identity{}, {.max_overload = 0.36}) == halves);
  CHECK(refine_parts(costs, halves, std::identity{}, {.exchanges = 0}) == halves);
}

TEST_CASE("refine_parts is never worse, and nearly as good as the best") {
  double sum = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed != 10; ++seed) {
    for (auto const& set : test::cost_sets<1>(seed, 10)) {
      std::size_t const samples = set.samples.size();
      for (std::size_t const parts : {2u, 3u}) {
        INFO(set.name << ", " << parts << " parts");
        auto const start = consecutive(samples, parts);
        auto const result = refine_parts(set.samples, start);
        CHECK(test::parts_fault(result, samples, parts) == "");
        auto const load = test::largest_loads(result, set.samples)[0];
        CHECK(load <= test::largest_loads(start, set.samples)[0]);
        auto const kept =
            refine_parts(set.samples, start, std::identity{}, {.counts = part_counts::kept});
        CHECK(test::to_vector(kept.offsets()) == test::to_vector(start.offsets()));
        CHECK(test::largest_loads(kept, set.samples)[0] <=
              test::largest_loads(start, set.samples)[0]);
        auto const exact = omnibal::balance_optimally(set.samples, parts);
        REQUIRE(exact.proven);
        auto const best = test::largest_loads(exact.parts, set.samples)[0];
        CHECK(load >= best);
        if (best == 0) continue;
        sum += static_cast<double>(load) / static_cast<double>(best);
        ++count;
      }
    }
  }
  CHECK(sum / count < 1.03);
}

TEST_CASE("refine_parts fills parts exactly where no exchange helps") {
  // Cut out of parts of 10,000 each, so that the least largest load is known.
  constexpr std::int64_t full = 10'000;
  test::random_amounts random(25);
  int exchanges_alone = 0;
  for (int set = 0; set != 20; ++set) {
    std::size_t const parts = 8 + static_cast<std::size_t>(set);
    test::cost_vectors<1> costs;
    for (std::size_t p = 0; p != parts; ++p) {
      std::int64_t left = full;
      for (int k = 0; k != 11; ++k) {
        std::int64_t const cut = random.between(0, left / 4);
        costs.push_back({cut});
        left -= cut;
      }
      costs.push_back({left});
    }
    auto const start = omnibal::lpt(costs, parts);
    INFO(parts << " parts");
    CHECK(test::largest_loads(refine_parts(costs, start), costs)[0] == full);
    auto const exchanged = refine_parts(costs, start, std::identity{}, {.splits = 0});
    if (test::largest_loads(exchanged, costs)[0] == full) ++exchanges_alone;
    // With other samples, and as many as before.
    auto const kept =
        refine_parts(costs, start, std::identity{}, {.counts = part_counts::kept, .seed = 1});
    CHECK(test::to_vector(kept.offsets()) == test::to_vector(start.offsets()));
    CHECK(test::largest_loads(kept, costs)[0] <= full + full / 1000);
  }
  CHECK(exchanges_alone <= 5);
}

TEST_CASE("refine_parts takes loads up to the largest integer") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  test::cost_vectors<1> const costs{{most / 4},  {most / 4}, {most / 8}, {most / 8}, {most / 16},
                                    {most / 16}, {7},        {5},        {3}};
  auto const result = refine_parts(costs, consecutive(costs.size(), 3));
  CHECK(test::parts_fault(result, costs.size(), 3) == "");
  CHECK(test::largest_loads(result, costs)[0] ==
        test::largest_loads(omnibal::balance_optimally(costs, 3).parts, costs)[0]);
}

TEST_CASE("refine_parts evens several kinds of cost") {
  test::random_amounts random(13);
  test::cost_vectors<2> costs(256);
  for (auto& cost : costs) cost = {random.between(0, 5), random.heavy_tail(4000)};
  auto const start = consecutive(costs.size(), 8);
  auto const result = refine_parts(costs, start);
  CHECK(test::parts_fault(result, costs.size(), 8) == "");
  CHECK(test::largest_share(start, costs) > 0.15);
  CHECK(test::largest_share(result, costs) < 0.127);
}

TEST_CASE("refine_parts keeps parts without samples legal") {
  CHECK(refine_parts(std::vector<int>{}, grouping{}) == grouping{});
  CHECK(refine_parts(std::vector<int>{}, grouping({0, 0}, {})) == grouping({0, 0}, {}));
  grouping const one_each = refine_parts(std::vector<int>{4, 4}, grouping({0, 2, 2}, {1, 0}));
  CHECK(one_each[0].size() == 1);
}

TEST_CASE("refine_parts refuses what are not parts of the samples") {
  std::vector<int> const costs{1, 2, 3};
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 2})) == "no error");
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 1})).find("sample 1") != std::string::npos);
  CHECK(error_of(costs, grouping({0, 2, 3}, {0, 1, 3})).find("item 3") != std::string::npos);
  CHECK(error_of(costs, grouping({0, 2}, {0, 1})).find("2 samples, not 3") != std::string::npos);
  CHECK(error_of(costs, grouping{}).find("0 samples, not 3") != std::string::npos);
  grouping const good({0, 3}, {0, 1, 2});
  CHECK(error_of(costs, good, {.max_overload = -1}).find("max_overload is -1") !=
        std::string::npos);
  CHECK(error_of(costs, good, {.max_overload = std::numeric_limits<double>::infinity()})
            .find("inf") != std::string::npos);
}

static_assert(std::invocable<omnibal::refine_parts_fn, std::vector<int>, grouping>);
static_assert(!std::invocable<omnibal::refine_parts_fn, std::vector<int>, std::size_t>);
static_assert(!std::invocable<omnibal::refine_parts_fn, std::vector<std::string>, grouping>);
