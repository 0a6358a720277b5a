// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "samples.hpp"

#include <omnibal/rng/engine.hpp>
#include <omnibal/sample/detail/share_tree.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/sample/epoch_sampler.hpp>
#include <omnibal/sample/mixture.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::mixture;
using omnibal::mixture_options;
using omnibal::source_end;

template <class Weight>
struct data_set {
  std::uint64_t samples;
  Weight weight;
};

/// Sources of 1000 samples with these weights.
template <class Weight>
mixture mix(std::vector<Weight> const& weights, mixture_options const& options = {}) {
  std::vector<data_set<Weight>> sets;
  sets.reserve(weights.size());
  for (Weight const weight : weights) sets.push_back({1000, weight});
  return mixture(sets, &data_set<Weight>::samples, &data_set<Weight>::weight, options);
}

/// The largest difference between the draws of a source in a prefix and its share of the length.
template <class Weight>
double largest_deviation(mixture const& mixed, std::vector<Weight> const& weights,
                         std::uint64_t length) {
  auto const sum = static_cast<double>(std::accumulate(weights.begin(), weights.end(), Weight{}));
  std::vector<double> counts(weights.size(), 0);
  double largest = 0;
  for (std::uint64_t position = 0; position != length; ++position) {
    ++counts[mixed(position).source];
    for (std::size_t i = 0; i != weights.size(); ++i) {
      double const share = static_cast<double>(weights[i]) / sum;
      largest = std::max(largest, std::abs(counts[i] - share * static_cast<double>(position + 1)));
    }
  }
  return largest;
}

std::vector<std::size_t> counts_between(mixture const& mixed, std::size_t sources,
                                        std::uint64_t first, std::uint64_t last) {
  std::vector<std::size_t> counts(sources, 0);
  for (std::uint64_t p = first; p != last; ++p) ++counts[mixed(p).source];
  return counts;
}

}  // namespace

TEST_CASE("two sources alternate as evenly as can be") {
  std::vector<int> const weights{3, 1};
  auto const mixed = mix(weights);
  std::string sources;
  for (std::uint64_t p = 0; p != 12; ++p) sources += std::to_string(mixed(p).source);
  CHECK(sources == "010001000100");
  for (auto const& pair : std::vector<std::vector<int>>{{1, 1}, {1, 2}, {5, 7}, {1, 99}, {64, 1}}) {
    CHECK(largest_deviation(mix(pair), pair, 1000) <= 0.5 + 1e-9);
  }
}

TEST_CASE("no prefix is off by more than 1.68 draws of a source") {
  double worst = 0;
  auto const check = [&](std::vector<std::int64_t> const& weights) {
    auto const sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    auto const length = static_cast<std::uint64_t>(std::min<std::int64_t>(2 * sum + 7, 4000));
    double const deviation = largest_deviation(mix(weights), weights, length);
    CHECK(deviation <= 1.68);
    worst = std::max(worst, deviation);
  };
  check({1});
  check({1, 1, 1, 1, 1, 1, 1, 1, 1});
  check({1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89});
  check({1, 1, 3, 4, 7, 11, 18, 29, 47, 76, 123, 199});
  check({1, 2, 4, 8, 16, 32, 64, 128, 256});
  check({1, 0, 1000, 0, 3});
  check({333, 334, 1});
  test::random_amounts random(1);
  for (int round = 0; round != 300; ++round) {
    std::vector<std::int64_t> weights(static_cast<std::size_t>(random.between(2, 12)));
    for (auto& weight : weights) weight = 1 + random.heavy_tail(300);
    check(weights);
  }
  CHECK(worst > 0.9);  // the search looked at sequences that are not trivial
}

