// SPDX-License-Identifier: Apache-2.0
#include "all_cuts.hpp"
#include "samples.hpp"

#include <omnibal/partition/partition_minimax.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::empty_stages;
using omnibal::partition_minimax;
using omnibal::partition_minimax_options;
using test::cuts;

struct layer {
  std::string name;
  double seconds;
  int parameters;
};

/// The best by trying all cuts; the cost of a stage is a difference of sums of first layers.
template <class T, class Seconds>
auto best_of_all(std::vector<T> const& costs, std::size_t stages, empty_stages empty,
                 Seconds const& seconds) {
  std::vector<T> sums(costs.size() + 1, T{});
  std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
  using value_type = decltype(seconds(T{}, 0));
  test::best_cuts<value_type> best;
  test::for_all_cuts(costs.size(), stages, empty, [&](cuts const& tried) {
    value_type largest{};
    for (std::size_t s = 0; s != stages; ++s) {
      largest = std::max(largest, seconds(sums[tried[s + 1]] - sums[tried[s]], s));
    }
    best.offer(largest, tried);
  });
  return best;
}

constexpr auto as_it_is = [](auto sum, std::size_t) { return sum; };

template <class C>
void check_equal(omnibal::partition_result<C> const& result, test::best_cuts<C> const& best) {
  CHECK(result.status == omnibal::solve_status::solved);
  CHECK(result.proven);
  CHECK(result.bottleneck == best.value);
  CHECK(result.objective == best.value);
  CHECK(result.lower_bound == best.value);
  CHECK(result.boundaries == best.boundaries);
}

/// Costs of many kinds: few or many values, zeros, one giant, sorted.
std::vector<std::int64_t> random_costs(test::random_amounts& random, std::size_t count) {
  std::int64_t const kind = random.between(0, 5);
  std::int64_t const limit = kind == 0   ? 1
                             : kind == 1 ? 3
                                         : std::int64_t{1} << random.between(2, 40);
  std::vector<std::int64_t> costs(count);
  for (std::int64_t& cost : costs) {
    cost = kind == 2 ? random.heavy_tail(limit) : random.between(0, limit);
  }
  if (kind == 3) std::sort(costs.begin(), costs.end());
  if (kind == 4 && count != 0) costs[count / 3] = limit * 16;
  return costs;
}

std::size_t draw(test::random_amounts& random, std::size_t low, std::size_t high) {
  return static_cast<std::size_t>(
      random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
}

}  // namespace

namespace {

/// The smallest stage of cuts of a chain with these sums of first layers.
template <class T>
T smallest_stage(std::vector<T> const& sums, cuts const& at) {
  T result = sums.back();
  for (std::size_t s = 0; s + 1 != at.size(); ++s) {
    result = std::min(result, sums[at[s + 1]] - sums[at[s]]);
  }
  return result;
}

/// Checks cuts with the smallest largest stage, and of those with the largest smallest stage.
template <class T, class Result>
void check_even(std::vector<T> const& costs, std::size_t stages, empty_stages empty,
                Result const& result) {
  std::vector<T> sums(costs.size() + 1, T{});
  std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
  auto const best = best_of_all(costs, stages, empty, as_it_is);
  T max_even{};
  test::for_all_cuts(costs.size(), stages, empty, [&](cuts const& tried) {
    for (std::size_t s = 0; s != stages; ++s) {
      if (sums[tried[s + 1]] - sums[tried[s]] > best.value) return;
    }
    max_even = std::max(max_even, smallest_stage(sums, tried));
  });
  CHECK(result.bottleneck == best.value);
  CHECK(result.proven);
  for (std::size_t s = 0; s != stages; ++s) {
    REQUIRE(result.boundaries[s] <= result.boundaries[s + 1]);
    CHECK(sums[result.boundaries[s + 1]] - sums[result.boundaries[s]] <= best.value);
  }
  CHECK(smallest_stage(sums, result.boundaries) == max_even);
}

}  // namespace

// Leftmost cuts leave the last stages full and the first ones nearly empty.
TEST_CASE("partition_minimax cuts equal layers into stages that differ by one layer") {
  for (std::size_t layers = 1; layers != 70; ++layers) {
    for (std::size_t stages = 1; stages <= layers; ++stages) {
      auto const at = partition_minimax(std::vector<std::int64_t>(layers, 30), stages).boundaries;
      for (std::size_t s = 0; s != stages; ++s) {
        CHECK(at[s + 1] - at[s] == layers / stages + (s < layers % stages ? 1 : 0));
      }
    }
  }
}

