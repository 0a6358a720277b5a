// SPDX-License-Identifier: Apache-2.0
// Plans of patterns: their definition, and the groups of best-fit decreasing sample by sample.

#include "brute_force.hpp"
#include "error_text.hpp"
#include "pattern_plans.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::best_fit_decreasing;
using omnibal::count_samples;
using omnibal::pack_histogram;
using omnibal::resources;
using omnibal::sample_histogram;
using test::expanded;
using test::plan_fault;
using test::random_histogram;

constexpr std::identity itself{};

TEST_CASE("patterns of a histogram by hand", "[pack]") {
  auto const plan = pack_histogram(sample_histogram<1>({{6, 10}, {4, 7}, {3, 5}, {11, 2}}), 10);
  // Seven groups of 6 and 4, three groups of 6 and 3, one group of two 3; 11 is oversized.
  using parts = std::vector<omnibal::pattern_part>;
  CHECK(plan.multiplicities == std::vector<std::uint64_t>{3, 7, 1});
  CHECK(plan.parts == parts{{2, 1}, {0, 1}, {2, 1}, {1, 1}, {0, 2}});
  CHECK(plan.oversized == std::vector<std::uint32_t>{3});
  CHECK(plan.group_count == 11);
  CHECK(plan.lower_bound == 11);
  CHECK(plan.is_proven());
}

TEST_CASE("a histogram needs the groups of best-fit decreasing", "[pack]") {
  for (std::uint64_t seed = 0; seed != 6000; ++seed) {
    omnibal::rng::engine random(seed);
    std::uint64_t const widest[] = {12, 600, 5'000'000, std::uint64_t{1} << 50};
    auto const capacity =
        static_cast<std::int64_t>(1 + omnibal::rng::below(random, widest[seed % 4]));
    std::int64_t const longest =
        std::max<std::int64_t>(1, capacity / (1 + static_cast<std::int64_t>(seed / 4 % 5)) +
                                      (seed % 3 == 0 ? capacity / 8 : 0));
    auto const histogram =
        random_histogram<1>(random, 40, seed % 7 == 0 ? 3 : 60, resources<1>{longest});
    INFO("seed " << seed << ", capacity " << capacity);
    auto const plan = pack_histogram(histogram, capacity);
    REQUIRE(plan_fault(plan, histogram, resources<1>{capacity}) == "");
    auto const packed = best_fit_decreasing(expanded(histogram), itself, capacity);
    REQUIRE(plan.group_count == packed.groups.size());
    // The bound L2 is in both; prices of patterns may raise the other a little more or less.
    if (capacity > 255) REQUIRE(plan.lower_bound == packed.report.lower_bound);
  }
}

TEST_CASE("a histogram of a million samples needs the groups of best-fit decreasing", "[pack]") {
  for (std::int64_t const capacity : {4096, 131'072}) {
    omnibal::rng::engine random(static_cast<std::uint64_t>(capacity));
    std::vector<std::int64_t> lengths(1'000'000);
    for (std::int64_t& length : lengths) {
      std::uint64_t const scale = std::uint64_t{16} << omnibal::rng::below(random, 10);
      length = static_cast<std::int64_t>(1 + omnibal::rng::below(random, scale));
    }
    auto const plan = pack_histogram(count_samples(lengths, itself), capacity);
    auto const packed = best_fit_decreasing(lengths, itself, capacity);
    CHECK(plan.group_count == packed.groups.size());
    CHECK(plan.lower_bound == packed.report.lower_bound);
    std::uint64_t oversized = 0;
    for (auto const entry : plan.oversized) oversized += plan.histogram.entries()[entry].count;
    CHECK(oversized == packed.oversized.size());
  }
}

TEST_CASE("a histogram of several resources needs the groups of best-fit decreasing", "[pack]") {
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    omnibal::rng::engine random(seed);
    // The lookup of groups is exact for these capacities.
    resources<2> const capacity{1 + omnibal::rng::below(random, 18),
                                1 + omnibal::rng::below(random, 200)};
    auto const histogram = random_histogram<2>(
        random, 120, 30,
        resources<2>{1 + capacity[0] / 3, 1 + capacity[1] / static_cast<int>(1 + seed % 4)});
    INFO("seed " << seed);
    auto const plan = pack_histogram(histogram, capacity);
    REQUIRE(plan_fault(plan, histogram, capacity) == "");
    auto const packed = best_fit_decreasing(expanded(histogram), itself, capacity);
    REQUIRE(plan.group_count == packed.groups.size());

    resources<3> const three{capacity[0], capacity[1], std::int64_t{1} << 40};
    auto const other = random_histogram<3>(
        random, 60, 30, resources<3>{capacity[0] / 2, capacity[1] / 2, std::int64_t{1} << 39});
    REQUIRE(plan_fault(pack_histogram(other, three), other, three) == "");
  }
}

