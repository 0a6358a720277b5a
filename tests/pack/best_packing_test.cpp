// SPDX-License-Identifier: Apache-2.0
#include "brute_force.hpp"
#include "packing_faults.hpp"
#include "samples.hpp"

#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/isf.hpp>

#include <cstddef>
#include <functional>
#include <vector>

#include <catch.hpp>

namespace {

template <std::size_t R, class... More>
omnibal::packing pack(std::vector<omnibal::resources<R>> const& samples,
                      omnibal::resources<R> const& capacity, More const&... more) {
  return omnibal::best_packing(samples, std::identity{}, capacity, more...);
}

template <std::size_t R>
omnibal::packing pack(test::sample_set<R> const& set) {
  return pack(set.samples, set.capacity);
}

}  // namespace

TEST_CASE("best_packing of several resources is near the fewest groups") {
  test::random_amounts random(3);
  std::size_t optimal = 0;
  for (int repeat = 0; repeat != 1000; ++repeat) {
    omnibal::resources<2> const capacity{random.between(1, 40), random.between(1, 9)};
    auto const samples = test::make_samples<2>(
        static_cast<std::size_t>(random.between(0, 9)),
        [&](std::size_t, std::size_t r) { return random.between(0, capacity[r]); });
    auto const groups = pack(samples, capacity).groups.size();
    auto const fewest = test::min_groups(samples, capacity);
    REQUIRE(groups >= fewest);
    REQUIRE(groups <= fewest + 1);
    if (groups == fewest) ++optimal;
  }
  CHECK(optimal > 950);
}

TEST_CASE("best_packing of two resources has no more groups than isf") {
  for (std::size_t const count : {400u, 3000u}) {
    for (auto const& set : test::all_sets<2>(6, count)) {
      INFO(set.name << ", " << count << " samples");
      auto const isf = omnibal::isf(set.samples, std::identity{}, set.capacity);
      CHECK(pack(set).groups.size() <= isf.groups.size());
    }
  }
}

TEST_CASE("best_packing of several resources keeps the best of its orders") {
  for (auto const& set : test::small_sets<2>(8, 100)) {
    INFO(set.name);
    std::size_t groups = set.samples.size() + 1;
    for (std::size_t const orders : {1u, 2u, 3u, 10u, 256u}) {
      auto const result =
          pack(set.samples, set.capacity, omnibal::best_packing_options{.orders = orders});
      CHECK(result.report.rounds >= 1);
      CHECK(result.report.item_rounds >= result.groups.item_count());
      CHECK(result.report.below_keep == 0);
      CHECK(result.groups.size() <= groups);
      if (orders == 1) {
        CHECK(result.report.rounds == 1);
        CHECK(result.report.item_rounds == result.groups.item_count());
        auto const one = omnibal::best_fit_decreasing(set.samples, std::identity{}, set.capacity);
        CHECK(result == one);
      }
      // Fewer orders than allowed were enough for the lower bound, or too expensive.
      CHECK((result.report.rounds >= orders || orders > 100 ||
             result.groups.size() == result.report.lower_bound));
      groups = result.groups.size();
    }
  }
}

TEST_CASE("best_packing never has more groups for more effort") {
  using omnibal::effort;
  std::size_t fewer = 0;
  for (std::size_t const count : {5u, 60u, 700u, 5000u, 20000u}) {
    for (auto const& set : test::small_sets<2>(9, count)) {
      INFO(set.name << ", " << count << " samples");
      auto const groups = [&](effort much) {
        auto const result =
            pack(set.samples, set.capacity, omnibal::best_packing_options{.effort = much});
        CHECK(test::fault(result, set.samples, set.capacity) == "");
        return result.groups.size();
      };
      std::size_t const fast = groups(effort::fast);
      std::size_t const normal = groups(effort::normal);
      std::size_t const thorough = groups(effort::thorough);
      CHECK(normal <= fast);
      CHECK(thorough <= normal);
      fewer += fast - thorough;
    }
  }
  CHECK(fewer != 0);
}

TEST_CASE("best_packing of one integer resource is best_fit_decreasing") {
  for (auto const& set : test::all_sets<1>(7, 300)) {
    INFO(set.name);
    CHECK(pack(set) == omnibal::best_fit_decreasing(set.samples, std::identity{}, set.capacity));
  }
}
