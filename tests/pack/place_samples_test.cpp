// SPDX-License-Identifier: Apache-2.0
// Shards of a plan: shares that add up, and groups that contain each sample once.

#include "error_text.hpp"

#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/pack/place_samples.hpp>
#include <omnibal/pack/share_of_shard.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::count_samples;
using omnibal::no_group;
using omnibal::pack_histogram;
using omnibal::place_samples;
using omnibal::resources;
using omnibal::sample_histogram;
using omnibal::share_of_shard;

constexpr std::identity itself{};

/// Samples of which some are oversized.
std::vector<resources<2>> make_samples(std::size_t count, std::uint64_t seed) {
  omnibal::rng::engine random(seed);
  std::vector<resources<2>> samples(count);
  for (auto& sample : samples) {
    sample = {omnibal::rng::below(random, 11), omnibal::rng::below(random, 12) * 9};
  }
  return samples;
}

resources<2> const capacity{9, 90};

/// The group of each sample, of `shards` consecutive shards of the samples.
std::vector<std::uint64_t> groups_of_shards(omnibal::pattern_plan<2> const& plan,
                                            std::vector<resources<2>> const& samples,
                                            std::size_t shards) {
  sample_histogram<2> before;
  std::vector<std::uint64_t> result;
  for (std::size_t s = 0; s != shards; ++s) {
    auto const end_of = [&](std::size_t shard) {
      return samples.begin() + static_cast<std::ptrdiff_t>(shard * samples.size() / shards);
    };
    std::vector<resources<2>> const own(end_of(s), end_of(s + 1));
    auto const groups = place_samples(plan, before, own, itself);
    result.insert(result.end(), groups.begin(), groups.end());
    before.merge(count_samples(own, itself));
  }
  return result;
}

TEST_CASE("groups contain each sample once, as the patterns say", "[pack]") {
  for (std::size_t const count : {0u, 1u, 20u, 3000u}) {
    auto const samples = make_samples(count, count);
    auto const plan = pack_histogram(count_samples(samples, itself), capacity);
    auto const groups = groups_of_shards(plan, samples, 1);
    REQUIRE(groups.size() == count);
    // The entries of the samples in each group.
    std::vector<std::map<std::uint32_t, std::uint64_t>> contents(
        static_cast<std::size_t>(plan.group_count));
    for (std::size_t i = 0; i != count; ++i) {
      REQUIRE((groups[i] == no_group) == !samples[i].fits(capacity));
      if (groups[i] == no_group) continue;
      REQUIRE(groups[i] < plan.group_count);
      ++contents[static_cast<std::size_t>(groups[i])]
                [static_cast<std::uint32_t>(plan.histogram.find(samples[i]))];
    }
    std::size_t group = 0;
    for (std::size_t p = 0; p != plan.multiplicities.size(); ++p) {
      std::map<std::uint32_t, std::uint64_t> expected;
      for (auto const part : plan.pattern(p)) expected[part.entry] += part.count;
      for (std::uint64_t k = 0; k != plan.multiplicities[p]; ++k) {
        REQUIRE(contents[group++] == expected);
      }
    }
    // The groups do not depend on the number of shards.
    for (std::size_t const shards : {2u, 3u, 7u, 64u}) {
      CHECK(groups_of_shards(plan, samples, shards) == groups);
    }
  }
}

TEST_CASE("equal samples fill groups in order", "[pack]") {
  std::vector<int> const lengths{4, 6, 4, 4, 6, 12, 4};
  auto const plan = pack_histogram(count_samples(lengths, itself), 10);
  CHECK(plan.multiplicities == std::vector<std::uint64_t>{2, 1});
  std::vector<std::uint64_t> const groups{0, 0, 1, 2, 1, no_group, 2};
  CHECK(place_samples(plan, sample_histogram<1>(), lengths, itself) == groups);
}

