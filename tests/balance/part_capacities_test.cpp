// SPDX-License-Identifier: Apache-2.0
// A capacity for each part or rank in balance_under_capacity and micro_batches.
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::balance_under_capacity;
using omnibal::micro_batches;
using omnibal::oversize_policy;
using omnibal::resources;
using omnibal::solve_status;
using omnibal::within_reason;

using numbers = std::vector<std::int64_t>;

struct sample {
  std::int64_t cost;
  resources<2> demand;
};

constexpr auto cost_of = [](sample const& one) { return one.cost; };
constexpr auto demand_of = [](sample const& one) { return one.demand; };
constexpr std::identity itself{};

std::vector<sample> random_samples(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  std::vector<sample> samples(count);
  for (sample& one : samples) {
    std::int64_t const length = random.between(1, 4096);
    one = {length + length * length / 1024, {length, random.between(0, 7)}};
  }
  return samples;
}

std::int64_t load_of(std::span<std::uint32_t const> part, numbers const& sizes) {
  std::int64_t load = 0;
  for (std::uint32_t const item : part) load += sizes[item];
  return load;
}

resources<2> demand_of_all(std::span<std::uint32_t const> part,
                           std::vector<sample> const& samples) {
  resources<2> load{};
  for (std::uint32_t const item : part) load += samples[item].demand;
  return load;
}

}  // namespace

