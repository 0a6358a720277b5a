// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "naive_packers.hpp"
#include "packing_digest.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

template <std::size_t R, class T, class... More>
omnibal::packing pack(std::vector<omnibal::resources<R, T>> const& samples,
                      omnibal::resources<R, T> const& capacity, More const&... more) {
  return omnibal::best_fit_decreasing(samples, std::identity{}, capacity, more...);
}

template <std::size_t R>
omnibal::packing pack(test::sample_set<R> const& set) {
  return pack(set.samples, set.capacity);
}

/// The number of groups of two-resource best-fit decreasing, the least sum of shares left winning.
std::size_t naive_two_resource_groups(test::sample_set<2> const& set) {
  auto const shares = [&](omnibal::resources<2> const& amounts) {
    return static_cast<double>(amounts[0]) / static_cast<double>(set.capacity[0]) +
           static_cast<double>(amounts[1]) / static_cast<double>(set.capacity[1]);
  };
  auto samples = set.samples;
  std::erase_if(samples, [&](auto const& sample) { return !sample.fits(set.capacity); });
  std::stable_sort(samples.begin(), samples.end(), [&](auto const& left, auto const& right) {
    return shares(left) > shares(right);
  });
  std::vector<omnibal::resources<2>> rooms;
  for (auto const& sample : samples) {
    auto best = rooms.end();
    for (auto room = rooms.begin(); room != rooms.end(); ++room) {
      if (!sample.fits(*room)) continue;
      if (best == rooms.end() || shares(*room) <= shares(*best)) best = room;
    }
    if (best == rooms.end()) best = rooms.insert(best, set.capacity);
    *best -= sample;
  }
  return rooms.size();
}

}  // namespace

TEST_CASE("best_fit_decreasing of one resource has the groups of a naive one") {
  for (auto const& set : test::all_sets<1>(1, 600)) {
    INFO(set.name);
    CHECK(pack(set).groups == test::naive_best_fit(set.samples, set.capacity[0]));
  }
}

TEST_CASE("best_fit_decreasing of one resource has the groups of a naive one at any capacity") {
  // Capacities where rooms have a bucket each, where they share buckets, and where they do so
  // because noise leaves no common divisor.
  for (std::int64_t const capacity :
       {std::int64_t{1}, std::int64_t{7}, std::int64_t{4095}, std::int64_t{4096},
        std::int64_t{4097}, std::int64_t{100'003}, std::int64_t{1} << 20,
        (std::int64_t{1} << 33) + 5, (std::int64_t{1} << 40) - 1,
        std::numeric_limits<std::int64_t>::max()}) {
    for (std::int64_t const divisor : {1, 2, 3, 20}) {
      INFO(capacity << " / " << divisor);
      test::random_amounts random(static_cast<std::uint64_t>(capacity));
      auto const samples = test::make_samples<1>(
          5000, [&](std::size_t, std::size_t) { return random.between(0, capacity / divisor); });
      CHECK(pack(samples, {capacity}).groups == test::naive_best_fit(samples, capacity));
    }
  }
}

TEST_CASE("best_fit_decreasing tells rooms apart that share their leading bits") {
  // Multiples of 2^33, of 2^20 and of 2^11 with noise far below the resolution of a bucket.
  for (unsigned const shift : {33u, 20u, 11u}) {
    for (std::int64_t const noise : {1, 2, 100}) {
      INFO(shift << " bits, noise " << noise);
      test::random_amounts random(shift);
      auto const samples = test::make_samples<1>(5000, [&](std::size_t, std::size_t) {
        return (random.between(0, 40) << shift) + random.between(0, noise);
      });
      std::int64_t const capacity = (std::int64_t{100} << shift) + 5 * noise / 2;
      CHECK(pack(samples, {capacity}).groups == test::naive_best_fit(samples, capacity));
    }
  }
}

TEST_CASE("best_fit_decreasing takes at most 11/9 of the fewest groups and one more") {
  test::random_amounts random(2);
  for (int repeat = 0; repeat != 2000; ++repeat) {
    std::int64_t const capacity = random.between(1, 40);
    auto const samples = test::make_samples<1>(
        static_cast<std::size_t>(random.between(0, 9)),
        [&](std::size_t, std::size_t) { return random.between(0, capacity); });
    omnibal::resources<1> const limits{capacity};
    auto const groups = pack(samples, limits).groups.size();
    auto const fewest = test::min_groups(samples, limits);
    REQUIRE(groups >= fewest);
    REQUIRE(9 * groups <= 11 * fewest + 9);
  }
}

TEMPLATE_TEST_CASE("best_fit_decreasing does not depend on the unit of a resource", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::small_sets<TestType::value>(4, 500)) {
    INFO(set.name);
    auto const pack_once = [](auto const& some) { return pack(some.samples, some.capacity); };
    auto const large = pack_once(test::scaled(set, std::int64_t{1} << 30));
    auto const odd = pack_once(test::scaled(set, 1000000007));
    CHECK(large == odd);
    CHECK(large.oversized == pack_once(set).oversized);
    CHECK(large.groups == pack_once(set).groups);
  }
}

