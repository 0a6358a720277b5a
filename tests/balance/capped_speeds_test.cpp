// SPDX-License-Identifier: Apache-2.0
// `balance_under_capacity` with parts of different speed, compared with all ways to place samples.
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/config.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::balance_under_capacity;
using omnibal::resources;
using omnibal::solve_status;
using omnibal::within_reason;

struct sample {
  std::int64_t cost;
  resources<2> demand;
};

constexpr auto cost_of = [](sample const& one) { return one.cost; };
constexpr auto demand_of = [](sample const& one) { return one.demand; };

/// Few samples, a capacity that may be tight, and whole speeds up to 4.
struct small_instance {
  explicit small_instance(test::random_amounts& random) {
    samples.resize(static_cast<std::size_t>(random.between(0, 6)));
    std::int64_t const most = random.between(1, 20);
    for (sample& one : samples) {
      one = {random.between(0, most), {random.between(0, 9), random.between(0, 9)}};
    }
    auto const parts = static_cast<std::size_t>(random.between(1, 4));
    for (std::size_t part = 0; part != parts; ++part) {
      whole.push_back(random.between(1, 4));
      speeds.push_back(0.5 * static_cast<double>(whole.back()));
    }
    std::int64_t const room = random.between(5, 24);
    capacity = {room, random.between(5, 24)};
  }

  /// The largest load over speed, multiplied by 12, which all speeds divide; nothing if a part
  /// exceeds the capacity.
  [[nodiscard]] std::optional<std::int64_t> time_of(
      std::vector<std::uint32_t> const& part_of) const {
    std::vector<std::int64_t> loads(whole.size(), 0);
    std::vector<resources<2>> demands(whole.size(), resources<2>{});
    for (std::size_t i = 0; i != samples.size(); ++i) {
      loads[part_of[i]] += samples[i].cost;
      demands[part_of[i]] += samples[i].demand;
    }
    std::int64_t largest = 0;
    for (std::size_t p = 0; p != whole.size(); ++p) {
      if (!demands[p].fits(capacity)) return std::nullopt;
      largest = std::max(largest, loads[p] * (12 / whole[p]));
    }
    return largest;
  }

  /// The smallest largest time of all ways to place the samples.
  [[nodiscard]] std::optional<std::int64_t> least_time() const {
    std::optional<std::int64_t> least;
    std::vector<std::uint32_t> part_of(samples.size(), 0);
    while (true) {
      auto const time = time_of(part_of);
      if (time && (!least || *time < *least)) least = time;
      std::size_t i = 0;
      while (i != samples.size() && ++part_of[i] == whole.size()) part_of[i++] = 0;
      if (i == samples.size()) return least;
    }
  }

  /// A time as a load of the fastest part, rounded up.
  [[nodiscard]] std::int64_t on_fastest(std::int64_t time) const {
    return (time * *std::max_element(whole.begin(), whole.end()) + 11) / 12;
  }

  std::vector<sample> samples;
  std::vector<std::int64_t> whole;
  std::vector<double> speeds;
  resources<2> capacity;
};

std::vector<std::uint32_t> part_of_each(omnibal::grouping const& parts, std::size_t samples) {
  std::vector<std::uint32_t> part_of(samples);
  for (std::uint32_t p = 0; p != parts.size(); ++p) {
    for (std::uint32_t const item : parts[p]) part_of[item] = p;
  }
  return part_of;
}

/// The largest load over speed, over the mean.
double time_over_mean(omnibal::grouping const& parts, std::vector<sample> const& samples,
                      std::vector<double> const& speeds) {
  double largest = 0;
  double sum = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    double load = 0;
    for (std::uint32_t const item : parts[p]) load += static_cast<double>(samples[item].cost);
    largest = std::max(largest, load / speeds[p]);
    sum += load;
  }
  return largest / (sum / std::accumulate(speeds.begin(), speeds.end(), 0.0));
}

}  // namespace

