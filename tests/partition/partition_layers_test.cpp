// SPDX-License-Identifier: Apache-2.0
#include "all_cuts.hpp"
#include "samples.hpp"

#include <omnibal/partition/partition_layers.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::partition_layers;
using omnibal::partition_throughput;
using omnibal::solve_status;
using test::cuts;

/// A long chain with noise, costs at the cuts, and memory that one stage has little of.
template <class C>
struct noisy_chain {
  std::vector<C> costs;
  std::vector<C> sums{C{}};
  std::vector<C> cut_costs;
  std::size_t narrow_stage;
  std::size_t max_layers;

  noisy_chain(std::uint64_t seed, std::size_t count, std::size_t stages)
      : narrow_stage(stages / 2), max_layers(std::max<std::size_t>(1, count / stages * 3 / 4)) {
    test::random_amounts random(seed);
    auto const mean_stage = static_cast<std::int64_t>(1000 * count / stages);
    for (std::size_t l = 0; l != count; ++l) {
      costs.push_back(static_cast<C>(random.between(800, 1200)) / 7);
      sums.push_back(sums.back() + costs.back());
    }
    for (std::size_t i = 0; i <= count; ++i) {
      bool const is_end = i == 0 || i == count;
      cut_costs.push_back(is_end ? C{} : static_cast<C>(random.between(0, mean_stage / 5)) / 7);
    }
  }

  [[nodiscard]] C cost(std::size_t, std::size_t first, std::size_t last) const {
    return sums[last] - sums[first] + cut_costs[first] + cut_costs[last];
  }
  [[nodiscard]] bool fits(std::size_t stage, std::size_t first, std::size_t last) const {
    return stage != narrow_stage || last - first <= max_layers;
  }
};

/// The best objective, by looking at every end of every stage.
template <class C>
omnibal::partition_result<C> by_full_programming(noisy_chain<C> const& chain, std::size_t stages,
                                                 C of_bottleneck, C of_sum) {
  constexpr C never = std::numeric_limits<C>::max();
  std::size_t const count = chain.costs.size();
  auto const limited = [&](C limit) {
    std::vector<std::vector<C>> best(stages + 1, std::vector<C>(count + 1, never));
    best[stages][count] = C{};
    for (std::size_t s = stages; s-- != 0;) {
      for (std::size_t i = 0; i != count; ++i) {
        for (std::size_t j = i + 1; j <= count; ++j) {
          C const rest = best[s + 1][j];
          C const cost = chain.cost(s, i, j);
          if (rest == never || cost > limit || !chain.fits(s, i, j)) continue;
          best[s][i] = std::min(best[s][i], of_sum == C{} ? std::max(cost, rest) : cost + rest);
        }
      }
    }
    return best[0][0];
  };
  omnibal::partition_result<C> result;
  if (of_sum == C{}) {
    result.objective = limited(never);
    return result;
  }
  // Every cost of a stage is tried as a limit, so the chain must be short.
  result.objective = never;
  for (std::size_t i = 0; i != count; ++i) {
    for (std::size_t j = i + 1; j <= count; ++j) {
      for (std::size_t const s : {std::size_t{0}, chain.narrow_stage}) {
        C const limit = chain.cost(s, i, j);
        C const sum = limited(limit);
        if (sum == never) continue;
        result.objective = std::min(result.objective, of_bottleneck * limit + of_sum * sum);
      }
    }
  }
  return result;
}

template <class C>
auto cost_of(noisy_chain<C> const& chain) {
  return [&chain](std::size_t stage, std::size_t first, std::size_t last) {
    return chain.cost(stage, first, last);
  };
}
template <class C>
auto fits_of(noisy_chain<C> const& chain) {
  return [&chain](std::size_t stage, std::size_t first, std::size_t last) {
    return chain.fits(stage, first, last);
  };
}

}  // namespace

TEMPLATE_TEST_CASE("partition_layers agrees with full dynamic programming on long noisy chains", "",
                   std::int64_t, double) {
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    test::random_amounts random(seed);
    auto const stages = static_cast<std::size_t>(random.between(2, 16));
    auto const count = stages * static_cast<std::size_t>(random.between(2, 10));
    noisy_chain<TestType> const chain(seed, count, stages);
    INFO("seed " << seed << ", " << count << " layers, " << stages << " stages");
    auto const expected = by_full_programming<TestType>(chain, stages, 1, 0);
    auto const with_base =
        partition_layers(count, stages, cost_of(chain), fits_of(chain), {.base = chain.costs});
    auto const without = partition_layers(count, stages, cost_of(chain), fits_of(chain));
    CHECK(with_base.bottleneck == expected.objective);
    CHECK(with_base == without);
  }
}

