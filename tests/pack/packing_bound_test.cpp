// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "samples.hpp"

#include <omnibal/pack/detail/bounds/martello_toth.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/packing_bound.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

/// Martello and Toth's L2 as it is defined, over all thresholds.
std::int64_t plain_l2(std::vector<std::int64_t> const& sizes, std::int64_t capacity) {
  std::int64_t bound = 0;
  for (std::int64_t threshold = 0; threshold <= capacity / 2; ++threshold) {
    std::int64_t alone = 0;
    std::int64_t large = 0;
    std::int64_t room_beside_large = 0;
    std::int64_t small_sum = 0;
    for (std::int64_t const size : sizes) {
      if (size > capacity - threshold) {
        ++alone;
      } else if (2 * size > capacity) {
        ++large;
        room_beside_large += capacity - size;
      } else if (size >= threshold) {
        small_sum += size;
      }
    }
    std::int64_t const rest = std::max<std::int64_t>(0, small_sum - room_beside_large);
    bound = std::max(bound, alone + large + (rest + capacity - 1) / capacity);
  }
  return bound;
}

/// Up to 300 sizes in [0, capacity], in one of three shapes: any, pairs that nearly fill a group,
/// and half of the groups nearly filled while the rest is small.
std::vector<std::int64_t> random_sizes(test::random_amounts& random, std::int64_t capacity) {
  auto const shape = random.between(0, 2);
  std::int64_t const width = std::max<std::int64_t>(1, capacity >> random.between(0, 10));
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(random.between(0, 300)));
  for (std::size_t i = 0; i != sizes.size(); ++i) {
    sizes[i] = shape == 2 ? random.between(0, width) : random.between(0, capacity);
    if (shape != 0 && i % 2 == 1) {
      std::int64_t const beside = capacity - sizes[i - 1];
      sizes[i] = random.between(std::max<std::int64_t>(0, beside - width / 8), beside);
    }
  }
  return sizes;
}

/// L2 of sizes that are not sorted.
std::size_t bucketed_l2(std::vector<std::int64_t> const& sizes, std::int64_t capacity) {
  omnibal::detail::bucketed_martello_toth bound(sizes.size(), capacity);
  for (std::int64_t const size : sizes) bound.add(size);
  if (bound.needs_values()) {
    for (std::int64_t const size : sizes) bound.add_within(size);
  }
  return bound.bound();
}

template <std::size_t R>
omnibal::resources<R> random_capacity(test::random_amounts& random) {
  omnibal::resources<R> capacity{};
  for (auto& limit : capacity.amounts) limit = random.between(1, 30);
  return capacity;
}

/// Up to nine samples, some of them oversized.
template <std::size_t R>
std::vector<omnibal::resources<R>> random_samples(test::random_amounts& random,
                                                  omnibal::resources<R> const& capacity) {
  auto const count = static_cast<std::size_t>(random.between(0, 9));
  std::int64_t const widest = random.between(1, 4);
  return test::make_samples<R>(count, [&](std::size_t, std::size_t r) {
    return random.between(0, capacity[r] * widest / 3 + 1);
  });
}

template <std::size_t R, class T>
std::size_t bound_of(std::vector<omnibal::resources<R, T>> const& samples,
                     omnibal::resources<R, T> const& capacity) {
  return omnibal::packing_bound(samples, std::identity{}, capacity);
}

/// Without column generation, which may find what the others miss.
template <std::size_t R, class T>
std::size_t thorough_bound_of(std::vector<omnibal::resources<R, T>> const& samples,
                              omnibal::resources<R, T> const& capacity) {
  return omnibal::packing_bound(samples, std::identity{}, capacity,
                                {.effort = omnibal::effort::thorough, .pattern_steps = 0});
}

