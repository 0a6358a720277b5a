#include "error_text.hpp"
#include "to_vector.hpp"

#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::steps;
using test::error_text;
using test::to_vector;

using cells = std::vector<std::vector<std::uint32_t>>;

/// The cells, closed one after the other.
steps make_steps(std::size_t ranks, cells const& contents) {
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
  steps const schedule = make_steps(2, {{0, 1}, {2}, {}, {3, 4, 5}});
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
    steps schedule = make_steps(2, {{0}, {1}});
    schedule.finish();
    CHECK(schedule == make_steps(2, {{0}, {1}}));
  }
  SECTION("cells are missing") {
    steps schedule = make_steps(3, {{0}, {1}, {2}, {3}});
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}, {2}, {3}, {}, {}});
    CHECK(schedule.size() == 2);
  }
  SECTION("a cell is open") {
    steps schedule = make_steps(3, {{0}});
    schedule.push(1);
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}, {}});
  }
  SECTION("the last cell is open") {
    steps schedule = make_steps(2, {{0}});
    schedule.push(1);
    schedule.finish();
    CHECK(cells_of(schedule) == cells{{0}, {1}});
  }
}

TEST_CASE("cells can be marked as repetitions") {
  steps schedule = make_steps(3, {{0}, {1}, {2}, {3}});
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
  CHECK(schedule != make_steps(3, {{0}, {1}, {2}, {3}, {1}, {}, {4}, {}, {}}));
  schedule.clear();
  CHECK(schedule == steps(3));
}

TEST_CASE("steps differ in ranks or cells") {
  CHECK(make_steps(2, {{0}, {1}}) == make_steps(2, {{0}, {1}}));
  CHECK(make_steps(2, {{0}, {1}}) != make_steps(1, {{0}, {1}}));
  CHECK(make_steps(2, {{0}, {1}}) != make_steps(2, {{0, 1}, {}}));
}

TEST_CASE("steps that are cleared can be filled again") {
  steps schedule = make_steps(2, {{0}, {1}, {2}});
  schedule.push(3);
  schedule.clear();
  CHECK(schedule == steps(2));
  schedule.reserve(5, 10);
  schedule.push(7);
  schedule.finish();
  CHECK(schedule == make_steps(2, {{7}, {}}));
}

TEST_CASE("no ranks are an error") {
  CHECK(error_text<std::invalid_argument>([] { steps(0); }) ==
        "omnibal::steps: ranks is 0, must be positive");
}