// Of equal bottlenecks the leftmost cuts leave stages that are nearly empty.
TEST_CASE("partition_minimax finds the most even of the cuts with the best bottleneck") {
  omnibal::partition_minimax_workspace<> workspace;
  for (std::uint64_t seed = 0; seed != 4000; ++seed) {
    test::random_amounts random(seed);
    std::size_t const stages = draw(random, 1, 6);
    auto const costs = random_costs(random, draw(random, 0, 11));
    std::vector<double> const fractions = [&] {
      std::vector<double> result;
      for (std::int64_t const cost : costs) result.push_back(static_cast<double>(cost) / 3);
      return result;
    }();
    for (empty_stages const empty : {empty_stages::allowed, empty_stages::forbidden}) {
      if (empty == empty_stages::forbidden && costs.size() < stages) continue;
      INFO("seed " << seed << ", " << costs.size() << " layers, " << stages << " stages");
      partition_minimax_options const options{.empty = empty};
      check_even(costs, stages, empty, partition_minimax(costs, stages, std::identity{}, options));
      CHECK(partition_minimax(costs, stages, std::identity{}, options) ==
            partition_minimax(costs, stages, std::identity{}, options, workspace));
      check_even(fractions, stages, empty,
                 partition_minimax(fractions, stages, std::identity{}, options));
    }
  }
}

TEST_CASE("partition_minimax takes speeds in the order of the stages") {
  for (std::uint64_t seed = 0; seed != 3000; ++seed) {
    test::random_amounts random(seed);
    std::size_t const stages = draw(random, 1, 6);
    auto const costs = random_costs(random, draw(random, 0, 11));
    std::vector<double> speeds(stages);
    for (double& speed : speeds) speed = 0.25 * static_cast<double>(random.between(1, 12));
    auto const seconds = [&](std::int64_t sum, std::size_t s) {
      return static_cast<double>(sum) / speeds[s];
    };
    for (empty_stages const empty : {empty_stages::allowed, empty_stages::forbidden}) {
      if (empty == empty_stages::forbidden && costs.size() < stages) continue;
      INFO("seed " << seed << ", " << costs.size() << " layers, " << stages << " stages");
      check_equal(partition_minimax(costs, speeds, std::identity{}, {.empty = empty}),
                  best_of_all(costs, stages, empty, seconds));
    }
  }
  CHECK(partition_minimax(std::vector{1, 2, 3, 4}, std::vector{1, 1}).boundaries ==
        partition_minimax(std::vector{1, 2, 3, 4}, 2).boundaries);
}

TEST_CASE("partition_minimax agrees with a plain bisection on long chains") {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    test::random_amounts random(seed);
    std::size_t const count = draw(random, 1000, 20'000);
    std::size_t const stages = draw(random, 2, std::size_t{1} << draw(random, 2, 9));
    auto const costs = random_costs(random, count);
    auto const fits = [&](std::int64_t limit) {
      std::size_t used = 1;
      std::int64_t load = 0;
      for (std::int64_t const cost : costs) {
        if (cost > limit) return false;
        if (load + cost > limit) {
          ++used;
          load = 0;
        }
        load += cost;
      }
      return used <= stages;
    };
    std::int64_t low = -1;
    std::int64_t high = std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
    while (high - low > 1) {
      std::int64_t const half = low + (high - low) / 2;
      (fits(half) ? high : low) = half;
    }
    INFO("seed " << seed << ", " << count << " layers, " << stages << " stages");
    auto const result = partition_minimax(costs, stages);
    CHECK(result.bottleneck == high);
    auto const& at = result.boundaries;
    CHECK(at.front() == 0);
    CHECK(at.back() == count);
    bool is_within = true;
    for (std::size_t s = 0; s != stages; ++s) {
      auto const sum =
          std::accumulate(costs.begin() + at[s], costs.begin() + at[s + 1], std::int64_t{0});
      is_within = is_within && at[s] < at[s + 1] && sum <= high;
    }
    CHECK(is_within);
    std::vector<double> const same(costs.begin(), costs.end());
    CHECK(partition_minimax(same, stages).bottleneck == static_cast<double>(high));
  }
}