/// The largest sum of images of values that fit the capacity together, by an unbounded knapsack.
std::uint64_t largest_image(omnibal::detail::dual_feasible_function const& function,
                            std::uint64_t capacity) {
  std::vector<std::uint64_t> best(capacity + 1, 0);
  for (std::uint64_t room = 1; room <= capacity; ++room) {
    for (std::uint64_t value = 1; value <= room; ++value) {
      best[room] = std::max(best[room], best[room - value] + function(value));
    }
  }
  return best[capacity];
}

}  // namespace

TEST_CASE("dual feasible functions let the images of all that fits fit") {
  using omnibal::detail::dual_feasible;
  for (auto const kind : {dual_feasible::rounded_parts, dual_feasible::parts_below,
                          dual_feasible::counted_room, dual_feasible::counted_rest}) {
    bool const has_width =
        kind == dual_feasible::counted_room || kind == dual_feasible::counted_rest;
    for (std::uint64_t capacity = 1; capacity <= 48; ++capacity) {
      for (std::uint64_t k = kind == dual_feasible::parts_below ? 2 : 1;
           k <= (has_width ? capacity : 40); ++k) {
        INFO("kind " << static_cast<int>(kind) << ", k " << k << ", capacity " << capacity);
        omnibal::detail::dual_feasible_function const function(kind, k, capacity);
        REQUIRE(function(0) == 0);
        REQUIRE(function(capacity) == function.whole());
        REQUIRE(largest_image(function, capacity) == function.whole());
      }
    }
  }
}

TEST_CASE("thorough packing_bound sees how many of a value fit") {
  std::vector<std::int64_t> thirds(40, 340);
  auto const bound = [](std::vector<std::int64_t> const& values, std::int64_t capacity,
                        omnibal::effort effort) {
    return omnibal::packing_bound(values, std::identity{}, capacity, {.effort = effort});
  };
  CHECK(bound(thirds, 1000, omnibal::effort::normal) == 14);
  CHECK(bound(thirds, 1000, omnibal::effort::thorough) == 20);
  // Seven of 143 fill the group, of 144 six fit, and beside one of 429 four.
  std::vector<std::int64_t> sevenths(60, 144);
  CHECK(bound(sevenths, 1001, omnibal::effort::thorough) == 10);
  sevenths.resize(70, 429);
  CHECK(bound(sevenths, 1001, omnibal::effort::normal) == 13);
  CHECK(bound(sevenths, 1001, omnibal::effort::thorough) >= 14);
  // Above the largest capacity for such functions the bound is as before.
  for (auto& value : thirds) value = value * (std::int64_t{1} << 40) + 1;
  thirds.push_back((std::int64_t{1} << 40) + 3);
  CHECK(omnibal::packing_bound(thirds, std::identity{}, std::int64_t{1000} << 40,
                               {.effort = omnibal::effort::thorough, .pattern_steps = 0}) == 14);
  CHECK(bound({}, 1000, omnibal::effort::thorough) == 0);
  CHECK(bound({0, 0}, 1000, omnibal::effort::thorough) == 1);
}

TEST_CASE("thorough packing_bound sees samples that cannot meet for several reasons") {
  // Two of the same kind exceed one resource, two of different kinds another.
  std::vector<omnibal::resources<3>> samples;
  for (int i = 0; i != 30; ++i) {
    samples.push_back({6, 6, 1});
    samples.push_back({1, 6, 6});
    samples.push_back({6, 1, 6});
  }
  omnibal::resources<3> const capacity{11, 11, 11};
  CHECK(bound_of(samples, capacity) < 90);
  CHECK(thorough_bound_of(samples, capacity) == 90);
  // More samples than are looked at, all with the larger share of the last resource.
  std::vector<omnibal::resources<4>> four(800, {0, 0, 0, 1});
  for (auto const& sample : samples) four.push_back({sample[0], sample[1], sample[2], 0});
  CHECK(thorough_bound_of(four, omnibal::resources<4>{11, 11, 11, 1000}) == 90);
  // Their sums may exceed the largest integer.
  std::vector<omnibal::resources<2>> const large(5, {INT64_MAX - 1, INT64_MAX - 2});
  CHECK(thorough_bound_of(large, omnibal::resources<2>{INT64_MAX, INT64_MAX}) == 5);
}