TEMPLATE_TEST_CASE("partition_throughput agrees with full dynamic programming under every limit",
                   "", std::int64_t, double) {
  for (std::uint64_t seed = 0; seed != 12; ++seed) {
    test::random_amounts random(seed);
    auto const stages = static_cast<std::size_t>(random.between(2, 6));
    auto const count = stages * static_cast<std::size_t>(random.between(2, 4));
    noisy_chain<TestType> const chain(seed, count, stages);
    for (std::size_t const micro_batches : {1u, 3u, 16u}) {
      INFO("seed " << seed << ", " << count << " layers, " << stages << " stages, " << micro_batches
                   << " micro-batches");
      auto const expected =
          by_full_programming<TestType>(chain, stages, static_cast<TestType>(micro_batches - 1), 1);
      auto const with_base =
          partition_throughput(count, stages, cost_of(chain), fits_of(chain),
                               {.micro_batches = micro_batches, .base = chain.costs});
      auto const without = partition_throughput(count, stages, cost_of(chain), fits_of(chain),
                                                {.micro_batches = micro_batches});
      CHECK(with_base.objective == expected.objective);
      CHECK(with_base == without);
    }
  }
}

TEST_CASE("with a cost that adds up partition_layers is partition_minimax") {
  for (std::uint64_t seed = 0; seed != 300; ++seed) {
    test::random_amounts random(seed);
    std::vector<std::int64_t> costs(static_cast<std::size_t>(random.between(8, 120)));
    for (std::int64_t& cost : costs) cost = random.heavy_tail(1000);
    std::vector<std::int64_t> sums(costs.size() + 1, 0);
    for (std::size_t l = 0; l != costs.size(); ++l) sums[l + 1] = sums[l] + costs[l];
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    auto const exact = omnibal::partition_minimax(costs, 8);
    auto const general = partition_layers(costs, 8, cost);
    CHECK(general.bottleneck == exact.bottleneck);
    CHECK(partition_layers(costs, 8, cost, {}, {.base = costs}) == general);
    // The sum is the same for all cuts.
    auto const step = partition_throughput(costs, 8, cost, {}, {.micro_batches = 9, .base = costs});
    CHECK(step.boundaries == general.boundaries);
    CHECK(step.objective == 8 * exact.bottleneck + sums.back());
  }
}

TEST_CASE("a base that knows the speeds of the stages changes nothing but the time") {
  for (std::uint64_t seed = 0; seed != 300; ++seed) {
    test::random_amounts random(seed);
    noisy_chain<double> const chain(seed, 60, 6);
    std::vector<double> speeds(6);
    for (double& speed : speeds) speed = 0.5 * static_cast<double>(random.between(1, 6));
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return chain.cost(stage, first, last) / speeds[stage];
    };
    auto const plain = partition_layers(60, 6, cost);
    CHECK(partition_layers(60, 6, cost, {}, {.base = chain.costs, .speeds = speeds}) == plain);
    auto const whole = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return static_cast<std::int64_t>(cost(stage, first, last)) + 1;
    };
    std::vector<std::int64_t> base(chain.costs.begin(), chain.costs.end());
    CHECK(partition_layers(60, 6, whole, {}, {.base = base, .speeds = speeds}) ==
          partition_layers(60, 6, whole));
    CHECK(partition_throughput(60, 6, whole, {},
                               {.micro_batches = 5, .base = base, .speeds = speeds}) ==
          partition_throughput(60, 6, whole, {}, {.micro_batches = 5}));
  }
}

TEST_CASE("a base saves most calls of the cost") {
  noisy_chain<std::int64_t> const chain(1, 1000, 64);
  std::size_t calls = 0;
  auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
    ++calls;
    return chain.cost(stage, first, last);
  };
  static_cast<void>(partition_layers(1000, 64, cost, fits_of(chain), {.base = chain.costs}));
  CHECK(calls < 20'000);
}