// Equal capacities of a range must change nothing.
TEST_CASE("equal capacities of parts are one capacity") {
  auto const samples = random_samples(300, 1);
  std::vector<double> const speeds{1, 2, 1, 1.5};
  resources<2> const capacity{200'000, 400};
  std::array<resources<2>, 4> const each{capacity, capacity, capacity, capacity};
  for (bool const has_speeds : {false, true}) {
    omnibal::balance_under_capacity_options options;
    omnibal::micro_batches_options batch_options{.multiple_of = 2};
    if (has_speeds) {
      options.speeds = speeds;
      batch_options.speeds = speeds;
    }
    auto const found = balance_under_capacity(samples, 4, cost_of, demand_of, each, options);
    CHECK(found.status == solve_status::solved);
    CHECK(found == balance_under_capacity(samples, 4, cost_of, demand_of, capacity, options));
    CHECK(micro_batches(samples, 4, cost_of, demand_of, each, batch_options) ==
          micro_batches(samples, 4, cost_of, demand_of, capacity, batch_options));
  }
}

// A part with room for its share of the costs must get it, and no part more than its capacity.
TEST_CASE("balance_under_capacity is even under a capacity of each part") {
  auto const samples = random_samples(64 * 16, 2);
  resources<2> total{};
  for (sample const& one : samples) total += one.demand;
  for (std::vector<double> const& mix :
       {std::vector<double>{1}, {1.5, 1.0}, {1, 1, 1, 0.8}, {0.51, 0.77, 1.93, 1.2}}) {
    std::vector<double> speeds(16);
    for (std::size_t part = 0; part != 16; ++part) speeds[part] = mix[part % mix.size()];
    double const sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<resources<2>> capacities(16);
    for (std::size_t part = 0; part != 16; ++part) {
      for (std::size_t r = 0; r != 2; ++r) {
        double const share = static_cast<double>(total[r]) * speeds[part] / sum;
        capacities[part][r] = static_cast<std::int64_t>(share * (part % 3 == 0 ? 1.03 : 1.5));
      }
    }
    auto const found = balance_under_capacity(samples, 16, cost_of, demand_of, capacities,
                                              {.max_overload = 0.0, .speeds = speeds});
    REQUIRE(found.status == solve_status::solved);
    REQUIRE(test::parts_fault(found.parts, samples.size(), 16) == "");
    for (std::size_t part = 0; part != 16; ++part) {
      CHECK(demand_of_all(found.parts[part], samples).fits(capacities[part]));
    }
    CHECK(static_cast<double>(found.largest_load) <=
          1.0001 * static_cast<double>(found.lower_bound));
  }
}

// Parts that must be filled exactly are found by best fit or by the search.
TEST_CASE("balance_under_capacity fills parts with different capacities") {
  numbers const sizes{9, 7, 6, 5, 4, 3, 2};
  std::array<int, 3> const capacities{9, 16, 11};
  auto const found = balance_under_capacity(sizes, 3, itself, itself, capacities);
  REQUIRE(found.status == solve_status::solved);
  for (std::size_t part = 0; part != 3; ++part) {
    CHECK(load_of(found.parts[part], sizes) == capacities[part]);
  }
  auto const none = balance_under_capacity(sizes, 3, itself, itself, std::array{9, 16, 10});
  CHECK(none.status == solve_status::infeasible);
  CHECK(none.reason == within_reason::too_few_parts);
  CHECK(none.parts_needed == 4);
  numbers const three{6, 5, 4};
  CHECK(balance_under_capacity(three, 3, itself, itself, std::array{1, 9, 9}).parts_needed == 2);
  // The sum of the room suffices, but not for 9 and 7.
  auto const tried = balance_under_capacity(sizes, 4, itself, itself, std::array{9, 6, 6, 15});
  CHECK(tried.status == solve_status::solved);
  auto const impossible =
      balance_under_capacity(sizes, 5, itself, itself, std::array{9, 6, 6, 6, 9});
  CHECK(impossible.status == solve_status::infeasible);
  CHECK(impossible.reason == within_reason::all_tried);
}

// Exchanges, splits and the search must keep the capacity of each part.
TEST_CASE("balance_under_capacity never exceeds the capacity of a part") {
  test::random_amounts random(4);
  std::size_t solved = 0;
  for (std::size_t turn = 0; turn != 3000; ++turn) {
    std::vector<sample> samples(static_cast<std::size_t>(random.between(4, 24)));
    resources<2> total{};
    for (sample& one : samples) {
      one = {random.between(1, 50), {random.between(0, 9), random.between(0, 9)}};
      total += one.demand;
    }
    auto const parts = static_cast<std::size_t>(random.between(2, 4));
    std::vector<resources<2>> capacities(parts);
    std::vector<double> speeds(parts);
    for (std::size_t part = 0; part != parts; ++part) {
      speeds[part] = turn % 2 == 0 ? 1.0 : static_cast<double>(random.between(1, 3));
      for (std::size_t r = 0; r != 2; ++r) {
        std::int64_t const mean = total[r] / static_cast<std::int64_t>(parts);
        capacities[part][r] = 9 + mean * random.between(2, 6) / 4;
      }
    }
    auto const batches = micro_batches(samples, parts, cost_of, demand_of, capacities,
                                       {.max_overload = 0.0, .speeds = speeds});
    for (std::size_t step = 0; step != batches.size(); ++step) {
      for (std::size_t rank = 0; rank != parts; ++rank) {
        REQUIRE(demand_of_all(batches(step, rank), samples).fits(capacities[rank]));
      }
    }
    auto const found = balance_under_capacity(samples, parts, cost_of, demand_of, capacities,
                                              {.max_overload = 0.0, .speeds = speeds});
    if (found.status != solve_status::solved) continue;
    ++solved;
    REQUIRE(test::parts_fault(found.parts, samples.size(), parts) == "");
    for (std::size_t part = 0; part != parts; ++part) {
      REQUIRE(demand_of_all(found.parts[part], samples).fits(capacities[part]));
    }
  }
  CHECK(solved > 2000);
}

// A sample may fit the largest amounts together, but no part.
TEST_CASE("few samples get the best parts of different speed and capacity") {
  test::random_amounts random(21);
  std::size_t solved = 0;
  for (std::size_t run = 0; run != 1500; ++run) {
    auto const count = static_cast<std::size_t>(random.between(1, 7));
    auto const parts = static_cast<std::size_t>(random.between(2, 4));
    numbers costs(count);
    numbers demands(count);
    numbers capacities(parts);
    numbers speeds(parts);
    for (auto& cost : costs) cost = random.between(1, 1000);
    for (auto& demand : demands) demand = random.between(1, 50);
    for (auto& capacity : capacities) capacity = random.between(20, 120);
    for (auto& speed : speeds) speed = random.between(1, 6);
    // Times are multiplied by 60 to be whole numbers.
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t ways = 1;
    for (std::size_t i = 0; i != count; ++i) ways *= parts;
    for (std::size_t way = 0; way != ways; ++way) {
      numbers loads(parts);
      numbers rooms = capacities;
      for (std::size_t i = 0, left = way; i != count; ++i, left /= parts) {
        loads[left % parts] += costs[i];
        rooms[left % parts] -= demands[i];
      }
      if (*std::min_element(rooms.begin(), rooms.end()) < 0) continue;
      std::int64_t longest = 0;
      for (std::size_t p = 0; p != parts; ++p) {
        longest = std::max(longest, 60 * loads[p] / speeds[p]);
      }
      least = std::min(least, longest);
    }
    std::vector<double> const given(speeds.begin(), speeds.end());
    std::vector<std::size_t> indices(count);
    std::iota(indices.begin(), indices.end(), std::size_t{0});
    auto const result = balance_under_capacity(
        indices, parts, [&](std::size_t i) { return costs[i]; },
        [&](std::size_t i) { return demands[i]; }, capacities,
        {.max_overload = 0.0, .speeds = given});
    INFO("run " << run);
    REQUIRE((result.status == solve_status::solved) ==
            (least != std::numeric_limits<std::int64_t>::max()));
    if (result.status != solve_status::solved) continue;
    ++solved;
    std::int64_t longest = 0;
    for (std::size_t p = 0; p != parts; ++p) {
      REQUIRE(load_of(result.parts[p], demands) <= capacities[p]);
      longest = std::max(longest, 60 * load_of(result.parts[p], costs) / speeds[p]);
    }
    CHECK(longest == least);
  }
  CHECK(solved > 1000);
}

TEST_CASE("a sample that fits no part is named, or has a part of its own") {
  std::vector<sample> const samples{{1, {2, 2}}, {5, {8, 8}}, {1, {9, 1}}, {1, {1, 9}}};
  std::array<resources<2>, 3> const crossed{resources{10, 4}, resources{4, 10}, resources{5, 5}};
  auto const rejected = balance_under_capacity(samples, 3, cost_of, demand_of, crossed);
  CHECK(rejected.status == solve_status::infeasible);
  CHECK(rejected.reason == within_reason::sample_above_capacity);
  CHECK(rejected.sample == 1);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(micro_batches(samples, 3, cost_of, demand_of, crossed));
        }) == "omnibal::micro_batches: sample 1 takes {8, 8}, which fits no rank");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(micro_batches(samples, 3, cost_of, demand_of, crossed,
                                          {.oversized = oversize_policy::own_group}));
        }) ==
        "omnibal::micro_batches: no rank has the largest capacity in each resource, which samples "
        "require that exceed the capacity");
  std::array<resources<2>, 3> const nested{resources{9, 9}, resources{12, 12}, resources{9, 1}};
  std::vector<sample> const large{{1, {2, 1}}, {5, {13, 2}}, {1, {9, 1}}, {1, {1, 1}}};
  auto const own = balance_under_capacity(large, 3, cost_of, demand_of, nested,
                                          {.oversized = oversize_policy::own_group});
  REQUIRE(own.status == solve_status::solved);
  REQUIRE(own.parts[1].size() == 1);
  CHECK(own.parts[1][0] == 1);
  auto const batches = micro_batches(large, 3, cost_of, demand_of, nested,
                                     {.oversized = oversize_policy::own_group});
  for (std::size_t step = 0; step != batches.size(); ++step) {
    auto const of_largest = batches(step, 1);
    bool const has_large = std::find(of_largest.begin(), of_largest.end(), 1u) != of_largest.end();
    CHECK((!has_large || of_largest.size() == 1));
  }
}

