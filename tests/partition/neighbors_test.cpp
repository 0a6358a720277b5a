// SPDX-License-Identifier: Apache-2.0
#include "all_cuts.hpp"
#include "samples.hpp"
#include "to_vector.hpp"

#include <omnibal/partition/neighbors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using test::cuts;

static_assert(std::input_iterator<omnibal::neighborhood::iterator>);
static_assert(std::ranges::input_range<omnibal::neighborhood const>);

std::uint64_t distance(cuts const& left, cuts const& right) {
  std::uint64_t sum = 0;
  for (std::size_t s = 0; s != left.size(); ++s) {
    sum += std::max(left[s], right[s]) - std::min(left[s], right[s]);
  }
  return sum;
}

/// The same by trying all cuts and sorting them.
std::vector<cuts> neighbors_of_all(cuts const& anchor, std::size_t radius) {
  std::vector<cuts> result;
  test::for_all_cuts(anchor.back(), anchor.size() - 1, omnibal::empty_stages::forbidden,
                     [&](cuts const& tried) {
                       for (std::size_t s = 0; s != tried.size(); ++s) {
                         if (tried[s] + radius < anchor[s] || tried[s] > anchor[s] + radius) return;
                       }
                       result.push_back(tried);
                     });
  std::stable_sort(result.begin(), result.end(), [&](cuts const& left, cuts const& right) {
    return distance(left, anchor) < distance(right, anchor);
  });
  return result;
}

std::size_t count_of(omnibal::neighborhood const& range) {
  std::size_t count = 0;
  for (auto at = range.begin(); at != range.end(); ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("neighbors are all cuts in the radius, the nearest first") {
  for (std::uint64_t seed = 0; seed != 600; ++seed) {
    test::random_amounts random(seed);
    auto const stages = static_cast<std::size_t>(random.between(1, 6));
    cuts anchor{0};
    while (anchor.size() <= stages) {
      anchor.push_back(anchor.back() + static_cast<std::uint32_t>(random.between(1, 3)));
    }
    auto const radius = static_cast<std::size_t>(random.between(0, 5));
    INFO("seed " << seed);
    auto const range = omnibal::neighbors(anchor, radius);
    std::vector<cuts> made;
    for (cuts const& boundaries : range) made.push_back(boundaries);
    CHECK(made == neighbors_of_all(anchor, radius));
  }
}

TEST_CASE("three cuts that move by one have 27 neighbors, the anchor first") {
  cuts const anchor{0, 10, 20, 30, 40};
  auto const range = omnibal::neighbors(anchor, 1);
  CHECK(count_of(range) == 27);
  CHECK(*range.begin() == anchor);
  CHECK(*++range.begin() == cuts{0, 9, 20, 30, 40});
}

TEST_CASE("neighbors are made one by one, however many there are") {
  cuts anchor(65);
  for (std::size_t s = 0; s != anchor.size(); ++s) anchor[s] = static_cast<std::uint32_t>(16 * s);
  auto const range = omnibal::neighbors(anchor, 8);  // about 10^77
  auto at = range.begin();
  for (std::size_t i = 0; i != 20'000; ++i) ++at;
  // 126 are at a distance of one and 7,938 at a distance of two.
  CHECK(distance(*at, anchor) == 3);
  omnibal::neighborhood const one_stage = omnibal::neighbors(cuts{0, 7}, 1'000'000'000);
  CHECK((*one_stage.begin()).size() == 2);
}

TEST_CASE("every neighbor of narrow stages has layers in every stage") {
  cuts const anchor{0, 1, 2, 3, 4};
  auto const range = omnibal::neighbors(anchor, 3);
  CHECK(count_of(range) == 1);
}