TEST_CASE("best_fit_decreasing ignores a second resource that never binds") {
  for (auto const& set : test::small_sets<1>(5, 800)) {
    INFO(set.name);
    auto const groups = pack(set).groups.size();
    std::vector<omnibal::resources<2>> zero;
    std::vector<omnibal::resources<2>> constant;
    for (auto const& sample : set.samples) {
      zero.push_back({sample[0], 0});
      constant.push_back({1, sample[0]});
    }
    CHECK(pack(zero, {set.capacity[0], 1}).groups.size() == groups);
    // Here the rooms of several groups share a level.
    CHECK(pack(constant, {std::int64_t{1} << 30, set.capacity[0]}).groups.size() <=
          groups + groups / 100 + 1);
  }
}

TEST_CASE("best_fit_decreasing of two resources has about as many groups as a naive one") {
  std::size_t groups = 0;
  std::size_t naive_groups = 0;
  auto const compare = [&](test::sample_set<2> const& set) {
    INFO(set.name << ", " << set.samples.size() << " samples");
    auto const count = pack(set.samples, set.capacity).groups.size();
    auto const naive_count = naive_two_resource_groups(set);
    CHECK(static_cast<double>(count) <= 1.02 * static_cast<double>(naive_count) + 1);
    groups += count;
    naive_groups += naive_count;
  };
  for (auto const& set : test::all_sets<2>(9, 800)) compare(set);
  // So many groups that their rooms share levels.
  for (auto const& set : test::small_sets<2>(9, 3000)) compare(set);
  CHECK(static_cast<double>(groups) <= 1.001 * static_cast<double>(naive_groups));
}

TEST_CASE("best_fit_decreasing looks at each sample once") {
  auto const check = [](omnibal::packing const& result) {
    CHECK(result.report.rounds == 1);
    CHECK(result.report.item_rounds == 300);
    CHECK(result.report.below_keep == 0);
  };
  check(pack(test::small_sets<1>(7, 300).back()));
  check(pack(test::small_sets<2>(7, 300).back()));
}

TEST_CASE(
    "best_fit_decreasing prefers the fullest group, the oldest sample and the youngest room") {
  auto const groups = [](std::vector<int> const& sizes, int capacity) {
    return omnibal::best_fit_decreasing(sizes, std::identity{}, capacity).groups;
  };
  // 3 goes beside 7, not beside 6.
  CHECK(groups({6, 7, 3}, 10) == omnibal::grouping({0, 2, 3}, {1, 2, 0}));
  // Equal samples by ascending index.
  CHECK(groups({4, 4, 4, 4, 4}, 10) == omnibal::grouping({0, 2, 4, 5}, {0, 1, 2, 3, 4}));
  // Of equal rooms the one that arose last.
  CHECK(groups({7, 7, 3}, 10) == omnibal::grouping({0, 1, 3}, {0, 1, 2}));
}

