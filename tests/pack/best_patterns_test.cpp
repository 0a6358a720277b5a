// SPDX-License-Identifier: Apache-2.0
// Plans by prices: their definition, and never more groups than best-fit decreasing.

#include "brute_force.hpp"
#include "error_text.hpp"
#include "pattern_plans.hpp"

#include <omnibal/pack/best_patterns.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::best_patterns;
using omnibal::pack_histogram;
using omnibal::resources;
using omnibal::sample_histogram;

/// Checks a plan and returns the number of groups that it saves.
template <std::size_t R>
std::uint64_t check(sample_histogram<R> const& histogram, resources<R> const& capacity) {
  auto const plan = best_patterns(histogram, capacity);
  auto const first = pack_histogram(histogram, capacity);
  REQUIRE(test::plan_fault(plan, histogram, capacity) == "");
  REQUIRE(plan.group_count <= first.group_count);
  REQUIRE(plan.lower_bound >= first.lower_bound);
  return first.group_count - plan.group_count;
}

TEST_CASE("the best patterns by hand", "[pack]") {
  // Best-fit decreasing packs two samples of 4, then three of 3: 300 and 400 groups.
  sample_histogram<1> const histogram({{3, 1200}, {4, 600}, {11, 5}});
  CHECK(pack_histogram(histogram, 10).group_count == 700);
  auto const plan = best_patterns(histogram, 10);
  using parts = std::vector<omnibal::pattern_part>;
  CHECK(plan.multiplicities == std::vector<std::uint64_t>{600});
  CHECK(plan.parts == parts{{1, 1}, {0, 2}});
  CHECK(plan.oversized == std::vector<std::uint32_t>{2});
  CHECK(plan.lower_bound == 600);
  CHECK(plan.is_proven());
  // Samples of zero size share a group that has other samples.
  sample_histogram<1> const zeros({{0, 50}, {3, 1200}, {4, 600}});
  auto const with_zeros = best_patterns(zeros, 10);
  CHECK(test::plan_fault(with_zeros, zeros, resources<1>{10}) == "");
  CHECK(with_zeros.group_count == 600);
}

TEST_CASE("best patterns contain each sample once in no more groups", "[pack]") {
  std::uint64_t saved = 0;
  for (std::uint64_t seed = 0; seed != 300; ++seed) {
    omnibal::rng::engine random(seed);
    std::uint64_t const widest[] = {12, 600, 100'000, std::uint64_t{1} << 50};
    auto const capacity =
        static_cast<std::int64_t>(2 + omnibal::rng::below(random, widest[seed % 4]));
    auto const histogram = test::random_histogram<1>(random, 25, seed % 3 == 0 ? 4 : 1000,
                                                     resources<1>{1 + capacity / 2});
    INFO("seed " << seed << ", capacity " << capacity);
    saved += check(histogram, resources<1>{capacity});

    resources<2> const two{2 + omnibal::rng::below(random, 18), capacity};
    saved += check(test::random_histogram<2>(random, 10, seed % 3 == 0 ? 4 : 1000,
                                             resources<2>{1 + two[0] / 3, 1 + two[1] / 2}),
                   two);
    resources<3> const three{two[0], two[1], std::int64_t{1} << 40};
    check(test::random_histogram<3>(random, 6, 30,
                                    resources<3>{two[0] / 2, two[1] / 2, std::int64_t{1} << 39}),
          three);
  }
  CHECK(saved > 10'000);
}

TEST_CASE("best patterns of few samples need the fewest groups or one more", "[pack]") {
  int optimal = 0;
  constexpr int repeats = 1000;
  for (std::uint64_t seed = 0; seed != repeats; ++seed) {
    omnibal::rng::engine random(seed);
    resources<1> const capacity{10 + omnibal::rng::below(random, 300)};
    auto const histogram =
        test::random_histogram<1>(random, 5, 3, resources<1>{1 + capacity[0] * 2 / 3});
    std::uint64_t const fewest = test::min_groups(test::expanded(histogram), capacity);
    auto const plan = best_patterns(histogram, capacity);
    INFO("seed " << seed);
    REQUIRE(test::plan_fault(plan, histogram, capacity) == "");
    REQUIRE(plan.lower_bound <= fewest);
    REQUIRE(plan.group_count <= fewest + 1);
    if (plan.group_count == fewest) ++optimal;

    resources<2> const two{2 + omnibal::rng::below(random, 12), capacity[0]};
    auto const pairs = test::random_histogram<2>(random, 5, 3, two);
    auto const fewest_of_pairs = test::min_groups(test::expanded(pairs), two);
    auto const plan_of_pairs = best_patterns(pairs, two);
    REQUIRE(plan_of_pairs.lower_bound <= fewest_of_pairs);
    REQUIRE(plan_of_pairs.group_count >= fewest_of_pairs);
  }
  CHECK(optimal > repeats * 97 / 100);
}

TEST_CASE("best patterns of ten billion samples are close to the bound", "[pack]") {
  for (std::uint64_t seed = 0; seed != 20; ++seed) {
    omnibal::rng::engine random(seed);
    auto const histogram = test::random_histogram<1>(random, 40, 1'000'000'000, resources<1>{5000});
    INFO("seed " << seed);
    auto const plan = best_patterns(histogram, 10'000);
    REQUIRE(test::plan_fault(plan, histogram, resources<1>{10'000}) == "");
    // Prices have 30 bits.
    REQUIRE(plan.group_count - plan.lower_bound <= 40 + plan.group_count / 5'000'000);
  }
  // The largest numbers of samples.
  constexpr std::uint64_t most = std::uint64_t{1} << 61;
  sample_histogram<1> const many({{3, 2 * most}, {4, most}});
  auto const plan = best_patterns(many, 10);
  CHECK(test::plan_fault(plan, many, resources<1>{10}) == "");
  CHECK(plan.group_count == most);
}

TEST_CASE("best patterns of extreme numbers", "[pack]") {
  constexpr auto largest = std::numeric_limits<std::int64_t>::max();
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  constexpr std::int64_t unit = largest / 10;
  sample_histogram<1> const wide({{3 * unit, 2 * most}, {4 * unit, most}, {largest, 5}});
  CHECK(pack_histogram(wide, 10 * unit).group_count > most);
  auto const plan = best_patterns(wide, 10 * unit);
  CHECK(test::plan_fault(plan, wide, resources<1>{10 * unit}) == "");
  CHECK(plan.group_count == most);
  CHECK(plan.lower_bound == most);
  sample_histogram<2> const pairs(
      {{{3 * unit, 1}, 2 * most}, {{4 * unit, 1}, most}, {{0, 4}, 7}, {{1, largest}, 5}});
  check(pairs, resources{10 * unit, std::int64_t{3}});
  check(sample_histogram<1>({{0, most}}), resources<1>{1});
  check(sample_histogram<1>({{largest, most}, {1, most}}), resources<1>{largest});
  check(sample_histogram<1>({{6, 2}}), resources<1>{5});
}

TEST_CASE("best patterns without steps are the patterns of pack_histogram", "[pack]") {
  sample_histogram<1> const histogram({{3, 1200}, {4, 600}});
  CHECK(best_patterns(histogram, 10, {.pattern_steps = 0}) == pack_histogram(histogram, 10));
  CHECK(best_patterns(sample_histogram<2>(), resources{5, 5}).group_count == 0);
  auto const text = test::error_text<std::invalid_argument>([] {
    static_cast<void>(best_patterns(sample_histogram<2>(), resources{4, 0}));
  });
  CHECK(text == "omnibal::best_patterns: capacity[1] is 0, must be positive and finite");
}

}  // namespace
