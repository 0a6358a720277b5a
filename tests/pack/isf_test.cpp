// SPDX-License-Identifier: Apache-2.0
#include "naive_packers.hpp"
#include "packing_digest.hpp"
#include "samples.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/keep.hpp>
#include <omnibal/rng/feistel.hpp>
#include <omnibal/rng/fisher_yates.hpp>
#include <omnibal/rng/numpy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>
#include <nlohmann/json.hpp>

namespace {

struct sample {
  std::int64_t images;
  std::int64_t tokens;
};

/// Takes indices only, and counts its calls.
struct rotate_by_one {
  int* calls = nullptr;

  void operator()(std::span<std::uint32_t> order, std::uint64_t round) const {
    if (calls != nullptr) ++*calls;
    auto const middle = static_cast<std::ptrdiff_t>((round + 1) % order.size());
    std::rotate(order.begin(), order.begin() + middle, order.end());
  }
};

/// Leaves the order as it is.
struct keep_order {
  void operator()(std::span<std::uint32_t>, std::uint64_t) const {}
};

constexpr auto keep_all = [](auto const&) { return true; };
constexpr auto keep_none = [](auto const&) { return false; };

template <std::size_t R, class Keep, class Shuffle>
void check_against_naive(std::vector<omnibal::resources<R>> const& samples,
                         omnibal::resources<R> const& capacity, omnibal::isf_options const& options,
                         Keep const& keep, Shuffle const& shuffle) {
  auto const result = omnibal::isf(samples, std::identity{}, capacity, options, keep, shuffle);
  auto expected = test::naive_isf(samples, capacity, options, keep, shuffle);
  expected.report.lower_bound = result.report.lower_bound;
  CHECK(result == expected);
}

template <std::size_t R>
void check_all_shufflers(test::sample_set<R> const& set, omnibal::isf_options const& options) {
  auto const most = omnibal::reaches_most(set.capacity);
  // Keeps groups by a property that has nothing to do with their size.
  auto const even = [](omnibal::resources<R> const& load) { return load[0] % 2 == 0; };
  check_against_naive(set.samples, set.capacity, options, most, omnibal::rng::fisher_yates{1});
  check_against_naive(set.samples, set.capacity, options, most, omnibal::rng::feistel{2});
  check_against_naive(set.samples, set.capacity, options, even, omnibal::rng::numpy_shuffle{3});
  check_against_naive(set.samples, set.capacity, options, even, rotate_by_one{});
}

}  // namespace

TEST_CASE("isf gives the groups of the reference implementation") {
  std::ifstream file(OMNIBAL_TEST_DATA_DIR "/isf_reference.json");
  auto const cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() == 5);
  for (auto const& expected : cases) {
    INFO(expected["name"].get<std::string>());
    auto const images = expected["images"].get<std::vector<std::int64_t>>();
    auto const tokens = expected["tokens"].get<std::vector<std::int64_t>>();
    std::vector<sample> samples;
    for (std::size_t i = 0; i != images.size(); ++i) samples.push_back({images[i], tokens[i]});
    omnibal::resources<2> const capacity{expected["capacity"]["images"].get<std::int64_t>(),
                                         expected["capacity"]["tokens"].get<std::int64_t>()};
    std::int64_t const full_images = expected["keep"]["images_equal"];
    std::int64_t const full_tokens = expected["keep"]["tokens_at_least"];
    auto const keep = [&](omnibal::resources<2> const& load) {
      return load[0] == full_images || load[1] >= full_tokens;
    };
    auto const result = omnibal::isf(samples, omnibal::demand_of(&sample::images, &sample::tokens),
                                     capacity, {.rounds = expected["rounds"]}, keep,
                                     omnibal::rng::numpy_shuffle{expected["seed"]});
    omnibal::grouping const groups(expected["offsets"].get<std::vector<std::uint32_t>>(),
                                   expected["items"].get<std::vector<std::uint32_t>>());
    CHECK(result.groups == groups);
    CHECK(result.oversized.empty());
  }
}

TEMPLATE_TEST_CASE("isf gives the groups of a naive isf", "",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  for (auto const& set : test::all_sets<TestType::value>(1, 60)) {
    INFO(set.name);
    check_all_shufflers(set, {.rounds = 6});
    check_all_shufflers(set, {.rounds = 20, .min_gain = 0.3});
  }
}

