// SPDX-License-Identifier: Apache-2.0
// Balancers of parts with different speeds: the mechanism that they share, and each of them.
#include "error_text.hpp"

#include <omnibal/balance/balance_optimally.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/balance/refine_parts.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::detail::integer_costs;
using omnibal::detail::part_speeds;
using omnibal::detail::part_time;
using omnibal::detail::speed_list;

std::vector<std::int64_t> whole(std::vector<double> const& speeds) {
  part_speeds const result("f", speeds, speeds.size());
  std::vector<std::int64_t> values;
  for (std::size_t part = 0; part != result.size(); ++part) values.push_back(result[part]);
  return values;
}

std::string speed_error(std::vector<double> const& speeds, std::size_t parts) {
  return test::error_text<std::invalid_argument>(
      [&] { static_cast<void>(part_speeds("f", speeds, parts, "ranks")); });
}

/// Calls `body(part_of)` for each way to assign samples to parts.
template <class Body>
void for_each_assignment(std::size_t samples, std::size_t parts, Body const& body) {
  std::vector<std::uint32_t> part_of(samples, 0);
  while (true) {
    body(part_of);
    std::size_t i = 0;
    while (i != samples && ++part_of[i] == parts) part_of[i++] = 0;
    if (i == samples) return;
  }
}

/// The smallest largest load over speed of all assignments.
part_time least_time(integer_costs<1> const& costs, part_speeds const& speeds) {
  part_time least{std::numeric_limits<std::int64_t>::max(), 1};
  for_each_assignment(costs.size(), speeds.size(), [&](std::vector<std::uint32_t> const& part_of) {
    least = std::min(least, omnibal::detail::largest_time(costs, std::span(part_of), speeds));
  });
  return least;
}

/// Small costs and speeds for all ways to assign the samples.
struct small_instance {
  explicit small_instance(std::uint64_t seed) {
    omnibal::rng::engine words(seed);
    auto const draw = [&](std::int64_t most) {
      return static_cast<std::int64_t>(
          omnibal::rng::below(words, static_cast<std::uint64_t>(most)));
    };
    std::size_t const parts = 2 + static_cast<std::size_t>(draw(3));
    std::size_t const samples = static_cast<std::size_t>(draw(7));
    std::int64_t const largest = std::int64_t{1} << draw(8);
    for (std::size_t i = 0; i != samples; ++i) costs.push_back({draw(1 + 2 * largest)});
    for (std::size_t p = 0; p != parts; ++p) {
      speeds.push_back(static_cast<double>(1 + draw(4)) / 2.0);
    }
  }

  integer_costs<1> costs;
  std::vector<double> speeds;
};

/// Random costs and speeds for many samples. The type of mixture follows from the seed: all speeds
/// differ, or a few are repeated.
template <std::size_t R>
struct random_instance {
  random_instance(std::uint64_t seed, std::size_t samples, std::size_t parts, int bits) {
    omnibal::rng::engine words(seed);
    for (std::size_t i = 0; i != samples; ++i) {
      omnibal::resources<R> cost;
      for (std::int64_t& amount : cost.amounts) {
        amount = static_cast<std::int64_t>(words() >> (64 - bits) >> omnibal::rng::below(words, 9));
      }
      costs.push_back(cost);
    }
    std::uint64_t const kinds = seed % 2 == 0 ? 1u << 20 : 3;
    for (std::size_t p = 0; p != parts; ++p) {
      speeds.push_back(0.5 + static_cast<double>(omnibal::rng::below(words, kinds)) * 0x1p-20);
      if (seed % 2 != 0) speeds.back() = speeds.back() * 0x1p20 - 0x1p19 + 1.0;
    }
  }

  integer_costs<R> costs;
  std::vector<double> speeds;
};

enum class shapes { uniform, log_normal, heavy_tail };

/// Costs from 1 to 2^20, log-normal costs with a sigma of 1 and a median of 2^16, or whole numbers
/// below a power of two that is different for each sample.
integer_costs<1> costs_of(shapes shape, std::size_t count, std::uint64_t seed) {
  omnibal::rng::engine words(seed);
  integer_costs<1> costs;
  for (std::size_t i = 0; i != count; ++i) {
    auto cost = 1 + static_cast<std::int64_t>(omnibal::rng::below(words, 1 << 20));
    if (shape == shapes::log_normal) {
      // The sum of twelve uniform numbers is nearly normal.
      double normal = -6;
      for (int k = 0; k != 12; ++k) normal += static_cast<double>(words() >> 11) * 0x1p-53;
      cost = static_cast<std::int64_t>(std::ceil(65536 * std::exp(normal)));
    } else if (shape == shapes::heavy_tail) {
      cost >>= omnibal::rng::below(words, 9);
    }
    costs.push_back({cost});
  }
  return costs;
}

