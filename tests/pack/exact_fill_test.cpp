// SPDX-License-Identifier: Apache-2.0
#include "packing_faults.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/improve_packing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using sizes = std::vector<std::int64_t>;

/// The largest sum of a subset that is at most `room`, of all subsets.
std::int64_t best_of_all_subsets(sizes const& values, std::int64_t room) {
  std::int64_t best = 0;
  for (std::uint32_t mask = 0; mask != 1u << values.size(); ++mask) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i != values.size(); ++i) sum += (mask >> i & 1) != 0 ? values[i] : 0;
    if (sum <= room) best = std::max(best, sum);
  }
  return best;
}

/// The sum that `subset` claims, after a check that its values add up to it.
std::int64_t checked_fill(omnibal::detail::subset_sum& subset, sizes const& values,
                          std::int64_t room) {
  std::int64_t const sum = subset.fill(values, room);
  std::int64_t chosen = 0;
  for (std::size_t i = 0; i != values.size(); ++i) chosen += subset.has(i) ? values[i] : 0;
  for (std::size_t i = values.size(); i < 64; ++i) CHECK(!subset.has(i));
  CHECK(chosen == sum);
  CHECK(sum <= room);
  return sum;
}

/// Groups that are exactly full: `count` times so many sizes between `least` and `most`.
sizes exact_groups(std::size_t count, std::size_t of_each, std::int64_t least, std::int64_t most,
                   std::int64_t capacity, std::uint64_t seed) {
  test::random_amounts random(seed);
  sizes result;
  while (result.size() != count * of_each) {
    sizes group(of_each);
    std::int64_t rest = capacity;
    for (std::size_t i = 0; i + 1 != of_each; ++i) {
      group[i] = random.between(least, most);
      rest -= group[i];
    }
    group.back() = rest;
    if (rest >= least && rest <= most) result.insert(result.end(), group.begin(), group.end());
  }
  return result;
}

/// How many groups best fit makes, and `improve_packing` with so many passes after it.
struct group_counts {
  std::size_t best_fit;
  std::size_t improved;
};

group_counts counts_of(sizes const& samples, std::int64_t capacity, std::size_t passes) {
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  auto const result =
      omnibal::improve_packing(samples, std::identity{}, capacity, start, {.passes = passes});
  std::vector<omnibal::resources<1>> demands;
  for (std::int64_t const size : samples) demands.push_back({size});
  CHECK(test::fault(result, demands, omnibal::resources<1>{capacity}) == "");
  return {start.groups.size(), result.groups.size()};
}

template <std::size_t R>
using vectors = std::vector<omnibal::resources<R>>;

/// Groups of three that are exactly full in all kinds, of demands between `least` and `most`.
template <std::size_t R>
vectors<R> exact_triplets(std::size_t count, std::int64_t least, std::int64_t most,
                          std::int64_t capacity, std::uint64_t seed) {
  vectors<R> result(3 * count);
  for (std::size_t r = 0; r != R; ++r) {
    auto const amounts = exact_groups(count, 3, least, most, capacity, seed + r);
    for (std::size_t i = 0; i != result.size(); ++i) result[i][r] = amounts[i];
  }
  return result;
}

template <std::size_t R>
omnibal::resources<R> same_capacity(std::int64_t amount) {
  omnibal::resources<R> result{};
  for (std::size_t r = 0; r != R; ++r) result[r] = amount;
  return result;
}

/// As `counts_of` above.
template <std::size_t R>
group_counts counts_of(vectors<R> const& samples, omnibal::resources<R> const& capacity,
                       std::size_t passes) {
  auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
  auto const result =
      omnibal::improve_packing(samples, std::identity{}, capacity, start, {.passes = passes});
  CHECK(test::fault(result, samples, capacity) == "");
  return {start.groups.size(), result.groups.size()};
}