TEST_CASE("every block of the sum of integer weights has exactly the quotas") {
  std::vector<int> const quotas{7, 0, 1, 24, 3, 3, 26};
  for (std::uint64_t const window : {1u, 64u, 128u}) {
    auto const mixed = mix(quotas, {.window = window});
    REQUIRE(mixed.period() == 64);
    for (std::uint64_t block = 0; block != 20; block += window == 128 ? 2 : 1) {
      std::uint64_t const length = window == 128 ? 128 : 64;
      auto const counts = counts_between(mixed, 7, 64 * block, 64 * block + length);
      for (std::size_t i = 0; i != 7; ++i) {
        CHECK(counts[i] == static_cast<std::size_t>(quotas[i]) * length / 64);
      }
    }
  }
}

TEST_CASE("floating-point weights are met in the long run") {
  std::vector<double> const weights{0.7, 0.2, 0.1};
  auto const mixed = mix(weights);
  CHECK(mixed.period() >= (std::uint64_t{1} << 31) - 1);
  CHECK(mixed.period() <= (std::uint64_t{1} << 31) + 1);
  CHECK(largest_deviation(mixed, weights, 20000) <= 1.68);
  CHECK(largest_deviation(mix(std::vector<double>{0.5, 0.25, 0.25}),
                          std::vector<double>{0.5, 0.25, 0.25}, 1000) <= 1.0);
  // In any unit, and beside a weight that is far smaller.
  std::vector<double> const tiny{0.7e-300, 0.2e-300, 0.1e-300};
  std::vector<double> const beside{1.0, 1e-30};
  CHECK(counts_between(mix(tiny), 3, 0, 1000) == counts_between(mixed, 3, 0, 1000));
  CHECK(counts_between(mix(beside), 2, 0, 1000)[1] == 0);
  CHECK(mix(beside)((std::uint64_t{1} << 31) / 2).source == 1);
  // Integers with a larger sum than 2^32 are rounded as well.
  std::vector<std::int64_t> const large{std::numeric_limits<std::int64_t>::max(),
                                        std::numeric_limits<std::int64_t>::max()};
  CHECK(counts_between(mix(large), 2, 0, 1000) == std::vector<std::size_t>{500, 500});
}

TEST_CASE("a position is found from its draw") {
  test::random_amounts random(2);
  for (int round = 0; round != 100; ++round) {
    std::vector<std::uint64_t> shares(static_cast<std::size_t>(random.between(1, 9)));
    for (auto& share : shares) {
      share = static_cast<std::uint64_t>(random.heavy_tail(round % 2 == 0 ? 50 : 400'000'000));
    }
    shares.front() += 1;
    omnibal::detail::share_tree const tree(shares);
    for (int draw = 0; draw != 200; ++draw) {
      auto const position = static_cast<std::uint64_t>(
          random.between(0, static_cast<std::int64_t>(4 * tree.period())));
      REQUIRE(tree.position_of(tree.draw(position)) == position);
    }
  }
}

TEST_CASE("a source gives its samples once per epoch, as an epoch sampler would") {
  std::vector<data_set<int>> const sets{{5, 3}, {40, 2}, {1, 1}};
  mixture_options const options{.seed = 9};
  mixture const mixed(sets, &data_set<int>::samples, &data_set<int>::weight, options);
  std::vector<omnibal::epoch_sampler> samplers;
  for (std::size_t i = 0; i != sets.size(); ++i) {
    samplers.emplace_back(sets[i].samples, omnibal::shard{},
                          omnibal::epoch_sampler_options{.seed = omnibal::epoch_seed(9, i)});
  }
  for (std::uint64_t position = 0; position != 300; ++position) {
    auto const draw = mixed(position);
    auto const batch = samplers[draw.source].next();
    REQUIRE(draw.sample == batch[0]);
    REQUIRE(draw.epoch == samplers[draw.source].epoch());
  }
}

