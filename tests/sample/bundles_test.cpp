// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/balance/lpt.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/sample/bundles.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::bundle_loads;
using omnibal::grouping;
using omnibal::packing;
using omnibal::unbundle;

/// Bundles of up to six samples, taken in a random order.
grouping random_bundles(std::size_t samples, std::uint64_t seed) {
  test::random_amounts random(seed);
  std::vector<std::uint32_t> order(samples);
  for (std::size_t i = 0; i != samples; ++i) order[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = samples; i > 1; --i) {
    auto const other =
        static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i - 1)));
    std::swap(order[i - 1], order[other]);
  }
  grouping result;
  for (std::size_t i = 0; i != samples;) {
    auto const size = static_cast<std::size_t>(random.between(0, 6));
    for (std::size_t const end = std::min(samples, i + size); i != end; ++i) result.push(order[i]);
    result.close();
  }
  return result;
}

}  // namespace

TEST_CASE("a bundle takes what its samples take") {
  std::vector<omnibal::resources<2>> const samples{{1, 10}, {2, 20}, {3, 30}, {4, 40}};
  grouping const bundles({0, 2, 2, 3, 4}, {3, 0, 2, 1});
  auto const loads = bundle_loads(bundles, samples, std::identity{});
  CHECK(loads == std::vector<omnibal::resources<2>>{{5, 50}, {0, 0}, {3, 30}, {2, 20}});
}

TEST_CASE("groups of bundles become groups of samples in the same order") {
  grouping const bundles({0, 2, 2, 3, 6}, {3, 0, 5, 1, 4, 2});
  grouping const groups({0, 2, 2, 4}, {3, 0, 1, 2});
  CHECK(unbundle(groups, bundles) == grouping({0, 5, 5, 6}, {1, 4, 2, 3, 0, 5}));
  packing const packed{grouping({0, 1}, {2}), {0, 3}, {.lower_bound = 7}};
  packing const expected{grouping({0, 1}, {5}), {0, 1, 2, 3, 4}, {.lower_bound = 7}};
  CHECK(unbundle(packed, bundles) == expected);
  CHECK(unbundle(grouping(), grouping()) == grouping());
}

