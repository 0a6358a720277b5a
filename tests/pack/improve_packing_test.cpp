// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "error_text.hpp"
#include "packing_digest.hpp"
#include "packing_faults.hpp"
#include "samples.hpp"

#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

template <std::size_t R, class T>
using demands = std::vector<omnibal::resources<R, T>>;

/// The sum of the squares of the loads as shares of the capacity.
template <std::size_t R, class T>
double unevenness(omnibal::grouping const& groups, demands<R, T> const& samples,
                  omnibal::resources<R, T> const& capacity) {
  double sum = 0.0;
  for (std::size_t g = 0; g != groups.size(); ++g) {
    for (std::size_t r = 0; r != R; ++r) {
      double share = 0.0;
      for (std::uint32_t const i : groups[g]) {
        share += static_cast<double>(samples[i][r]) / static_cast<double>(capacity[r]);
      }
      sum += share * share;
    }
  }
  return sum;
}

template <std::size_t R, class T>
void check_improved(demands<R, T> const& samples, omnibal::resources<R, T> const& capacity,
                    omnibal::packing const& start,
                    omnibal::improve_packing_options const& options = {}) {
  auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start, options);
  CHECK(test::fault(result, samples, capacity) == "");
  auto const spare =
      static_cast<std::size_t>(static_cast<double>(start.groups.size()) * options.spare_groups);
  CHECK(result.groups.size() <= start.groups.size() + spare);
  for (std::size_t g = 0; g != result.groups.size(); ++g) CHECK(!result.groups[g].empty());
  CHECK(result.report.lower_bound >= start.report.lower_bound);
  if (result.groups.size() == start.groups.size()) {
    CHECK(unevenness(result.groups, samples, capacity) <=
          unevenness(start.groups, samples, capacity) * (1 + 1e-8) + 1e-8);
  }
  CHECK(omnibal::improve_packing(samples, std::identity{}, capacity, start, options) == result);
}

template <std::size_t R, class T>
void check_all_starts(demands<R, T> const& samples, omnibal::resources<R, T> const& capacity) {
  check_improved(samples, capacity, omnibal::next_fit(samples, std::identity{}, capacity));
  check_improved(samples, capacity, omnibal::isf(samples, std::identity{}, capacity, {.rounds = 3}),
                 {.passes = 9, .even_passes = 0, .seed = 7});
  check_improved(samples, capacity,
                 omnibal::best_fit_decreasing(samples, std::identity{}, capacity), {.passes = 0});
  check_improved(samples, capacity, omnibal::next_fit(samples, std::identity{}, capacity),
                 {.passes = 2, .spare_groups = 0.25});
}

template <class T, std::size_t R>
demands<R, T> converted(demands<R, std::int64_t> const& samples, T unit) {
  demands<R, T> result(samples.size());
  for (std::size_t i = 0; i != samples.size(); ++i) {
    for (std::size_t r = 0; r != R; ++r) result[i][r] = static_cast<T>(samples[i][r]) * unit;
  }
  return result;
}

/// Three or four of them fill a group, and best fit wastes more than a percent.
demands<1, std::int64_t> middling_samples(std::size_t count, std::uint64_t seed) {
  test::random_amounts random(seed);
  return test::make_samples<1>(count,
                               [&](std::size_t, std::size_t) { return random.between(800, 1500); });
}

std::string error_of(demands<1, std::int64_t> const& samples, omnibal::packing const& start) {
  return test::error_text<std::invalid_argument>([&] {
    return omnibal::improve_packing(samples, std::identity{}, omnibal::resources{10}, start);
  });
}

bool names(std::string const& error, std::string const& part) {
  INFO(error);
  return error.find("omnibal::improve_packing") != std::string::npos &&
         error.find(part) != std::string::npos;
}

}  // namespace

TEMPLATE_TEST_CASE("improve_packing is sound and never worse", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::all_sets<TestType::value>(11, 150)) {
    INFO(set.name);
    check_all_starts(set.samples, set.capacity);
  }
}

TEMPLATE_TEST_CASE("improve_packing is sound for floating-point numbers", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  constexpr std::size_t kinds = TestType::value;
  for (auto const& set : test::small_sets<kinds>(12, 120)) {
    for (double const unit : {0.125, 0.1, 1e-300, 1e280}) {
      INFO(set.name << " in units of " << unit);
      auto const capacity = converted<double, kinds>({set.capacity}, unit).front();
      check_all_starts(converted<double, kinds>(set.samples, unit), capacity);
    }
  }
}

