// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "error_text.hpp"
#include "parts.hpp"
#include "samples.hpp"

#include <omnibal/balance/balance_under_capacity.hpp>
#include <omnibal/balance/lpt.hpp>
#include <omnibal/demand.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::balance_under_capacity;
using omnibal::solve_status;
using omnibal::within_reason;

/// A sample with what it takes and a cost that may have nothing to do with it.
template <std::size_t R, class T = std::int64_t>
struct costed {
  omnibal::resources<R, T> demand;
  std::int64_t cost;
};

template <std::size_t R>
std::vector<costed<R>> with_costs(std::vector<omnibal::resources<R>> const& demands,
                                  std::uint64_t seed) {
  test::random_amounts random(seed);
  std::vector<costed<R>> samples;
  for (auto const& demand : demands) {
    bool const is_alike = seed % 2 == 0;
    samples.push_back({demand, is_alike ? demand[0] >> 24 : random.heavy_tail(1 << 20)});
  }
  return samples;
}

/// True where the samples of every part fit, added up by index.
template <std::size_t R, class T>
bool are_within(omnibal::groups_argument parts, std::vector<costed<R, T>> const& samples,
                omnibal::resources<R, T> const& capacity) {
  for (std::size_t p = 0; p != parts.size(); ++p) {
    omnibal::resources<R, T> load{};
    for (std::uint32_t const item : parts[p]) {
      if constexpr (std::integral<T>) {
        if (!samples[item].demand.fits(capacity - load)) return false;
      }
      load += samples[item].demand;
    }
    if (!load.fits(capacity)) return false;
  }
  return true;
}

template <class Samples>
std::int64_t largest_cost(omnibal::groups_argument parts, Samples const& samples) {
  std::int64_t largest = 0;
  for (std::size_t p = 0; p != parts.size(); ++p) {
    std::int64_t load = 0;
    for (std::uint32_t const item : parts[p]) load += samples[item].cost;
    largest = std::max(largest, load);
  }
  return largest;
}

template <std::size_t R>
auto call(std::vector<costed<R>> const& samples, std::size_t parts,
          omnibal::resources<R> const& capacity,
          omnibal::balance_under_capacity_options const& options = {}) {
  return balance_under_capacity(samples, parts, &costed<R>::cost, &costed<R>::demand, capacity,
                                options);
}

/// What is found is sound, and what is not found has its reason.
template <std::size_t R>
auto checked(std::vector<costed<R>> const& samples, std::size_t parts,
             omnibal::resources<R> const& capacity) {
  auto const result = call(samples, parts, capacity);
  CHECK(call(samples, parts, capacity) == result);
  if (result.status == solve_status::solved) {
    CHECK(result.reason == within_reason::none);
    CHECK(test::parts_fault(result.parts, samples.size(), parts) == "");
    CHECK(test::is_ascending(result.parts));
    CHECK(are_within(result.parts, samples, capacity));
    CHECK(result.largest_load == largest_cost(result.parts, samples));
    CHECK(result.largest_load >= result.lower_bound);
    CHECK(result.parts_needed <= parts);
  } else {
    CHECK(result.parts.empty());
    CHECK((result.reason == within_reason::none) == (result.status == solve_status::not_found));
  }
  if (result.reason == within_reason::sample_above_capacity) {
    CHECK(!samples[result.sample].demand.fits(capacity));
  }
  return result;
}

/// The least largest cost of parts within the capacity, by trying all; nothing where there are
/// none.
template <std::size_t R>
std::optional<std::int64_t> min_cost(std::vector<costed<R>> const& samples, std::size_t parts,
                                     omnibal::resources<R> const& capacity) {
  std::vector<std::size_t> part_of(samples.size(), 0);
  std::optional<std::int64_t> least;
  for (;;) {
    omnibal::grouping tried;
    for (std::size_t p = 0; p != parts; ++p) {
      for (std::uint32_t i = 0; i != samples.size(); ++i) {
        if (part_of[i] == p) tried.push(i);
      }
      tried.close();
    }
    if (are_within(tried, samples, capacity)) {
      std::int64_t const cost = largest_cost(tried, samples);
      if (!least || cost < *least) least = cost;
    }
    std::size_t i = 0;
    while (i != samples.size() && ++part_of[i] == parts) part_of[i++] = 0;
    if (i == samples.size()) return least;
  }
}

}  // namespace