TEST_CASE("more stages, more memory and more freedom are never worse") {
  for (std::uint64_t seed = 0; seed != 100; ++seed) {
    test::random_amounts random(seed);
    std::vector<std::int64_t> costs(40);
    std::vector<std::int64_t> bytes(40);
    for (std::int64_t& cost : costs) cost = random.between(0, 50);
    for (std::int64_t& size : bytes) size = random.between(1, 20);
    std::vector<std::int64_t> sums(41, 0);
    for (std::size_t l = 0; l != 40; ++l) sums[l + 1] = sums[l] + costs[l];
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    auto const best = [&](std::size_t stages, std::int64_t capacity) {
      auto const result = partition_layers(
          40, stages, cost, {}, {.constraints = {.bytes = bytes, .capacity = {capacity}}});
      return result.status == solve_status::solved ? result.bottleneck
                                                   : std::numeric_limits<std::int64_t>::max();
    };
    for (std::size_t stages = 2; stages != 10; ++stages) {
      CHECK(best(stages, 80) <= best(stages - 1, 80));
      CHECK(best(stages, 100) <= best(stages, 80));
    }
    auto larger = costs;
    larger[static_cast<std::size_t>(random.between(0, 39))] += 30;
    CHECK(omnibal::partition_minimax(larger, 5).bottleneck >=
          omnibal::partition_minimax(costs, 5).bottleneck);
  }
}

TEST_CASE("an infeasible result names the stage and the missing bytes") {
  auto const cost = [](std::size_t, std::size_t first, std::size_t last) { return last - first; };
  std::vector<int> bytes(8, 10);
  bytes[5] = 100;
  auto const alone = partition_layers(
      8, 4, cost, {}, {.constraints = {.bytes = bytes, .capacity = {60, 60, 80, 60}}});
  CHECK(alone.status == solve_status::infeasible);
  CHECK(alone.boundaries.empty());
  CHECK(alone.missing_bytes == 20);
  CHECK(alone.stage == 2);

  auto const together = partition_throughput(
      8, 4, cost, {},
      {.micro_batches = 4, .constraints = {.bytes = std::vector<int>(8, 10), .capacity = {15}}});
  CHECK(together.status == solve_status::infeasible);
  CHECK(together.missing_bytes == 5);
  CHECK(together.stage == 0);

  auto const never_on_stage_2 = [](std::size_t stage, std::size_t, std::size_t) {
    return stage != 2;
  };
  auto const refused = partition_layers(8, 4, cost, never_on_stage_2);
  CHECK(refused.status == solve_status::infeasible);
  CHECK(refused.missing_bytes == 0);
  CHECK(refused.stage == 2);
  CHECK(partition_layers(8, 4, cost, never_on_stage_2,
                         {.constraints = {.empty = omnibal::empty_stages::allowed}})
            .boundaries == cuts{0, 2, 5, 5, 8});
}

TEST_CASE("a cost of the largest value means that the stage cannot run") {
  auto const cost = [](std::size_t, std::size_t first, std::size_t last) {
    return last - first > 2 ? std::numeric_limits<std::int64_t>::max() : std::int64_t{1};
  };
  CHECK(partition_layers(6, 3, cost).boundaries == cuts{0, 2, 4, 6});
  CHECK(partition_layers(7, 3, cost).status == solve_status::infeasible);
  for (std::size_t const batches : {1u, 2u, 100u}) {
    CHECK(partition_throughput(6, 3, cost, {}, {.micro_batches = batches}).boundaries ==
          cuts{0, 2, 4, 6});
    CHECK(partition_throughput(7, 3, cost, {}, {.micro_batches = batches}).status ==
          solve_status::infeasible);
  }
}

TEST_CASE("virtual stages share the memory of their device") {
  auto const cost = [](std::size_t, std::size_t first, std::size_t last) {
    return static_cast<std::int64_t>(last - first);
  };
  // Device 0 has the stages 0 and 2, device 1 the stages 1 and 3.
  std::vector<int> const bytes{5, 5, 1, 1, 5, 5, 1, 1};
  auto const result = partition_layers(
      8, 4, cost, {}, {.constraints = {.bytes = bytes, .capacity = {20, 4}, .devices = 2}});
  CHECK(result.status == solve_status::solved);
  CHECK(result.boundaries == cuts{0, 2, 4, 6, 8});
  auto const narrow = partition_layers(
      8, 4, cost, {}, {.constraints = {.bytes = bytes, .capacity = {17, 4}, .devices = 2}});
  CHECK(narrow.status == solve_status::infeasible);
  CHECK(narrow.missing_bytes == 2);
}

namespace {

/// Layers on 8 virtual stages of 4 devices that have little room.
struct shared_chain {
  static constexpr std::size_t stages = 8;
  static constexpr std::size_t devices = 4;
  std::vector<std::int64_t> sums{0};
  std::vector<std::int64_t> bytes;
  std::int64_t capacity = 0;

