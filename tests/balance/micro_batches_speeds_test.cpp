// SPDX-License-Identifier: Apache-2.0
// Micro-batches on ranks of different speed.
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/micro_batches.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::micro_batch_steps;
using omnibal::micro_batches;

using numbers = std::vector<std::int64_t>;

std::vector<double> repeated(std::vector<double> const& mix, std::size_t ranks) {
  std::vector<double> result;
  for (std::size_t rank = 0; rank != ranks; ++rank) result.push_back(mix[rank % mix.size()]);
  return result;
}

numbers random_lengths(std::size_t count, std::int64_t least, std::int64_t most,
                       std::uint64_t seed) {
  test::random_amounts random(seed);
  numbers lengths(count);
  for (std::int64_t& length : lengths) length = random.between(least, most);
  return lengths;
}

std::int64_t sum_of(numbers const& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

/// What is wrong with micro-batches of lengths within a capacity; empty where nothing is.
std::string fault_of(micro_batch_steps const& result, numbers const& lengths,
                     std::int64_t capacity) {
  std::vector<std::uint8_t> seen(lengths.size(), 0);
  for (std::size_t m = 0; m != result.size(); ++m) {
    for (std::size_t rank = 0; rank != result.ranks(); ++rank) {
      std::int64_t load = 0;
      auto const batch = result(m, rank);
      if (!std::is_sorted(batch.begin(), batch.end())) return "a batch is not in order";
      for (std::uint32_t const sample : batch) {
        if (seen[sample]++ != 0) return "a sample is in two places";
        load += lengths[sample];
      }
      if (load > capacity) return "a batch is over the capacity";
    }
  }
  return std::count(seen.begin(), seen.end(), 1) == std::ssize(lengths) ? "" : "lost samples";
}

/// The times of micro-batches, which are costs over speeds.
struct measured_times {
  /// The largest sum over a rank.
  double of_rank = 0;
  /// The sum over the micro-batches of the largest time of a rank.
  double of_steps = 0;
};

template <class Cost>
measured_times times_of(micro_batch_steps const& result, numbers const& lengths,
                        std::vector<double> const& speeds, Cost const& cost) {
  std::vector<double> sums(speeds.size(), 0);
  measured_times times;
  for (std::size_t m = 0; m != result.size(); ++m) {
    double longest = 0;
    for (std::size_t rank = 0; rank != speeds.size(); ++rank) {
      double time = 0;
      for (std::uint32_t const sample : result(m, rank)) {
        time += static_cast<double>(cost(lengths[sample])) / speeds[rank];
      }
      sums[rank] += time;
      longest = std::max(longest, time);
    }
    times.of_steps += longest;
  }
  times.of_rank = *std::max_element(sums.begin(), sums.end());
  return times;
}

}  // namespace

// Placements by speed ignore the capacity at first; the result must not.
TEST_CASE("micro_batches with speeds keeps every cap and loses no sample") {
  for (std::uint64_t seed = 0; seed != 60; ++seed) {
    std::size_t const ranks = 1 + seed % 5;
    auto const lengths = random_lengths(seed * 3 % 70, 0, 50, seed);
    std::int64_t const capacity = 50 + static_cast<std::int64_t>(seed % 7) * 30;
    auto const speeds = repeated({0.5 + static_cast<double>(seed % 4), 1.0, 2.0}, ranks);
    std::size_t const multiple = 1 + seed % 2;
    auto const cost = [](std::int64_t length) { return length * (10 + length); };
    auto const run = [&] {
      return micro_batches(lengths, ranks, cost, std::identity{}, capacity,
                           {.multiple_of = multiple, .speeds = speeds});
    };
    auto const result = run();
    INFO("seed " << seed);
    REQUIRE(result.ranks() == ranks);
    REQUIRE(result.size() % multiple == 0);
    REQUIRE(fault_of(result, lengths, capacity) == "");
    REQUIRE(result == run());
    double const bound =
        static_cast<double>(omnibal::packing_bound(lengths, std::identity{}, capacity));
    double const largest = *std::max_element(speeds.begin(), speeds.end());
    double const sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    REQUIRE(static_cast<double>(result.size()) >= bound * largest / sum - 1e-9);
  }
}

// Speeds that do not differ must change nothing.
TEST_CASE("micro_batches with equal speeds is micro_batches") {
  auto const lengths = random_lengths(200, 1, 100, 3);
  auto const run = [&](std::vector<double> const& speeds) {
    return micro_batches(lengths, 4, std::identity{}, std::identity{}, 400, {.speeds = speeds});
  };
  CHECK(run({0.3}) == run({}));
  CHECK(run({0.3, 0.3, 0.3, 0.3}) == run({}));
}

