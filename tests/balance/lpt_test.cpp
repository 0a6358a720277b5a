// SPDX-License-Identifier: Apache-2.0
#include "cost_shapes.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::count_policy;
using omnibal::grouping;

struct sample {
  std::string text;
  std::int64_t tokens;
};

enum class tie_rule { lowest_part, min_samples };

/// `lpt` of costs of which each kind has the same sum, written down as its contract reads, or with
/// another rule for equally loaded parts.
template <std::size_t R>
grouping naive_lpt(test::cost_vectors<R> const& costs, std::size_t parts,
                   tie_rule rule = tie_rule::lowest_part) {
  auto const sum = [](omnibal::resources<R> const& all) {
    return std::accumulate(std::begin(all.amounts), std::end(all.amounts), std::int64_t{0});
  };
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return sum(costs[left]) > sum(costs[right]);
  });
  std::vector<std::vector<std::uint32_t>> groups(parts);
  std::vector<omnibal::resources<R>> loads(parts);
  for (std::uint32_t const i : order) {
    auto const key = [&](std::size_t part) {
      omnibal::resources<R> const after = loads[part] + costs[i];
      auto const most = *std::max_element(std::begin(after.amounts), std::end(after.amounts));
      auto const count = static_cast<std::int64_t>(groups[part].size());
      return std::array<std::int64_t, 4>{
          sum(costs[i]) == 0 ? count : most, sum(costs[i]) == 0 ? 0 : sum(loads[part]),
          rule == tie_rule::min_samples ? count : 0, static_cast<std::int64_t>(part)};
    };
    std::size_t best = 0;
    for (std::size_t part = 1; part != parts; ++part) {
      if (key(part) < key(best)) best = part;
    }
    groups[best].push_back(i);
    loads[best] += costs[i];
  }
  grouping result;
  for (auto& group : groups) {
    std::sort(group.begin(), group.end());
    for (std::uint32_t const i : group) result.push(i);
    result.close();
  }
  return result;
}

}  // namespace

TEST_CASE("lpt puts the largest first into the least load, of equal ones the lowest") {
  std::vector<std::int64_t> const costs{3, 5, 5, 1, 4, 0};
  // 5 (sample 1) to part 0, 5 (2) to 1, 4 (4) to 2, 3 (0) to 2, 1 (3) to 0, 0 (5) to 1.
  CHECK(omnibal::lpt(costs, 3) == grouping({0, 2, 4, 6}, {1, 3, 2, 5, 0, 4}));
}

TEST_CASE("lpt is what its contract says") {
  for (std::size_t const parts : {1u, 3u, 8u, 12u, 150u, 200u}) {
    for (auto const& shape : test::cost_shapes(parts, 400, parts)) {
      std::int64_t sum = 0;
      bool const fits = std::none_of(shape.costs.begin(), shape.costs.end(), [&](auto cost) {
        return __builtin_add_overflow(sum, cost, &sum);
      });
      if (!fits) continue;
      INFO(shape.name << ", " << parts << " parts");
      test::cost_vectors<1> const costs(shape.costs.begin(), shape.costs.end());
      REQUIRE(omnibal::lpt(costs, parts) == naive_lpt(costs, parts));
    }
  }
}

TEST_CASE("costs of the tests tell ties by the lowest part from ties by the fewest samples") {
  for (std::size_t const parts : {12u, 64u, 200u}) {
    bool differ = false;
    for (auto const& shape : test::cost_shapes(parts, parts + 40, parts)) {
      if (shape.name != "a tie of unlike counts") continue;
      test::cost_vectors<1> const costs(shape.costs.begin(), shape.costs.end());
      differ = naive_lpt(costs, parts) != naive_lpt(costs, parts, tie_rule::min_samples);
    }
    INFO(parts << " parts");
    CHECK(differ);
  }
}

TEST_CASE("lpt of several kinds of cost is what its contract says") {
  test::random_amounts random(7);
  bool ties_matter = false;
  for (std::int64_t const most : {1, 3, 40}) {
    for (std::size_t const parts : {2u, 5u, 20u, 60u}) {
      // As much of one kind as of the other, and a power of two, so that shares are exact.
      test::cost_vectors<2> costs;
      std::int64_t rest = 1 << 16;
      for (std::size_t i = 0; i != 90; ++i) {
        std::int64_t const limit = random.between(0, 3) == 0 ? 4 * most : most;
        auto const one = random.between(0, limit);
        auto const other = random.between(0, limit);
        costs.push_back({one, other});
        costs.push_back({other, one});
        rest -= one + other;
      }
      costs.push_back({rest, rest});
      INFO("at most " << most << ", " << parts << " parts");
      REQUIRE(omnibal::lpt(costs, parts) == naive_lpt(costs, parts));
      ties_matter |= naive_lpt(costs, parts) != naive_lpt(costs, parts, tie_rule::min_samples);
    }
  }
  CHECK(ties_matter);
}

