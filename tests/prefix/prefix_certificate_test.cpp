// SPDX-License-Identifier: Apache-2.0 The bounds of forests, and packings that meet them, compared
// with all partitions of the sequences.

#include "all_partitions.hpp"
#include "certificate.hpp"
#include "prefix_faults.hpp"

#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <catch.hpp>

using test::all_partitions;
using test::least_of;

// A bound above the least value would call a good packing proven, or an instance infeasible.
TEST_CASE("bounds of forests are never above the least values") {
  std::size_t least_tokens = 0;
  std::size_t fewest_groups = 0;
  std::size_t instances = 0;
  test::certify<std::uint32_t>("prefix_bound", [&](omnibal::rng::engine& random) -> std::string {
    auto const forest = test::random_forest(random, 12, 6, 9);
    std::uint64_t const capacity = 1 + omnibal::rng::below(random, 30);
    std::uint64_t const price = omnibal::rng::below(random, 40);
    least_of const least = all_partitions(forest, capacity, price).least();
    for (auto const effort : {omnibal::effort::fast, omnibal::effort::normal}) {
      auto const bound = omnibal::prefix_bound(forest, capacity, {effort, {}});
      if (bound.tokens > least.tokens) return "the bound of the tokens is too high";
      if (bound.groups > least.groups) return "the bound of the groups is too high";
    }
    omnibal::pack_prefixes_options options;
    options.group_price = price;
    options.steps = 512;
    auto const packed = omnibal::pack_prefixes(forest, capacity, options);
    if (std::string const found = test::fault(packed, forest, capacity); !found.empty()) {
      return found;
    }
    std::uint64_t const value = packed.computed_tokens + price * packed.groups.size();
    if (value < least.priced) return "a packing is better than the best";
    ++instances;
    least_tokens += value == least.priced ? 1U : 0U;
    fewest_groups += packed.groups.size() == least.groups ? 1U : 0U;
    return "";
  });
  // The search finds nearly all optima of six sequences.
  CHECK(least_tokens > instances * 99 / 100);
  CHECK(fewest_groups > instances * 9 / 10);
  std::printf("pack_prefixes: %zu of %zu are optimal\n", least_tokens, instances);
}
