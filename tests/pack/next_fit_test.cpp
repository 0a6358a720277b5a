// SPDX-License-Identifier: Apache-2.0
#include "naive_packers.hpp"
#include "samples.hpp"

#include <omnibal/pack/next_fit.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <vector>

#include <catch.hpp>

TEMPLATE_TEST_CASE("next_fit gives the groups of a naive next-fit", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::all_sets<TestType::value>(1, 500)) {
    INFO(set.name);
    auto const result = omnibal::next_fit(set.samples, std::identity{}, set.capacity);
    auto const expected = test::naive_next_fit(set.samples, set.capacity);
    CHECK(result.groups == expected.groups);
    CHECK(result.oversized == expected.oversized);
    CHECK(result.report.rounds == 1);
    CHECK(result.report.item_rounds == result.groups.item_count());
    CHECK(result.report.below_keep == 0);
  }
}

TEST_CASE("next_fit sums floating-point demands in the order of the samples") {
  test::random_amounts random(2);
  for (int repeat = 0; repeat != 200; ++repeat) {
    std::vector<omnibal::resources<2, double>> samples(50);
    for (auto& sample : samples) {
      for (double& amount : sample.amounts) {
        amount = static_cast<double>(random.between(0, 6)) * 0.1;
      }
    }
    omnibal::resources<2, double> const capacity{1.0, 1.2};
    auto const result = omnibal::next_fit(samples, std::identity{}, capacity);
    CHECK(result.groups == test::naive_next_fit(samples, capacity).groups);
  }
}

TEST_CASE("next_fit closes a group at the first sample that does not fit") {
  std::vector<std::int64_t> const lengths{6, 4, 2, 9, 11, 1, 0, 10};
  auto const result = omnibal::next_fit(lengths, std::identity{}, 10);
  omnibal::grouping const groups({0, 2, 3, 6, 7}, {0, 1, 2, 3, 5, 6, 7});
  CHECK(result.oversized == std::vector<std::uint32_t>{4});
  CHECK(result.groups == groups);
}

TEST_CASE("next_fit takes at most twice the fewest groups") {
  for (auto const& set : test::small_sets<1>(3, 400)) {
    INFO(set.name);
    auto const result = omnibal::next_fit(set.samples, std::identity{}, set.capacity);
    std::int64_t volume = 0;
    for (auto const& sample : set.samples) {
      if (sample.fits(set.capacity)) volume += sample[0];
    }
    CHECK(static_cast<std::int64_t>(result.groups.size()) * set.capacity[0] <=
          2 * volume + set.capacity[0]);
  }
}
