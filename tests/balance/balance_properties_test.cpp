// SPDX-License-Identifier: Apache-2.0
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/deal.hpp>
#include <omnibal/balance/karmarkar_karp.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::count_policy;

constexpr count_policy policies[] = {count_policy::any, count_policy::equal,
                                     count_policy::at_most_one_apart};

/// The parts are sound, and the same when they are made again.
template <class Make>
omnibal::grouping checked(std::string const& name, std::size_t samples, std::size_t parts,
                          Make const& make, count_policy policy = count_policy::any) {
  INFO(name << ", " << samples << " samples, " << parts << " parts");
  omnibal::grouping result = make();
  CHECK(test::parts_fault(result, samples, parts, policy) == "");
  CHECK(make() == result);
  return result;
}

template <std::size_t R>
void check_vectors(test::sample_set<R> const& set, std::size_t parts) {
  std::size_t const count = set.samples.size();
  for (count_policy const policy : policies) {
    if (policy == count_policy::equal && count % parts != 0) continue;
    auto const start = checked(
        "lpt", count, parts,
        [&] { return omnibal::lpt(set.samples, parts, std::identity{}, {.count = policy}); },
        policy);
    CHECK(test::is_ascending(start));
    auto const counts =
        policy == count_policy::any ? omnibal::part_counts::free : omnibal::part_counts::kept;
    auto const refined = checked(
        "refine_parts", count, parts,
        [&] {
          return omnibal::refine_parts(set.samples, start, std::identity{},
                                       {.counts = counts, .exchanges = 1000});
        },
        policy);
    CHECK(test::is_ascending(refined));
    CHECK(test::largest_share(refined, set.samples) <=
          test::largest_share(start, set.samples) * (1 + 1e-12));
    auto const exact = checked(
        "balance_optimally", count, parts,
        [&] {
          return omnibal::balance_optimally(set.samples, parts, std::identity{},
                                            {.count = policy, .nodes = 1000})
              .parts;
        },
        policy);
    CHECK(test::largest_share(exact, set.samples) <=
          test::largest_share(start, set.samples) * (1 + 1e-12));
  }
}

void check_scalars(test::sample_set<1> const& set, std::size_t parts) {
  auto const check = [&](std::string const& name, auto const& balance) {
    return checked(name, set.samples.size(), parts,
                   [&] { return balance(set.samples, parts, test::first_amount); });
  };
  CHECK(check("lpt", omnibal::lpt) ==
        omnibal::lpt(set.samples, parts));  // resources<1> are a cost like another
  CHECK(test::is_ascending(check("karmarkar_karp", omnibal::karmarkar_karp)));
  auto const dealt = check("deal", omnibal::deal);
  CHECK(test::parts_fault(dealt, set.samples.size(), parts, count_policy::at_most_one_apart) == "");
  auto const refined = omnibal::refine_parts(set.samples, dealt, test::first_amount);
  CHECK(test::largest_loads(refined, set.samples)[0] <= test::largest_loads(dealt, set.samples)[0]);
}

}  // namespace

TEMPLATE_TEST_CASE("every sample is in one part, whatever the costs", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (std::size_t const count : {1u, 7u, 60u, 211u}) {
    for (auto const& set : test::cost_sets<TestType::value>(count, count)) {
      INFO(set.name);
      for (std::size_t const parts : {1u, 2u, 7u, 60u, 64u}) {
        check_vectors(set, parts);
        if constexpr (TestType::value == 1) check_scalars(set, parts);
      }
    }
  }
}

TEST_CASE("lpt is within 4/3 - 1/(3k) of the best, and differencing within 4/3") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    for (auto const& set : test::cost_sets<1>(seed, 9)) {
      for (std::size_t const parts : {2u, 3u, 4u}) {
        INFO(set.name << ", " << parts << " parts, seed " << seed);
        auto const load_of = [&](omnibal::grouping const& result) {
          return static_cast<double>(test::largest_loads(result, set.samples)[0]);
        };
        auto const exact = omnibal::balance_optimally(set.samples, parts, test::first_amount);
        REQUIRE(exact.proven);
        double const best = load_of(exact.parts);
        double const k = static_cast<double>(parts);
        double const lpt = load_of(omnibal::lpt(set.samples, parts, test::first_amount));
        CHECK(lpt >= best);
        CHECK(lpt <= best * (4.0 / 3.0 - 1 / (3 * k)) * (1 + 1e-12));
        double const differenced =
            load_of(omnibal::karmarkar_karp(set.samples, parts, test::first_amount));
        CHECK(differenced >= best);
        CHECK(differenced <= best * (4.0 / 3.0) * (1 + 1e-12));
      }
    }
  }
}