TEST_CASE("isf gives the groups of a naive isf around the ends of blocks") {
  for (std::size_t const count : {1u, 1022u, 1023u, 1024u, 1025u, 2047u, 2048u, 2049u, 5000u}) {
    INFO(count);
    // Groups of few samples, of hundreds, and of more than there are in a block.
    for (std::int64_t const largest : {2000, 20, 2, 0}) {
      INFO(largest);
      test::random_amounts random(count);
      auto const samples = test::make_samples<2>(count, [&](std::size_t, std::size_t r) {
        return r == 0 ? random.between(0, largest) : random.between(0, 4);
      });
      check_all_shufflers(test::sample_set<2>{"", {4096, largest == 2000 ? 9 : 4000}, samples},
                          {.rounds = 4});
    }
  }
}

TEST_CASE("isf gives the groups of a naive isf where a group begins or ends with a block") {
  // Samples that take a whole group lie at random places between samples that take nothing.
  for (std::int64_t const gap : {1, 511, 512, 1023, 1024, 1025, 2048, 3000}) {
    INFO(gap);
    auto const samples = test::make_samples<1>(4100, [&](std::size_t i, std::size_t) {
      return static_cast<std::int64_t>(i) % gap == 0 ? 10 : 0;
    });
    for (bool const kept : {false, true}) {
      auto const keep = [kept](omnibal::resources<1> const& load) {
        return (load[0] == 10) == kept;
      };
      check_against_naive(samples, {10}, {.rounds = 3}, keep, keep_order{});
      check_against_naive(samples, {10}, {.rounds = 3}, keep, rotate_by_one{});
    }
  }
}

TEST_CASE("isf runs one round where one is asked for") {
  std::vector<std::int64_t> const lengths{7, 4, 9, 2};
  auto const result = omnibal::isf(lengths, std::identity{}, 10, {.rounds = 1},
                                   omnibal::reaches_any{omnibal::resources{9}}, keep_order{});
  CHECK(result.groups == omnibal::grouping({0, 1, 2, 3, 4}, {0, 1, 2, 3}));
  CHECK(result.report ==
        omnibal::packing_report{.lower_bound = 3, .rounds = 1, .item_rounds = 4, .below_keep = 3});
}

TEST_CASE("isf ends when the pool is empty") {
  int calls = 0;
  std::vector<std::int64_t> const lengths(100, 5);
  auto const result =
      omnibal::isf(lengths, std::identity{}, 10, {.rounds = 50}, keep_all, rotate_by_one{&calls});
  CHECK(calls == 1);
  CHECK(result.report.rounds == 1);
  CHECK(result.report.item_rounds == 100);
  CHECK(result.report.below_keep == 0);

  auto const nothing = omnibal::isf(std::vector<std::int64_t>{11, 12}, std::identity{}, 10,
                                    {.rounds = 50}, keep_none, rotate_by_one{&calls});
  CHECK(calls == 1);
  CHECK(nothing.report == omnibal::packing_report{});
  CHECK(nothing.oversized == std::vector<std::uint32_t>{0, 1});
}

TEST_CASE("isf keeps every group in its last round and counts those below the rule") {
  std::vector<std::int64_t> const lengths(100, 5);
  auto const result = omnibal::isf(lengths, std::identity{}, 10, {.rounds = 7}, keep_none);
  CHECK(result.groups.size() == 50);
  CHECK(result.report.rounds == 7);
  CHECK(result.report.item_rounds == 700);
  CHECK(result.report.below_keep == 50);
}

TEST_CASE("isf runs its last round after a round that gains too little") {
  // In each round the one sample of ten leaves, until none is left.
  std::vector<std::int64_t> lengths(99, 6);
  lengths.push_back(10);
  auto const keep = omnibal::reaches_any{omnibal::resources{10}};
  auto const rounds = [&](double min_gain) {
    return omnibal::isf(lengths, std::identity{}, 10, {.rounds = 50, .min_gain = min_gain}, keep)
        .report.rounds;
  };
  CHECK(rounds(0.0) == 50);
  CHECK(rounds(0.005) == 3);
  CHECK(rounds(0.01) == 3);
  CHECK(rounds(0.02) == 2);
  CHECK(rounds(1.0) == 2);
}