// Bounds, loads, proofs and refusals must agree with all ways to place the samples.
TEST_CASE("balance_under_capacity with speeds agrees with brute force", "[slow]") {
  test::random_amounts random(5);
  std::size_t proven = 0;
  std::size_t optimal = 0;
  std::size_t solved = 0;
  for (std::size_t turn = 0; turn != 4000; ++turn) {
    small_instance const given(random);
    auto const result =
        balance_under_capacity(given.samples, given.whole.size(), cost_of, demand_of,
                               given.capacity, {.max_overload = 0.0, .speeds = given.speeds});
    auto const least = given.least_time();
    INFO("turn " << turn);
    REQUIRE((result.status == solve_status::solved) == least.has_value());
    if (!least) {
      REQUIRE(result.status == solve_status::infeasible);
      REQUIRE(result.reason != within_reason::none);
      REQUIRE(result.parts.empty());
      continue;
    }
    ++solved;
    REQUIRE(test::parts_fault(result.parts, given.samples.size(), given.whole.size()) == "");
    REQUIRE(test::is_ascending(result.parts));
    auto const time = given.time_of(part_of_each(result.parts, given.samples.size()));
    REQUIRE(time.has_value());
    REQUIRE(result.largest_load == given.on_fastest(*time));
    REQUIRE(result.lower_bound <= given.on_fastest(*least));
    if (result.proven) REQUIRE(*time == *least);
    proven += result.proven ? 1u : 0u;
    optimal += *time == *least ? 1u : 0u;
  }
  CHECK(solved > 2000);
  CHECK(proven > solved / 3);
  CHECK(optimal > solved * 9 / 10);
}

// Without a search for even times, the parts must be those of the contract: each sample, from the
// largest cost on, where it is first ready among the parts with room.
TEST_CASE("balance_under_capacity with speeds places each sample where there is room first") {
  test::random_amounts random(7);
  std::size_t compared = 0;
  for (std::size_t turn = 0; turn != 300; ++turn) {
    auto const parts = static_cast<std::size_t>(random.between(2, 9));
    std::vector<double> speeds(parts);
    for (double& speed : speeds) speed = static_cast<double>(random.between(1, 4));
    std::vector<sample> samples(10 * parts);
    resources<2> capacity{};
    for (sample& one : samples) {
      one = {random.between(1, 1000), {random.between(0, 9), random.between(0, 9)}};
      capacity += one.demand;
    }
    for (std::int64_t& amount : capacity.amounts) {
      amount = amount / static_cast<std::int64_t>(parts) + random.between(2, 12);
    }
    std::vector<std::uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return samples[a].cost > samples[b].cost;
    });
    // The fastest part of equal times, then the lowest.
    std::vector<std::uint32_t> numbers(parts);
    std::iota(numbers.begin(), numbers.end(), std::uint32_t{0});
    std::stable_sort(numbers.begin(), numbers.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return speeds[a] > speeds[b]; });
    std::vector<double> loads(parts, 0.0);
    std::vector<resources<2>> rooms(parts, capacity);
    std::vector<std::uint32_t> part_of(samples.size());
    bool is_placed = true;
    for (std::uint32_t const i : order) {
      auto const cost = static_cast<double>(samples[i].cost);
      std::optional<std::uint32_t> best;
      for (std::uint32_t const part : numbers) {
        if (!samples[i].demand.fits(rooms[part])) continue;
        bool const is_better =
            !best || (loads[part] + cost) * speeds[*best] < (loads[*best] + cost) * speeds[part];
        if (is_better) best = part;
      }
      is_placed = is_placed && best.has_value();
      if (!is_placed) break;
      loads[*best] += cost;
      rooms[*best] -= samples[i].demand;
      part_of[i] = *best;
    }
    if (!is_placed) continue;
    ++compared;
    auto const result =
        balance_under_capacity(samples, parts, cost_of, demand_of, capacity,
                               {.max_overload = 1e6, .exchanges = 0, .speeds = speeds});
    REQUIRE(result.status == solve_status::solved);
    REQUIRE(part_of_each(result.parts, samples.size()) == part_of);
  }
  CHECK(compared > 30);
}