TEST_CASE("many samples with a heavy tail are balanced to a thousandth, with equal counts too") {
  test::random_amounts random(4);
  test::cost_vectors<1> costs(4096);
  for (auto& cost : costs) {
    std::int64_t const length = 16 + random.heavy_tail(100'000);
    cost[0] = length * length;
  }
  for (std::size_t const parts : {8u, 32u, 64u}) {
    auto const bound = test::mean_or_largest(costs, parts);
    auto const ratio = [&](omnibal::grouping const& result) {
      return static_cast<double>(test::largest_loads(result, costs)[0]) / bound;
    };
    CHECK(ratio(omnibal::lpt(costs, parts)) < 1.001);
    CHECK(ratio(omnibal::lpt(costs, parts, std::identity{}, {.count = count_policy::equal})) <
          1.001);
    CHECK(ratio(omnibal::karmarkar_karp(costs, parts, test::first_amount)) < 1.001);
    auto const dealt = omnibal::deal(costs, parts, test::first_amount);
    CHECK(ratio(omnibal::refine_parts(costs, dealt, std::identity{},
                                      {.counts = omnibal::part_counts::kept})) < 1.001);
  }
}

TEST_CASE("the unit of whole costs does not matter, up to the largest sum") {
  test::random_amounts random(9);
  std::vector<std::int64_t> costs(1000);
  for (auto& cost : costs) cost = random.heavy_tail(1 << 20);
  for (unsigned const shift : {10u, 32u}) {
    auto const in_units = [shift](std::int64_t cost) { return cost << shift; };
    CHECK(omnibal::lpt(costs, 30, in_units) == omnibal::lpt(costs, 30));
    CHECK(omnibal::karmarkar_karp(costs, 30, in_units) == omnibal::karmarkar_karp(costs, 30));
    CHECK(omnibal::deal(costs, 30, in_units) == omnibal::deal(costs, 30));
  }
}

TEST_CASE("floating-point costs give the parts of the same whole numbers, in any unit") {
  test::random_amounts random(5);
  std::vector<std::int64_t> whole(500);
  for (auto& cost : whole) cost = random.heavy_tail(1'000'000);
  for (double const unit : {1.0, 0x1p-1060, 0x1p-60, 0x1p+60, 0x1p+990}) {
    INFO(unit);
    auto const in_units = [unit](std::int64_t cost) { return static_cast<double>(cost) * unit; };
    CHECK(omnibal::lpt(whole, 16, in_units) == omnibal::lpt(whole, 16));
    CHECK(omnibal::deal(whole, 16, in_units) == omnibal::deal(whole, 16));
    CHECK(omnibal::karmarkar_karp(whole, 16, in_units) == omnibal::karmarkar_karp(whole, 16));
    auto const dealt = omnibal::deal(whole, 16);
    CHECK(test::parts_fault(omnibal::refine_parts(whole, dealt, in_units), whole.size(), 16) == "");
  }
}

TEST_CASE("equal kinds of cost give the parts of one kind, whatever their units") {
  test::random_amounts random(6);
  test::cost_vectors<1> one(300);
  test::cost_vectors<2> two(300);
  for (std::size_t i = 0; i != one.size(); ++i) {
    one[i][0] = random.heavy_tail(4000);
    two[i] = {one[i][0], one[i][0] << 30};
  }
  auto const of_one = omnibal::lpt(one, 8);
  auto const of_two = omnibal::lpt(two, 8);
  CHECK(test::largest_share(of_two, two) == Approx(test::largest_share(of_one, one)).epsilon(1e-3));
}
