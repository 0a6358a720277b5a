// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/improve_packing.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include <catch.hpp>

namespace {

namespace detail = omnibal::detail;

/// What the best pattern is worth, by trying all of them from a type on.
template <class Sample>
std::int64_t best_worth(std::vector<Sample> const& types, std::vector<std::uint64_t> const& counts,
                        std::vector<std::int64_t> const& prices, Sample const& room,
                        std::size_t type = 0) {
  if (type == types.size()) return 0;
  std::int64_t best = best_worth(types, counts, prices, room, type + 1);
  Sample left = room;
  for (std::int64_t count = 1; count <= static_cast<std::int64_t>(counts[type]); ++count) {
    if (!types[type].fits(left)) break;
    left -= types[type];
    best = std::max(best, prices[type] * count + best_worth(types, counts, prices, left, type + 1));
  }
  return best;
}

/// Runs a pricing over random prices and compares what it finds with all patterns.
template <class Pricing, class Sample>
void check_pricing(Pricing& pricing, test::random_amounts& random, std::vector<Sample> const& types,
                   std::vector<std::uint64_t> const& counts, Sample const& capacity) {
  constexpr std::int64_t one = detail::pattern_master::one;
  std::vector<std::int64_t> prices(types.size());
  for (auto& price : prices) price = random.between(-one / 8, one);
  std::size_t steps = 1'000'000;
  REQUIRE(pricing.run(prices, steps));
  REQUIRE(pricing.best_worth() == std::max(one, best_worth(types, counts, prices, capacity)));
  std::int64_t worth = 0;
  Sample load{};
  for (auto const entry : pricing.best()) {
    REQUIRE(entry.count <= counts[entry.type]);
    worth += prices[entry.type] * entry.count;
    for (std::uint32_t i = 0; i != entry.count; ++i) load += types[entry.type];
  }
  REQUIRE(load.fits(capacity));
  REQUIRE((worth == pricing.best_worth() || (pricing.best().empty() && worth == 0)));
  steps = 3;
  REQUIRE_FALSE(pricing.run(std::vector<std::int64_t>(types.size(), one), steps));
}

template <std::size_t R>
std::size_t bound_of(std::vector<omnibal::resources<R>> const& samples,
                     omnibal::resources<R> const& capacity,
                     omnibal::packing_bound_options const& options) {
  return omnibal::packing_bound(samples, std::identity{}, capacity, options);
}

constexpr omnibal::packing_bound_options thorough{.effort = omnibal::effort::thorough};
constexpr omnibal::packing_bound_options functions{.effort = omnibal::effort::thorough,
                                                   .pattern_steps = 0};
constexpr omnibal::packing_bound_options patterns{.pattern_steps = std::size_t{1} << 24};

}  // namespace

TEST_CASE("scalar_pricing finds the pattern that is worth most") {
  test::random_amounts random(1);
  for (int repeat = 0; repeat != 3000; ++repeat) {
    std::int64_t const capacity = random.between(1, 60);
    std::vector<omnibal::resources<1>> types;
    std::vector<std::uint64_t> values;
    std::vector<std::uint64_t> counts;
    for (std::int64_t value = 0; types.size() != 5;) {
      value += random.between(1, 12);
      if (value > capacity) break;
      types.push_back({value});
      values.push_back(static_cast<std::uint64_t>(value));
      counts.push_back(static_cast<std::uint64_t>(random.between(1, 7)));
    }
    if (types.empty()) continue;
    detail::scalar_pricing pricing(values, counts, static_cast<std::uint64_t>(capacity));
    check_pricing(pricing, random, types, counts, omnibal::resources<1>{capacity});
  }
}

TEMPLATE_TEST_CASE("vector_pricing finds the pattern that is worth most", "",
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  test::random_amounts random(kinds);
  for (int repeat = 0; repeat != 3000; ++repeat) {
    // As the fields of one word, or as they are; or of a capacity of which they are hardly a share.
    std::int64_t const unit = repeat % 3 == 0 ? 1 : std::int64_t{1} << 55;
    omnibal::resources<kinds> capacity{};
    for (auto& limit : capacity.amounts) limit = random.between(1, 60) * unit;
    auto const types = test::make_samples<kinds>(5, [&](std::size_t, std::size_t r) {
      std::int64_t const most = capacity[r] / unit;
      return random.between(r == 0 ? 1 : 0, most) * (repeat % 3 == 2 ? 1 : unit);
    });
    std::vector<std::uint64_t> counts(types.size());
    for (auto& count : counts) count = static_cast<std::uint64_t>(random.between(1, 5));
    detail::with_layout(capacity, [&](auto const& layout) {
      using layout_type = std::remove_cvref_t<decltype(layout)>;
      detail::measured<layout_type> const input{layout, capacity, {}, {}, {}};
      std::vector<typename layout_type::demand_type> demands;
      for (auto const& type : types) demands.push_back(layout.encode(type));
      detail::vector_pricing<layout_type> pricing(input, demands, counts);
      check_pricing(pricing, random, types, counts, capacity);
    });
  }
}

TEMPLATE_TEST_CASE("column generation stays a bound, and is above all others for some lists", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  test::random_amounts random(kinds);
  std::size_t raised = 0;
  for (int repeat = 0; repeat != 1000; ++repeat) {
    omnibal::resources<kinds> capacity{};
    for (auto& limit : capacity.amounts) limit = random.between(20, 60);
    auto const samples = test::make_samples<kinds>(9, [&](std::size_t, std::size_t r) {
      return random.between(capacity[r] / 6, capacity[r] * 2 / 3);
    });
    std::size_t const fewest = test::min_groups(samples, capacity);
    std::size_t const best = bound_of(samples, capacity, thorough);
    std::size_t const by_functions = bound_of(samples, capacity, functions);
    REQUIRE(bound_of(samples, capacity, patterns) <= fewest);
    REQUIRE(best <= fewest);
    REQUIRE(best >= by_functions);
    // Steps that end early leave what was found until then.
    auto const steps = static_cast<std::size_t>(random.between(1, 3000));
    REQUIRE(bound_of(samples, capacity, {.pattern_steps = steps}) <= fewest);
    if (best > by_functions) ++raised;
  }
  CHECK(raised > 10);
}

