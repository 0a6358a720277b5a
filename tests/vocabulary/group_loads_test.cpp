// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::group_loads;
using omnibal::grouping;
using omnibal::grouping_view;
using omnibal::resources;
using test::error_text;

using numbers = std::vector<std::int64_t>;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

template <class Samples, class Demand>
inline constexpr bool measurable =
    std::is_invocable_v<decltype(group_loads), grouping_view, Samples const&, Demand>;
static_assert(measurable<numbers, std::identity>);
static_assert(!measurable<std::list<int>, std::identity>);
static_assert(!measurable<numbers, bool (*)(std::int64_t)>);

}  // namespace

TEST_CASE("the load of a group is the sum of its demands") {
  struct sample {
    int images;
    std::uint16_t tokens;
  };
  std::vector<sample> const samples{{5, 1341}, {0, 77}, {13, 3400}, {1, 60000}, {2, 60000}};
  grouping const groups({0, 2, 2, 5}, {2, 0, 3, 4, 1});
  CHECK(group_loads(groups, samples, omnibal::demand_of(&sample::images, &sample::tokens)) ==
        std::vector<resources<2>>{{18, 4741}, {0, 0}, {3, 120077}});
  CHECK(group_loads(groups, samples, &sample::tokens) ==
        std::vector<resources<1>>{{4741}, {0}, {120077}});
}

TEST_CASE("samples need not be contiguous and weights may float") {
  std::deque<float> const samples{0.5f, 1.25f, 8.0f};
  std::vector<resources<1, double>> const loads =
      group_loads(grouping({0, 1, 3}, {2, 0, 1}), samples, std::identity{});
  CHECK(loads == std::vector<resources<1, double>>{{8.0}, {1.75}});
}

TEST_CASE("no groups have no loads") {
  CHECK(group_loads(grouping_view(), numbers{}, std::identity{}).empty());
}

TEST_CASE("a group must name samples") {
  CHECK(error_text<std::invalid_argument>([] {
          (void)group_loads(grouping({0, 1, 3}, {0, 1, 2}), numbers{4, 5}, std::identity{});
        }) == "omnibal::group_loads: group 1 has item 2, but there are 2 samples");
}

TEST_CASE("a demand must be finite and not negative") {
  grouping const groups({0, 2}, {1, 0});
  CHECK(error_text<std::invalid_argument>([&] {
          (void)group_loads(groups, numbers{-7, 5}, std::identity{});
        }) == "omnibal::group_loads: demand[0] is -7, must be finite and not negative");
  for (double const bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -0.5}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(group_loads(groups, std::vector<double>{1.0, bad}, std::identity{}),
                    std::invalid_argument);
  }
}

TEST_CASE("a load above its type is an overflow") {
  grouping const groups({0, 2}, {0, 1});
  CHECK(group_loads(groups, numbers{largest - 1, 1}, std::identity{})[0][0] == largest);
  CHECK(error_text<std::overflow_error>([&] {
          (void)group_loads(groups, numbers{largest, 1}, std::identity{});
        }) == "omnibal::group_loads: a group's load exceeds the largest value of its type");
  CHECK_THROWS_AS(group_loads(groups, std::vector<double>{1e308, 1e308}, std::identity{}),
                  std::overflow_error);
}
