// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "spill_faults.hpp"
#include "split_faults.hpp"

#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/experts/split_experts.hpp>

#include <catch.hpp>

// The split runs in each step of training, where memory must be kept.
TEST_CASE("split_experts: a workspace is used again without allocations") {
  auto const first = test::placed_batch(1, 256, 9, 32);
  auto const second = test::placed_batch(2, 256, 9, 32);
  omnibal::split_experts_workspace workspace;
  auto const split = [&](auto const& given) {
    omnibal::split_experts(given.tokens, given.placement, 32, workspace);
  };
  split(first);
  split(second);
  CHECK(test::allocations_of([&] { split(first), split(second); }) == 0);
}

// The plan of foreign copies also runs in each step.
TEST_CASE("spill_experts: a workspace is used again without allocations") {
  auto const first = test::skewed_batch(1, 128, 64);
  auto const second = test::skewed_batch(2, 128, 64);
  omnibal::spill_experts_workspace workspace;
  auto const spill = [&](auto const& given) {
    omnibal::spill_experts(given.tokens, given.home, 64, workspace);
  };
  spill(first);
  spill(second);
  CHECK(test::allocations_of([&] { spill(first), spill(second), spill(first); }) == 0);
}