  shared_chain(std::uint64_t seed, std::size_t count, std::int64_t slack) {
    test::random_amounts random(seed);
    for (std::size_t l = 0; l != count; ++l) {
      bytes.push_back(random.between(1, 1000));
      sums.push_back(sums.back() + random.between(1, 1000));
    }
    capacity = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) / 4 + slack;
  }

  [[nodiscard]] omnibal::partition_constraints constraints() const {
    return {.bytes = bytes, .capacity = {capacity}, .devices = devices};
  }
  /// The largest load of a device.
  [[nodiscard]] std::int64_t load_of(cuts const& boundaries) const {
    std::vector<std::int64_t> loads(devices, 0);
    for (std::size_t s = 0; s != stages; ++s) {
      loads[s % devices] += sums[boundaries[s + 1]] - sums[boundaries[s]];
    }
    return *std::max_element(loads.begin(), loads.end());
  }
  [[nodiscard]] auto solve(std::size_t labels) const {
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    return partition_layers(bytes, stages, cost, {},
                            {.constraints = constraints(), .labels = labels});
  }
};

/// Cuts equal layers for eight devices with three chunks each.
void check_equal_layers(std::size_t layers) {
  omnibal::partition_constraints const rules{.devices = 8};
  auto const cost = [](std::size_t, std::size_t first, std::size_t last) {
    return 300 * static_cast<std::int64_t>(last - first);
  };
  auto const result = partition_layers(layers, 24, cost, {}, {.constraints = rules});
  INFO(layers << " layers");
  CHECK(result.objective == 300 * static_cast<std::int64_t>((layers + 7) / 8));
  CHECK(result.bottleneck <= 300 * static_cast<std::int64_t>((layers + 23) / 24));
}

}  // namespace

// The largest stage says nothing about a device that runs several stages.
TEST_CASE("with devices the objective is about the busiest device") {
  std::vector<std::int64_t> const layers(40, 30);
  auto const cost = [](std::size_t, std::size_t first, std::size_t last) {
    return 30 * static_cast<std::int64_t>(last - first);
  };
  omnibal::partition_constraints const rules{.devices = 4};
  auto const even = partition_layers(layers, 12, cost, {}, {.constraints = rules});
  CHECK(even.objective == 300);
  CHECK(even.bottleneck == 120);
  CHECK(even.proven);
  auto const step =
      partition_throughput(layers, 12, cost, {}, {.micro_batches = 32, .constraints = rules});
  CHECK(step.objective == 9900);
  CHECK(step.proven);
  for (auto const& result : {even, step}) {
    for (std::size_t s = 0; s != 12; ++s) {
      auto const count = result.boundaries[s + 1] - result.boundaries[s];
      CHECK((count == 3 || count == 4));
    }
  }
}

// Chunks of 1, 1 and 12 layers have the same load as chunks of 4 and 5, and a step half as long
// again.
TEST_CASE("equal layers on devices give chunks as short as equal counts") {
  check_equal_layers(40);
  check_equal_layers(63);
}

TEST_CASE("many equal layers on devices give chunks as short as equal counts", "[slow]") {
  check_equal_layers(111);
  check_equal_layers(143);
}

// A plan that is worse than the same number of layers everywhere is of no use.
TEST_CASE("interleaved stages are never slower than equal counts of layers", "[slow]") {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    test::random_amounts random(seed);
    std::size_t const devices = std::size_t{1} << random.between(1, 3);
    std::size_t const chunks = static_cast<std::size_t>(random.between(2, 4));
    std::size_t const stages = devices * chunks;
    auto const count = static_cast<std::size_t>(
        random.between(static_cast<std::int64_t>(stages), 4 * static_cast<std::int64_t>(stages)));
    std::int64_t const noise = random.between(0, 1) * 60;
    std::vector<std::int64_t> sums{0};
    for (std::size_t l = 0; l != count; ++l) {
      bool const is_end = l == 0 || l + 1 == count;
      std::int64_t const cost = is_end ? random.between(0, 900) : 300 + random.between(0, noise);
      sums.push_back(sums.back() + 3 * cost);
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return sums[last] - sums[first];
    };
    std::size_t const micro_batches = devices * static_cast<std::size_t>(random.between(1, 6));
    auto const simulated = [&](cuts const& at) {
      std::vector<omnibal::stage_time<>> times;
      for (std::size_t s = 0; s != stages; ++s) {
        std::int64_t const whole = sums[at[s + 1]] - sums[at[s]];
        times.push_back({.forward = whole / 3, .backward = whole - whole / 3});
      }
      omnibal::interleaved_1f1b const schedule{devices, micro_batches, chunks};
      return omnibal::simulate_pipeline(schedule, times, 0, 1).makespan;
    };
    auto const result =
        partition_throughput(count, stages, cost, {},
                             {.micro_batches = micro_batches, .constraints = {.devices = devices}});
    INFO("seed " << seed << ", " << count << " layers, " << devices << " devices x " << chunks);
    std::size_t const least = count / stages;
    std::size_t const rest = count % stages;
    std::vector<cuts> equal(4);
    for (std::size_t s = 0; s <= stages; ++s) {
      std::size_t const last = s + rest > stages ? s + rest - stages : 0;
      equal[0].push_back(static_cast<std::uint32_t>(s * count / stages));
      equal[1].push_back(static_cast<std::uint32_t>((s * count + stages - 1) / stages));
      equal[2].push_back(static_cast<std::uint32_t>(s * least + std::min(s, rest)));
      equal[3].push_back(static_cast<std::uint32_t>(s * least + last));
    }
    for (cuts const& each : equal) CHECK(simulated(result.boundaries) <= simulated(each));
    CHECK(result.lower_bound <= result.objective);
  }
}

