// SPDX-License-Identifier: Apache-2.0
#include "all_partitions.hpp"
#include "error_text.hpp"
#include "prefix_families.hpp"
#include "prefix_faults.hpp"

#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch.hpp>

using omnibal::pack_prefixes;
using omnibal::pack_prefixes_options;
using omnibal::prefix_bound;

// Each family has a shape that another part of the construction handles, and each capacity another
// number of splits.
TEST_CASE("pack_prefixes keeps the capacity and every sequence on all families") {
  for (auto const& family : bench::prefix_families) {
    for (std::uint64_t const capacity : {3000U, 16384U, 65536U}) {
      auto const forest = family.make(3);
      pack_prefixes_options options;
      options.steps = 20'000;
      auto const packed = pack_prefixes(forest, capacity, options);
      INFO(family.name << " at " << capacity);
      REQUIRE(test::fault(packed, forest, capacity) == "");
      REQUIRE(packed.computed_tokens >= packed.bound.tokens);
      REQUIRE(packed.groups.size() >= packed.bound.groups);
      options.effort = omnibal::effort::fast;
      options.steps = {};
      REQUIRE(test::fault(pack_prefixes(forest, capacity, options), forest, capacity) == "");
    }
  }
}

// Within two percent of the bounds of tokens and groups, the promise of the guide. Few groups round
// the two percent to whole groups.
TEST_CASE("pack_prefixes is near both bounds for group-wise learning", "[slow]") {
  for (std::uint64_t const seed : {1U, 2U, 3U}) {
    auto const forests = {bench::grpo(seed, 64, 16), bench::system_prompt(seed, 64, 16)};
    for (auto const& forest : forests) {
      for (std::uint64_t const capacity : {16384U, 32768U, 65536U, 131072U}) {
        auto const packed = pack_prefixes(forest, capacity);
        INFO(seed << " at " << capacity);
        CHECK(packed.computed_tokens <= packed.bound.tokens + packed.bound.tokens / 50);
        CHECK(packed.groups.size() <= packed.bound.groups + (packed.bound.groups + 49) / 50);
      }
    }
  }
}

// The price is the only trade: more of it never needs more groups than none of it.
TEST_CASE("pack_prefixes trades tokens for groups by the price") {
  auto const forest = bench::grpo(4, 64, 16);
  pack_prefixes_options options;
  options.group_price = 0;
  auto const few_tokens = pack_prefixes(forest, 65536, options);
  options.group_price = 1'000'000;
  auto const few_groups = pack_prefixes(forest, 65536, options);
  CHECK(few_tokens.computed_tokens < few_groups.computed_tokens);
  CHECK(few_groups.groups.size() < few_tokens.groups.size());
  CHECK(few_tokens.computed_tokens == few_tokens.bound.tokens);
}

// Ranks need equal numbers of groups.
TEST_CASE("pack_prefixes returns a multiple of groups") {
  omnibal::rng::engine random(5);
  for (int round = 0; round != 500; ++round) {
    auto const forest = test::random_forest(random, 12, 7, 9);
    pack_prefixes_options options;
    options.multiple_of = 1 + omnibal::rng::below(random, 5);
    options.steps = 100;
    auto const packed = pack_prefixes(forest, 15, options);
    REQUIRE(packed.groups.size() % options.multiple_of == 0);
    REQUIRE(test::fault(packed, forest, 15) == "");
    // A group is empty only if no group has two sequences.
    bool has_empty = false;
    bool has_pair = false;
    for (auto const group : packed.groups) {
      has_empty |= group.empty();
      has_pair |= group.size() > 1;
    }
    REQUIRE_FALSE((has_empty && has_pair));
  }
}

// Equal arguments must give equal groups, and other seeds other searches.
TEST_CASE("pack_prefixes is deterministic") {
  auto const forest = bench::agents(6, 32, 16);
  pack_prefixes_options options;
  options.steps = 20'000;
  auto const packed = pack_prefixes(forest, 32768, options);
  CHECK(packed == pack_prefixes(forest, 32768, options));
  options.seed = 1;
  CHECK_FALSE(packed == pack_prefixes(forest, 32768, options));
}

