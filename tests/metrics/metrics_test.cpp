// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"
#include "error_text.hpp"

#include <omnibal/metrics.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <list>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::dist_ratio;
using omnibal::grouping;
using omnibal::imbalance;
using omnibal::make_steps;
using omnibal::pad_ratio;
using omnibal::resources;
using omnibal::steps;
using omnibal::utilization;
using test::error_text;

using numbers = std::vector<std::int64_t>;
using reals = std::vector<double>;
using loads = std::vector<resources<2>>;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Function, class... Arguments>
inline constexpr bool takes = std::is_invocable_v<Function const&, Arguments const&...>;
static_assert(takes<omnibal::pad_ratio_fn, std::list<std::uint8_t>>);
static_assert(!takes<omnibal::pad_ratio_fn, std::vector<bool>>);
static_assert(!takes<omnibal::pad_ratio_fn, loads>);
static_assert(!takes<omnibal::pad_ratio_fn, grouping, std::list<int>>);
static_assert(!takes<omnibal::dist_ratio_fn, std::vector<std::string>>);
static_assert(!takes<omnibal::dist_ratio_fn, steps, std::list<int>>);
static_assert(takes<omnibal::utilization_fn, loads, resources<2, double>>);
static_assert(!takes<omnibal::utilization_fn, loads, resources<3>>);
static_assert(!takes<omnibal::utilization_fn, loads, int>);

template <class Function, class... Arguments>
using result = std::invoke_result_t<Function const&, Arguments const&...>;
static_assert(std::is_same_v<result<omnibal::dist_ratio_fn, numbers>, double>);
static_assert(std::is_same_v<result<omnibal::dist_ratio_fn, loads>, resources<2, double>>);
static_assert(std::is_same_v<result<omnibal::dist_ratio_fn, steps, numbers>, double>);
static_assert(std::is_same_v<result<omnibal::imbalance_fn, loads>, resources<2, double>>);
static_assert(
    std::is_same_v<result<omnibal::utilization_fn, loads, resources<2>>, resources<2, double>>);

static_assert(pad_ratio(std::array{4, 2, 0}) == 0.5);
static_assert(imbalance(std::array{3, 1}) == 1.5);

/// Between 1 and 20 numbers up to a limit that varies, so that zeros and ties are frequent.
numbers random_totals(std::uint64_t round) {
  omnibal::rng::engine words(17, round);
  numbers totals(omnibal::rng::below(words, 20) + 1);
  std::uint64_t const limit = std::uint64_t{1} << omnibal::rng::below(words, 31);
  for (auto& total : totals) {
    total = static_cast<std::int64_t>(omnibal::rng::below(words, limit));
  }
  return totals;
}

}  // namespace

