// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/optimizer_steps.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::micro_batch_steps;
using omnibal::optimizer_steps;

auto const length = [](std::int64_t n) { return n; };

/// The tokens of each pair of a step and a rank.
std::vector<std::int64_t> loads_of(std::vector<micro_batch_steps> const& steps,
                                   std::vector<std::int64_t> const& lengths) {
  std::vector<std::int64_t> loads;
  for (micro_batch_steps const& step : steps) {
    for (std::size_t r = 0; r != step.ranks(); ++r) {
      loads.push_back(0);
      for (std::size_t m = 0; m != step.size(); ++m) {
        for (std::uint32_t const i : step(m, r)) loads.back() += lengths[i];
      }
    }
  }
  return loads;
}

/// What is wrong with optimizer steps; empty where nothing is.
std::string fault(std::vector<micro_batch_steps> const& steps,
                  std::vector<std::int64_t> const& lengths, std::size_t ranks,
                  std::int64_t capacity, std::size_t multiple) {
  std::vector<std::uint8_t> seen(lengths.size(), 0);
  for (micro_batch_steps const& step : steps) {
    if (step.ranks() != ranks) return "a step has other ranks";
    if (step.size() % multiple != 0) return "micro-batches are no multiple";
    for (std::size_t m = 0; m != step.size(); ++m) {
      for (std::size_t r = 0; r != ranks; ++r) {
        std::int64_t sum = 0;
        for (std::uint32_t const i : step(m, r)) {
          if (seen[i]++ != 0) return "a sample comes twice";
          sum += lengths[i];
        }
        if (sum > capacity && step(m, r).size() != 1) return "a micro-batch is over the capacity";
      }
    }
  }
  bool const are_all = std::all_of(seen.begin(), seen.end(), [](auto count) { return count == 1; });
  return are_all ? "" : "samples are lost";
}

}  // namespace

TEST_CASE("xtuner's nine lengths: 4,100 tokens at most for a step and a rank") {
  std::vector<std::int64_t> const lengths{1500, 1000, 2800, 3000, 1500, 2000, 2100, 1000, 800};
  auto const steps = optimizer_steps(lengths, 2, 2, length, length, 3072);
  REQUIRE(steps.size() == 2);
  CHECK(fault(steps, lengths, 2, 3072, 1) == "");
  auto const loads = loads_of(steps, lengths);
  CHECK(*std::max_element(loads.begin(), loads.end()) == 4100);
  CHECK(steps[0].size() == 2);
  CHECK(steps[1].size() == 2);
}

TEST_CASE("work per step and rank is near the best of all ways, and every promise holds") {
  test::random_amounts random(3);
  double worst = 1;
  double total = 0;
  int best = 0;
  constexpr int rounds = 300;
  for (int round = 0; round != rounds; ++round) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(random.between(4, 12)));
    for (auto& n : lengths) n = random.between(1, 60);
    auto const ranks = static_cast<std::size_t>(random.between(1, 2));
    auto const multiple = static_cast<std::size_t>(random.between(1, 2));
    auto const steps = optimizer_steps(lengths, 2, ranks, length, length, 64,
                                       {.multiple_of = multiple, .max_overload = 0});
    REQUIRE(fault(steps, lengths, ranks, 64, multiple) == "");
    auto const loads = loads_of(steps, lengths);
    auto const optimum = omnibal::balance_optimally(lengths, 2 * ranks);
    REQUIRE(optimum.proven);
    double const ratio = static_cast<double>(*std::max_element(loads.begin(), loads.end())) /
                         static_cast<double>(optimum.largest_load);
    REQUIRE(ratio >= 1);
    if (ratio == 1) ++best;
    worst = std::max(worst, ratio);
    total += ratio;
  }
  CHECK(best > rounds * 9 / 10);
  CHECK(worst < 1.15);
  CHECK(total / rounds < 1.005);
}

TEST_CASE("a step of a rollout has mixed lengths, unlike the steps of micro_batches") {
  test::random_amounts random(5);
  std::vector<std::int64_t> lengths(512);
  for (auto& n : lengths) n = 20 + random.heavy_tail(8000);
  auto const steps = optimizer_steps(lengths, 4, 4, length, length, 16384);
  REQUIRE(fault(steps, lengths, 4, 16384, 1) == "");
  for (micro_batch_steps const& step : steps) {
    std::size_t count = 0;
    std::int64_t longest = 0;
    for (std::size_t cell = 0; cell != step.cells().size(); ++cell) {
      count += step.cells()[cell].size();
      for (std::uint32_t const i : step.cells()[cell]) longest = std::max(longest, lengths[i]);
    }
    CHECK(count >= 120);
    CHECK(count <= 136);
    CHECK(longest > 4000);
  }
}

TEST_CASE("long samples and few samples keep the same number of micro-batches on every rank") {
  std::vector<std::int64_t> const lengths{9000, 100, 200, 50, 8000};
  auto const steps = optimizer_steps(lengths, 2, 2, length, length, 4096,
                                     {.oversized = omnibal::oversize_policy::own_group});
  CHECK(fault(steps, lengths, 2, 4096, 1) == "");
  CHECK(optimizer_steps(std::vector<std::int64_t>{}, 3, 2, length, length, 8).size() == 3);
  CHECK(fault(optimizer_steps(std::vector<std::int64_t>{5}, 3, 2, length, length, 8), {5}, 2, 8,
              1) == "");
}

TEST_CASE("wrong arguments of optimizer_steps are errors that name them") {
  std::vector<std::int64_t> const lengths{9, 5};
  auto const text = [&](std::size_t steps, std::size_t ranks, std::int64_t capacity) {
    return test::error_text<std::invalid_argument>([&] {
      static_cast<void>(optimizer_steps(lengths, steps, ranks, length, length, capacity));
    });
  };
  CHECK(text(0, 1, 9).starts_with("omnibal::optimizer_steps: steps is 0"));
  CHECK(text(1, 0, 9).starts_with("omnibal::optimizer_steps: ranks is 0"));
  CHECK(text(1, 1, 8) == "omnibal::optimizer_steps: sample 0 takes 9, more than the capacity 8");
}