TEMPLATE_TEST_CASE("column generation stays a bound where groups are full", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  constexpr std::size_t kinds = TestType::value;
  test::random_amounts random(10 + kinds);
  for (int repeat = 0; repeat != 40; ++repeat) {
    auto const groups = static_cast<std::size_t>(random.between(5, 25));
    std::int64_t const most = repeat % 2 == 0 ? 150 : std::int64_t{1} << 40;
    omnibal::resources<kinds> capacity{};
    for (auto& limit : capacity.amounts) limit = random.between(most / 2, most);
    std::vector<omnibal::resources<kinds>> samples;
    for (std::size_t group = 0; group != groups; ++group) {
      auto left = capacity;
      for (int piece = 0; piece != 3; ++piece) {
        omnibal::resources<kinds> sample{};
        for (std::size_t r = 0; r != kinds; ++r) sample[r] = random.between(0, left[r] / 2);
        samples.push_back(sample);
        left -= sample;
      }
      samples.push_back(left);
    }
    REQUIRE(bound_of(samples, capacity, {.pattern_steps = std::size_t{1} << 20}) <= groups);
  }
}

TEST_CASE("column generation has the value of the linear program, rounded up") {
  auto const bound = [](std::vector<std::int64_t> const& values, std::int64_t capacity) {
    return omnibal::packing_bound(values, std::identity{}, capacity, patterns);
  };
  // Three of the first and two of the second fill a group.
  std::vector<std::int64_t> values(40, 3330);
  CHECK(bound(values, 10000) == 14);
  values.assign(90, 3340);
  CHECK(bound(values, 10000) == 45);
  // Six of 144 fill a group, or three and one of 429, or two of 429: 10 / 2 + 70 / 6 = 16 2/3.
  values.assign(70, 144);
  values.resize(80, 429);
  CHECK(bound(values, 1001) == 17);
  // The amounts are above the largest capacity of dual feasible functions.
  for (auto& value : values) value = value * (std::int64_t{1} << 50) + 1;
  values.push_back((std::int64_t{1} << 50) + 3);
  CHECK(bound(values, std::int64_t{1001} << 50) == 17);
  CHECK(bound({}, 10) == 0);
  CHECK(bound({0, 0}, 10) == 1);
  CHECK(bound({11}, 10) == 0);
}

TEST_CASE("column generation proves what many changes of the basis need") {
  // Of the size and kind of one of Scholl's sets; nearly always a packing meets the bound.
  test::random_amounts random(20);
  std::size_t raised = 0;
  std::size_t met = 0;
  for (int repeat = 0; repeat != 40; ++repeat) {
    std::vector<std::int64_t> values(100);
    for (auto& value : values) value = random.between(20, 100);
    std::int64_t const capacity = 120;
    auto const bound = [&](omnibal::packing_bound_options const& options) {
      return omnibal::packing_bound(values, std::identity{}, capacity, options);
    };
    auto const packed = omnibal::improve_packing(
        values, std::identity{}, capacity,
        omnibal::best_fit_decreasing(values, std::identity{}, capacity), {.passes = 20});
    std::size_t const best = bound(thorough);
    REQUIRE(best <= packed.groups.size());
    if (best > bound(functions)) ++raised;
    if (best == packed.groups.size()) ++met;
  }
  CHECK(raised >= 1);
  CHECK(met >= 39);
}

TEST_CASE("vector_pricing knows amounts near the largest integer") {
  // Two fit together, and shares of such capacities in fixed point are rounded to nothing.
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  std::vector<omnibal::resources<3>> samples(6, {1, largest / 2, 3});
  for (std::size_t i = 0; i != samples.size(); ++i) samples[i][0] += static_cast<int>(i % 3);
  omnibal::resources<3> const capacity{largest, largest, largest};
  CHECK(bound_of(samples, capacity, patterns) == 3);
  for (auto& sample : samples) sample = {sample[0], 3, 5};
  CHECK(bound_of(samples, capacity, patterns) == 1);
}

TEST_CASE("packing_bound takes any number of pattern steps") {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i != 600; ++i) values.push_back(3000 + i);
  auto const bound = [&](std::size_t steps) {
    return omnibal::packing_bound(values, std::identity{}, std::int64_t{10000},
                                  {.pattern_steps = steps});
  };
  std::size_t const none = bound(0);
  CHECK(bound(1) == none);
  // 600 different samples are more than so few steps allow.
  CHECK(bound(std::size_t{1} << 24) == none);
  values.resize(50);
  CHECK(bound(std::numeric_limits<std::size_t>::max()) >= bound(0));
}

TEST_CASE("thorough packing_bound sees samples of which no three fit by their sums") {
  // 500 different samples, too many for column generation.
  test::random_amounts random(7);
  auto const samples = test::make_samples<2>(500, [](std::size_t i, std::size_t r) {
    auto const part = static_cast<std::int64_t>(i);
    return r == 0 ? 20'000 + 120 * part : 90'000 - 120 * part;
  });
  omnibal::resources<2> const capacity{150'000, 150'000};
  CHECK(bound_of(samples, capacity, {}) < 250);
  CHECK(bound_of(samples, capacity, functions) == 250);
}