TEST_CASE("bounds of histograms hold", "[pack]") {
  for (std::uint64_t seed = 0; seed != 2000; ++seed) {
    omnibal::rng::engine random(seed);
    resources<2> const capacity{2 + omnibal::rng::below(random, 12),
                                2 + omnibal::rng::below(random, 300)};
    auto const histogram = random_histogram<2>(random, 4, 3, capacity);
    auto const samples = expanded(histogram);
    INFO("seed " << seed);
    REQUIRE(pack_histogram(histogram, capacity).lower_bound <= test::min_groups(samples, capacity));
  }
  // Two samples of 5 fill a group of 14, although their volume is less: the volume says 8.
  auto const images = pack_histogram(sample_histogram<1>({{5, 20}}), 14);
  CHECK(images.lower_bound == 10);
  // Large images and long texts exclude each other.
  sample_histogram<2> const mixed({{{6, 20}, 100}, {{1, 90}, 100}});
  CHECK(pack_histogram(mixed, resources{10, 100}).lower_bound == 200);
}

TEST_CASE("ten billion samples and extreme numbers", "[pack]") {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  constexpr auto most = static_cast<std::uint64_t>(largest);
  std::vector<std::uint64_t> counts(4097, 0);
  for (std::size_t v = 1; v != counts.size(); ++v) counts[v] = 10'000'000'000u / 4096 + v;
  auto const histogram = sample_histogram<1>::of_lengths(counts);
  auto const plan = pack_histogram(histogram, 4096);
  CHECK(plan_fault(plan, histogram, resources<1>{4096}) == "");
  CHECK(plan.group_count <= plan.lower_bound + 4096);
  // Samples of zero length share one group.
  sample_histogram<1> const nothing({{0, most}});
  auto const zero = pack_histogram(nothing, 1);
  CHECK(zero.group_count == 1);
  CHECK(zero.parts == std::vector<omnibal::pattern_part>{{0, most}});
  sample_histogram<1> const wide({{largest, most / 2}, {1, most / 2}});
  auto const alone = pack_histogram(wide, largest);
  CHECK(plan_fault(alone, wide, resources<1>{largest}) == "");
  CHECK(alone.group_count == most / 2 + 1);
  CHECK(alone.lower_bound == most / 2 + 1);
  sample_histogram<2> const pairs({{{0, 0}, most / 4}, {{largest, 1}, most / 4}});
  CHECK(pack_histogram(pairs, resources{largest, largest}).group_count == most / 4);
  CHECK(pack_histogram(sample_histogram<1>(), 5).group_count == 0);
  CHECK(pack_histogram(sample_histogram<2>(), resources{5, 5}).is_proven());
  auto const all_oversized = pack_histogram(sample_histogram<1>({{6, 2}}), 5);
  CHECK(all_oversized.multiplicities.empty());
  CHECK(all_oversized.lower_bound == 0);
}

TEST_CASE("wrong arguments of pack_histogram are named with their values", "[pack]") {
  auto const text = test::error_text<std::invalid_argument>([] {
    static_cast<void>(pack_histogram(sample_histogram<2>(), resources{4, 0}));
  });
  CHECK(text == "omnibal::pack_histogram: capacity[1] is 0, must be positive and finite");
}

}  // namespace