TEST_CASE("isf returns rejected samples in the order of the pool") {
  // The first round keeps 10 and rejects the rest, which the second finds in their order.
  std::vector<std::int64_t> const lengths{3, 8, 10, 4, 7, 10, 5};
  auto const result = omnibal::isf(lengths, std::identity{}, 10, {.rounds = 2},
                                   omnibal::reaches_any{omnibal::resources{10}}, keep_order{});
  CHECK(result.groups == omnibal::grouping({0, 1, 2, 3, 4, 5, 6, 7}, {2, 5, 0, 1, 3, 4, 6}));
}

TEST_CASE("isf calls a shuffler with the size of the pool and the number of the round") {
  std::vector<std::pair<std::size_t, std::uint64_t>> calls;
  auto const shuffle = [&calls](std::span<std::uint32_t> order, std::uint64_t round) {
    calls.emplace_back(order.size(), round);
  };
  std::vector<std::int64_t> const lengths{10, 6, 6, 11};
  auto const result = omnibal::isf(lengths, std::identity{}, 10, {.rounds = 3},
                                   omnibal::reaches_any{omnibal::resources{10}}, shuffle);
  CHECK(calls == std::vector<std::pair<std::size_t, std::uint64_t>>{{3, 0}, {2, 1}, {2, 2}});
  CHECK(result.groups.size() == 3);
}

TEST_CASE("isf has defaults") {
  auto const set = test::small_sets<2>(2, 500).back();
  auto const pack = [&](auto const&... more) {
    return omnibal::isf(set.samples, std::identity{}, set.capacity, more...);
  };
  // 4096 - 128 tokens, and 9 - 9 / 32 images.
  omnibal::reaches_any const most{omnibal::resources{3968, 9}};
  auto const result = pack();
  CHECK(result == pack(omnibal::isf_options{.rounds = 50, .min_gain = 0.0}));
  CHECK(result == pack(omnibal::isf_options{}, most));
  CHECK(result == pack(omnibal::isf_options{}, most, omnibal::rng::fisher_yates{0}));
  CHECK(result.groups != pack(omnibal::isf_options{}, most, omnibal::rng::fisher_yates{1}).groups);
}

TEST_CASE("reaches_any keeps a load at the threshold of any resource") {
  omnibal::reaches_any const rule{omnibal::resources{9, 4000}};
  CHECK(rule(omnibal::resources{9, 0}));
  CHECK(rule(omnibal::resources{0, 4000}));
  CHECK_FALSE(rule(omnibal::resources{8, 3999}));
  CHECK(omnibal::reaches_most(omnibal::resources{4096, 33}).threshold ==
        omnibal::resources{3968, 32});
}

TEST_CASE("isf does not depend on the unit of a resource") {
  for (auto const& set : test::small_sets<2>(3, 300)) {
    INFO(set.name);
    auto const keep_of = [](test::sample_set<2> const& of) {
      auto threshold = of.capacity;
      threshold[0] = of.capacity[0] / 4096 * 4000;
      return omnibal::reaches_any{threshold};
    };
    auto const pack = [&](test::sample_set<2> const& of) {
      return omnibal::isf(of.samples, std::identity{}, of.capacity, {.rounds = 5}, keep_of(of));
    };
    auto const expected = pack(set);
    CHECK(pack(test::scaled(set, std::int64_t{1} << 30)).groups == expected.groups);
    CHECK(pack(test::scaled(set, 1000000007)).groups == expected.groups);
  }
}

TEST_CASE("isf gives a golden result") {
  test::random_amounts random(1);
  auto const samples = test::make_samples<2>(5000, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.heavy_tail(4096) : random.between(0, 5);
  });
  omnibal::resources<2> const capacity{4096, 9};
  auto const digest = [&](auto const& shuffle) {
    return test::digest(omnibal::isf(samples, std::identity{}, capacity, {.rounds = 10},
                                     omnibal::reaches_most(capacity), shuffle));
  };
  CHECK(digest(omnibal::rng::fisher_yates{5}) == 0xc41dcd84d9846702);
  CHECK(digest(omnibal::rng::feistel{5}) == 0x5f6f777f3bce3706);
  CHECK(digest(omnibal::rng::numpy_shuffle{5}) == 0x94d4254013c9dd8d);
}