/// The largest value of the samples of a subset that fits, of all subsets.
template <std::size_t R>
std::int64_t best_of_all_subsets(vectors<R> const& demands, sizes const& values,
                                 omnibal::resources<R> const& room) {
  std::int64_t best = 0;
  for (std::uint32_t mask = 0; mask != 1u << values.size(); ++mask) {
    omnibal::resources<R> load{};
    std::int64_t value = 0;
    for (std::size_t i = 0; i != values.size(); ++i) {
      if ((mask >> i & 1) == 0) continue;
      load += demands[i];
      value += values[i];
    }
    if (load.fits(room)) best = std::max(best, value);
  }
  return best;
}

/// `bounded_knapsack` against all subsets.
template <std::size_t R>
void check_knapsacks(std::uint64_t seed) {
  test::random_amounts random(seed);
  omnibal::detail::bounded_knapsack<R> knapsack;
  for (int repeat = 0; repeat != 2000; ++repeat) {
    vectors<R> demands(static_cast<std::size_t>(random.between(0, 7)));
    sizes values(demands.size());
    omnibal::resources<R> room{};
    for (std::size_t r = 0; r != R; ++r) {
      room[r] = random.between(0, 100);
      for (auto& demand : demands) demand[r] = random.between(0, 60);
    }
    for (auto& value : values) value = random.between(0, 1000);
    std::int64_t const found = knapsack.fill(demands, values, room);
    omnibal::resources<R> load{};
    std::int64_t value = 0;
    for (std::size_t i = 0; i != values.size(); ++i) {
      if (!knapsack.has(i)) continue;
      load += demands[i];
      value += values[i];
    }
    CHECK(load.fits(room));
    CHECK(value == found);
    CHECK(found == best_of_all_subsets(demands, values, room));
  }
}

}  // namespace

TEST_CASE("bounded_knapsack is the best of all subsets of a few samples") {
  check_knapsacks<1>(1);
  check_knapsacks<2>(2);
  check_knapsacks<3>(3);
  check_knapsacks<10>(4);
}

TEST_CASE("improve_packing finds triplets that fill their groups in several kinds") {
  for (std::uint64_t seed = 0; seed != 3; ++seed) {
    auto const pairs = exact_triplets<2>(17, 25, 49, 100, 10 * seed);
    auto const of_pairs = counts_of(pairs, same_capacity<2>(100), 4000);
    CHECK(of_pairs.best_fit > 17);
    CHECK(of_pairs.improved == 17);
    auto const three = exact_triplets<3>(17, 25, 49, 100, 10 * seed + 5);
    auto const of_three = counts_of(three, same_capacity<3>(100), 4000);
    CHECK(of_three.best_fit > 17);
    CHECK(of_three.improved == 17);
    auto const ten = exact_triplets<10>(17, 25, 49, 100, 100 + 20 * seed);
    auto const of_ten = counts_of(ten, same_capacity<10>(100), 4000);
    CHECK(of_ten.best_fit > 17);
    CHECK(of_ten.improved == 17);
  }
}

TEST_CASE("improve_packing finds groups that cannot be full, with samples above half in one kind") {
  test::random_amounts random(5);
  constexpr std::size_t groups = 16;
  for (std::uint64_t seed = 0; seed != 3; ++seed) {
    auto samples = exact_triplets<3>(groups, 15, 65, 100, 1000 + 10 * seed);
    for (auto& sample : samples) {
      for (std::size_t r = 0; r != 3; ++r) sample[r] -= random.between(0, 6);
    }
    auto const [best_fit, improved] = counts_of(samples, same_capacity<3>(100), 4000);
    CHECK(best_fit > groups);
    CHECK(improved <= groups);
  }
}

