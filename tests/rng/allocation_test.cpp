// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "orders.hpp"

#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include <catch.hpp>

TEST_CASE("shuffles in place and orders as functions allocate nothing") {
  std::vector<std::uint32_t> items = test::ascending(100000);
  CHECK(test::allocations_of([&] {
          omnibal::rng::fisher_yates{}(std::span(items), 0);
          omnibal::rng::numpy_shuffle{}(std::span(items), 0);
          items[0] = static_cast<std::uint32_t>(omnibal::rng::feistel{}.order(100000, 0)(7));
        }) == 0);
}
