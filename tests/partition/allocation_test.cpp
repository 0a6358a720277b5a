#include "allocations.hpp"

#include <omnibal/partition/minimax.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

TEST_CASE("minimax with a workspace allocates nothing once it has seen as long a chain") {
  omnibal::minimax_workspace<> workspace;
  std::vector<std::int64_t> costs(1000);
  for (std::size_t i = 0; i != costs.size(); ++i) {
    costs[i] = static_cast<std::int64_t>(i * 37 % 101);
  }
  CHECK(test::allocations_of([&] { omnibal::minimax(costs, 64, workspace); }) > 0);
  CHECK(test::allocations_of([&] {
          for (std::size_t stages = 1; stages <= 64; ++stages) {
            costs[stages] += 13;
            omnibal::minimax(costs, stages, workspace);
          }
        }) == 0);
}