/// The contract of `lpt` with speeds, part by part; the costs are whole numbers of one scale.
template <std::size_t R>
omnibal::grouping naive_lpt(integer_costs<R> const& costs, part_speeds const& speeds,
                            omnibal::count_policy policy) {
  std::vector<std::uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return omnibal::detail::sum_of(costs[a]) > omnibal::detail::sum_of(costs[b]);
  });
  std::size_t const floor = costs.size() / speeds.size();
  std::vector<std::vector<std::uint32_t>> parts(speeds.size());
  integer_costs<R> loads(speeds.size(), omnibal::resources<R>{});
  for (std::uint32_t const sample : order) {
    std::size_t above = 0;
    for (auto const& part : parts) above += part.size() > floor ? 1u : 0u;
    std::size_t best = speeds.size();
    auto const key = [&](std::size_t part) {
      if (omnibal::detail::sum_of(costs[sample]) == 0) {
        return part_time{static_cast<std::int64_t>(parts[part].size()), 1};
      }
      return speeds.time_of(part, omnibal::detail::largest_amount(loads[part] + costs[sample]));
    };
    for (std::size_t part = 0; part != speeds.size(); ++part) {
      bool const may_exceed = above != costs.size() % speeds.size();
      bool const has_room = policy == omnibal::count_policy::any || parts[part].size() < floor ||
                            (parts[part].size() == floor && may_exceed);
      if (has_room && (best == speeds.size() || key(part) < key(best))) best = part;
    }
    parts[best].push_back(sample);
    loads[best] += costs[sample];
  }
  omnibal::grouping result;
  for (auto& part : parts) {
    std::sort(part.begin(), part.end());
    for (std::uint32_t const sample : part) result.push(sample);
    result.close();
  }
  return result;
}

}  // namespace

// An option must not keep a view of a temporary array, and takes no other type than double.
static_assert(std::is_constructible_v<speed_list, std::vector<double> const&>);
static_assert(std::is_constructible_v<speed_list, std::span<double const>>);
static_assert(!std::is_constructible_v<speed_list, std::vector<double>>);
static_assert(!std::is_constructible_v<speed_list, std::vector<float> const&>);

// Ratios that users write must be exact, so that ties between parts are real ties.
TEST_CASE("speeds keep the ratios of whole numbers and of multiples of powers of two") {
  CHECK(whole({1.5, 1.5, 1.0, 1.0}) == std::vector<std::int64_t>{3, 3, 2, 2});
  CHECK(whole({73, 100, 12}) == std::vector<std::int64_t>{73, 100, 12});
  CHECK(whole({0x1p-1060, 0x3p-1060}) == std::vector<std::int64_t>{1, 3});
  CHECK(whole({0x1p1000, 0x3p1000}) == std::vector<std::int64_t>{1, 3});
  CHECK(whole({2147483647.0, 2147483646.0}) == std::vector<std::int64_t>{2147483647, 2147483646});
  // Rounded to the nearest multiple of the largest / 2^31.
  CHECK(whole({1.0, 0x1p-30}) == std::vector<std::int64_t>{0x40000000, 1});
  CHECK(whole({1.0, 0x2.8p-30}) == std::vector<std::int64_t>{0x40000000, 3});
}

// Equal speeds must take the code of parts without speeds.
TEST_CASE("speeds are equal without a value, with one value, and with equal values") {
  for (std::vector<double> const& speeds :
       {std::vector<double>{}, {3.0}, {0.1, 0.1, 0.1}, {1.0, 1.0 + 0x1p-40, 1.0}}) {
    part_speeds const equal("f", speeds, 3);
    CHECK(equal.are_equal());
    CHECK(equal[2] == 1);
    CHECK(equal.sum() == 3);
    CHECK(equal.largest() == 1);
    CHECK(equal.size() == 3);
  }
  std::vector<double> const unequal{1.0, 1.0, 2.0};
  CHECK_FALSE(part_speeds("f", unequal, 3).are_equal());
}