TEST_CASE("shares of shards add up to the plan", "[pack]") {
  omnibal::rng::engine random(3);
  for (std::size_t const shards : {1u, 2u, 3u, 7u, 64u}) {
    omnibal::pattern_plan<1> plan;
    for (std::size_t p = 0; p != 100; ++p) {
      plan.multiplicities.push_back(1 + omnibal::rng::below(random, p % 3 == 0 ? 3 : 200));
      plan.group_count += plan.multiplicities.back();
    }
    std::vector<std::uint64_t> sums(plan.multiplicities.size(), 0);
    for (std::size_t shard = 0; shard != shards; ++shard) {
      auto const share = share_of_shard(plan, shard, shards);
      REQUIRE(share.size() == sums.size());
      std::uint64_t group = 0;
      for (std::size_t p = 0; p != share.size(); ++p) {
        std::uint64_t own = 0;
        for (std::uint64_t k = 0; k != plan.multiplicities[p]; ++k) {
          if (group++ % shards == shard) ++own;
        }
        REQUIRE(share[p] == own);
        REQUIRE(share[p] >= plan.multiplicities[p] / shards);
        REQUIRE(share[p] <= (plan.multiplicities[p] + shards - 1) / shards);
        sums[p] += share[p];
      }
      auto const total = std::accumulate(share.begin(), share.end(), std::uint64_t{0});
      REQUIRE(total >= plan.group_count / shards);
      REQUIRE(total <= (plan.group_count + shards - 1) / shards);
    }
    CHECK(sums == plan.multiplicities);
  }
  // Nothing exceeds 64 bits.
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  omnibal::pattern_plan<1> plan;
  plan.multiplicities = {most - 1, 1};
  std::size_t const shards = std::numeric_limits<std::size_t>::max();
  CHECK(share_of_shard(plan, 5, shards) == std::vector<std::uint64_t>{1, 0});
  CHECK(share_of_shard(plan, most - 1, shards) == std::vector<std::uint64_t>{0, 1});
  CHECK(share_of_shard(plan, most, shards) == std::vector<std::uint64_t>{0, 0});
  CHECK(share_of_shard(plan, 1, 2) == std::vector<std::uint64_t>{most / 2, 0});
}

TEST_CASE("wrong arguments of shards are named with their values", "[pack]") {
  std::vector<int> const lengths{4, 6, 4};
  auto const plan = pack_histogram(count_samples(lengths, itself), 10);
  auto const error_of = [](auto const& call) {
    return test::error_text<std::invalid_argument>([&] { static_cast<void>(call()); });
  };
  CHECK(error_of([&] { return share_of_shard(plan, 0, 0); }) ==
        "omnibal::share_of_shard: shards is 0, must be positive");
  CHECK(error_of([&] { return share_of_shard(plan, 3, 3); }) ==
        "omnibal::share_of_shard: shard is 3, must be below shards, which is 3");
  sample_histogram<1> const before({{4, 1}});
  CHECK(error_of([&] { return place_samples(plan, before, lengths, itself); }) ==
        "omnibal::place_samples: demand of sample 2 is 4, but the plan has no further sample with "
        "this demand");
  CHECK(error_of([&] { return place_samples(plan, {}, std::vector<int>{5}, itself); }) ==
        "omnibal::place_samples: demand of sample 0 is 5, but the plan has no further sample with "
        "this demand");
  CHECK(
      error_of([&] {
        return place_samples(plan, sample_histogram<1>({{4, 2}, {6, 3}}), lengths, itself);
      }) ==
      "omnibal::place_samples: before.entries()[1] has 3 samples, must be at most 1, the number in "
      "the plan");
  CHECK(
      error_of([&] {
        return place_samples(plan, sample_histogram<1>({{5, 1}}), lengths, itself);
      }) ==
      "omnibal::place_samples: before.entries()[0] has 1 samples, must be at most 0, the number in "
      "the plan");
}

}  // namespace
