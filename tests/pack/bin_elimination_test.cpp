// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/next_fit.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <catch.hpp>

TEST_CASE("group_reducer goes on after passes with all shares that have gained something") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    test::random_amounts random(seed);
    std::vector<std::int64_t> samples(200);
    for (std::int64_t& sample : samples) sample = random.between(100, 500);
    omnibal::detail::with_measured("test", samples, std::identity{}, 1000, [&](auto&& input) {
      omnibal::detail::group_reducer<decltype(input.layout)> reducer(input, seed);
      omnibal::grouping groups = omnibal::next_fit(samples, std::identity{}, 1000).groups;
      std::size_t const before = groups.size();
      bool has_gained = false;
      do {
        has_gained = groups.size() != before;
        reducer.run(groups);
      } while (!reducer.has_stalled());
      REQUIRE(has_gained);
      CHECK(!reducer.is_exhausted());
      // They end at last.
      while (!reducer.is_exhausted()) reducer.run(groups);
      CHECK(groups.size() < before);
    });
  }
}

TEST_CASE("group_reducer keeps no group for samples that take nothing") {
  std::vector<std::int64_t> samples;
  omnibal::grouping groups;
  for (std::uint32_t pair = 0; pair != 10; ++pair) {
    for (std::int64_t const amount : {990, 10, 0}) samples.push_back(amount);
    groups.push(3 * pair);
    groups.close();
    groups.push(3 * pair + 1);
    groups.push(3 * pair + 2);
    groups.close();
  }
  omnibal::detail::with_measured("test", samples, std::identity{}, 1000, [&](auto&& input) {
    omnibal::detail::group_reducer<decltype(input.layout)> reducer(input, 0);
    reducer.run(groups);
    CHECK(groups.size() == 10);
    CHECK(groups.item_count() == samples.size());
  });
}
