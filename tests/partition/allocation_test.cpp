// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/partition/partition_minimax.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

TEMPLATE_TEST_CASE(
    "partition_minimax with a workspace allocates nothing once it has seen as long a chain", "",
    std::int64_t, double) {
  omnibal::partition_minimax_workspace<TestType> workspace;
  std::vector<TestType> costs(1000);
  for (std::size_t i = 0; i != costs.size(); ++i) {
    costs[i] = static_cast<TestType>(i * 37 % 101) / 4;
  }
  CHECK(test::allocations_of([&] { omnibal::partition_minimax(costs, 64, workspace); }) > 0);
  CHECK(test::allocations_of([&] {
          for (std::size_t stages = 1; stages <= 64; ++stages) {
            costs[stages] += 13;
            omnibal::partition_minimax(costs, stages, workspace);
          }
        }) == 0);
}

TEMPLATE_TEST_CASE(
    "partition_minimax with a workspace allocates nothing for long chains of any kind", "",
    std::int64_t, double) {
  omnibal::partition_minimax_workspace<TestType> workspace;
  std::vector<TestType> costs(40'000, TestType{1});
  CHECK(test::allocations_of([&] { omnibal::partition_minimax(costs, 600, workspace); }) > 0);
  CHECK(test::allocations_of([&] {
          for (std::size_t const stages : {std::size_t{600}, std::size_t{300}, std::size_t{7}}) {
            for (std::size_t i = 0; i != costs.size(); ++i) {
              costs[i] = static_cast<TestType>(i * 7919 % 10'007) / 8;
            }
            omnibal::partition_minimax(costs, stages, workspace);
            std::sort(costs.begin(), costs.end());
            omnibal::partition_minimax(costs, stages, workspace);
            costs.front() = 1e9;
            omnibal::partition_minimax(costs, stages, workspace);
          }
        }) == 0);
}