TEST_CASE("the bound of Martello and Toth is the same without sorting") {
  test::random_amounts random(1);
  std::size_t above_volume = 0;
  for (int repeat = 0; repeat != 400; ++repeat) {
    std::int64_t const capacity = random.between(1, 1 << random.between(1, 12));
    std::vector<std::int64_t> const sizes = random_sizes(random, capacity);
    INFO("capacity " << capacity << ", " << sizes.size() << " sizes");
    std::int64_t const bound = plain_l2(sizes, capacity);
    REQUIRE(bucketed_l2(sizes, capacity) == static_cast<std::size_t>(bound));
    auto const volume = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    if (bound > (volume + capacity - 1) / capacity) ++above_volume;
  }
  CHECK(above_volume > 50);
  for (std::int64_t const capacity : {INT64_MAX, INT64_MAX - 1, std::int64_t{1} << 40}) {
    for (int repeat = 0; repeat != 400; ++repeat) {
      std::vector<std::int64_t> sizes = random_sizes(random, capacity);
      std::size_t const bound = bucketed_l2(sizes, capacity);
      std::sort(sizes.begin(), sizes.end());
      REQUIRE(bound == omnibal::detail::martello_toth_bound(
                           sizes.size(), [&](std::size_t k) { return sizes[k]; },
                           [](std::size_t) { return std::uint32_t{1}; }, capacity));
    }
  }
}

TEMPLATE_TEST_CASE("packing_bound is at most the fewest groups", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  test::random_amounts random(kinds);
  std::size_t tight = 0;
  for (int repeat = 0; repeat != 3000; ++repeat) {
    auto const capacity = random_capacity<kinds>(random);
    auto const samples = random_samples(random, capacity);
    std::size_t const fewest = test::min_groups(samples, capacity);
    std::size_t const bound = bound_of(samples, capacity);
    REQUIRE(bound <= fewest);
    std::size_t const best = thorough_bound_of(samples, capacity);
    REQUIRE(best <= fewest);
    REQUIRE(best >= bound);
    auto const large = test::scaled<kinds>({"", capacity, samples}, std::int64_t{3} << 40);
    REQUIRE(bound_of(large.samples, large.capacity) <= fewest);
    if (bound == fewest) ++tight;
  }
  CHECK(tight > 2100);
}

TEMPLATE_TEST_CASE("packing_bound is at most the fewest groups of floating-point samples", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>)) {
  constexpr std::size_t kinds = TestType::value;
  test::random_amounts random(kinds);
  for (int repeat = 0; repeat != 3000; ++repeat) {
    // Tenths have no exact value, so that sums meet the capacity only after rounding.
    double const unit = random.between(0, 1) == 0 ? 0.1 : 1e-3 / 7;
    auto const capacity = random_capacity<kinds>(random);
    auto const samples = random_samples(random, capacity);
    auto const in_units = [unit](omnibal::resources<kinds> const& amounts) {
      omnibal::resources<kinds, double> result{};
      for (std::size_t r = 0; r != kinds; ++r) result[r] = static_cast<double>(amounts[r]) * unit;
      return result;
    };
    std::vector<omnibal::resources<kinds, double>> demands;
    for (auto const& sample : samples) demands.push_back(in_units(sample));
    REQUIRE(bound_of(demands, in_units(capacity)) <= test::min_groups(demands, in_units(capacity)));
  }
}