TEMPLATE_TEST_CASE("balance_under_capacity keeps every cap, and finds parts where there are any",
                   "", (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  for (std::size_t const count : {1u, 4u, 9u}) {
    for (auto const& set : test::all_sets<kinds>(count, count)) {
      auto const samples = with_costs(set.samples, count);
      bool const is_oversized =
          std::any_of(set.samples.begin(), set.samples.end(),
                      [&](auto const& demand) { return !demand.fits(set.capacity); });
      std::size_t const fewest = test::min_groups(set.samples, set.capacity);
      for (std::size_t const parts : {1u, 2u, 3u, 5u, 9u}) {
        INFO(set.name << ", " << samples.size() << " samples, " << parts << " parts");
        auto const result = checked(samples, parts, set.capacity);
        CHECK((result.status == solve_status::solved) == (!is_oversized && fewest <= parts));
        CHECK((result.status == solve_status::infeasible) == (is_oversized || fewest > parts));
        CHECK((result.reason == within_reason::sample_above_capacity) == is_oversized);
      }
    }
  }
}

TEMPLATE_TEST_CASE("balance_under_capacity is sound for many samples", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  for (std::size_t const count : {60u, 211u}) {
    for (auto const& set : test::all_sets<kinds>(count, count)) {
      auto const samples = with_costs(set.samples, count);
      for (std::size_t const parts : {7u, 64u, 220u}) {
        INFO(set.name << ", " << samples.size() << " samples, " << parts << " parts");
        auto const result = checked(samples, parts, set.capacity);
        if (parts >= samples.size() && result.reason != within_reason::sample_above_capacity) {
          CHECK(result.status == solve_status::solved);
        }
      }
    }
  }
}

TEST_CASE("balance_under_capacity is close to the best costs under the caps") {
  double sum = 0;
  double worst = 0;
  int count = 0;
  for (std::uint64_t seed = 0; seed != 40; ++seed) {
    for (auto const& set : test::small_sets<2>(seed, 7)) {
      auto const samples = with_costs(set.samples, 2 * seed + 1);
      auto const least = min_cost(samples, 3, set.capacity);
      auto const result = checked(samples, 3, set.capacity);
      CHECK(least.has_value() == (result.status == solve_status::solved));
      if (!least || *least == 0) continue;
      CHECK(result.largest_load >= *least);
      double const ratio = static_cast<double>(result.largest_load) / static_cast<double>(*least);
      sum += ratio;
      worst = std::max(worst, ratio);
      ++count;
    }
  }
  INFO("mean " << sum / count << ", worst " << worst << " of " << count);
  CHECK(sum / count < 1.02);
  CHECK(worst < 1.6);
}

TEST_CASE("balance_under_capacity is as even as lpt where the capacity does not matter") {
  test::random_amounts random(8);
  std::vector<costed<2>> samples(1000);
  for (auto& sample : samples) sample = {{1, 1}, random.heavy_tail(1 << 20)};
  auto const result = checked<2>(samples, 16, {1000, 1000});
  auto const of_lpt = omnibal::lpt(samples, 16, &costed<2>::cost);
  CHECK(result.largest_load <= largest_cost(of_lpt, samples));
}

TEST_CASE("balance_under_capacity evens costs in parts that are nearly full") {
  test::random_amounts random(31);
  std::vector<costed<2>> samples(512);
  for (auto& sample : samples) {
    std::int64_t const tokens = 16 + random.heavy_tail(4000);
    sample = {{random.between(0, 5), tokens}, tokens * tokens};
  }
  std::int64_t tokens = 0;
  for (auto const& sample : samples) tokens += sample.demand[1];
  // Two per cent more room than the samples take, and images that hardly matter.
  omnibal::resources<2> const capacity{120, tokens / 32 + tokens / 1600};
  auto const result = checked(samples, 32, capacity);
  REQUIRE(result.status == solve_status::solved);
  CHECK(static_cast<double>(result.largest_load) < 1.05 * static_cast<double>(result.lower_bound));
}

TEST_CASE("balance_under_capacity proves what is impossible and says why") {
  using sample = costed<1>;
  auto const reason = [](std::vector<sample> const& samples, std::size_t parts) {
    return checked<1>(samples, parts, {10});
  };
  auto const too_large = reason({{{3}, 1}, {{11}, 1}, {{12}, 1}}, 3);
  CHECK(too_large.status == solve_status::infeasible);
  CHECK(too_large.sample == 1);
  auto const too_few = reason({{{6}, 1}, {{6}, 1}, {{6}, 1}}, 2);
  CHECK(too_few.reason == within_reason::too_few_parts);
  CHECK(too_few.parts_needed == 3);
  // 29 of 30 thousand, but with two of the 4s in a part nothing else fits there.
  std::vector<sample> const tight{{{4000}, 1}, {{4000}, 1}, {{4000}, 1}, {{4000}, 1},
                                  {{5000}, 1}, {{5000}, 1}, {{3000}, 1}};
  auto const tried = checked<1>(tight, 3, {10'000});
  CHECK(tried.status == solve_status::infeasible);
  CHECK(tried.reason == within_reason::all_tried);
  auto const stopped = call<1>(tight, 3, {10'000}, {.nodes = 0});
  CHECK(stopped.status == solve_status::not_found);
  CHECK(stopped.reason == within_reason::none);
}

TEST_CASE("balance_under_capacity finds a packing that greedy ways miss") {
  // Only 7 + 3, 6 + 4, 5 + 5 and 4 + 3 + 3 fill four parts of ten.
  std::vector<costed<1>> const samples{{{7}, 1}, {{6}, 9}, {{5}, 2}, {{5}, 8}, {{4}, 3},
                                       {{4}, 7}, {{3}, 5}, {{3}, 4}, {{3}, 6}};
  auto const result = checked<1>(samples, 4, {10});
  CHECK(result.status == solve_status::solved);
}

TEST_CASE(
    "more effort of balance_under_capacity gives no worse parts, and numbers beside it count") {
  test::random_amounts random(5);
  for (int round = 0; round != 60; ++round) {
    std::vector<costed<1>> samples(24);
    std::int64_t sum = 0;
    for (auto& sample : samples) {
      sample = {{random.between(1, 1000)}, random.between(1, 1000)};
      sum += sample.demand[0];
    }
    omnibal::resources<1> const capacity{sum / 6 + 20};
    auto const fast = call<1>(samples, 6, capacity, {.effort = omnibal::effort::fast});
    auto const normal = call<1>(samples, 6, capacity, {});
    auto const thorough = call<1>(samples, 6, capacity, {.effort = omnibal::effort::thorough});
    CHECK((fast.status != solve_status::solved || normal.largest_load <= fast.largest_load));
    CHECK((normal.status != solve_status::solved || thorough.largest_load <= normal.largest_load));
    CHECK((fast.status != solve_status::solved || normal.status == solve_status::solved));
    CHECK((normal.status != solve_status::solved || thorough.status == solve_status::solved));
    auto const numbers = call<1>(samples, 6, capacity,
                                 {.effort = omnibal::effort::thorough,
                                  .exchanges = 10'000,
                                  .splits = 64,
                                  .passes = (1 << 17) / (64 + 24),
                                  .nodes = 20'000});
    CHECK(numbers == fast);
  }
}

TEST_CASE("balance_under_capacity takes floating-point costs and demands, and keeps the caps") {
  test::random_amounts random(77);
  auto const drawn = [&] { return static_cast<double>(random.between(1, 1'000'000)) / 3e6; };
  for (int round = 0; round != 40; ++round) {
    std::vector<costed<2, double>> samples(40);
    double sum[2] = {0, 0};
    for (auto& sample : samples) {
      sample = {{drawn(), drawn()}, random.between(1, 1000)};
      for (std::size_t r = 0; r != 2; ++r) sum[r] += sample.demand[r];
    }
    omnibal::resources<2, double> const capacity{sum[0] / 7.8, sum[1] / 7.8};
    auto const cost = [](auto const& sample) { return 0.1 * static_cast<double>(sample.cost); };
    auto const result = balance_under_capacity(samples, 8, cost, &costed<2, double>::demand,
                                               capacity, {.nodes = 1000});
    if (result.status == solve_status::infeasible) {
      CHECK(result.reason == within_reason::sample_above_capacity);
    }
    if (result.status != solve_status::solved) continue;
    CHECK(test::parts_fault(result.parts, samples.size(), 8) == "");
    CHECK(are_within(result.parts, samples, capacity));
    CHECK(result.largest_load ==
          Approx(0.1 * static_cast<double>(largest_cost(result.parts, samples))));
    CHECK(result.largest_load >= result.lower_bound);
  }
  std::vector<double> const tenths(30, 0.1);
  auto const exact = balance_under_capacity(tenths, 3, std::identity{}, std::identity{}, 1.0);
  CHECK(exact.status == solve_status::solved);
  auto const one_less = balance_under_capacity(tenths, 2, std::identity{}, std::identity{}, 1.0);
  CHECK(one_less.status == solve_status::infeasible);
}

TEST_CASE("balance_under_capacity ends the search for fewer groups where go_on says so") {
  // As few parts as the bound, which no greedy way finds.
  test::random_amounts random(3);
  std::vector<costed<2>> samples(600);
  for (auto& sample : samples) {
    sample = {{random.between(1, 1000), random.between(1, 1000)}, random.between(1, 1000)};
  }
  omnibal::resources<2> const capacity{2000, 2000};
  std::size_t passes = 0;
  auto const call = [&](std::size_t max_passes) {
    passes = 0;
    return balance_under_capacity(
        samples, omnibal::packing_bound(samples, &costed<2>::demand, capacity), &costed<2>::cost,
        &costed<2>::demand, capacity, {}, [&](auto const&) { return ++passes != max_passes; });
  };
  CHECK(call(3).status == solve_status::not_found);
  CHECK(passes == 3);
}

TEST_CASE("balance_under_capacity takes no samples and fewer samples than parts") {
  std::vector<int> const none;
  auto const empty = balance_under_capacity(none, 3, std::identity{}, std::identity{}, 5);
  CHECK(empty.status == solve_status::solved);
  CHECK(empty.parts == omnibal::grouping({0, 0, 0, 0}, {}));
  CHECK(empty.largest_load == 0);
  auto const two =
      balance_under_capacity(std::vector<int>{5, 5}, 3, std::identity{}, std::identity{}, 5);
  CHECK(two.parts == omnibal::grouping({0, 1, 2, 2}, {0, 1}));
}

TEST_CASE("balance_under_capacity names what is wrong") {
  std::vector<double> const samples{1, 2, 3};
  auto const identity = std::identity{};
  auto const has = [](std::string const& text, std::string const& part) {
    INFO(text);
    return text.find("omnibal::balance_under_capacity: ") == 0 &&
           text.find(part) != std::string::npos;
  };
  auto const error_of = [&](std::size_t parts, auto const& cost, auto const& demand,
                            auto const& capacity,
                            omnibal::balance_under_capacity_options const& options = {}) {
    return test::error_text<std::invalid_argument>(
        [&] { return balance_under_capacity(samples, parts, cost, demand, capacity, options); });
  };
  auto const at_3 = [](double value) {
    return [value](double sample) { return sample == 3 ? value : 1.0; };
  };
  constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(has(error_of(0, identity, identity, 5.0), "parts is 0"));
  CHECK(has(error_of(2, at_3(-1), identity, 5.0), "cost[2] is -1"));
  CHECK(has(error_of(2, at_3(not_a_number), identity, 5.0), "cost[2] is"));
  CHECK(has(error_of(2, identity, at_3(-1), 5.0), "demand of sample 2 is -1"));
  CHECK(has(error_of(2, identity, at_3(not_a_number), 5.0), "demand of sample 2 is"));
  CHECK(has(error_of(2, identity, identity, 0.0), "capacity[0] is 0"));
  CHECK(has(error_of(2, identity, identity, not_a_number), "capacity[0] is"));
  for (double const tolerance : {-1.0, not_a_number}) {
    CHECK(
        has(error_of(2, identity, identity, 5.0, {.max_overload = tolerance}), "max_overload is"));
  }
  auto const huge = [](double) { return std::numeric_limits<std::int64_t>::max(); };
  CHECK(has(test::error_text<std::overflow_error>(
                [&] { return balance_under_capacity(samples, 2, huge, identity, 5.0); }),
            "the sum of the costs"));
}

TEST_CASE("balance_under_capacity splits no parts that are more than the exchanges") {
  test::random_amounts random(3);
  std::vector<std::int64_t> costs(6400);
  for (std::int64_t& cost : costs) cost = random.between(1000, 200'000);
  auto const parts_with = [&costs](std::size_t exchanges, std::size_t splits) {
    return balance_under_capacity(costs, 800, std::identity{}, std::identity{},
                                  std::int64_t{1} << 40,
                                  {.max_overload = 0, .exchanges = exchanges, .splits = splits})
        .parts;
  };
  CHECK(parts_with(799, 2048) == parts_with(799, 0));
  CHECK(parts_with(4000, 2048) != parts_with(4000, 0));
}

using caller = omnibal::balance_under_capacity_fn;
static_assert(
    std::invocable<caller, std::vector<int>, std::size_t, std::identity, std::identity, int>);
// The capacity has another number of kinds, a cost is resources, samples are no range.
static_assert(!std::invocable<caller, std::vector<int>, std::size_t, std::identity, std::identity,
                              omnibal::resources<2>>);
static_assert(!std::invocable<caller, std::vector<omnibal::resources<2>>, std::size_t,
                              std::identity, std::identity, omnibal::resources<2>>);
static_assert(!std::invocable<caller, int, std::size_t, std::identity, std::identity, int>);

TEST_CASE("balance_under_capacity says the same of capacities at the end of the type") {
  double const largest = std::numeric_limits<double>::max();
  std::vector<double> const shares{.25, .84, .84, .84};
  auto const at = [&](std::vector<double> const& demands, std::size_t parts, double capacity) {
    return balance_under_capacity(
        demands, parts, [](double) { return 1; },
        [capacity](double share) { return share * capacity; }, capacity);
  };
  auto const result = at(shares, 3, largest);
  CHECK(result.status == solve_status::infeasible);
  CHECK(result.reason == within_reason::all_tried);

  // Multiples of 1/64 of the capacity, so that every sum is exact.
  test::random_amounts random(5);
  int infeasible = 0;
  for (int round = 0; round != 2000; ++round) {
    std::vector<double> demands(static_cast<std::size_t>(random.between(1, 8)));
    for (double& one : demands) one = static_cast<double>(random.between(1, 64)) / 64;
    auto const parts = static_cast<std::size_t>(random.between(1, 4));
    auto const expected = at(demands, parts, 1.0);
    auto const found = at(demands, parts, 0x1p1023);
    REQUIRE(found.status == expected.status);
    REQUIRE(found.reason == expected.reason);
    for (std::size_t p = 0; p != found.parts.size(); ++p) {
      double load = 0;
      for (std::uint32_t const sample : found.parts[p]) load += demands[sample];
      REQUIRE(load <= 1.0);
    }
    infeasible += found.reason == within_reason::all_tried ? 1 : 0;
  }
  CHECK(infeasible > 0);
}