// The three treatments have the names that all packers use.
TEST_CASE("pack_prefixes treats oversized sequences as place_oversized does") {
  std::vector<std::vector<int>> const sequences{{1, 2, 3, 4}, {1, 2}, {1, 2, 3, 9, 9}, {5}};
  auto const forest = omnibal::build_prefix_forest(sequences);
  auto const listed = pack_prefixes(forest, 3);
  CHECK(listed.oversized == std::vector<std::uint32_t>{0, 2});
  CHECK(listed.groups.item_count() == 2);
  CHECK(listed.computed_tokens == 3);

  pack_prefixes_options options;
  options.oversized = omnibal::oversize_policy::own_group;
  auto const own = pack_prefixes(forest, 3, options);
  CHECK(own.oversized.empty());
  CHECK(own.groups.size() == listed.groups.size() + 2);
  CHECK(own.tokens.back() == 5);
  CHECK(own.bound.groups == listed.bound.groups + 2);
  CHECK(own.bound.tokens == listed.bound.tokens + 9);
  CHECK(own.computed_tokens == 12);

  options.oversized = omnibal::oversize_policy::reject;
  CHECK(test::error_text<std::invalid_argument>([&] { (void)pack_prefixes(forest, 3, options); }) ==
        "omnibal::pack_prefixes: sequence 0 has 4 tokens, must have at most the capacity, 3");
}

// The errors must name the argument and the value.
TEST_CASE("pack_prefixes names wrong arguments") {
  auto const forest = bench::turns(1, 2);
  CHECK(test::error_text<std::invalid_argument>([&] { (void)pack_prefixes(forest, 0); }) ==
        "omnibal::pack_prefixes: capacity is 0, must be positive");
  CHECK(test::error_text<std::invalid_argument>([&] { (void)prefix_bound(forest, 0); }) ==
        "omnibal::prefix_bound: capacity is 0, must be positive");
  pack_prefixes_options options;
  options.multiple_of = 0;
  CHECK(test::error_text<std::invalid_argument>([&] { (void)pack_prefixes(forest, 9, options); }) ==
        "omnibal::pack_prefixes: options.multiple_of is 0, must be positive");
}

// Nothing, one empty sequence and one node for all are the smallest forests.
TEST_CASE("pack_prefixes packs the smallest forests") {
  omnibal::prefix_forest const nothing;
  CHECK(pack_prefixes(nothing, 1).groups.empty());
  CHECK(prefix_bound(nothing, 1) == omnibal::prefix_bounds{0, 0});
  std::vector<std::vector<int>> const empty(2);
  auto const packed = pack_prefixes(omnibal::build_prefix_forest(empty), 1);
  CHECK(packed.groups.size() == 1);
  CHECK(packed.computed_tokens == 0);
  std::vector<std::vector<int>> const equal(5, std::vector<int>{1, 2, 3});
  auto const one = pack_prefixes(omnibal::build_prefix_forest(equal), 3);
  CHECK(one.groups.size() == 1);
  CHECK(one.groups.item_count() == 5);
  CHECK(one.computed_tokens == 3);
}

// Column generation proves what volumes cannot: three halves do not fit into two groups.
TEST_CASE("prefix_bound uses linear programs") {
  std::vector<std::uint32_t> const parents{omnibal::prefix_forest::no_parent, 0, 0, 0, 0};
  std::vector<std::uint64_t> const lengths{10, 51, 51, 51, 51};
  std::vector<std::uint32_t> const ends{1, 2, 3, 4};
  auto const forest = omnibal::build_prefix_forest(omnibal::prefix_nodes{parents, lengths, ends});
  auto const fast = prefix_bound(forest, 110, {omnibal::effort::fast, {}});
  CHECK(fast == omnibal::prefix_bounds{234, 3});
  CHECK(prefix_bound(forest, 110) == omnibal::prefix_bounds{244, 4});
}

// The certificate compares many more; these few catch a wrong bound in the quick tests.
TEST_CASE("prefix_bound is below all packings of small forests") {
  omnibal::rng::engine random(8);
  for (int round = 0; round != 2000; ++round) {
    auto const forest = test::random_forest(random, 12, 6, 9);
    std::uint64_t const capacity = 1 + omnibal::rng::below(random, 30);
    auto const least = test::all_partitions(forest, capacity, 0).least();
    for (auto const effort : {omnibal::effort::fast, omnibal::effort::normal}) {
      auto const bound = prefix_bound(forest, capacity, {effort, {}});
      REQUIRE(bound.tokens <= least.tokens);
      REQUIRE(bound.groups <= least.groups);
    }
    pack_prefixes_options options;
    options.group_price = 0;
    options.steps = 256;
    CHECK(pack_prefixes(forest, capacity, options).computed_tokens == least.tokens);
  }
}