TEST_CASE("packing_bound allows for the rounding of many floating-point samples") {
  for (std::size_t const count : {10u, 100u, 1000u, 10000u}) {
    std::vector<double> const tenths(count, 0.1);
    CHECK(omnibal::packing_bound(tenths, std::identity{}, 1.0) <= count / 10);
    CHECK(omnibal::packing_bound(tenths, std::identity{}, 1.0) + 1 >= count / 10);
    CHECK(omnibal::packing_bound(tenths, std::identity{}, static_cast<double>(count)) == 1);
  }
  std::vector<double> const halves(9, 0.5);
  CHECK(omnibal::packing_bound(halves, std::identity{}, 1.0) == 5);
  CHECK(omnibal::packing_bound(halves, std::identity{}, 0.75) == 9);
}

TEST_CASE("packing_bound is at least L2") {
  test::random_amounts random(4);
  for (int repeat = 0; repeat != 3000; ++repeat) {
    std::int64_t const capacity = random.between(1, 60);
    std::int64_t const widest = random.between(1, capacity);
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(random.between(1, 40)));
    for (auto& size : sizes) size = random.between(0, widest);
    auto const bound =
        static_cast<std::int64_t>(omnibal::packing_bound(sizes, std::identity{}, capacity));
    REQUIRE(bound >= plain_l2(sizes, capacity));
  }
}

TEST_CASE("packing_bound has known values") {
  auto const bound = [](std::vector<int> const& sizes, int capacity) {
    return omnibal::packing_bound(sizes, std::identity{}, capacity);
  };
  CHECK(bound({}, 10) == 0);
  CHECK(bound({0, 0, 0}, 10) == 1);
  CHECK(bound({11, 12}, 10) == 0);
  CHECK(bound({11, 0}, 10) == 1);
  CHECK(bound({5, 5, 5}, 10) == 2);
  CHECK(bound({6, 6, 6}, 10) == 3);
  CHECK(bound({1}, 1) == 1);
  // Martello, Toth, Knapsack Problems, 1990, example 8.1: the volume gives 3.
  CHECK(bound({70, 60, 50, 33, 33, 33, 11, 7, 3}, 100) == 4);
  // Nothing fits beside the samples of 6, and no three of 4 fit each other.
  CHECK(bound({7, 7, 7, 4, 4, 4, 4}, 10) == 5);
}

TEST_CASE("packing_bound sees samples that cannot meet where the volume does not") {
  // No two samples of five images fit together, although half of the group stays empty.
  std::vector<omnibal::resources<2>> samples(100, {5, 10});
  omnibal::resources<2> const capacity{9, 4096};
  CHECK(bound_of(samples, capacity) == 100);

  // Nor do samples of 1500 and 2700 tokens, nor two of 2700: a clique over two resources, in which
  // each resource alone gives less.
  samples.assign(200, {5, 1500});
  std::fill(samples.begin() + 100, samples.end(), omnibal::resources<2>{1, 2700});
  CHECK(bound_of(samples, capacity) == 200);
  auto const alone = [&](std::size_t kind) {
    return omnibal::packing_bound(
        samples, [&](omnibal::resources<2> const& sample) { return sample[kind]; }, capacity[kind]);
  };
  CHECK(alone(0) == 100);
  CHECK(alone(1) < 150);

  for (auto& sample : samples) std::swap(sample[0], sample[1]);
  CHECK(bound_of(samples, omnibal::resources<2>{4096, 9}) == 200);

  std::vector<omnibal::resources<3>> three;
  for (auto const& sample : samples) three.push_back({sample[0], 1, sample[1]});
  CHECK(bound_of(three, omnibal::resources<3>{4096, 1000, 9}) == 200);
}

TEST_CASE("packing_bound does not depend on the unit of a resource") {
  for (auto const& set : test::small_sets<2>(5, 400)) {
    INFO(set.name);
    auto const large = test::scaled(set, std::int64_t{1} << 30);
    auto const odd = test::scaled(set, 1000000007);
    std::size_t const bound = bound_of(large.samples, large.capacity);
    CHECK(bound == bound_of(odd.samples, odd.capacity));
    CHECK(bound >= bound_of(set.samples, set.capacity));
  }
}