TEST_CASE("lpt respects counts") {
  std::vector<std::int64_t> const costs{100, 1, 2, 3, 4, 5};
  auto const of = [&](std::size_t parts, count_policy policy) {
    return omnibal::lpt(costs, parts, std::identity{}, {.count = policy});
  };
  CHECK(of(2, count_policy::any) == grouping({0, 1, 6}, {0, 1, 2, 3, 4, 5}));
  CHECK(of(2, count_policy::equal) == grouping({0, 3, 6}, {0, 1, 2, 3, 4, 5}));
  // Two of the four parts have a second sample, and then all are full that have one.
  CHECK(of(4, count_policy::at_most_one_apart) == grouping({0, 1, 2, 4, 6}, {0, 5, 1, 4, 2, 3}));
}

TEST_CASE("lpt spreads samples without cost evenly") {
  std::vector<int> const zeros(10, 0);
  CHECK(test::parts_fault(omnibal::lpt(zeros, 4), 10, 4, count_policy::at_most_one_apart) == "");
  std::vector<int> const mostly_zeros{0, 0, 7, 0, 0, 0};
  CHECK(omnibal::lpt(mostly_zeros, 3) == grouping({0, 2, 4, 6}, {2, 3, 0, 4, 1, 5}));
}

TEST_CASE("lpt leaves parts empty where there are fewer samples") {
  std::vector<int> const costs{2, 7};
  CHECK(omnibal::lpt(costs, 4) == grouping({0, 1, 2, 2, 2}, {1, 0}));
  CHECK(omnibal::lpt(std::vector<int>{}, 2) == grouping({0, 0, 0}, {}));
  CHECK(omnibal::lpt(std::vector<int>{}, 2, std::identity{}, {.count = count_policy::equal}) ==
        grouping({0, 0, 0}, {}));
  CHECK(omnibal::lpt(costs, 4, std::identity{}, {.count = count_policy::at_most_one_apart}) ==
        grouping({0, 1, 2, 2, 2}, {1, 0}));
}

TEST_CASE("lpt takes member pointers and calls a cost once for each sample in order") {
  std::vector<sample> const samples{{"a", 3}, {"b", 1}, {"c", 2}};
  CHECK(omnibal::lpt(samples, 2, &sample::tokens) == grouping({0, 1, 3}, {0, 1, 2}));
  std::string called;
  auto const cost = [&](sample const& s) {
    called += s.text;
    return s.tokens;
  };
  static_cast<void>(omnibal::lpt(samples, 2, cost));
  CHECK(called == "abc");
}

TEST_CASE("lpt evens several kinds of cost at once") {
  // Vision and text: half of the samples have only the one, half only the other.
  test::cost_vectors<2> costs;
  for (std::int64_t i = 0; i != 64; ++i) {
    costs.push_back(i % 2 == 0 ? omnibal::resources<2>{i + 1, 0}
                               : omnibal::resources<2>{0, 1000 * (i + 1)});
  }
  auto const parts = omnibal::lpt(costs, 4);
  CHECK(test::largest_share(parts, costs) < 0.26);
}

TEST_CASE("lpt puts equal vectors of costs into the lowest part") {
  test::cost_vectors<2> const costs(2, omnibal::resources<2>{3, 4});
  CHECK(omnibal::lpt(costs, 3) == grouping({0, 1, 2, 2}, {0, 1}));
}

TEST_CASE("lpt takes costs whose sum is the largest integer") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> const costs{largest / 2, 1, largest / 2 - 1, 1};
  CHECK(omnibal::lpt(costs, 2) == grouping({0, 2, 4}, {0, 3, 1, 2}));
  std::vector<std::int64_t> const one_giant{std::int64_t{1} << 62, 5, 4, 3};
  CHECK(omnibal::lpt(one_giant, 2) == grouping({0, 1, 4}, {0, 1, 2, 3}));
}

namespace {

using numbers = std::vector<int>;
using algorithm = omnibal::lpt_fn;

struct opaque {};

static_assert(std::invocable<algorithm, numbers, std::size_t>);
static_assert(std::invocable<algorithm, std::vector<omnibal::resources<2>>, std::size_t>);
static_assert(!std::invocable<algorithm, numbers>);
static_assert(!std::invocable<algorithm, int, std::size_t>);
static_assert(!std::invocable<algorithm, std::vector<opaque>, std::size_t>);
static_assert(!std::invocable<algorithm, std::vector<std::string>, std::size_t>);
static_assert(!std::invocable<algorithm, numbers, std::size_t, bool (*)(int)>);
static_assert(!std::invocable<algorithm, numbers, std::size_t, std::identity, count_policy>);
static_assert(omnibal::balancer<algorithm, numbers, std::identity>);

}  // namespace
