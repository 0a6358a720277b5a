// SPDX-License-Identifier: Apache-2.0
#include <omnibal/context/context_cost.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <catch.hpp>

namespace {

using omnibal::tabulate_context_cost;

TEST_CASE("a parabola by degree is found again", "[context]") {
  auto const time = [](std::int64_t length, std::uint32_t degree) {
    auto const tokens = static_cast<double>(length);
    return 3.0 * degree + (5 * tokens + 0.25 * tokens * tokens) / degree;
  };
  auto const cost = tabulate_context_cost(time, 16, {.micro_step = 7});
  REQUIRE(cost.degrees.size() == 16);
  CHECK(cost.micro_step == 7);
  for (std::uint32_t degree = 1; degree <= 16; ++degree) {
    auto const& row = cost.degrees[degree - 1];
    for (std::int64_t const length : {1'000, 30'000, 200'000}) {
      auto const tokens = static_cast<double>(length);
      CHECK(row(tokens, tokens * tokens) == Approx(time(length, degree)).epsilon(1e-9));
    }
    CHECK(row.quadratic == Approx(0.25 / degree).epsilon(1e-6));
  }
}

TEST_CASE("no coefficient is negative, whatever the times are", "[context]") {
  auto const time = [](std::int64_t length, std::uint32_t degree) {
    return std::sqrt(static_cast<double>(length)) + degree;
  };
  for (auto const& row : tabulate_context_cost(time, 4, {.lengths = {10, 500, 20, 9}}).degrees) {
    CHECK(row.fixed >= 0);
    CHECK(row.linear >= 0);
    CHECK(row.quadratic >= 0);
    CHECK(row(20, 400) > 0);
  }
}

}  // namespace