TEST_CASE("packing_bound of capacities too large to count values is the same") {
  // One more in some samples, and as many more in the capacity: sums fit as they did before, and
  // the amounts have no common divisor.
  test::random_amounts random(6);
  for (auto const& set : test::small_sets<1>(6, 400)) {
    INFO(set.name);
    constexpr std::int64_t factor = std::int64_t{1} << 30;
    auto large = test::scaled(set, factor);
    large.capacity[0] += static_cast<std::int64_t>(set.samples.size());
    for (auto& sample : large.samples) sample[0] += random.between(0, 1);
    CHECK(bound_of(large.samples, large.capacity) == bound_of(set.samples, set.capacity));
  }
}

TEST_CASE("packing_bound of conflicts under large capacities stays a bound") {
  for (auto const& set : test::all_sets<2>(7, 300)) {
    INFO(set.name);
    auto const packing = omnibal::next_fit(set.samples, std::identity{}, set.capacity);
    CHECK(bound_of(set.samples, set.capacity) <= packing.groups.size());
  }
  std::vector<omnibal::resources<2>> samples(100, {5, 15'000'000'000'001});
  samples.resize(200, {1, 27'000'000'000'003});
  CHECK(bound_of(samples, omnibal::resources<2>{9, 40'960'000'000'007}) == 200);
}

TEST_CASE("packing_bound sums beyond 64 bits") {
  constexpr std::int64_t largest = INT64_MAX;
  std::vector<std::int64_t> samples(1000, largest / 2);
  CHECK(omnibal::packing_bound(samples, std::identity{}, largest) == 500);
  samples.assign(1000, largest);
  CHECK(omnibal::packing_bound(samples, std::identity{}, largest) == 1000);
  samples.push_back(1);
  CHECK(omnibal::packing_bound(samples, std::identity{}, largest) == 1001);
}

TEST_CASE("packing_bound sees which values fill a group together") {
  auto const bound = [](std::vector<std::int64_t> const& values, std::int64_t capacity) {
    return omnibal::packing_bound(values, std::identity{}, capacity);
  };
  auto const repeated = [](std::vector<std::pair<std::size_t, std::int64_t>> const& runs) {
    std::vector<std::int64_t> values;
    for (auto const& [count, value] : runs) values.insert(values.end(), count, value);
    return values;
  };
  SECTION("two fives leave room for two that nobody takes") {
    auto const values = repeated({{4000, 5}, {2000, 3}});
    CHECK(bound(values, 12) == 2500);
    CHECK(omnibal::next_fit(values, std::identity{}, std::int64_t{12}).groups.size() == 2500);
  }
  SECTION("in other units") {
    CHECK(bound(repeated({{4000, 5 * 7}, {2000, 3 * 7}}), 12 * 7 + 6) == 2500);
  }
  SECTION("three of a third and a bit do not fit") {
    CHECK(bound(repeated({{4000, 34}}), 100) == 2000);
  }
  SECTION("prices in sixths that no simple fraction of the values gives") {
    // 1, 3, 4, 5 of 10 are worth 0, 1/3, 1/3, 1/2.
    CHECK(bound(repeated({{6372, 1}, {22082, 3}, {617, 4}, {31424, 5}}), 10) == 23279);
  }
  SECTION("prices that are found only step by step") {
    CHECK(bound(repeated({{5000, 7}, {4000, 8}, {1000, 14}}), 21) == 4334);
    CHECK(bound(repeated({{3000, 8}, {3000, 10}, {2000, 12}}), 24) == 3500);
  }
  SECTION("zeros count for nothing") {
    CHECK(bound(repeated({{4000, 0}, {4000, 5}, {2000, 3}}), 12) == 2500);
    CHECK(bound(repeated({{4000, 0}}), 12) == 1);
  }
}