TEST_CASE("improve_packing never goes below the fewest groups") {
  test::random_amounts random(13);
  for (int i = 0; i != 200; ++i) {
    omnibal::resources<2> const capacity{random.between(5, 30), random.between(5, 30)};
    auto const samples = test::make_samples<2>(
        8, [&](std::size_t, std::size_t r) { return random.between(0, capacity[r] * 2 / 3); });
    auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
    auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start);
    std::size_t const fewest = test::min_groups(samples, capacity);
    CHECK(result.groups.size() >= fewest);
    CHECK(result.report.lower_bound <= fewest);
  }
}

TEST_CASE("improve_packing does not take the lower bound of a start under a smaller capacity") {
  std::vector<int> const samples{3, 3, 2};
  auto const start = omnibal::next_fit(samples, std::identity{}, 3);
  CHECK(start.report.lower_bound == 3);
  auto const result = omnibal::improve_packing(samples, std::identity{}, 8, start);
  CHECK(result.report.lower_bound == 1);
}

TEST_CASE("improve_packing finds groups that best fit does not find") {
  omnibal::resources<1> const capacity{4096};
  auto const samples = middling_samples(5000, 14);
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start);
  auto const bound = static_cast<double>(result.report.lower_bound);
  CHECK(static_cast<double>(start.groups.size()) > 1.02 * bound);
  CHECK(static_cast<double>(result.groups.size()) < 1.01 * bound);

  SECTION("also where sums do not meet the capacity exactly") {
    test::random_amounts random(15);
    auto noisy = samples;
    for (auto& sample : noisy) sample[0] = (sample[0] << 28) + random.between(0, (1 << 28) - 1);
    omnibal::resources<1> const large{capacity[0] << 28};
    auto const packed = omnibal::best_fit_decreasing(noisy, std::identity{}, large);
    auto const better = omnibal::improve_packing(noisy, std::identity{}, large, packed);
    CHECK(test::fault(better, noisy, large) == "");
    CHECK(static_cast<double>(better.groups.size()) <
          0.995 * static_cast<double>(packed.groups.size()));
  }
}

TEST_CASE("improve_packing finds the best packing of triples that fill their groups exactly") {
  // Random triples that add up to the capacity: one group for each of them is the best packing.
  test::random_amounts random(16);
  demands<2, std::int64_t> samples;
  std::size_t const triples = 300;
  for (std::size_t i = 0; i != triples; ++i) {
    std::int64_t const first = random.between(200, 500);
    std::int64_t const second = random.between(200, 400);
    samples.insert(samples.end(), {{first, 3}, {second, 3}, {1000 - first - second, 2}});
  }
  omnibal::resources<2> const capacity{1000, 8};
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  auto const result =
      omnibal::improve_packing(samples, std::identity{}, capacity, start, {.passes = 200});
  CHECK(start.groups.size() > triples + 6);
  CHECK(result.groups.size() <= triples + 3);
}

TEST_CASE("improve_packing is better the longer it runs, and may be ended after any pass") {
  omnibal::resources<1> const capacity{4096};
  auto const samples = middling_samples(2000, 17);
  auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
  std::vector<omnibal::improve_packing_progress> seen;
  auto const run = [&](std::size_t passes, auto const& go_on) {
    return omnibal::improve_packing(samples, std::identity{}, capacity, start,
                                    {.passes = passes, .even_passes = 0}, go_on);
  };
  run(12, [&](omnibal::improve_packing_progress const& progress) {
    seen.push_back(progress);
    return true;
  });
  REQUIRE(seen.size() == 12);
  for (std::size_t i = 0; i != seen.size(); ++i) {
    CHECK(seen[i].passes == i + 1);
    CHECK(seen[i].groups <= (i == 0 ? start.groups.size() : seen[i - 1].groups));
    auto const stopped = run(100, [&](auto const& progress) { return progress.passes <= i; });
    CHECK(stopped.groups.size() == seen[i].groups);
    CHECK(stopped == run(i + 1, [](auto const&) { return true; }));
    CHECK(stopped.report.rounds == start.report.rounds + i + 1);
    CHECK(stopped.report.item_rounds == start.report.item_rounds + 2000 * (i + 1));
  }
  CHECK(seen.back().groups < start.groups.size());
}

TEST_CASE("improve_packing stops at the lower bound") {
  demands<1, std::int64_t> const samples(100, omnibal::resources<1>{5});
  omnibal::resources<1> const capacity{10};
  auto start = omnibal::next_fit(samples, std::identity{}, capacity);
  int passes = 0;
  auto const count = [&](omnibal::improve_packing_progress const&) { return ++passes != 0; };
  CHECK(omnibal::improve_packing(samples, std::identity{}, capacity, start, {}, count)
            .groups.size() == 50);
  CHECK(passes == 0);

  // Empty groups do not count.
  start.groups.close();
  CHECK(omnibal::improve_packing(samples, std::identity{}, capacity, start, {}, count)
            .groups.size() == 50);
  CHECK(passes == 0);
}