// A wrong speed must be named, also if it is the only one.
TEST_CASE("speeds that are no speeds are refused by name") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(speed_error({1, 2}, 3) == "omnibal::f: options.speeds has 2 values for 3 ranks");
  CHECK(speed_error({1, 2, 3, -1}, 4) ==
        "omnibal::f: options.speeds[3] is -1, must be positive and finite");
  CHECK(speed_error({0}, 4) == "omnibal::f: options.speeds[0] is 0, must be positive and finite");
  CHECK(speed_error({1, nan}, 2).find("options.speeds[1] is nan") != std::string::npos);
  CHECK(speed_error({std::numeric_limits<double>::infinity(), 1}, 2).find("speeds[0] is inf") !=
        std::string::npos);
  CHECK(speed_error({1, 0x1p-33}, 2) ==
        "omnibal::f: options.speeds[1] is 1.1641532182693481e-10, must be at least 2^-31 of the "
        "largest speed, which is 1");
}

// Products of the largest loads and speeds must not overflow.
TEST_CASE("times compare exactly") {
  std::int64_t const most = std::numeric_limits<std::int64_t>::max();
  CHECK(part_time{most - 1, most} < part_time{most, most});
  CHECK(part_time{most, 3} > part_time{most - 1, 3});
  CHECK(part_time{2, 4} == part_time{1, 2});
  CHECK(part_time{2, 4} <= part_time{1, 2});
  CHECK_FALSE(part_time{2, 3} <= part_time{1, 2});
}

// The point at which two parts have equal times decides which samples a search exchanges.
TEST_CASE("a pair of parts shares a load in proportion to its speeds") {
  omnibal::detail::timed_pair const pair{3, 2};
  CHECK(pair.larger(6, 4) == 12);
  CHECK(pair.larger(7, 3) == 14);
  CHECK(pair.larger(5, 5) == 15);
  CHECK(pair.gap(11, 4) == 2);
  CHECK(pair.gap(6, 4) == 0);
  CHECK(pair.share(10) == 6);
  CHECK(pair.share(11) == 7);
  CHECK(pair.least(10) == 12);
  CHECK(pair.least(11) == 14);
  CHECK(pair.least(0) == 0);
}

// A bound above the best parts would end searches early and prove what is wrong.
TEST_CASE("min_time is at most the smallest largest time") {
  std::size_t tight = 0;
  std::size_t unequal = 0;
  for (std::uint64_t seed = 0; seed != 1500; ++seed) {
    small_instance const small(seed);
    part_speeds const speeds("f", small.speeds, small.speeds.size());
    auto const order = omnibal::detail::largest_first(small.costs);
    part_time const bound = omnibal::detail::min_time(small.costs, std::span(order), speeds);
    part_time const least = least_time(small.costs, speeds);
    INFO("seed " << seed);
    REQUIRE(bound <= least);
    unequal += speeds.are_equal() ? 0u : 1u;
    tight += bound == least ? 1u : 0u;
    if (!speeds.are_equal()) continue;
    // Without speeds, the bound is the one that all balancers have.
    REQUIRE(bound ==
            part_time{omnibal::detail::min_load(small.costs, std::span(order), speeds.size()), 1});
  }
  CHECK(unequal > 1000);
  CHECK(tight > 900);
}

// Each of the bounds must be there, because each is the largest for some samples.
TEST_CASE("min_time is the largest of four bounds") {
  auto const bound = [](integer_costs<1> const& costs, std::vector<double> const& given) {
    auto const order = omnibal::detail::largest_first(costs);
    return omnibal::detail::min_time(costs, std::span(order),
                                     part_speeds("f", given, given.size()));
  };
  // The mean in whole numbers: 7 units on speeds 3 and 2 are 4 and 3, or 5 and 2.
  CHECK(bound({{1}, {1}, {1}, {1}, {1}, {1}, {1}}, {3, 2}) == part_time{3, 2});
  // One large cost, and two large costs on the two fastest of three parts.
  CHECK(bound({{10}, {1}}, {1, 4}) == part_time{10, 4});
  CHECK(bound({{10}, {9}, {1}}, {1, 4, 2}) == part_time{19, 6});
  // Two of three equal costs share a part.
  CHECK(bound({{4}, {4}, {4}}, {5, 4}) == part_time{8, 5});
}

