#include "error_text.hpp"

#include <omnibal/balance/left_out.hpp>
#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/steps.hpp>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::left_out;
using omnibal::steps;

}  // namespace

TEST_CASE("what is left out is listed, and repetitions are no runs") {
  steps schedule(2);
  for (std::uint32_t const group : {4u, 1u, 1u}) {
    schedule.push(group);
    schedule.close();
  }
  schedule.push(0);
  schedule.close_repeat();
  std::vector<std::uint32_t> const twice{1, 2};
  CHECK(left_out(schedule, 5, twice) == std::vector<std::uint32_t>{0, 2, 2, 3});
  CHECK(left_out(steps(3), 2) == std::vector<std::uint32_t>{0, 1});
  CHECK(left_out(steps(3), 0).empty());
  CHECK(test::error_text<std::invalid_argument>([&] { (void)left_out(schedule, 5); }) ==
        "omnibal::left_out: group 1 runs more often than it should");
  CHECK(test::error_text<std::invalid_argument>([&] { (void)left_out(schedule, 4); }) ==
        "omnibal::left_out: there is no group 4, but 4 groups");
  CHECK(test::error_text<std::invalid_argument>([&] { (void)left_out(steps(3), 2, twice); }) ==
        "omnibal::left_out: there is no group 2, but 2 groups");
}

TEST_CASE("schedule_steps refuses loads whose sum is too large") {
  std::vector<std::int64_t> const loads{std::numeric_limits<std::int64_t>::max(), 1};
  CHECK(test::error_text<std::overflow_error>([&] { (void)omnibal::schedule_steps(loads, 2); }) ==
        "omnibal::schedule_steps: the sum of the costs exceeds the largest value of its type");
}