TEST_CASE("best_fit_decreasing takes a user's score") {
  omnibal::resources<2> const capacity{10, 10};
  std::vector<omnibal::resources<2>> const samples{{8, 2}, {2, 9}, {1, 1}};
  // The third sample fits beside both others. By default it joins the fuller one, the second.
  omnibal::grouping const with_first({0, 1, 3}, {1, 0, 2});
  omnibal::grouping const with_second({0, 2, 3}, {1, 2, 0});
  auto const groups = [&](auto const& score) {
    return pack(samples, capacity, omnibal::best_fit_decreasing_options{}, score).groups;
  };
  CHECK(pack(samples, capacity).groups == with_second);
  CHECK(groups([](auto const& left, auto const&) { return left[0]; }) == with_first);
  CHECK(groups([](auto const& left, auto const&) { return left[1]; }) == with_second);
}

TEST_CASE("best_fit_decreasing scores what is left in the user's units") {
  omnibal::resources<2> const capacity{std::int64_t{10} << 40, 1000};
  std::vector<omnibal::resources<2>> samples;
  for (std::int64_t i = 0; i != 40; ++i) samples.push_back({(i % 4 + 1) << 40, 10 * (i % 7)});
  auto const score = [&](omnibal::resources<2> const& left, omnibal::resources<2> const& demand) {
    CHECK((left + demand).fits(capacity));
    CHECK(std::find(samples.begin(), samples.end(), demand) != samples.end());
    CHECK((left[0] % (std::int64_t{1} << 40) == 0 && left[1] % 10 == 0));
    return left[0];
  };
  CHECK(
      pack(samples, capacity, omnibal::best_fit_decreasing_options{}, score).groups.item_count() ==
      40);
}

TEST_CASE("best_fit_decreasing never scores less than nothing left") {
  // 1.0 - 0.8 is a little less than 0.2, yet 0.8 + 0.2 is 1.0.
  std::vector<omnibal::resources<1, double>> const samples{{0.8}, {0.2}, {0.2}};
  auto const score = [](auto const& left, auto const&) {
    CHECK(left[0] >= 0.0);
    return left[0];
  };
  omnibal::resources<1, double> const capacity{1.0};
  CHECK(pack(samples, capacity, omnibal::best_fit_decreasing_options{}, score).groups.size() == 2);
  CHECK(pack(samples, capacity).groups.size() == 2);
}

TEST_CASE("best_fit_decreasing takes the largest share or the sum of shares as size") {
  omnibal::resources<2> const capacity{10, 10};
  std::vector<omnibal::resources<2>> const samples{{5, 5}, {6, 0}, {4, 4}};
  auto const groups = [&](omnibal::size_measure measure) {
    return pack(samples, capacity, omnibal::best_fit_decreasing_options{measure}).groups;
  };
  // By sum 5+5, 4+4, 6+0; by largest share 6, 5, 4.
  CHECK(groups(omnibal::size_measure::sum_of_shares) == omnibal::grouping({0, 2, 3}, {0, 2, 1}));
  CHECK(groups(omnibal::size_measure::largest_share) == omnibal::grouping({0, 1, 3}, {1, 0, 2}));
}

TEST_CASE("best_fit_decreasing gives a golden result") {
  test::random_amounts random(1);
  auto const samples = test::make_samples<2>(5000, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.heavy_tail(4096) : random.between(0, 5);
  });
  std::vector<omnibal::resources<1>> tokens;
  for (auto const& sample : samples) tokens.push_back({sample[0]});
  CHECK(test::digest(pack(tokens, {4096})) == 0x996a92ee956436);
  CHECK(test::digest(pack(samples, {4096, 9})) == 0x6fec508bbe5ef746);
}