// The tournaments and bounds must find the part of the contract, also among equal times, under
// limits of the counts, and with loads that leave 64 bits.
TEMPLATE_TEST_CASE_SIG("lpt places each sample where its time is smallest", "",
                       ((std::size_t R), R), 1, 2) {
  std::size_t unequal = 0;
  for (std::uint64_t seed = 0; seed != 120; ++seed) {
    int const bits = seed % 3 == 0 ? 3 : (seed % 3 == 1 ? 20 : 55);
    random_instance<R> const given(seed, 7 + seed % 90, 2 + seed % 23, bits);
    part_speeds const speeds("f", given.speeds, given.speeds.size());
    if (speeds.are_equal()) continue;
    ++unequal;
    // The shares of the sums, which are the costs of several kinds.
    auto const costs = omnibal::detail::measure_costs("f", given.costs, std::identity{});
    for (auto const policy :
         {omnibal::count_policy::any, omnibal::count_policy::at_most_one_apart}) {
      INFO("seed " << seed);
      REQUIRE(omnibal::lpt(given.costs, speeds.size(), std::identity{},
                           {.count = policy, .speeds = given.speeds}) ==
              naive_lpt(costs, speeds, policy));
    }
  }
  CHECK(unequal > 80);
}

// Speeds that do not differ must change nothing.
TEST_CASE("lpt with equal speeds is lpt") {
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    random_instance<1> const given(seed, 60, 1 + seed % 9, 20);
    std::size_t const parts = given.speeds.size();
    std::vector<double> const one{0.3};
    std::vector<double> const all(parts, 0.3);
    auto const expected = omnibal::lpt(given.costs, parts);
    CHECK(omnibal::lpt(given.costs, parts, std::identity{}, {.speeds = one}) == expected);
    CHECK(omnibal::lpt(given.costs, parts, std::identity{}, {.speeds = all}) == expected);
  }
}

// The errors of speeds must name the function.
TEST_CASE("lpt refuses wrong speeds by name") {
  std::vector<int> const costs{1, 2, 3};
  std::vector<double> const speeds{1.0, 0.0};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::lpt(costs, 2, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::lpt: options.speeds[1] is 0, must be positive and finite");
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(omnibal::lpt(costs, 3, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::lpt: options.speeds has 2 values for 3 parts");
}

// The counts of equal samples must be in proportion to the speeds, rounded so that the largest time
// is smallest.
TEST_CASE("lpt with speeds brings the largest time to the bound") {
  std::vector<int> const costs(65, 10);
  std::vector<double> const speeds{1.5, 1.5, 1.0, 1.0};
  auto const parts = omnibal::lpt(costs, 4, std::identity{}, {.speeds = speeds});
  std::vector<std::size_t> counts;
  for (auto const& part : parts) counts.push_back(part.size());
  CHECK(counts == std::vector<std::size_t>{20, 19, 13, 13});
}

// Any start must end at the bound if there are many samples, for three mixes of speeds, and the
// share of the bound must be the one that the pages state.
TEST_CASE("refine_parts with speeds ends within 1e-4 of the bound") {
  std::vector<std::vector<double>> const mixes{
      {1.5, 1.0}, {1, 1, 1, 1, 1, 1, 1, 0.8}, {0.51, 0.77, 1.93, 1.2, 1.41, 0.93, 1.66, 1.08}};
  for (auto const& mix : mixes) {
    std::vector<double> given(16);
    for (std::size_t p = 0; p != 16; ++p) given[p] = mix[p % mix.size()];
    part_speeds const speeds("f", given, 16);
    for (auto const shape : {shapes::uniform, shapes::log_normal, shapes::heavy_tail}) {
      for (std::uint64_t seed = 0; seed != 5; ++seed) {
        auto const costs = costs_of(shape, 64 * 16, seed);
        auto const order = omnibal::detail::largest_first(costs);
        part_time const bound = omnibal::detail::min_time(costs, std::span(order), speeds);
        for (bool const is_lpt : {true, false}) {
          auto const start = is_lpt ? omnibal::lpt(costs, 16, std::identity{}, {.speeds = given})
                                    : omnibal::lpt(costs, 16);
          auto const refined =
              omnibal::refine_parts(costs, start, std::identity{}, {.speeds = given});
          std::vector<std::uint32_t> part_of(costs.size());
          for (std::uint32_t p = 0; p != 16; ++p) {
            for (std::uint32_t const sample : refined[p]) part_of[sample] = p;
          }
          part_time const largest =
              omnibal::detail::largest_time(costs, std::span(part_of), speeds);
          INFO("shape " << static_cast<int>(shape) << ", seed " << seed);
          CHECK(largest.value() <= 1.0001 * bound.value());
        }
      }
    }
  }
}

// The times are equal if half a unit moves. A whole unit helps too, and a swap of equal samples
// does not.
TEST_CASE("refine_parts with speeds finds an exchange of the last unit") {
  std::vector<int> const costs{6, 4, 6, 5, 17};
  std::vector<double> const speeds{1, 3};
  omnibal::grouping const parts{{0, 2, 5}, {0, 1, 2, 3, 4}};
  auto const refined =
      omnibal::refine_parts(costs, parts, std::identity{},
                            {.counts = omnibal::part_counts::kept, .splits = 0, .speeds = speeds});
  CHECK(refined == omnibal::grouping{{0, 2, 5}, {1, 3, 0, 2, 4}});
}

// Speeds that do not differ must change nothing, with splits and with several kinds too.
TEMPLATE_TEST_CASE_SIG("refine_parts with equal speeds is refine_parts", "", ((std::size_t R), R),
                       1, 2) {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    random_instance<R> const given(seed, 60, 1 + seed % 9, 20);
    std::size_t const parts = given.speeds.size();
    std::vector<double> const one{7.0};
    std::vector<double> const all(parts, 0.3);
    auto const start = omnibal::lpt(given.costs, parts, std::identity{}, {.speeds = given.speeds});
    auto const expected = omnibal::refine_parts(given.costs, start);
    CHECK(omnibal::refine_parts(given.costs, start, std::identity{}, {.speeds = one}) == expected);
    CHECK(omnibal::refine_parts(given.costs, start, std::identity{}, {.speeds = all}) == expected);
  }
}

// The errors of speeds must name the function.
TEST_CASE("refine_parts refuses wrong speeds by name") {
  std::vector<int> const costs{1, 2, 3};
  std::vector<double> const speeds{1.0, -2.0};
  auto const start = omnibal::lpt(costs, 2);
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(
              omnibal::refine_parts(costs, start, std::identity{}, {.speeds = speeds}));
        }) == "omnibal::refine_parts: options.speeds[1] is -2, must be positive and finite");
}