// With many samples, times must be equal under a capacity that leaves room and under one that fast
// parts nearly fill.
TEST_CASE("balance_under_capacity with speeds ends within 1e-4 of the mean time") {
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 1, 1, 1, 1, 1, 0.8}, {0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66, 1.08}};
  test::random_amounts random(6);
  for (auto const& mix : mixes) {
    for (bool const is_tight : {false, true}) {
      std::vector<double> speeds(16);
      for (std::size_t p = 0; p != 16; ++p) speeds[p] = mix[p % mix.size()];
      std::vector<sample> samples(64 * 16);
      resources<2> total{};
      for (sample& one : samples) {
        std::int64_t const length = random.between(1, 4096);
        one = {length + length * length / 1024, {length, random.between(0, 7)}};
        total += one.demand;
      }
      double const share = *std::max_element(speeds.begin(), speeds.end()) /
                           std::accumulate(speeds.begin(), speeds.end(), 0.0);
      resources<2> capacity;
      for (std::size_t r = 0; r != 2; ++r) {
        capacity[r] = static_cast<std::int64_t>(static_cast<double>(total[r]) * share *
                                                (is_tight ? 1.03 : 2.0));
      }
      for (double const tolerance : {0.01, 0.0}) {
        auto const result = balance_under_capacity(samples, 16, cost_of, demand_of, capacity,
                                                   {.max_overload = tolerance, .speeds = speeds});
        REQUIRE(result.status == solve_status::solved);
        REQUIRE(test::parts_fault(result.parts, samples.size(), 16) == "");
        for (auto const& part : result.parts) {
          resources<2> load{};
          for (std::uint32_t const item : part) load += samples[item].demand;
          REQUIRE(load.fits(capacity));
        }
        double const ratio = time_over_mean(result.parts, samples, speeds);
        CHECK(ratio <= 1.0001 + tolerance);
        auto const load = static_cast<double>(result.largest_load);
        CHECK(load >= static_cast<double>(result.lower_bound));
        CHECK(load <= (1.0001 + tolerance) * static_cast<double>(result.lower_bound));
      }
    }
  }
}

// Samples that only a packing places must still give the largest groups to the fastest parts.
TEST_CASE("balance_under_capacity with speeds places the groups of a packing by speed") {
  std::vector<std::int64_t> const sizes{6, 6, 5, 5, 5, 4, 4, 4, 3, 3, 3, 2};
  std::vector<double> const speeds{1, 2, 1, 3, 1};
  auto const result =
      balance_under_capacity(sizes, 5, std::identity{}, std::identity{}, 10, {.speeds = speeds});
  REQUIRE(result.status == solve_status::solved);
  for (auto const& part : result.parts) {
    std::int64_t load = 0;
    for (std::uint32_t const item : part) load += sizes[item];
    CHECK(load == 10);
  }
  CHECK(result.largest_load == 30);
}

// Costs that are no whole numbers have loads and bounds in their own type.
TEST_CASE("balance_under_capacity with speeds accepts floating-point costs and demands") {
  std::vector<double> const sizes{0.5, 0.25, 0.25, 1.0, 0.75, 0.25};
  std::vector<double> const speeds{1, 2};
  auto const result = balance_under_capacity(sizes, 2, std::identity{}, std::identity{}, 2.5,
                                             {.max_overload = 0.0, .speeds = speeds});
  REQUIRE(result.status == solve_status::solved);
  CHECK(result.proven);
  CHECK(result.largest_load == 2.0);
  CHECK(result.lower_bound <= 2.0);
  CHECK(result.lower_bound > 1.999);
}

// Speeds that do not differ must change nothing, and wrong speeds are named.
TEST_CASE("balance_under_capacity with equal speeds is balance_under_capacity") {
  test::random_amounts random(21);
  for (std::size_t turn = 0; turn != 60; ++turn) {
    std::size_t const parts = static_cast<std::size_t>(random.between(1, 9));
    std::vector<std::int64_t> costs(8 * parts);
    std::int64_t sum = 0;
    for (auto& cost : costs) sum += cost = random.between(1, 1000);
    std::int64_t const cap = sum / static_cast<std::int64_t>(parts) + random.between(0, 200);
    auto const run = [&](std::vector<double> const& speeds) {
      return balance_under_capacity(costs, parts, std::identity{}, std::identity{}, cap,
                                    {.speeds = speeds});
    };
    auto const expected = run({});
    CHECK(run({7.0}) == expected);
    CHECK(run(std::vector<double>(parts, 0.3)) == expected);
  }
  std::vector<int> const sizes{9, 8, 7};
  std::vector<double> const wrong{0.3, 0.3, -0.3};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(balance_under_capacity(sizes, 3, std::identity{}, std::identity{}, 20,
                                                   {.speeds = wrong}));
        }) ==
        "omnibal::balance_under_capacity: options.speeds[2] is -0.3, must be positive and finite");
}