TEST_CASE("a search that runs out of labels says so, and is right in what it says") {
  std::size_t not_found = 0;
  std::size_t unproven = 0;
  std::size_t unproven_but_found = 0;
  for (std::uint64_t seed = 0; seed != 12; ++seed) {
    shared_chain const chain(seed, 20, 100);
    test::best_cuts<std::int64_t> best;
    test::for_all_cuts(20, chain.stages, omnibal::empty_stages::forbidden, [&](cuts const& tried) {
      if (test::missing_bytes(tried, chain.constraints()) > 0) return;
      best.offer(chain.load_of(tried), tried);
    });
    REQUIRE(best.found);
    auto const exact = chain.solve(100'000);
    CHECK(exact.proven);
    CHECK(exact.objective == best.value);
    CHECK(chain.load_of(exact.boundaries) == best.value);
    for (std::size_t const labels : {1u, 300u, 1000u, 3000u}) {
      auto const rough = chain.solve(labels);
      if (rough.proven) {
        CHECK(rough.objective == exact.objective);
        continue;
      }
      ++unproven;
      if (rough.status == solve_status::not_found) continue;
      ++unproven_but_found;
      REQUIRE(rough.status == solve_status::solved);
      CHECK(test::missing_bytes(rough.boundaries, chain.constraints()) <= 0);
      CHECK(rough.objective == chain.load_of(rough.boundaries));
      CHECK(rough.objective >= best.value);
      CHECK(rough.lower_bound <= best.value);
    }
    if (chain.solve(1).status == solve_status::not_found) ++not_found;
  }
  CHECK(not_found > 6);
  CHECK(unproven > 12);
  CHECK(unproven_but_found > 6);
}

TEST_CASE("devices without enough room in all are infeasible and say how much is missing",
          "[slow]") {
  for (std::uint64_t seed = 0; seed != 4; ++seed) {
    shared_chain const chain(seed, 60, -500);
    auto const result = chain.solve(100'000);
    CHECK(result.status == solve_status::infeasible);
    // What is missing on average is a lower bound, and few layers more are enough.
    CHECK(result.missing_bytes >= 500);
    CHECK(result.missing_bytes < 1500);
    CHECK(result.stage < chain.devices);
    auto const enough = shared_chain(seed, 60, result.missing_bytes - 500).solve(100'000);
    CHECK(enough.status == solve_status::solved);
  }
}

namespace {

using chain_cost = std::int64_t (*)(std::size_t, std::size_t, std::size_t);
using chain_predicate = bool (*)(std::size_t, std::size_t, std::size_t);
using algorithm = omnibal::partition_layers_fn;

static_assert(std::invocable<algorithm, std::size_t, std::size_t, chain_cost>);
static_assert(
    std::invocable<algorithm, std::vector<int>, std::size_t, chain_cost, chain_predicate>);
static_assert(!std::invocable<algorithm, std::size_t, std::size_t>);
static_assert(!std::invocable<algorithm, double, std::size_t, chain_cost>);
static_assert(!std::invocable<algorithm, std::size_t, std::size_t, std::int64_t (*)(std::size_t)>);
static_assert(!std::invocable<algorithm, std::size_t, std::size_t, chain_predicate>,
              "a truth is no cost");
static_assert(std::invocable<omnibal::partition_throughput_fn, std::size_t, std::size_t, chain_cost,
                             chain_predicate, omnibal::partition_throughput_options<std::int64_t>>);

}  // namespace