TEST_CASE("a window shuffles its draws and no others") {
  std::vector<int> const weights{5, 2, 1};
  auto const even = mix(weights, {.seed = 1});
  auto const shuffled = mix(weights, {.seed = 1, .window = 50});
  auto const draws_of = [](mixture const& mixed, std::uint64_t first) {
    std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>> draws;
    for (std::uint64_t p = first; p != first + 50; ++p) {
      auto const draw = mixed(p);
      draws.emplace_back(draw.source, draw.epoch, draw.sample);
    }
    return draws;
  };
  for (std::uint64_t first = 0; first != 500; first += 50) {
    auto before = draws_of(even, first);
    auto after = draws_of(shuffled, first);
    CHECK(before != after);
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    CHECK(before == after);
  }
  // Half of the draws of one source at even positions: with a window not all of them.
  std::vector<int> const equal{1, 1};
  auto const pair = mix(equal, {.window = 64});
  std::size_t at_even = 0;
  for (std::uint64_t p = 0; p != 6400; p += 2) at_even += pair(p).source;
  CHECK(at_even > 1400);
  CHECK(at_even < 1800);
}

TEST_CASE("a mixture stops before the first draw from a source without samples") {
  for (std::uint64_t const window : {1u, 7u, 1000u}) {
    std::vector<data_set<int>> const sets{{100, 7}, {10, 2}, {50, 1}, {0, 0}};
    mixture const mixed(sets, &data_set<int>::samples, &data_set<int>::weight,
                        {.end = source_end::stop, .window = window});
    std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
    for (std::uint64_t p = 0; p != mixed.size(); ++p) {
      auto const draw = mixed(p);
      REQUIRE(draw.epoch == 0);
      REQUIRE(draw.sample < sets[draw.source].samples);
      REQUIRE(seen.insert({draw.source, draw.sample}).second);
    }
    mixture const endless(sets, &data_set<int>::samples, &data_set<int>::weight);
    CHECK(endless.size() == omnibal::max_samples);
    CHECK(endless(mixed.size()).epoch == 1);
    CHECK(endless(mixed.size()).source == 1);
    CHECK(test::error_text<std::invalid_argument>([&] {
            static_cast<void>(mixed(mixed.size()));
          }) == "omnibal::mixture: position is 51, must be below 51");
  }
  std::vector<data_set<double>> const vast{{omnibal::max_samples, 1.0},
                                           {omnibal::max_samples, 1.0}};
  CHECK(mixture(vast, &data_set<double>::samples, &data_set<double>::weight,
                {.end = source_end::stop})
            .size() == omnibal::max_samples);
}