TEST_CASE("annealing_fill of several kinds keeps each sample and the number of groups") {
  auto samples = exact_triplets<3>(40, 25, 49, 100, 77);
  samples.insert(samples.begin() + 60, 20, {});
  // Long groups of samples that take almost nothing, and leave room, so that values rise.
  samples.insert(samples.end(), 200, {1, 0, 1});
  auto const capacity = same_capacity<3>(100);
  omnibal::detail::with_measured("test", samples, std::identity{}, capacity, [&](auto&& input) {
    auto const start = omnibal::best_fit_decreasing(samples, std::identity{}, capacity);
    omnibal::grouping groups = start.groups;
    // A bound that nothing reaches, so that the walk never ends.
    omnibal::detail::annealing_fill<decltype(input.layout)> walk(input, 0);
    for (int pass = 0; pass != 200; ++pass) {
      std::size_t const before = groups.size();
      walk.run(groups, 30);
      REQUIRE(groups.size() <= before);
      omnibal::packing const packed{
          groups, {}, {.lower_bound = 40, .rounds = 1, .item_rounds = samples.size()}};
      REQUIRE(test::fault(packed, samples, capacity) == "");
    }
    CHECK(groups.size() >= 42);
    CHECK(groups.size() < start.groups.size());
  });
}

TEST_CASE("subset_sum is the best of all subsets") {
  test::random_amounts random(1);
  for (int repeat = 0; repeat != 4000; ++repeat) {
    // Rooms on both sides of the words, and of the tables.
    std::int64_t const widest = std::int64_t{1} << random.between(3, 40);
    std::int64_t const room = random.between(0, widest);
    omnibal::detail::subset_sum subset(widest);
    sizes values(static_cast<std::size_t>(random.between(0, 8)));
    for (auto& value : values) value = random.between(1, std::max<std::int64_t>(1, widest / 2));
    CHECK(checked_fill(subset, values, room) == best_of_all_subsets(values, room));
  }
}

TEST_CASE("subset_sum fills words to their last bit") {
  for (std::int64_t const room : {63, 64, 65, 127, 128, 129, 1000}) {
    omnibal::detail::subset_sum subset(room);
    CHECK(checked_fill(subset, {room}, room) == room);
    CHECK(checked_fill(subset, {room + 1, room + 64, room - 1}, room) == room - 1);
    CHECK(checked_fill(subset, sizes(64, 1), room) == std::min<std::int64_t>(room, 64));
    CHECK(checked_fill(subset, {room - 1, 1}, room) == room);
  }
}

TEST_CASE("subset_sum takes values whose sum exceeds 64 bits") {
  omnibal::detail::subset_sum subset(INT64_MAX);
  CHECK(checked_fill(subset, sizes(64, INT64_MAX / 2), INT64_MAX) == INT64_MAX - 1);
  CHECK(checked_fill(subset, sizes(3, INT64_MAX), INT64_MAX) == INT64_MAX);
}

TEST_CASE("annealing_schedule accepts losses of the size of the temperature in the mean") {
  omnibal::rng::engine words(3);
  omnibal::detail::annealing_schedule temperature(20000, 20);
  constexpr int draws = 20000;
  for (auto const& [step, mean] : {std::pair(0u, 1000.0), std::pair(50u, 1000.0 / 64)}) {
    temperature.set(step, 100);
    double sum = 0;
    for (int i = 0; i != draws; ++i) {
      sum += static_cast<double>(temperature.largest_loss(words)) + 0.5;
    }
    CHECK(sum / draws > 0.95 * mean);
    CHECK(sum / draws < 1.05 * mean);
  }
  temperature.set(100, 100);
  for (int i = 0; i != draws; ++i) CHECK(temperature.largest_loss(words) < 10);
}

TEST_CASE("improve_packing finds triplets that fill their groups exactly") {
  for (std::size_t const triplets : {20u, 83u, 167u}) {
    for (std::uint64_t seed = 0; seed != 4; ++seed) {
      auto const samples = exact_groups(triplets, 3, 250, 499, 1000, 100 * triplets + seed);
      auto const [best_fit, improved] = counts_of(samples, 1000, 16000);
      CHECK(best_fit > triplets);
      CHECK(improved == triplets);
    }
  }
}

