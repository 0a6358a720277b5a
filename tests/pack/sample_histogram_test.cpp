// SPDX-License-Identifier: Apache-2.0
// Histograms of samples: counts, merges in any order, sums that are too large.

#include "error_text.hpp"

#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::count_samples;
using omnibal::demand_count;
using omnibal::resources;
using omnibal::sample_histogram;

constexpr std::identity itself{};

/// Histograms of parts of the samples, merged in an order that depends on the seed.
template <std::size_t R>
sample_histogram<R> merged_parts(std::vector<resources<R>> const& samples, std::size_t parts,
                                 std::uint64_t seed) {
  std::vector<sample_histogram<R>> counted;
  for (std::size_t p = 0; p != parts; ++p) {
    auto const end_of = [&](std::size_t part) {
      return samples.begin() + static_cast<std::ptrdiff_t>(part * samples.size() / parts);
    };
    counted.push_back(count_samples(std::vector<resources<R>>(end_of(p), end_of(p + 1)), itself));
  }
  omnibal::rng::engine random(seed);
  while (counted.size() != 1) {
    auto const other = static_cast<std::ptrdiff_t>(omnibal::rng::below(random, counted.size() - 1));
    counted.back().merge(counted[static_cast<std::size_t>(other)]);
    counted.erase(counted.begin() + other);
  }
  return counted.front();
}

TEST_CASE("a histogram has each demand once, ascending", "[pack]") {
  std::vector<int> const lengths{5, 3, 5, 0, 300'000, 5, 3, 300'000};
  auto const counted = count_samples(lengths, itself);
  std::vector<demand_count<1>> const expected{{0, 1}, {3, 2}, {5, 3}, {300'000, 2}};
  CHECK(std::equal(expected.begin(), expected.end(), counted.entries().begin(),
                   counted.entries().end()));
  CHECK(counted.sample_count() == 8);
  CHECK(counted.find(5) == 2);
  CHECK(counted.find(4) == 4);
  std::vector<demand_count<1>> const shuffled{{5, 1}, {7, 0}, {300'000, 2}, {3, 2}, {0, 1}, {5, 2}};
  CHECK(sample_histogram<1>(shuffled) == counted);
  std::vector<std::uint64_t> const by_length{1, 0, 0, 2, 0, 3};
  auto dense = sample_histogram<1>::of_lengths(by_length);
  CHECK(dense != counted);
  dense.merge(sample_histogram<1>({{300'000, 2}}));
  CHECK(dense == counted);
  CHECK(sample_histogram<2>().entries().empty());
  CHECK(count_samples(std::vector<int>{}, itself) == sample_histogram<1>());
}

TEST_CASE("histograms of many samples have the counts of a map", "[pack]") {
  omnibal::rng::engine random(1);
  std::vector<resources<2>> pairs(200'000);
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> counts;
  for (auto& pair : pairs) {
    pair = {omnibal::rng::below(random, 10), omnibal::rng::below(random, 8)
                                                 << omnibal::rng::below(random, 40)};
    ++counts[{pair[0], pair[1]}];
  }
  auto const counted = count_samples(pairs, itself);
  REQUIRE(counted.entries().size() == counts.size());
  std::size_t next = 0;
  for (auto const& [pair, count] : counts) {
    auto const& entry = counted.entries()[next++];
    REQUIRE(entry == demand_count<2>{{pair.first, pair.second}, count});
    REQUIRE(counted.find(entry.demand) == next - 1);
  }
  CHECK(counted.sample_count() == pairs.size());
  std::vector<resources<1>> lengths;
  for (auto const& pair : pairs) lengths.push_back({pair[1]});
  for (std::size_t const parts : {1u, 2u, 3u, 7u, 64u}) {
    CHECK(merged_parts(pairs, parts, parts) == counted);
    CHECK(merged_parts(pairs, parts, parts + 1) == counted);
    CHECK(merged_parts(lengths, parts, parts) == count_samples(lengths, itself));
  }
}

TEST_CASE("wrong samples of histograms are named with their values", "[pack]") {
  auto const error_of = [](auto const& call) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
  };
  CHECK(error_of([] {
          return count_samples(std::vector<int>{1, -2}, itself);
        }) ==
        "omnibal::count_samples: demand of sample 1 is -2 in resource 0, must be finite and not "
        "negative");
  CHECK(error_of([] {
          return sample_histogram<2>({{{1, 1}, 1}, {{1, -7}, 1}});
        }) ==
        "omnibal::sample_histogram: demand of entry 1 is -7 in resource 1, must be finite and not "
        "negative");
}

TEST_CASE("a histogram has at most 2^63 - 1 samples", "[pack]") {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  auto const error_of = [](auto const& call) {
    return test::error_text<std::overflow_error>([&] { static_cast<void>(call()); });
  };
  constexpr auto text =
      "omnibal::sample_histogram: the number of samples exceeds the largest value of its type";
  sample_histogram<1> full({{3, most - 1}, {5, 1}});
  CHECK(full.sample_count() == most);
  CHECK(error_of([] { return sample_histogram<1>({{3, most}, {5, 1}}); }) == text);
  CHECK(error_of([] { return sample_histogram<1>({{3, most + 1}}); }) == text);
  CHECK(error_of([] { return sample_histogram<1>({{3, most}, {3, most}, {3, most}}); }) == text);
  CHECK(error_of([] {
          return sample_histogram<1>::of_lengths(std::vector<std::uint64_t>{most, 1});
        }) == text);
  auto const before = full;
  CHECK(error_of([&] {
          full.merge(before);
          return 0;
        }) == text);
  CHECK(full == before);
}

}  // namespace