TEST_CASE("samples with equal keys are a bundle, in the order of the first of each") {
  std::vector<std::string> const videos{"b", "a", "b", "c", "a", "b"};
  CHECK(omnibal::bundle_by(videos, std::identity{}) == grouping({0, 3, 5, 6}, {0, 2, 5, 1, 4, 3}));
  CHECK(omnibal::bundle_by(std::vector<int>{}, std::identity{}) == grouping());
  CHECK(omnibal::bundle_by(std::vector<int>{7}, std::identity{}) == grouping({0, 1}, {0}));
  std::string called;
  auto const first_letter = [&](std::string const& name) {
    called += name;
    return name[0];
  };
  static_cast<void>(omnibal::bundle_by(videos, first_letter));
  CHECK(called == "babcab");

  test::random_amounts random(8);
  for (std::int64_t const last : {0, 3, 100, 100'000}) {
    std::vector<std::int64_t> keys(1000);
    for (auto& key : keys) key = random.between(-last, last);
    std::map<std::int64_t, std::vector<std::uint32_t>> expected;
    for (std::size_t i = 0; i != keys.size(); ++i) {
      expected[keys[i]].push_back(static_cast<std::uint32_t>(i));
    }
    grouping const bundles = omnibal::bundle_by(keys, std::identity{});
    CHECK(bundles.size() == expected.size());
    std::uint32_t first_before = 0;
    for (std::size_t b = 0; b != bundles.size(); ++b) {
      REQUIRE(test::to_vector(bundles[b]) == expected[keys[bundles[b].front()]]);
      REQUIRE(bundles[b].front() >= first_before);
      first_before = bundles[b].front();
    }
  }
}

TEST_CASE("packed bundles stay together, fit, and lose nothing") {
  for (std::size_t const count : {0u, 1u, 60u, 400u}) {
    for (auto const& set : test::small_sets<2>(count, count)) {
      INFO(set.name << ", " << count);
      std::size_t const size = set.samples.size();
      grouping const bundles = random_bundles(size, count);
      auto const loads = bundle_loads(bundles, set.samples, std::identity{});
      auto const packed = omnibal::best_fit_decreasing(loads, std::identity{}, set.capacity);
      auto const samples = unbundle(packed, bundles);
      REQUIRE(samples.groups.size() == packed.groups.size());

      std::vector<std::size_t> group_of(size, size);
      for (std::size_t g = 0; g != samples.groups.size(); ++g) {
        omnibal::resources<2> load{};
        for (std::uint32_t const item : samples.groups[g]) {
          REQUIRE(group_of.at(item) == size);
          group_of[item] = g;
          load += set.samples[item];
        }
        REQUIRE(load.fits(set.capacity));
      }
      REQUIRE(samples.groups.item_count() + samples.oversized.size() == size);
      REQUIRE(std::is_sorted(samples.oversized.begin(), samples.oversized.end()));
      for (std::uint32_t const item : samples.oversized) REQUIRE(group_of[item] == size);
      for (std::size_t b = 0; b != bundles.size(); ++b) {
        for (std::uint32_t const item : bundles[b]) {
          REQUIRE(group_of[item] == group_of[bundles[b].front()]);
        }
      }
    }
  }
}

TEST_CASE("balanced bundles stay together too") {
  std::vector<int> const costs{5, 4, 3, 2, 1, 6};
  grouping const bundles({0, 2, 4, 6}, {0, 5, 1, 2, 3, 4});
  auto const parts = omnibal::lpt(bundle_loads(bundles, costs, std::identity{}), 2);
  CHECK(unbundle(parts, bundles) == grouping({0, 2, 6}, {0, 5, 1, 2, 3, 4}));
}

TEST_CASE("bundles that are no partition are errors") {
  std::vector<int> const samples{1, 2, 3};
  auto const of = [&](grouping const& bundles) {
    return test::error_text<std::invalid_argument>(
        [&] { static_cast<void>(bundle_loads(bundles, samples, std::identity{})); });
  };
  CHECK(of(grouping({0, 2, 3}, {0, 1, 2})) == "no error");
  CHECK(of(grouping({0, 2, 4}, {0, 1, 2, 0})) ==
        "omnibal::bundle_loads: the list of bundles names 0 twice, of 3 samples");
  CHECK(of(grouping({0, 2}, {0, 1})) ==
        "omnibal::bundle_loads: the list of bundles has 2 of 3 samples");
  CHECK(of(grouping({0, 3}, {0, 1, 3})) ==
        "omnibal::bundle_loads: group 0 has item 3, but there are 3 samples");
  CHECK(test::error_text<std::invalid_argument>([] {
          grouping const bundle({0, 2}, {0, 1});
          static_cast<void>(bundle_loads(bundle, std::vector<int>{1, -2}, std::identity{}));
        }) == "omnibal::bundle_loads: demand[1] is -2, must be finite and not negative");
  CHECK(test::error_text<std::invalid_argument>([] {
          static_cast<void>(unbundle(grouping({0, 1}, {1}), grouping({0, 1}, {0})));
        }) == "omnibal::unbundle: group 0 has bundle 1, but there are 1");
}

namespace {

using numbers = std::vector<int>;

static_assert(std::invocable<omnibal::bundle_by_fn, numbers, std::identity>);
static_assert(!std::invocable<omnibal::bundle_by_fn, std::vector<double>, std::identity>);
static_assert(!std::invocable<omnibal::bundle_by_fn, int, std::identity>);
static_assert(std::invocable<omnibal::bundle_loads_fn, grouping, numbers, std::identity>);
static_assert(!std::invocable<omnibal::bundle_loads_fn, numbers, numbers, std::identity>);
static_assert(std::invocable<omnibal::unbundle_fn, packing, grouping>);
static_assert(!std::invocable<omnibal::unbundle_fn, numbers, grouping>);

}  // namespace