TEST_CASE("partition_minimax agrees with a plain bisection on very long chains of every shape") {
  constexpr std::size_t count = 40'000;
  for (std::uint64_t seed = 0; seed != 44; ++seed) {
    test::random_amounts random(seed);
    std::size_t const stages = draw(random, 256, 900);
    std::vector<std::int64_t> costs(count);
    std::uint64_t const shape = seed % 11;
    for (std::size_t i = 0; i != count; ++i) {
      std::int64_t const drawn = random.between(0, 1'000'000);
      costs[i] = shape == 0   ? 800'000 + drawn / 5
                 : shape == 1 ? std::int64_t{1} << (drawn % 20)
                 : shape == 2 ? 7
                 : shape == 3 ? drawn % 2
                 : shape == 4 ? (i / 300 % 2 == 0 ? 1 + drawn % 3 : 0)
                 : shape == 5 ? (i < count / 2 ? 0 : drawn)
                 : shape == 6 ? (i % 61 == 0 ? 1'000'000 + drawn : drawn % 10)
                 : shape == 7 ? (i == count / 3 ? 1'000'000'000'000 : drawn)
                              : drawn * drawn / (1 + drawn % 1000);
    }
    if (shape == 9) std::sort(costs.begin(), costs.end());
    if (shape == 10) std::sort(costs.begin(), costs.end(), std::greater<>());
    std::vector<std::int64_t> sums(count + 1, 0);
    std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
    auto const fits = [&](std::int64_t limit) {
      std::size_t used = 0;
      for (auto at = sums.begin(); *at != sums.back(); ++used) {
        if (used == stages) return false;
        auto const next = std::upper_bound(at, sums.end(), *at + limit);
        if (next == at + 1) return false;
        at = next - 1;
      }
      return true;
    };
    std::int64_t low = -1;
    std::int64_t high = sums.back();
    while (high - low > 1) {
      std::int64_t const half = low + (high - low) / 2;
      (fits(half) ? high : low) = half;
    }
    INFO("seed " << seed << ", " << stages << " stages");
    auto const result = partition_minimax(costs, stages);
    CHECK(result.bottleneck == high);
    bool is_within = true;
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const at = result.boundaries[s];
      std::size_t const next = result.boundaries[s + 1];
      is_within = is_within && at < next && sums[next] - sums[at] <= high;
    }
    CHECK(is_within);
    std::vector<double> const same(costs.begin(), costs.end());
    CHECK(partition_minimax(same, stages).bottleneck == static_cast<double>(high));
  }
}