TEST_CASE("improve_packing evens the loads where groups cannot be fewer") {
  SECTION("one resource") {
    demands<1, std::int64_t> const samples(31, omnibal::resources<1>{10});
    omnibal::resources<1> const capacity{100};
    auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
    REQUIRE(start.groups.size() == 4);
    auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start);
    for (std::size_t g = 0; g != 4; ++g) {
      CHECK(result.groups[g].size() >= 7);
      CHECK(result.groups[g].size() <= 8);
    }
  }
  SECTION("two resources, each by itself uneven while their sum is even") {
    demands<2, std::int64_t> samples;
    for (int i = 0; i != 8; ++i) samples.push_back({10, 0});
    for (int i = 0; i != 8; ++i) samples.push_back({0, 10});
    omnibal::packing start;
    start.groups =
        omnibal::grouping({0, 8, 16}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    omnibal::resources<2> const capacity{100, 100};
    auto const result =
        omnibal::improve_packing(samples, std::identity{}, capacity, start, {.passes = 0});
    CHECK(unevenness(result.groups, samples, capacity) == Approx(4 * 0.16));
  }
  SECTION("two resources, the first even from the beginning") {
    demands<2, std::int64_t> const samples{{1, 45}, {1, 45}, {1, 5},  {1, 5},
                                           {1, 5},  {1, 5},  {1, 45}, {1, 45}};
    omnibal::packing start;
    start.groups = omnibal::grouping({0, 2, 4, 6, 8}, {0, 1, 2, 3, 4, 5, 6, 7});
    omnibal::resources<2> const capacity{2, 100};
    auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start);
    CHECK(unevenness(result.groups, samples, capacity) == Approx(4 * (1.0 + 0.25)));
  }
  SECTION("not at all on request") {
    demands<1, std::int64_t> const samples(31, omnibal::resources<1>{10});
    omnibal::resources<1> const capacity{100};
    auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
    auto const result = omnibal::improve_packing(samples, std::identity{}, capacity, start,
                                                 {.passes = 0, .even_passes = 0});
    CHECK(result.groups == start.groups);
  }
}

TEST_CASE("improve_packing evens loads in every resource with a few spare groups") {
  // Images are loose: best fit fills groups with tokens, and in images they vary by a third.
  test::random_amounts random(19);
  auto const samples = test::make_samples<2>(6000, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.between(0, 5) : random.between(128, 2176);
  });
  omnibal::resources<2> const capacity{40, 17000};
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  auto const even = [&](double spare) {
    return omnibal::improve_packing(samples, std::identity{}, capacity, start,
                                    {.passes = 4, .even_passes = 128, .spare_groups = spare});
  };
  auto const variation = [&](omnibal::packing const& packed, std::size_t r) {
    auto const loads = omnibal::group_loads(packed.groups, samples, std::identity{});
    double sum = 0;
    double squares = 0;
    for (auto const& load : loads) {
      sum += static_cast<double>(load[r]);
      squares += static_cast<double>(load[r]) * static_cast<double>(load[r]);
    }
    auto const count = static_cast<double>(loads.size());
    return std::sqrt(std::max(0.0, squares * count / (sum * sum) - 1));
  };
  auto const without = even(0);
  auto const with = even(0.01);
  CHECK(test::fault(with, samples, capacity) == "");
  CHECK(with.groups.size() == without.groups.size() + without.groups.size() / 100);
  CHECK(variation(start, 0) > 0.1);
  CHECK(variation(without, 0) > 0.05);
  CHECK(variation(with, 0) < 0.03);
  CHECK(variation(with, 1) < 0.005);
}

TEST_CASE("improve_packing adds no more groups than asked, and none without samples") {
  demands<1, std::int64_t> const samples{{4}, {4}, {4}, {4}, {4}, {4}};
  omnibal::resources<1> const capacity{8};
  auto const start = omnibal::next_fit(samples, std::identity{}, capacity);
  auto const groups = [&](double spare, std::size_t even_passes) {
    omnibal::improve_packing_options const options{.even_passes = even_passes,
                                                   .spare_groups = spare};
    return omnibal::improve_packing(samples, std::identity{}, capacity, start, options)
        .groups.size();
  };
  REQUIRE(start.groups.size() == 3);
  CHECK(groups(0.33, 16) == 3);
  CHECK(groups(0.34, 16) == 4);
  CHECK(groups(1.0, 16) == 6);
  CHECK(groups(1.0, 0) == 3);
  demands<1, std::int64_t> const alone{{8}, {8}};
  auto const full = omnibal::next_fit(alone, std::identity{}, capacity);
  CHECK(omnibal::improve_packing(alone, std::identity{}, capacity, full, {.spare_groups = 1})
            .groups == full.groups);
}

