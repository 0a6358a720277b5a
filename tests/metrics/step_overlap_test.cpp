// SPDX-License-Identifier: Apache-2.0
#include "dealt_steps.hpp"

#include <omnibal/metrics.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::make_steps;
using omnibal::step_overlap;
using omnibal::steps;
using test::dealt_at_random;

/// What is counted of a schedule, by looking at all pairs.
struct counted_groups {
  explicit counted_groups(steps const& schedule) {
    for (std::size_t step = 0; step != schedule.size(); ++step) {
      std::vector<std::uint32_t> members;
      for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
        for (std::uint32_t const group : schedule(step, rank)) {
          if (schedule.is_repeat(step, rank) || !groups.insert(group).second) continue;
          for (std::uint32_t const other : members) {
            together.emplace(std::min(group, other), std::max(group, other));
          }
          members.push_back(group);
        }
      }
    }
  }

  std::set<std::uint32_t> groups;
  std::set<std::pair<std::uint32_t, std::uint32_t>> together;
};

double pairs(std::size_t count) {
  return static_cast<double>(count) * (static_cast<double>(count) - 1) / 2;
}

double naive_overlap(steps const& first, steps const& second) {
  counted_groups const a(first);
  counted_groups const b(second);
  std::size_t both = 0;
  for (auto const& pair : a.together) both += b.together.count(pair);
  std::size_t common = 0;
  for (std::uint32_t const group : a.groups) common += b.groups.count(group);
  if (common < 2) return 1;
  double const expected = pairs(common) * static_cast<double>(a.together.size()) /
                          pairs(a.groups.size()) * static_cast<double>(b.together.size()) /
                          pairs(b.groups.size());
  return expected > 0 ? static_cast<double>(both) / expected : 1.0;
}

/// Cells of 0 to 2 groups, some of them repetitions; groups may be missing or come again.
steps ragged_steps(std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  auto const below = [&random](std::uint64_t n) {
    return static_cast<std::size_t>(omnibal::rng::below(random, n));
  };
  std::size_t const ranks = 1 + below(6);
  std::size_t const groups = 2 + below(40);
  steps result(ranks);
  std::size_t const cells = ranks * below(9);
  for (std::size_t cell = 0; cell != cells; ++cell) {
    for (std::size_t k = below(3); k != 0; --k) {
      result.push(static_cast<std::uint32_t>(below(groups)));
    }
    if (below(8) == 0) {
      result.close_repeat();
    } else {
      result.close();
    }
  }
  return result;
}

}  // namespace

TEST_CASE("the overlap counts the pairs that meet in both schedules") {
  steps const one = make_steps({{0}, {1}, {2}, {3}}, 2);
  CHECK(step_overlap(one, one) == 3.0);
  CHECK(step_overlap(one, make_steps({{1}, {0}, {3}, {2}}, 2)) == 3.0);
  CHECK(step_overlap(one, make_steps({{2}, {3}, {1}, {0}}, 2)) == 3.0);
  CHECK(step_overlap(one, make_steps({{0}, {2}, {1}, {3}}, 2)) == 0.0);
  // Ranks and micro-batches do not matter: four groups in one step, of which two pairs meet.
  CHECK(step_overlap(one, make_steps({{3, 1, 0, 2}}, 1)) == 1.0);
  CHECK(step_overlap(one, make_steps({{0, 1, 2}, {3}}, 1)) == 1.0);
}

TEST_CASE("only groups of both schedules count") {
  steps const one = make_steps({{0}, {1}, {2}, {3}}, 2);
  // One pair of four groups is common, and a third of the pairs meets in each schedule.
  CHECK(step_overlap(one, make_steps({{0}, {1}, {7}, {9}}, 2)) == 9.0);
  CHECK(step_overlap(one, make_steps({{0}, {7}, {1}, {9}}, 2)) == 0.0);
  CHECK(step_overlap(one, make_steps({{6}, {7}, {8}, {9}}, 2)) == 1.0);
}

TEST_CASE("repetitions do not count, and groups that come again count where they come first") {
  steps const one = make_steps({{0}, {1}, {2}, {3}}, 2);
  steps filled = make_steps({{0}, {1}}, 2);
  filled.push(2);
  filled.close();
  filled.push(1);
  filled.close_repeat();
  steps const not_filled = make_steps({{0}, {1}, {2}, {}}, 2);
  CHECK(step_overlap(one, filled) == step_overlap(one, not_filled));
  CHECK(step_overlap(one, make_steps({{0}, {1}, {2}, {1}}, 2)) == step_overlap(one, not_filled));
}

TEST_CASE("there is nothing to compare without pairs") {
  steps const one = make_steps({{0}, {1}}, 2);
  steps const alone = make_steps({{0}, {1}}, 1);
  CHECK(step_overlap(steps(3), steps(3)) == 1.0);
  CHECK(step_overlap(one, steps(2)) == 1.0);
  CHECK(step_overlap(alone, alone) == 1.0);
  CHECK(step_overlap(one, alone) == 1.0);
  CHECK(step_overlap(make_steps({{0}, {}}, 2), one) == 1.0);
}

TEST_CASE("the overlap is that of counting all pairs") {
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    steps const first = ragged_steps(2 * seed);
    steps const second = ragged_steps(2 * seed + 1);
    INFO(seed);
    REQUIRE(step_overlap(first, second) == Approx(naive_overlap(first, second)));
    REQUIRE(step_overlap(second, first) == Approx(step_overlap(first, second)));
    REQUIRE(step_overlap(first, first) == Approx(naive_overlap(first, first)));
  }
}

TEST_CASE("schedules dealt at random have an overlap of one") {
  for (std::size_t const ranks : {2u, 8u, 64u}) {
    double sum = 0;
    constexpr std::uint64_t rounds = 40;
    for (std::uint64_t round = 0; round != rounds; ++round) {
      sum += step_overlap(dealt_at_random(2001, ranks, 2 * round),
                          dealt_at_random(2001, 2 * ranks, 2 * round + 1));
    }
    INFO(ranks);
    CHECK(sum / static_cast<double>(rounds) == Approx(1.0).margin(0.1));
  }
}