TEST_CASE("the pad ratio is the share of padding in a batch") {
  struct {
    numbers lengths;
    double expected;
  } const rows[] = {
      {{}, 0.0},
      {{7}, 0.0},
      {{7, 7, 7}, 0.0},
      {{0, 0}, 0.0},
      {{4, 3, 1}, 4.0 / 12.0},
      {{1, 3, 4}, 4.0 / 12.0},
      {{0, 0, 0, 5}, 0.75},
      {{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0.9},
  };
  for (auto const& row : rows) {
    CAPTURE(row.lengths);
    CHECK(pad_ratio(row.lengths) == row.expected);
  }
}

TEST_CASE("the pad ratio of groups is the mean over those that have samples") {
  struct sample {
    std::uint16_t tokens;
    int unused;
  };
  std::vector<sample> const samples{{8, 0}, {2, 0}, {5, 0}, {4, 0}, {1, 0}};
  CHECK(pad_ratio(grouping({0, 2, 2, 5}, {0, 1, 3, 4, 2}), samples, &sample::tokens) ==
        (6.0 / 16.0 + 5.0 / 15.0) / 2.0);
  CHECK(pad_ratio(grouping({0, 0, 0}, {}), samples, &sample::tokens) == 0.0);
  CHECK(pad_ratio(grouping(), numbers{}) == 0.0);
  CHECK(pad_ratio(grouping({0, 2}, {0, 1}), reals{0.5, 1.0}) == 0.25);
}

TEST_CASE("the dist ratio is one minus the mean over the largest") {
  struct {
    numbers totals;
    double expected;
  } const rows[] = {
      {{}, 0.0},
      {{9}, 0.0},
      {{9, 9}, 0.0},
      {{0, 0, 0}, 0.0},
      {{10, 5}, 0.25},
      {{8, 0}, 0.5},
      {{100, 90, 80, 70}, 60.0 / 400.0},
  };
  for (auto const& row : rows) {
    CAPTURE(row.totals);
    CHECK(dist_ratio(row.totals) == row.expected);
  }
  CHECK(dist_ratio(reals{1.0, 0.5, 0.75, 0.75}) == 0.25);
}

TEST_CASE("the dist ratio looks at each resource by itself") {
  CHECK(dist_ratio(loads{{10, 300}, {5, 400}, {0, 100}}) == resources{15.0 / 30.0, 400.0 / 1200.0});
  CHECK(dist_ratio(loads{}) == resources{0.0, 0.0});
}

TEST_CASE("a difference of one is seen among the largest integers") {
  std::int64_t const half = largest / 2;
  CHECK(dist_ratio(numbers{half, half + 1}) > 0.0);
  CHECK(dist_ratio(numbers{half, half}) == 0.0);
}

TEST_CASE("the dist ratio of a schedule is the mean over its steps") {
  loads const of_groups{{4, 100}, {2, 100}, {6, 50}, {3, 0}, {9, 9}};
  SECTION("one group a cell") {
    CHECK(dist_ratio(make_steps({{0}, {1}, {2}, {3}}, 2), of_groups) ==
          resources{(2.0 / 8.0 + 3.0 / 12.0) / 2.0, (0.0 + 50.0 / 100.0) / 2.0});
  }
  SECTION("groups of a cell add up") {
    CHECK(dist_ratio(make_steps({{0, 1}, {2, 3}}, 2), of_groups) ==
          resources{3.0 / 18.0, 150.0 / 400.0});
  }
  SECTION("a rank without groups waits the whole step") {
    CHECK(dist_ratio(make_steps({{0}, {}, {1}}, 3), of_groups) == resources{0.5, 100.0 / 300.0});
  }
  SECTION("an idle step counts as balanced") {
    CHECK(dist_ratio(make_steps({{0}, {}, {}, {}}, 2), of_groups) == resources{0.25, 0.25});
  }
  SECTION("an incomplete step does not count") {
    steps schedule = make_steps({{0}, {1}}, 2);
    schedule.push(4);
    schedule.close();
    CHECK(dist_ratio(schedule, of_groups) == resources{0.25, 0.0});
    schedule.clear();
    schedule.push(0);
    schedule.close();
    CHECK(dist_ratio(schedule, of_groups) == resources{0.0, 0.0});
  }
  SECTION("no steps") { CHECK(dist_ratio(steps(2), of_groups) == resources{0.0, 0.0}); }
  SECTION("weights") {
    CHECK(dist_ratio(make_steps({{0}, {1}}, 2), numbers{10, 5}) == 0.25);
    CHECK(dist_ratio(make_steps({{0}, {1}}, 2), reals{1.0, 0.5}) == 0.25);
  }
}

TEST_CASE("the dist ratio is at least zero, below one and zero where all are equal") {
  for (std::uint64_t round = 0; round != 2000; ++round) {
    numbers const totals = random_totals(round);
    double const ratio = dist_ratio(totals);
    auto const [low, high] = std::minmax_element(totals.begin(), totals.end());
    CAPTURE(totals);
    REQUIRE(ratio >= 0.0);
    REQUIRE(ratio < 1.0);
    REQUIRE((ratio == 0.0) == (*low == *high));
    if (*high > 0) REQUIRE((1.0 - ratio) * imbalance(totals) == Approx(1.0));
  }
}

TEST_CASE("the dist ratio depends on neither order nor unit") {
  for (std::uint64_t round = 0; round != 500; ++round) {
    numbers totals = random_totals(round);
    double const ratio = dist_ratio(totals);
    CAPTURE(totals);
    omnibal::rng::fisher_yates{}(std::span(totals), round);
    REQUIRE(dist_ratio(totals) == ratio);
    for (auto& total : totals) total *= 1000;
    REQUIRE(dist_ratio(totals) == ratio);
    reals fractions;
    for (auto const total : totals) fractions.push_back(static_cast<double>(total) / 1024.0);
    REQUIRE(dist_ratio(fractions) == Approx(ratio));
  }
}

TEST_CASE("the imbalance is the largest over the mean") {
  struct {
    numbers of_parts;
    double expected;
  } const rows[] = {
      {{}, 1.0}, {{5}, 1.0}, {{5, 5, 5}, 1.0}, {{0, 0}, 1.0}, {{7, 0, 0, 0}, 4.0}, {{6, 2}, 1.5},
  };
  for (auto const& row : rows) {
    CAPTURE(row.of_parts);
    CHECK(imbalance(row.of_parts) == row.expected);
  }
  CHECK(imbalance(loads{{6, 0}, {2, 0}, {1, 0}}) == resources{2.0, 1.0});
  CHECK(imbalance(reals{0.5, 0.25, 0.0}) == 2.0);
}

TEST_CASE("the utilization is the used share of the capacity") {
  CHECK(utilization(numbers{10, 5, 0}, 10) == 0.5);
  CHECK(utilization(numbers{}, 10) == 0.0);
  CHECK(utilization(numbers{10, 10}, 8) == 1.25);
  CHECK(utilization(numbers{3, 3}, 4.0) == 0.75);
  CHECK(utilization(reals{0.5, 0.25}, 1) == 0.375);
  CHECK(utilization(loads{{9, 0}, {0, 0}}, resources{9, 4096}) == resources{0.5, 0.0});
}

TEST_CASE("large floating-point weights give finite ratios") {
  reals const large{1e308, 0.0, 0.0};
  CHECK(pad_ratio(large) == Approx(2.0 / 3.0));
  CHECK(dist_ratio(large) == Approx(2.0 / 3.0));
  CHECK(imbalance(large) == Approx(3.0));
  CHECK(utilization(large, 1e308) == Approx(1.0 / 3.0));
}

TEST_CASE("weights must be finite and not negative") {
  grouping const pair({0, 2}, {0, 1});
  steps const step = make_steps({{0}, {1}}, 2);
  for (double const bad : {not_a_number, infinity, -infinity, -0.5}) {
    CAPTURE(bad);
    reals const weights{1.0, bad};
    CHECK_THROWS_AS(pad_ratio(weights), std::invalid_argument);
    CHECK_THROWS_AS(pad_ratio(pair, weights), std::invalid_argument);
    CHECK_THROWS_AS(dist_ratio(weights), std::invalid_argument);
    CHECK_THROWS_AS(dist_ratio(step, weights), std::invalid_argument);
    CHECK_THROWS_AS(imbalance(weights), std::invalid_argument);
    CHECK_THROWS_AS(utilization(weights, 1.0), std::invalid_argument);
  }
  numbers const negative{3, -4};
  std::string const rest = "[1] is -4, must be finite and not negative";
  CHECK(error_text<std::invalid_argument>([&] { (void)pad_ratio(negative); }) ==
        "omnibal::pad_ratio: length" + rest);
  CHECK(error_text<std::invalid_argument>([&] { (void)dist_ratio(negative); }) ==
        "omnibal::dist_ratio: total" + rest);
  CHECK(error_text<std::invalid_argument>([&] { (void)dist_ratio(step, negative); }) ==
        "omnibal::dist_ratio: loads" + rest);
  CHECK(error_text<std::invalid_argument>([&] { (void)imbalance(negative); }) ==
        "omnibal::imbalance: load" + rest);
  CHECK(error_text<std::invalid_argument>([&] { (void)utilization(negative, 1); }) ==
        "omnibal::utilization: load" + rest);
}

TEST_CASE("a capacity must be positive") {
  CHECK(error_text<std::invalid_argument>([] {
          (void)utilization(loads{{1, 2}}, resources{9, 0});
        }) == "omnibal::utilization: capacity[1] is 0, must be positive and finite");
  CHECK_THROWS_AS(utilization(numbers{1}, -1), std::invalid_argument);
  CHECK_THROWS_AS(utilization(numbers{1}, not_a_number), std::invalid_argument);
  CHECK_THROWS_AS(utilization(numbers{}, 0), std::invalid_argument);
}

TEST_CASE("groups and steps must name what exists") {
  CHECK(error_text<std::invalid_argument>([] {
          (void)pad_ratio(grouping({0, 1, 2}, {0, 2}), numbers{4, 5});
        }) == "omnibal::pad_ratio: group 1 has item 2, but there are 2 samples");
  CHECK(error_text<std::invalid_argument>([] {
          (void)dist_ratio(make_steps({{0}, {2}}, 1), numbers{4, 5});
        }) == "omnibal::dist_ratio: step 1 names group 2 of 2");
}

TEST_CASE("a sum above its type is an overflow") {
  numbers const fits{largest - 1, 1};
  CHECK(imbalance(fits) == Approx(2.0));
  for (auto const& weights : {numbers{largest, 1}, numbers{1, largest}}) {
    CHECK_THROWS_AS(pad_ratio(weights), std::overflow_error);
    CHECK_THROWS_AS(pad_ratio(grouping({0, 2}, {0, 1}), weights), std::overflow_error);
    CHECK_THROWS_AS(dist_ratio(weights), std::overflow_error);
    CHECK_THROWS_AS(dist_ratio(make_steps({{0, 1}}, 1), weights), std::overflow_error);
    CHECK_THROWS_AS(dist_ratio(make_steps({{0}, {1}}, 2), weights), std::overflow_error);
    CHECK_THROWS_AS(imbalance(weights), std::overflow_error);
    CHECK_THROWS_AS(utilization(weights, 1), std::overflow_error);
  }
  CHECK_THROWS_AS(imbalance(reals{1e308, 1e308}), std::overflow_error);
  CHECK_THROWS_AS(imbalance(std::vector<std::uint64_t>{~std::uint64_t{0}}), std::invalid_argument);
}

TEST_CASE("metrics allocate nothing") {
  numbers const weights(100, 7);
  grouping const groups({0, 3}, {0, 1, 2});
  steps const schedule = make_steps({{0}, {1, 2}}, 2);
  CHECK(test::allocations_of([&] {
          (void)pad_ratio(weights);
          (void)pad_ratio(groups, weights);
          (void)dist_ratio(weights);
          (void)dist_ratio(schedule, weights);
          (void)imbalance(weights);
          (void)utilization(weights, 10);
        }) == 0);
}