// Shares of several kinds must be divided by speeds too, and proofs must be right for them.
TEST_CASE("balance_optimally with speeds finds the best of all assignments of two kinds") {
  for (std::uint64_t seed = 1; seed != 40; ++seed) {
    random_instance<2> const given(seed, 1 + seed % 6, 2 + seed % 2, 6);
    std::size_t const parts = given.speeds.size();
    part_speeds const speeds("f", given.speeds, parts);
    if (speeds.are_equal()) continue;
    auto const costs = omnibal::detail::measure_costs("f", given.costs, std::identity{});
    part_time least{std::numeric_limits<std::int64_t>::max(), 1};
    for_each_assignment(costs.size(), parts, [&](std::vector<std::uint32_t> const& part_of) {
      least = std::min(least, omnibal::detail::largest_time(costs, std::span(part_of), speeds));
    });
    auto const best =
        omnibal::balance_optimally(given.costs, parts, std::identity{}, {.speeds = given.speeds});
    INFO("seed " << seed);
    CHECK(best.proven);
    double const load = least.value() * static_cast<double>(speeds.largest()) * 0x1p-52;
    CHECK(best.largest_load == load);
    CHECK(best.lower_bound == load);
  }
}

// Speeds that do not differ must change nothing, and wrong speeds are named.
TEST_CASE("balance_optimally with equal speeds is balance_optimally") {
  for (std::uint64_t seed = 0; seed != 30; ++seed) {
    random_instance<1> const given(seed, 12, 1 + seed % 5, 20);
    std::size_t const parts = given.speeds.size();
    std::vector<double> const one{7.0};
    std::vector<double> const all(parts, 0.3);
    auto const expected = omnibal::balance_optimally(given.costs, parts);
    CHECK(omnibal::balance_optimally(given.costs, parts, std::identity{}, {.speeds = one}) ==
          expected);
    CHECK(omnibal::balance_optimally(given.costs, parts, std::identity{}, {.speeds = all}) ==
          expected);
  }
  std::vector<int> const costs{9, 8, 7};
  std::vector<double> const wrong{0.3, 0.3, -0.3};
  CHECK(test::error_text<std::invalid_argument>([&] {
          static_cast<void>(
              omnibal::balance_optimally(costs, 3, std::identity{}, {.speeds = wrong}));
        }) == "omnibal::balance_optimally: options.speeds[2] is -0.3, must be positive and finite");
}
