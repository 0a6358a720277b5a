// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/hierarchy/level_packing.hpp>
#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/level_sampler.hpp>
#include <omnibal/sample/mixture.hpp>
#include <omnibal/sample/step_sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include <catch.hpp>

TEST_CASE("a training loop allocates nothing within an epoch") {
  std::vector<std::int64_t> loads(1000);
  std::iota(loads.begin(), loads.end(), 1);
  omnibal::step_sampler groups(loads, {.ranks = 8, .rank = 3},
                               {.remainder = omnibal::remainder_policy::repeat});
  std::uint64_t sum = 0;
  CHECK(test::allocations_of([&] {
          while (!groups.done()) {
            for (std::uint32_t const group : groups.next()) sum += group;
            sum += groups.state().segments[0].step_count;
          }
        }) == 0);
  CHECK(test::allocations_of([&] { sum += groups.next().size(); }) != 0);

  // Samplers of samples and mixtures allocate in no epoch.
  std::vector<int> const weights{3, 2, 1};
  omnibal::mixture const mixed(weights, [](int) { return 100; }, std::identity{}, {.window = 6});
  CHECK(test::allocations_of([&] {
          omnibal::epoch_sampler samples(1000, {.ranks = 8, .rank = 3}, {.batch = 4});
          for (int step = 0; step != 1000; ++step) {
            for (std::uint64_t const sample : samples.next()) sum += mixed(sample).sample;
            omnibal::epoch_sampler const resumed(1000, {.ranks = 8, .rank = 3}, {.batch = 4},
                                                 samples.state());
            sum += resumed.step();
          }
        }) == 0);
  CHECK(sum != 0);
}

TEST_CASE("a level sampler allocates nothing within an epoch") {
  using omnibal::remainder_policy;
  std::vector<std::int64_t> lengths(1000);
  std::iota(lengths.begin(), lengths.end(), 1);
  std::vector<omnibal::packing_level> const levels{{.length = 600},
                                                   {.length = 1000, .sequence = 4}};
  auto const packed = omnibal::pack_levels(lengths, std::identity{}, levels);
  std::vector<std::int64_t> const loads(packed.groups.size(), 1);
  std::uint64_t sum = 0;
  for (auto const policy :
       {remainder_policy::short_step, remainder_policy::repeat, remainder_policy::carry}) {
    omnibal::level_sampler sampler(packed, loads, {.ranks = 8, .rank = 3},
                                   {.schedule = {.remainder = policy}});
    CHECK(test::allocations_of([&] {
            while (!sampler.done()) {
              for (std::uint32_t const group : sampler.next().groups) sum += group;
              sum += sampler.state().segments[0].step_count;
            }
          }) == 0);
    CHECK(test::allocations_of([&] { sum += sampler.next().level + 1; }) != 0);
  }
  CHECK(sum != 0);
}
