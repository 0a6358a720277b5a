// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/measured_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::measured_table;

struct point {
  std::int64_t tokens;
  std::int64_t nanoseconds;
};

struct timed_point {
  int tokens;
  double seconds;
};

auto table(std::vector<point> const& points) {
  return measured_table(std::span(points), &point::tokens, &point::nanoseconds);
}

static_assert(omnibal::cost_function<omnibal::measured_cost<std::int64_t>, std::int64_t>);

}  // namespace

TEST_CASE("a table gives its points, lines between them and beyond them") {
  auto const cost = table({{10, 100}, {20, 150}, {40, 350}});
  CHECK(cost.points() == 3);
  CHECK(cost(10) == 100);
  CHECK(cost(20) == 150);
  CHECK(cost(40) == 350);
  CHECK(cost(15) == 125);
  CHECK(cost(30) == 250);
  CHECK(cost(50) == 450);
  CHECK(cost(4) == 70);
  CHECK(cost(0) == 50);
}

TEST_CASE("integers are rounded to the nearest, halves up") {
  auto const rising = table({{0, 0}, {4, 2}});
  CHECK(rising(1) == 1);
  CHECK(rising(2) == 1);
  CHECK(rising(3) == 2);
  auto const falling = table({{0, 10}, {3, 9}, {7, 7}});
  CHECK(falling(1) == 10);
  CHECK(falling(2) == 9);
  CHECK(falling(4) == 9);
  CHECK(falling(6) == 8);
}

TEST_CASE("a cost is never below zero") {
  auto const falling = table({{0, 10}, {3, 4}});
  CHECK(falling(5) == 0);
  CHECK(falling(100) == 0);
  std::vector<timed_point> const points{{2, 1.0}, {4, 5.0}};
  auto const seconds = measured_table(points, &timed_point::tokens, &timed_point::seconds);
  CHECK(seconds(3) == 3.0);
  CHECK(seconds(1) == 0.0);
  CHECK(seconds(5) == 7.0);
}

TEST_CASE("a single point is a constant") {
  auto const cost = table({{10, 7}});
  CHECK(cost(0) == 7);
  CHECK(cost(1'000'000) == 7);
}

TEST_CASE("between two points a cost is between theirs, and exact on a line") {
  test::random_amounts random(1);
  for (int run = 0; run != 200; ++run) {
    std::vector<point> points;
    std::int64_t tokens = 0;
    for (int i = 0; i != 20; ++i) {
      tokens += random.between(1, 1000);
      points.push_back({tokens, random.heavy_tail(std::int64_t{1} << 50)});
    }
    auto const cost = table(points);
    for (std::size_t i = 0; i + 1 != points.size(); ++i) {
      std::int64_t const size = random.between(points[i].tokens, points[i + 1].tokens);
      auto const [low, high] = std::minmax(points[i].nanoseconds, points[i + 1].nanoseconds);
      CHECK(cost(size) >= low);
      CHECK(cost(size) <= high);
    }
    for (auto& p : points) p.nanoseconds = 12 + 5 * p.tokens;
    auto const line = table(points);
    std::int64_t const anywhere = random.between(0, 30'000);
    CHECK(line(anywhere) == 12 + 5 * anywhere);
  }
}

TEST_CASE("the largest integers are interpolated exactly") {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  auto const cost = table({{0, 0}, {largest, largest}});
  for (std::int64_t const size : {std::int64_t{0}, std::int64_t{3}, largest / 3, largest}) {
    CHECK(cost(size) == size);
  }
  auto const steep = table({{0, 0}, {1, largest}});
  CHECK(test::error_text<std::overflow_error>([&] { static_cast<void>(steep(2)); }) ==
        "omnibal::measured_table: the value of a size exceeds the largest value of its type");
}

TEST_CASE("a table is a cost for balancing") {
  std::vector<int> const lengths{30, 10, 25};
  CHECK(omnibal::lpt(lengths, 2, table({{0, 0}, {10, 10}})) ==
        omnibal::grouping({0, 1, 3}, {0, 1, 2}));
}

TEST_CASE("bad tables are errors") {
  auto const error_of = [](std::vector<point> const& points) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(table(points)); });
  };
  CHECK(error_of({}) == "omnibal::measured_table: points is empty");
  CHECK(error_of({{1, 2}, {1, 3}}) == "omnibal::measured_table: size[1] is 1, must be above 1");
  CHECK(error_of({{1, 2}, {5, 3}, {4, 3}}) ==
        "omnibal::measured_table: size[2] is 4, must be above 5");
  CHECK(error_of({{-1, 2}}) ==
        "omnibal::measured_table: size[0] is -1, must be finite and not negative");
  CHECK(error_of({{1, -2}}) ==
        "omnibal::measured_table: value[0] is -2, must be finite and not negative");
  std::vector<timed_point> const points{{2, std::numeric_limits<double>::quiet_NaN()}};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(measured_table(points, &timed_point::tokens, &timed_point::seconds));
        }) == "omnibal::measured_table: value[0] is nan, must be finite and not negative");
  auto const cost = table({{0, 0}, {10, 10}});
  CHECK(test::error_text<std::invalid_argument>([&] { static_cast<void>(cost(-1)); }) ==
        "omnibal::measured_table: size is -1, must be finite and not negative");
}
