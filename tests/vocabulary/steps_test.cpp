// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "to_vector.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/steps.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::make_steps;
using omnibal::steps;
using test::error_text;
using test::to_vector;

using cells = std::vector<std::vector<std::uint32_t>>;

/// The cells, closed one after the other; the last step may be incomplete.
steps filled(std::size_t ranks, cells const& contents) {
  steps result(ranks);
  for (auto const& cell : contents) {
    for (std::uint32_t const group : cell) result.push(group);
    result.close();
  }
  return result;
}

cells cells_of(steps const& schedule) {
  cells result;
  for (std::size_t c = 0; c != schedule.cells().size(); ++c) {
    result.push_back(to_vector(schedule.cells()[c]));
  }
  return result;
}

}  // namespace

TEST_CASE("cells are filled ranks first") {
  steps const schedule = filled(2, {{0, 1}, {2}, {}, {3, 4, 5}});
  CHECK(schedule.size() == 2);
  CHECK_FALSE(schedule.empty());
  CHECK(schedule.ranks() == 2);
  CHECK(to_vector(schedule(0, 0)) == std::vector<std::uint32_t>{0, 1});
  CHECK(to_vector(schedule(0, 1)) == std::vector<std::uint32_t>{2});
  CHECK(schedule(1, 0).empty());
  CHECK(to_vector(schedule(1, 1)) == std::vector<std::uint32_t>{3, 4, 5});
}

TEST_CASE("a step exists once all of its cells are closed") {
  steps schedule(3);
  CHECK(schedule.empty());
  schedule.push(0);
  schedule.close();
  schedule.close();
  schedule.push(1);
  CHECK(schedule.size() == 0);
  CHECK(schedule.cells().size() == 2);
  schedule.close();
  CHECK(schedule.size() == 1);
}

TEST_CASE("finish completes a step that has begun") {
  SECTION("nothing has begun") {
    steps schedule(3);
    schedule.finish();
    CHECK(schedule == steps(3));
  }
  SECTION("the step is complete") {
    steps schedule = filled(2, {{0}, {1}});
    schedule.finish();
    CHECK(schedule == filled(2, {{0}, {1}}));
  }
  SECTION("cells are missing") {
    steps schedule = filled(3, {{0}, {1}, {2}, {3}});
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}, {2}, {3}, {}, {}});
    CHECK(schedule.size() == 2);
  }
  SECTION("a cell is open") {
    steps schedule = filled(3, {{0}});
    schedule.push(1);
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}, {}});
  }
  SECTION("the last cell is open") {
    steps schedule = filled(2, {{0}});
    schedule.push(1);
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}});
  }
}

TEST_CASE("cells can be marked as repetitions") {
  steps schedule = filled(3, {{0}, {1}, {2}, {3}});
  CHECK_FALSE(schedule.is_repeat(0, 0));
  schedule.push(1);
  schedule.close_repeat();
  schedule.close_repeat();
  schedule.push(4);
  schedule.close();
  schedule.finish();
  CHECK(cells_of(schedule) == cells{{0}, {1}, {2}, {3}, {1}, {}, {4}, {}, {}});
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    for (std::size_t rank = 0; rank != schedule.ranks(); ++rank) {
      CHECK(schedule.is_repeat(step, rank) == (step == 1 && rank != 0));
    }
  }
  CHECK(schedule != filled(3, {{0}, {1}, {2}, {3}, {1}, {}, {4}, {}, {}}));
  schedule.clear();
  CHECK(schedule == steps(3));
}

TEST_CASE("steps differ in ranks or cells") {
  CHECK(filled(2, {{0}, {1}}) == filled(2, {{0}, {1}}));
  CHECK(filled(2, {{0}, {1}}) != filled(1, {{0}, {1}}));
  CHECK(filled(2, {{0}, {1}}) != filled(2, {{0, 1}, {}}));
}

TEST_CASE("steps that are cleared can be filled again") {
  steps schedule = filled(2, {{0}, {1}, {2}});
  schedule.push(3);
  schedule.clear();
  CHECK(schedule == steps(2));
  schedule.reserve(5, 10);
  schedule.push(7);
  schedule.finish();
  CHECK(schedule == filled(2, {{7}, {}}));
}

TEST_CASE("no ranks are an error") {
  CHECK(error_text<std::invalid_argument>([] { steps(0); }) ==
        "omnibal::steps: ranks is 0, must be positive");
}