// Each rank has room for its share, so small ranks determine the number of micro-batches.
TEST_CASE("micro_batches keeps the capacity of each rank and is even") {
  test::random_amounts random(3);
  numbers lengths(64 * 8);
  for (std::int64_t& length : lengths) length = random.between(10, 2000);
  std::int64_t const total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::int64_t> const capacities{16'000, 8'000, 16'000, 8'000,
                                             16'000, 8'000, 4'000,  16'000};
  auto const check = [&](std::vector<double> const& speeds, std::size_t most_steps) {
    omnibal::micro_batches_options options{.max_overload = 0.0};
    options.speeds = speeds;
    auto const batches = micro_batches(lengths, 8, itself, itself, capacities, options);
    CHECK(batches.size() <= most_steps);
    std::vector<std::int64_t> sums(8, 0);
    std::size_t count = 0;
    for (std::size_t step = 0; step != batches.size(); ++step) {
      for (std::size_t rank = 0; rank != 8; ++rank) {
        std::int64_t const load = load_of(batches(step, rank), lengths);
        CHECK(load <= capacities[rank]);
        sums[rank] += load;
        count += batches(step, rank).size();
      }
    }
    CHECK(count == lengths.size());
    double longest = 0;
    for (std::size_t rank = 0; rank != 8; ++rank) {
      double const speed = speeds.empty() ? 1 : speeds[rank];
      longest = std::max(longest, static_cast<double>(sums[rank]) / speed);
    }
    double const speed = speeds.empty() ? 8 : std::accumulate(speeds.begin(), speeds.end(), 0.0);
    CHECK(longest <= 1.01 * static_cast<double>(total) / speed);
  };
  // A rank with 4,000 needs a quarter of the micro-batches more than one with 16,000 has.
  auto const steps = static_cast<std::size_t>(total / 8 / 4'000);
  check({}, steps + 3);
  // With speeds in proportion to the capacities, all capacities are filled alike.
  check({4, 2, 4, 2, 4, 2, 1, 4}, static_cast<std::size_t>(total / 92'000) + 3);
}

TEST_CASE("capacities of parts name what is wrong") {
  numbers const sizes{1, 2, 3};
  auto const within = [&](auto const& capacities) {
    return test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(balance_under_capacity(sizes, 3, itself, itself, capacities)); });
  };
  CHECK(within(std::array{3, 3}) ==
        "omnibal::balance_under_capacity: capacity has 2 values for 3 parts");
  CHECK(within(std::array{3, 0, 3}) ==
        "omnibal::balance_under_capacity: capacity[1] is 0 in resource 0, must be positive and "
        "finite");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(micro_batches(sizes, 2, itself, itself, std::array{2.5, 3.5, 1.0}));
        }) == "omnibal::micro_batches: capacity has 3 values for 2 ranks");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(micro_batches(sizes, 2, itself, itself, std::array{2.5, 2.0}));
        }) == "omnibal::micro_batches: sample 2 takes 3, which fits no rank");
}