TEST_CASE("the bottleneck of many fractional costs is the smallest sum that suffices") {
  for (std::uint64_t seed = 0; seed != 12; ++seed) {
    test::random_amounts random(seed);
    std::size_t const stages = draw(random, 256, 600);
    std::vector<double> costs(30'000);
    for (double& cost : costs) {
      cost = static_cast<double>(seed % 2 == 0 ? random.between(0, 1'000'000)
                                               : random.heavy_tail(1'000'000'000)) *
             1e-9;
    }
    std::vector<double> sums(costs.size() + 1, 0.0);
    std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
    auto const fits = [&](double limit) {
      std::size_t at = 0;
      for (std::size_t s = 0; s != stages && at != costs.size(); ++s) {
        if (sums[at + 1] - sums[at] > limit) return false;
        std::size_t last = at;
        while (last != costs.size() && sums[last + 1] - sums[at] <= limit) ++last;
        at = last;
      }
      return at == costs.size();
    };
    auto const result = partition_minimax(costs, stages);
    INFO("seed " << seed << ", " << stages << " stages");
    CHECK(fits(result.bottleneck));
    CHECK_FALSE(fits(std::nextafter(result.bottleneck, 0.0)));
  }
}

TEST_CASE("partition_minimax is right where other partitioners fail") {
  std::vector<int> steps(10, 100);
  steps.insert(steps.end(), 10, 101);
  CHECK(partition_minimax(steps, 4).bottleneck == 505);
  CHECK(partition_minimax(steps, 4).boundaries == cuts{0, 5, 10, 15, 20});

  std::vector<int> blocks(12, 1);
  blocks.insert(blocks.end(), 12, 3);
  CHECK(partition_minimax(blocks, 4).bottleneck == 12);
  CHECK(partition_minimax(blocks, 4).boundaries == cuts{0, 12, 16, 20, 24});

  CHECK(partition_minimax(std::vector<int>(5, 1), 4).boundaries == cuts{0, 2, 3, 4, 5});

  auto const many = partition_minimax(std::vector<int>(42, 1), 16);
  CHECK(many.bottleneck == 3);
  CHECK(std::adjacent_find(many.boundaries.begin(), many.boundaries.end()) ==
        many.boundaries.end());

  CHECK(partition_minimax(std::vector<double>{0.25, 0.5, 0.125, 0.125}, 3).bottleneck == 0.5);
  CHECK(partition_minimax(std::vector<double>{1e-300, 3e-300, 2e-300}, 2).bottleneck == 4e-300);
}

TEST_CASE("more stages are never worse, and a larger layer never better") {
  for (std::uint64_t seed = 0; seed != 200; ++seed) {
    test::random_amounts random(seed);
    auto costs = random_costs(random, draw(random, 30, 200));
    std::int64_t before = std::numeric_limits<std::int64_t>::max();
    for (std::size_t stages = 1; stages <= costs.size(); ++stages) {
      std::int64_t const now = partition_minimax(costs, stages).bottleneck;
      CHECK(now <= before);
      before = now;
    }
    CHECK(before == *std::max_element(costs.begin(), costs.end()));
    std::int64_t const smaller = partition_minimax(costs, 7).bottleneck;
    costs[draw(random, 0, costs.size() - 1)] += 5;
    CHECK(partition_minimax(costs, 7).bottleneck >= smaller);
  }
}

TEST_CASE("partition_minimax leaves stages empty only where that is allowed") {
  partition_minimax_options const allowed{.empty = empty_stages::allowed};
  CHECK(partition_minimax(std::vector{4, 5}, 4, std::identity{}, allowed).boundaries ==
        cuts{0, 1, 2, 2, 2});
  CHECK(partition_minimax(std::vector<int>{}, 2, std::identity{}, allowed).boundaries ==
        cuts{0, 0, 0});
  CHECK(partition_minimax(std::vector<int>(4, 0), 2).boundaries == cuts{0, 3, 4});
  CHECK(partition_minimax(std::vector<int>(4, 0), 2, std::identity{}, allowed).boundaries ==
        cuts{0, 4, 4});
}

TEST_CASE("partition_minimax takes any range, any cost and sums up to the largest integer") {
  std::vector<layer> const layers{{"a", 0.5, 4}, {"b", 0.25, 1}, {"c", 0.25, 1}, {"d", 0.5, 2}};
  CHECK(partition_minimax(layers, 3, &layer::seconds).bottleneck == 0.5);
  CHECK(partition_minimax(layers, 2, [](layer const& l) { return l.parameters; }).boundaries ==
        cuts{0, 1, 4});
  CHECK(partition_minimax(layers, std::vector{2.0, 1.0}, &layer::parameters).bottleneck == 3.0);
  CHECK(partition_minimax(std::deque<std::uint16_t>{65535, 65535, 65535}, 2).bottleneck == 131070);
  std::int64_t const half = std::numeric_limits<std::int64_t>::max() / 2;
  CHECK(partition_minimax(std::vector{half, half, std::int64_t{1}}, 2).bottleneck == half + 1);
  CHECK(partition_minimax(std::vector{half, half, std::int64_t{1}}, 1).bottleneck == 2 * half + 1);
  CHECK(partition_minimax(std::vector{8e307, 8e307}, 2).bottleneck == 8e307);
  CHECK(partition_minimax(std::vector{0.0, 5e-324, 5e-324}, 2).bottleneck == 5e-324);
}

TEST_CASE("a workspace that has served larger chains gives the same results") {
  omnibal::partition_minimax_workspace<double> workspace;
  test::random_amounts random(3);
  for (std::size_t const count : {500u, 20u, 300u, 1u, 60u}) {
    std::vector<double> costs(count);
    for (double& cost : costs) cost = static_cast<double>(random.between(0, 1000));
    std::size_t const stages = std::min<std::size_t>(count, 7);
    CHECK(partition_minimax(costs, stages, workspace) == partition_minimax(costs, stages));
    CHECK(workspace.result() == partition_minimax(costs, stages));
  }
}

namespace {

using numbers = std::vector<int>;
using algorithm = omnibal::partition_minimax_fn;

static_assert(std::invocable<algorithm, numbers, std::size_t>);
static_assert(std::invocable<algorithm, numbers, std::vector<float>>);
static_assert(!std::invocable<algorithm, numbers>);
static_assert(!std::invocable<algorithm, int, std::size_t>);
static_assert(!std::invocable<algorithm, std::vector<std::string>, std::size_t>);
static_assert(!std::invocable<algorithm, numbers, std::vector<std::string>>);
static_assert(!std::invocable<algorithm, std::vector<layer>, std::size_t, std::string layer::*>);
static_assert(
    !std::invocable<algorithm, numbers, std::size_t, omnibal::partition_minimax_workspace<double>&>,
    "the workspace has another type of cost");

}  // namespace