TEST_CASE("improve_packing takes degenerate packings") {
  omnibal::resources<1> const capacity{10};
  auto const improved = [&](demands<1, std::int64_t> const& samples,
                            omnibal::packing const& start) {
    return omnibal::improve_packing(samples, std::identity{}, capacity, start);
  };
  CHECK(improved({}, {}).groups.empty());
  omnibal::packing const only_oversized{{}, {0, 1}, {}};
  CHECK(improved({{11}, {12}}, only_oversized).oversized == std::vector<std::uint32_t>{0, 1});
  omnibal::packing const with_empty_groups{{{0, 0, 1, 1}, {0}}, {}, {}};
  CHECK(improved({{3}}, with_empty_groups).groups == omnibal::grouping({0, 1}, {0}));
  omnibal::packing const of_nothing{{{0, 1, 2, 3}, {0, 1, 2}}, {}, {}};
  CHECK(improved({{0}, {0}, {0}}, of_nothing).groups.size() == 1);
}

TEST_CASE("improve_packing refuses what is not a packing of the samples") {
  demands<1, std::int64_t> const samples{{4}, {5}, {6}, {11}};
  auto const of = [](std::vector<std::uint32_t> offsets, std::vector<std::uint32_t> items,
                     std::vector<std::uint32_t> oversized) {
    return omnibal::packing{{std::move(offsets), std::move(items)}, std::move(oversized), {}};
  };
  CHECK(error_of(samples, of({0, 2, 3}, {0, 1, 2}, {3})) == "no error");
  CHECK(names(error_of(samples, of({0, 2, 3}, {0, 1, 1}, {3})), "start names 1 twice"));
  CHECK(names(error_of(samples, of({0, 2, 3}, {0, 1, 4}, {3})), "names 4, there are 4"));
  CHECK(names(error_of(samples, of({0, 2, 3}, {0, 1, 3}, {3})), "start names 3 twice"));
  CHECK(names(error_of(samples, of({0, 2}, {0, 1}, {3})), "start has 3 of 4 samples"));
  CHECK(names(error_of(samples, of({0, 1, 3}, {0, 1, 2}, {3})),
              "start.groups[1] takes 5 and 6 of sample 2 in resource 0, must be at most 10"));
  demands<2, std::int64_t> const wide{{1, 6 << 20}, {1, 4 << 20}, {1, 2 << 20}};
  CHECK(names(test::error_text<std::invalid_argument>([&] {
                return omnibal::improve_packing(wide, std::identity{},
                                                omnibal::resources{9, 11 << 20},
                                                of({0, 3}, {0, 1, 2}, {}));
              }),
              "start.groups[0] takes 10485760 and 2097152 of sample 2 in resource 1, must be at "
              "most 10485760"));
  CHECK(names(error_of(samples, of({0, 2, 3}, {0, 1, 2}, {})), "0 oversized"));
  CHECK(names(error_of(samples, of({0, 2}, {0, 1}, {2, 3})), "2 oversized"));
  CHECK(names(error_of({{4}, {-5}}, of({0, 2}, {0, 1}, {})), "sample 1 is -5"));
  for (double const spare : {-0.1, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK(names(test::error_text<std::invalid_argument>([&] {
                  return omnibal::improve_packing(samples, std::identity{}, omnibal::resources{10},
                                                  of({0, 2, 3}, {0, 1, 2}, {3}),
                                                  {.spare_groups = spare});
                }),
                "must be in [0, 1]"));
  }
}

TEST_CASE("improve_packing gives a golden result") {
  auto const samples = middling_samples(1000, 18);
  omnibal::resources<1> const capacity{4096};
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  CHECK(test::digest(omnibal::improve_packing(samples, std::identity{}, capacity, start)) ==
        0x38c3db8dfc718219);
}

static_assert(std::invocable<omnibal::improve_packing_fn, demands<2, std::int64_t>, std::identity,
                             omnibal::resources<2>, omnibal::packing>);
static_assert(!std::invocable<omnibal::improve_packing_fn, demands<2, std::int64_t>, std::identity,
                              omnibal::resources<3>, omnibal::packing>);
static_assert(!std::invocable<omnibal::improve_packing_fn, demands<2, std::int64_t>, std::identity,
                              omnibal::resources<2>, omnibal::grouping>);
static_assert(omnibal::progress_predicate<bool (*)(omnibal::improve_packing_progress const&)>);
static_assert(!omnibal::progress_predicate<void (*)(omnibal::improve_packing_progress const&)>);
