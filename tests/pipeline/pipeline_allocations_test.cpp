// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <cstddef>
#include <vector>

#include <catch.hpp>

TEST_CASE("simulate_pipeline allocates nothing with a workspace that has been used") {
  constexpr omnibal::simulate_pipeline_options recorded{.timeline =
                                                            omnibal::timeline_policy::recorded};
  std::vector<omnibal::stage_time<>> const times(6, omnibal::stage_time{5, 7, 3});
  omnibal::simulate_pipeline_workspace<> workspace;
  auto const run = [&](std::size_t micro_batches) {
    omnibal::simulate_pipeline(omnibal::zb_h1{6, micro_batches}, times, 2, 10, recorded, workspace);
    omnibal::simulate_pipeline(omnibal::one_f_one_b{6, micro_batches}, times, 2, 10, recorded,
                               workspace);
  };
  CHECK(test::allocations_of([&] { run(40); }) > 0);
  CHECK(test::allocations_of([&] { run(40); }) == 0);
  CHECK(test::allocations_of([&] { run(7); }) == 0);
}