TEST_CASE("improve_packing finds groups of three under a capacity too large for bits") {
  auto const samples = exact_groups(67, 3, 20000, 35000, 80000, 7);
  auto const [best_fit, improved] = counts_of(samples, 80000, 16000);
  CHECK(best_fit > 67);
  CHECK(improved <= 68);
}

TEST_CASE("improve_packing finds groups of three that cannot all be full") {
  constexpr std::size_t groups = 167;
  for (std::uint64_t seed = 0; seed != 6; ++seed) {
    test::random_amounts random(seed);
    sizes samples(3 * groups - 1);
    for (std::int64_t& size : samples) size = random.between(266, 396);
    auto const [best_fit, improved] = counts_of(samples, 1000, 16000);
    CHECK(best_fit > groups);
    CHECK(improved == groups);
  }
}

TEST_CASE("improve_packing finds groups of six alike") {
  for (std::uint64_t seed = 0; seed != 8; ++seed) {
    auto const samples = exact_groups(17, 6, 150, 200, 1000, seed);
    auto const [best_fit, improved] = counts_of(samples, 1000, 16000);
    CHECK(best_fit > 17);
    CHECK(improved == 17);
  }
}

TEST_CASE("improve_packing fills what lies beside samples above half of the capacity") {
  test::random_amounts random(21);
  sizes samples;
  std::size_t const groups = 120;
  for (std::size_t g = 0; g != groups; ++g) {
    std::int64_t const large = random.between(510, 700);
    std::int64_t const first = random.between(100, 180);
    samples.insert(samples.end(), {large, first, 1000 - large - first});
  }
  for (std::size_t g = 0; g != groups; ++g) {
    auto const others = exact_groups(1, 4, 150, 450, 1000, 1000 + g);
    samples.insert(samples.end(), others.begin(), others.end());
  }
  auto const [best_fit, improved] = counts_of(samples, 1000, 16000);
  CHECK(best_fit > 2 * groups);
  CHECK(improved == 2 * groups);
}

TEST_CASE("annealing_fill keeps samples of no size, long groups and the number of groups") {
  // Groups of forty that are full, and samples of no size.
  auto samples = exact_groups(10, 40, 15, 35, 1000, 9);
  samples.insert(samples.begin() + 100, 50, 0);
  std::vector<omnibal::resources<1>> demands;
  for (std::int64_t const size : samples) demands.push_back({size});
  std::size_t largest = 0;
  omnibal::detail::with_measured(
      "test", samples, std::identity{}, std::int64_t{1000}, [&](auto&& input) {
        auto const start =
            omnibal::best_fit_decreasing(samples, std::identity{}, std::int64_t{1000});
        omnibal::grouping groups = start.groups;
        // A bound that nothing reaches, so that the walk never ends.
        omnibal::detail::annealing_fill<decltype(input.layout)> walk(input, 0);
        for (int pass = 0; pass != 400; ++pass) {
          std::size_t const before = groups.size();
          walk.run(groups, 8);
          REQUIRE(groups.size() <= before);
          omnibal::packing const packed{
              groups, {}, {.lower_bound = 10, .rounds = 1, .item_rounds = samples.size()}};
          REQUIRE(test::fault(packed, demands, omnibal::resources<1>{1000}) == "");
          for (auto const group : groups) largest = std::max(largest, group.size());
        }
        CHECK(groups.size() >= 10);
        CHECK(!walk.is_exhausted());
      });
  CHECK(largest > 40);
}

TEST_CASE("annealing_fill ends where every group has a sample above half of the capacity") {
  sizes const samples{6, 7, 8, 9};
  omnibal::detail::with_measured(
      "test", samples, std::identity{}, std::int64_t{10}, [](auto&& input) {
        omnibal::grouping groups({0, 1, 2, 3, 4}, {0, 1, 2, 3});
        omnibal::detail::annealing_fill<decltype(input.layout)> walk(input, 0);
        walk.run(groups, 8);
        CHECK(walk.is_exhausted());
        CHECK(groups.size() == 4);
      });
}
