// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/cost/two_point_probe.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include <catch.hpp>

namespace {

using omnibal::memory_reading;
using omnibal::solve_status;
using omnibal::two_point_probe;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();

std::string error_of(memory_reading const& few, memory_reading const& many) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(two_point_probe(few, many)); });
}

}  // namespace

TEST_CASE("two readings tell the bytes of a layer and how many must be checkpointed") {
  auto const line = two_point_probe({.checkpointed_layers = 8, .free_bytes = 1000},
                                    {.checkpointed_layers = 48, .free_bytes = 9000});
  CHECK(line.bytes_per_layer() == 200.0);
  CHECK(line.free_bytes(8) == 1000);
  CHECK(line.free_bytes(48) == 9000);
  CHECK(line.free_bytes(0) == -600);
  CHECK(line.free_bytes(10) == 1400);
  CHECK(line.checkpointed_for(48).layers == 3);
  CHECK(line.checkpointed_for(48, 1000).layers == 8);
  CHECK(line.checkpointed_for(48, 1001).layers == 9);
  CHECK(line.checkpointed_for(48, -10'000).layers == 0);
  auto const impossible = line.checkpointed_for(48, 9001);
  CHECK(impossible.status == solve_status::infeasible);
  CHECK(impossible.layers == 48);
  CHECK(impossible.missing_bytes == 1);
}

TEST_CASE("a line of bytes is recovered, and the fewest layers are the fewest") {
  test::random_amounts random(1);
  for (int run = 0; run != 2000; ++run) {
    INFO("run " << run);
    std::int64_t const bytes = random.between(1, std::int64_t{1} << 32);
    std::int64_t const without = random.between(-(std::int64_t{1} << 38), std::int64_t{1} << 38);
    std::int64_t const layers = random.between(1, 100);
    std::int64_t const few = random.between(0, layers - 1);
    std::int64_t const many = random.between(few + 1, layers);
    auto const line =
        two_point_probe({.checkpointed_layers = few, .free_bytes = without + few * bytes},
                        {.checkpointed_layers = many, .free_bytes = without + many * bytes});
    CHECK(line.bytes_per_layer() == static_cast<double>(bytes));
    std::int64_t const any = random.between(0, layers);
    CHECK(line.free_bytes(any) == without + any * bytes);
    std::int64_t const target = random.between(-(std::int64_t{1} << 38), std::int64_t{1} << 39);
    auto const found = line.checkpointed_for(layers, target);
    if (without + layers * bytes < target) {
      CHECK(found.status == solve_status::infeasible);
      CHECK(found.missing_bytes == target - (without + layers * bytes));
      continue;
    }
    CHECK(found.status == solve_status::solved);
    CHECK(found.missing_bytes == 0);
    CHECK(without + found.layers * bytes >= target);
    bool const is_least = found.layers == 0 || without + (found.layers - 1) * bytes < target;
    CHECK(is_least);
  }
}

TEST_CASE("the fewest layers are c_max - m2 / slope, rounded up") {
  test::random_amounts random(2);
  for (int run = 0; run != 1000; ++run) {
    memory_reading const few{random.between(0, 10), random.between(0, 1000)};
    memory_reading const many{few.checkpointed_layers + random.between(1, 50),
                              few.free_bytes + random.between(1, 100'000)};
    double const slope = static_cast<double>(many.free_bytes - few.free_bytes) /
                         static_cast<double>(many.checkpointed_layers - few.checkpointed_layers);
    double const wanted = static_cast<double>(many.checkpointed_layers) -
                          static_cast<double>(many.free_bytes) / slope;
    auto const found = two_point_probe(few, many).checkpointed_for(many.checkpointed_layers);
    CHECK(std::abs(static_cast<double>(found.layers) - std::max(0.0, std::ceil(wanted - 1e-9))) <
          0.5);
  }
}

TEST_CASE("bytes that do not divide are rounded down") {
  auto const line = two_point_probe({0, 0}, {3, 10});
  CHECK(line.free_bytes(1) == 3);
  CHECK(line.free_bytes(2) == 6);
  CHECK(line.free_bytes(3) == 10);
  CHECK(two_point_probe({3, -10}, {6, 0}).free_bytes(2) == -14);
  CHECK(line.checkpointed_for(3, 3).layers == 1);
  CHECK(line.checkpointed_for(3, 4).layers == 2);
  CHECK(line.checkpointed_for(3, 7).layers == 3);
}

TEST_CASE("readings that tell nothing are errors") {
  CHECK(error_of({4, 10}, {4, 20}) ==
        "omnibal::two_point_probe: many.checkpointed_layers is 4, must be above 4");
  CHECK(error_of({4, 10}, {3, 20}) ==
        "omnibal::two_point_probe: many.checkpointed_layers is 3, must be above 4");
  CHECK(error_of({4, 10}, {5, 10}) ==
        "omnibal::two_point_probe: many.free_bytes is 10, must be above 10");
  CHECK(error_of({-1, 10}, {5, 20}) ==
        "omnibal::two_point_probe: few.checkpointed_layers is -1, must be from 0 to 16777216");
  CHECK(error_of({1, 10}, {largest, 20}) ==
        "omnibal::two_point_probe: many.checkpointed_layers is 9223372036854775807, must be from "
        "0 to 16777216");
  auto const line = two_point_probe({0, 0}, {1, largest});
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(line.checkpointed_for(-1));
        }) == "omnibal::checkpoint_line: checkpointed_layers is -1, must be from 0 to 16777216");
  auto const overflow = [](auto const& call) {
    return test::error_text<std::overflow_error>([&] { static_cast<void>(call()); });
  };
  CHECK(overflow([&] { return line.free_bytes(2); }) ==
        "omnibal::checkpoint_line: the free memory exceeds the largest value of its type");
  CHECK(overflow([] {
          return two_point_probe({0, lowest}, {1, 0});
        }) ==
        "omnibal::two_point_probe: the difference of the readings exceeds the largest value of its "
        "type");
  CHECK(overflow([] {
          return two_point_probe({1, lowest}, {2, -1}).free_bytes(0);
        }) == "omnibal::checkpoint_line: the free memory exceeds the largest value of its type");
}