TEST_CASE("the draws far away are those that would come") {
  std::vector<int> const weights{2, 3, 5};
  auto const mixed = mix(weights, {.seed = 3, .window = 10});
  std::uint64_t const far = omnibal::max_samples - 7;
  CHECK(counts_between(mixed, 3, far, far + 7).size() == 3);
  auto const draw = mixed(10'000'000'000);
  CHECK(draw.epoch == (draw.source == 0 ? 2'000'000u : draw.source == 1 ? 3'000'000u : 5'000'000u));
}

TEST_CASE("ranks share a mixture through an epoch sampler and resume") {
  std::vector<int> const quotas{6, 2};
  auto const mixed = mix(quotas, {.seed = 4, .window = 8});
  auto const positions = [&](std::size_t ranks, std::size_t rank, std::size_t batch) {
    return std::pair(
        omnibal::shard{ranks, rank},
        omnibal::epoch_sampler_options{
            .batch = batch, .order = omnibal::sample_order::given, .contents = mixed.digest()});
  };
  omnibal::sampler_state state;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (std::size_t rank = 0; rank != 4; ++rank) {
    auto const [place, options] = positions(4, rank, 2);
    omnibal::epoch_sampler sampler(mixed.size(), place, options);
    for (int step = 0; step != 5; ++step) {
      for (std::uint64_t const position : sampler.next()) {
        auto const draw = mixed(position);
        REQUIRE(seen.insert({draw.source, draw.sample}).second);
      }
    }
    state = sampler.state();
  }
  CHECK(seen.size() == 40);
  for (std::size_t rank = 0; rank != 2; ++rank) {
    auto const [place, options] = positions(2, rank, 4);
    omnibal::epoch_sampler sampler(mixed.size(), place, options, state);
    for (int step = 0; step != 5; ++step) {
      for (std::uint64_t const position : sampler.next()) {
        auto const draw = mixed(position);
        REQUIRE(seen.insert({draw.source, draw.sample}).second);
      }
    }
  }
  CHECK(seen.size() == 80);
  CHECK(std::count_if(seen.begin(), seen.end(), [](auto const& s) { return s.first == 0; }) == 60);
}

TEST_CASE("mixtures differ by their digests") {
  std::vector<int> const weights{1, 2};
  std::vector<int> const others{2, 1};
  std::uint64_t const digest = mix(weights).digest();
  CHECK(digest == mix(weights).digest());
  CHECK(digest != mix(others).digest());
  CHECK(digest != mix(weights, {.seed = 1}).digest());
  CHECK(digest != mix(weights, {.window = 2}).digest());
  CHECK(digest != mix(weights, {.end = source_end::stop}).digest());
}

TEST_CASE("bad sources are errors") {
  auto const of = [](std::vector<data_set<double>> const& sets,
                     mixture_options const& options = {}) {
    return test::error_text<std::invalid_argument>(
        [&] { mixture(sets, &data_set<double>::samples, &data_set<double>::weight, options); });
  };
  CHECK(of({}) == "omnibal::mixture: there are no sources");
  CHECK(of({{1, 0}}) == "omnibal::mixture: all weights are zero");
  CHECK(of({{1, 1}, {1, -1}}) ==
        "omnibal::mixture: weight[1] is -1, must be finite and not negative");
  CHECK(of({{1, std::nan("")}}) != "no error");
  CHECK(of({{1, std::numeric_limits<double>::infinity()}}) != "no error");
  CHECK(of({{1, 1}, {0, 1}}) == "omnibal::mixture: source 1 has a weight but no samples");
  CHECK(of({{1, 1}, {0, 0}}) == "no error");
  CHECK(of({{1, 1}}, {.window = 0}) == "omnibal::mixture: options.window is 0, must be positive");
  std::vector<int> const sizes{4, -4};
  auto const one = [](int) { return 1; };
  CHECK(test::error_text<std::invalid_argument>([&] { mixture(sizes, std::identity{}, one); }) ==
        "omnibal::mixture: size[1] is -4, must be finite and not negative");
}

namespace {

using numbers = std::vector<int>;
using to_double = double (*)(int);

static_assert(std::constructible_from<mixture, numbers, std::identity, to_double>);
static_assert(!std::constructible_from<mixture, numbers, to_double, std::identity>);
static_assert(!std::constructible_from<mixture, int, std::identity, std::identity>);

}  // namespace

TEST_CASE("a mixture is endless by default, and a loop over one that stops ends") {
  std::vector<std::uint64_t> const sizes{30, 40, 30};
  auto const size = [](std::uint64_t count) { return count; };
  auto const weight = [](std::uint64_t) { return 1; };
  CHECK(omnibal::mixture(sizes, size, weight).size() == omnibal::max_samples);

  omnibal::mixture const mixed(sizes, size, weight, {.end = omnibal::source_end::stop});
  omnibal::epoch_sampler_options const options{.order = omnibal::sample_order::given,
                                               .contents = mixed.digest()};
  omnibal::epoch_sampler positions(mixed.size(), {.ranks = 2, .rank = 0}, options);
  std::vector<std::uint64_t> draws(3);
  while (!positions.done()) {
    for (std::uint64_t const position : positions.next()) ++draws[mixed(position).source];
  }
  CHECK(mixed.size() >= 90);
  CHECK(mixed.size() <= 92);
  CHECK(draws[0] + draws[1] + draws[2] == (mixed.size() + 1) / 2);

  // Weights equal to the sizes give every sample once.
  omnibal::mixture const whole(sizes, size, size, {.end = omnibal::source_end::stop});
  std::vector<std::vector<int>> seen{std::vector<int>(30), std::vector<int>(40),
                                     std::vector<int>(30)};
  REQUIRE(whole.size() == 100);
  for (std::uint64_t position = 0; position != 100; ++position) {
    auto const draw = whole(position);
    REQUIRE(seen[draw.source][draw.sample]++ == 0);
  }
}