// The smallest largest time of a rank, from all assignments of samples to the ranks with one
// micro-batch each, bounds the result from below, and small instances must reach it often.
TEST_CASE("micro_batches with speeds finds the best of all assignments for few samples") {
  std::size_t least_found = 0;
  std::size_t counted = 0;
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    std::size_t const ranks = 2 + seed % 2;
    auto const lengths = random_lengths(7, 1, 30, seed);
    auto const speeds = repeated({2.0, 1.0, 1.5}, ranks);
    std::int64_t const capacity = sum_of(lengths) * 2 / 3;
    auto const result = micro_batches(lengths, ranks, std::identity{}, std::identity{}, capacity,
                                      {.max_overload = 0, .speeds = speeds});
    if (result.size() != 1) continue;
    double least = std::numeric_limits<double>::infinity();
    std::vector<std::uint32_t> rank_of(lengths.size(), 0);
    while (true) {
      numbers loads(ranks, 0);
      for (std::size_t i = 0; i != lengths.size(); ++i) loads[rank_of[i]] += lengths[i];
      double longest = 0;
      bool fits = true;
      for (std::size_t rank = 0; rank != ranks; ++rank) {
        fits = fits && loads[rank] <= capacity;
        longest = std::max(longest, static_cast<double>(loads[rank]) / speeds[rank]);
      }
      if (fits) least = std::min(least, longest);
      std::size_t i = 0;
      while (i != rank_of.size() && ++rank_of[i] == ranks) rank_of[i++] = 0;
      if (i == rank_of.size()) break;
    }
    double const found = times_of(result, lengths, speeds, std::identity{}).of_rank;
    INFO("seed " << seed);
    REQUIRE(found >= least - 1e-9);
    REQUIRE(found <= least * 1.1);
    ++counted;
    least_found += found <= least + 1e-9 ? 1u : 0u;
  }
  CHECK(counted >= 20);
  CHECK(least_found * 10 >= counted * 8);
}

// Both the sums over ranks and the micro-batches at the same time must follow the speeds.
TEST_CASE("micro_batches with 64 samples per rank are within 1e-4 of the bound for three mixes") {
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 1, 1, 1, 1, 1, 0.8}, {0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66, 1.08}};
  auto const lengths = random_lengths(16 * 64, 2'000, 22'000, 5);
  for (auto const& mix : mixes) {
    auto const speeds = repeated(mix, 16);
    double const sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    for (std::int64_t const capacity : {1'600'000, 400'000}) {
      auto const result = micro_batches(lengths, 16, std::identity{}, std::identity{}, capacity,
                                        {.max_overload = 0, .speeds = speeds});
      REQUIRE(fault_of(result, lengths, capacity) == "");
      auto const times = times_of(result, lengths, speeds, std::identity{});
      double const bound = static_cast<double>(sum_of(lengths)) / sum;
      CHECK(times.of_rank <= 1.0001 * bound);
      CHECK(times.of_steps <= 1.0001 * bound);
    }
  }
}

// A capacity that is nearly used up leaves fast ranks no room; the number of micro-batches must
// then be larger than without speeds.
TEST_CASE("micro_batches with speeds makes room for the share of fast ranks") {
  numbers const lengths(64, 10);
  std::vector<double> const speeds{3, 1};
  auto const run = [&](std::vector<double> const& given) {
    return micro_batches(lengths, 2, std::identity{}, std::identity{}, 160,
                         {.max_overload = 0, .speeds = given});
  };
  CHECK(run({}).size() == 2);
  auto const result = run(speeds);
  CHECK(result.size() == 3);
  CHECK(times_of(result, lengths, speeds, std::identity{}).of_rank < 160.001);
}

// Ranks of a lane take turns, and step 0 has the largest micro-batches.
TEST_CASE("micro_batches at the same time are neighbors, and ranks of equal speed are even") {
  auto const lengths = random_lengths(300, 1, 1000, 9);
  auto const speeds = repeated({2.0, 1.0}, 6);
  auto const result = micro_batches(lengths, 6, std::identity{}, std::identity{}, 4'000,
                                    {.max_overload = 0.2, .speeds = speeds});
  REQUIRE(result.size() > 5);
  auto const load = [&](std::size_t m, std::size_t rank) {
    std::int64_t sum = 0;
    for (std::uint32_t const sample : result(m, rank)) sum += lengths[sample];
    return sum;
  };
  for (std::size_t m = 1; m != result.size(); ++m) {
    std::int64_t before = 0;
    std::int64_t now = 0;
    for (std::size_t rank = 0; rank != 6; rank += 2) {
      before += load(m - 1, rank);
      now += load(m, rank);
    }
    CHECK(now <= before + 3'000);
  }
  auto const times = times_of(result, lengths, speeds, std::identity{});
  CHECK(times.of_rank <= 1.05 * static_cast<double>(sum_of(lengths)) / 9.0);
}

// The errors of speeds must name the function and the rank.
TEST_CASE("micro_batches refuses wrong speeds by name") {
  numbers const lengths{5, 6, 7};
  auto const run = [&](std::vector<double> const& speeds) {
    static_cast<void>(
        micro_batches(lengths, 2, std::identity{}, std::identity{}, 10, {.speeds = speeds}));
  };
  auto const text = [&](std::vector<double> const& speeds) {
    return test::error_text<std::invalid_argument>([&] { run(speeds); });
  };
  CHECK(text({1, 2, 3}) == "omnibal::micro_batches: options.speeds has 3 values for 2 ranks");
  CHECK(text({1, -1}) ==
        "omnibal::micro_batches: options.speeds[1] is -1, must be positive and finite");
  CHECK(text({0}) == "omnibal::micro_batches: options.speeds[0] is 0, must be positive and finite");
}