namespace {

template <class Batches>
std::string error_of(Batches const& batches, std::size_t ranks,
                     omnibal::make_steps_options const& options = {}) {
  return error_text<std::invalid_argument>(
      [&] { static_cast<void>(make_steps(batches, ranks, options)); });
}

/// Up to five steps of up to five ranks with cells of up to three numbers, none twice.
std::vector<cells> random_batches(std::uint64_t seed, std::size_t& ranks, std::uint32_t& groups) {
  omnibal::rng::engine random(seed);
  auto const below = [&random](std::uint64_t n) { return omnibal::rng::below(random, n); };
  ranks = 1 + below(5);
  groups = 0;
  std::vector<cells> result(below(6));
  for (cells& step : result) {
    step.resize(ranks);
    for (auto& cell : step) {
      for (std::uint64_t k = below(4); k != 0; --k) cell.push_back(groups++);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("batches are steps however they are given") {
  for (std::uint64_t seed = 0; seed != 200; ++seed) {
    std::size_t ranks = 0;
    std::uint32_t groups = 0;
    auto const batches = random_batches(seed, ranks, groups);
    cells all;
    std::vector<omnibal::grouping> parts;
    for (cells const& step : batches) {
      auto& of_step = parts.emplace_back();
      for (auto const& cell : step) {
        all.push_back(cell);
        for (std::uint32_t const group : cell) of_step.push(group);
        of_step.close();
      }
    }
    steps const expected = filled(ranks, all);
    REQUIRE(make_steps(batches, ranks) == expected);
    REQUIRE(make_steps(all, ranks) == expected);
    REQUIRE(make_steps(parts, ranks) == expected);
    REQUIRE(make_steps(expected.cells(), ranks) == expected);
    // All groups are named once, so that one group less is too few.
    REQUIRE(make_steps(batches, ranks, {.groups = groups}) == expected);
    if (groups == 0) continue;
    REQUIRE(error_of(batches, ranks, {.groups = groups - 1}) ==
            "omnibal::make_steps: batches names " + std::to_string(groups - 1) + ", there are " +
                std::to_string(groups - 1) + " groups");
  }
}

TEST_CASE("numbers are dealt one by one, and ranks are idle at the end") {
  std::vector<std::int64_t> const numbers{4, 0, 3, 1};
  CHECK(make_steps(numbers, 3) == filled(3, {{4}, {0}, {3}, {1}, {}, {}}));
  CHECK(make_steps(numbers, 2) == filled(2, {{4}, {0}, {3}, {1}}));
  CHECK(make_steps(std::vector<int>{}, 3) == steps(3));
}

TEST_CASE("batches may be braces, lists and numbers of other types") {
  CHECK(make_steps({{0, 1}, {2}, {}, {3}}, 2) == filled(2, {{0, 1}, {2}, {}, {3}}));
  CHECK(make_steps({}, 2) == steps(2));
  std::list<std::set<std::uint64_t>> const sets{{2, 1}, {7}};
  CHECK(make_steps(sets, 1) == filled(1, {{1, 2}, {7}}));
  std::array<std::array<std::vector<short>, 2>, 1> const nested{{{{{5}, {6, 0}}}}};
  CHECK(make_steps(nested, 2) == filled(2, {{5}, {6, 0}}));
}

TEST_CASE("a group may come again unless it is said how many groups there are") {
  CHECK(make_steps({{0}, {1}, {0}, {9}}, 2) == filled(2, {{0}, {1}, {0}, {9}}));
  CHECK(error_of(cells{{0}, {1}, {0}, {9}}, 2, {.groups = 10}) ==
        "omnibal::make_steps: batches names 0 twice, of 10 groups");
  // What does not come is no error.
  CHECK(make_steps({{0}, {9}}, 2, {.groups = 10}).size() == 1);
}

TEST_CASE("steps that do not have a cell for each rank are errors") {
  std::string const name = "omnibal::make_steps: ";
  CHECK(error_of(cells{{0}}, 0) == name + "ranks is 0, must be positive");
  CHECK(error_of(cells{{0}, {1}, {2}}, 2) ==
        name + "batches has 3 cells, must have one for each of the 2 ranks in each step");
  CHECK(error_of(std::vector<cells>{{{0}, {1}}, {{2}}}, 2) ==
        name + "step 1 has 1 cells, must have one for each of the 2 ranks in each step");
  CHECK(error_of(std::vector<cells>{{{0}, {1}, {2}}, {{3}}}, 2) ==
        name + "step 0 has 3 cells, must have one for each of the 2 ranks in each step");
}

TEST_CASE("numbers that are no indices are errors with step and rank") {
  std::string const name = "omnibal::make_steps: ";
  std::vector<std::vector<std::int64_t>> numbers{{0}, {1}, {2}, {3, -1}};
  CHECK(error_of(numbers, 2) == name + "step 1, rank 1 names -1, which is no 32-bit index");
  numbers[3][1] = std::int64_t{1} << 32;
  CHECK(error_of(numbers, 2) == name + "step 1, rank 1 names 4294967296, which is no 32-bit index");
  numbers[3][1] = 4294967295;
  CHECK(error_of(numbers, 2) == name + "step 1, rank 1 names 4294967295, which is no 32-bit index");
  numbers[3][1] = 4294967294;
  CHECK(error_of(numbers, 2) == "no error");
  CHECK(error_of(std::vector<int>{3, -7}, 4) ==
        name + "step 0, rank 1 names -7, which is no 32-bit index");
}

static_assert(!std::invocable<omnibal::make_steps_fn, std::vector<double>, std::size_t>);
static_assert(!std::invocable<omnibal::make_steps_fn, std::vector<bool>, std::size_t>);
static_assert(
    !std::invocable<omnibal::make_steps_fn, std::vector<std::vector<cells>>, std::size_t>);
static_assert(!std::invocable<omnibal::make_steps_fn, int, std::size_t>);
