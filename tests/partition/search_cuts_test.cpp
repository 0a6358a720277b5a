// SPDX-License-Identifier: Apache-2.0
#include "all_cuts.hpp"
#include "samples.hpp"

#include <omnibal/partition/neighbors.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/partition/search_cuts.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using test::cuts;
using boundaries_view = std::span<std::uint32_t const>;

constexpr auto first_cut = [](boundaries_view boundaries) { return std::int64_t{boundaries[1]}; };

/// Any function of a stage; negative too.
struct random_score {
  std::uint64_t seed;
  std::int64_t limit;

  std::int64_t operator()(std::size_t stage, std::size_t first, std::size_t last) const {
    std::uint64_t const mixed = (seed + stage * 1009 + first * 9176 + last) * 0x9e3779b97f4a7c15u;
    return static_cast<std::int64_t>(mixed >> 40) % limit - limit / 2;
  }
};

template <class Score>
std::vector<std::pair<std::int64_t, cuts>> all_scored(cuts const& anchor, std::size_t radius,
                                                      Score const& score) {
  std::vector<std::pair<std::int64_t, cuts>> result;
  for (cuts const& boundaries : omnibal::neighbors(anchor, radius)) {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s + 1 != boundaries.size(); ++s) {
      sum += score(s, boundaries[s], boundaries[s + 1]);
    }
    result.push_back({sum, boundaries});
  }
  return result;
}

cuts random_anchor(test::random_amounts& random) {
  auto const stages = static_cast<std::size_t>(random.between(1, 6));
  cuts anchor{0};
  while (anchor.size() <= stages) {
    anchor.push_back(anchor.back() + static_cast<std::uint32_t>(random.between(1, 5)));
  }
  return anchor;
}

}  // namespace

TEST_CASE("search finds the best neighbors under a score of stages without trying all") {
  for (std::uint64_t seed = 0; seed != 500; ++seed) {
    test::random_amounts random(seed);
    cuts const anchor = random_anchor(random);
    auto const radius = static_cast<std::size_t>(random.between(0, 3));
    random_score const score{seed, random.between(0, 1) == 0 ? 5 : 1000};
    auto const most = static_cast<std::size_t>(random.between(1, 40));
    auto all = all_scored(anchor, radius, score);
    std::sort(all.begin(), all.end());
    INFO("seed " << seed);
    auto const result = omnibal::search_cuts(omnibal::neighbors(anchor, radius), score, most,
                                             [](boundaries_view) { return 1; });
    REQUIRE(result.candidates.size() == std::min(most, all.size()));
    for (std::size_t i = 0; i != result.candidates.size(); ++i) {
      CHECK(result.candidates[i].score == all[i].first);
      CHECK(result.candidates[i].boundaries == all[i].second);
    }
    CHECK(result.best == 0);
  }
}

TEST_CASE("a score of whole boundaries, and any range of them, are tried one by one") {
  std::vector<cuts> const candidates{{0, 3, 9}, {0, 5, 9}, {0, 1, 9}, {0, 4, 9}, {0, 3, 9}};
  auto const distance_from_four = [](boundaries_view boundaries) {
    return std::abs(static_cast<int>(boundaries[1]) - 4);
  };
  auto const result = omnibal::search_cuts(candidates, distance_from_four, 4, first_cut);
  REQUIRE(result.candidates.size() == 4);
  CHECK(result.candidates[0].boundaries == cuts{0, 4, 9});
  CHECK(result.candidates[1].boundaries == cuts{0, 3, 9});
  CHECK(result.candidates[2].boundaries == cuts{0, 5, 9});
  CHECK(result.candidates[3].boundaries == cuts{0, 3, 9});
  CHECK(result.best == 1);

  random_score const score{7, 100};
  cuts const anchor{0, 4, 8, 12};
  auto const near = omnibal::neighbors(anchor, 2);
  auto const whole = [&](boundaries_view boundaries) {
    std::int64_t sum = 0;
    for (std::size_t s = 0; s != 3; ++s) sum += score(s, boundaries[s], boundaries[s + 1]);
    return sum;
  };
  auto const listed = std::vector<cuts>(all_scored(anchor, 2, score).size());
  auto const by_stage = omnibal::search_cuts(near, score, 10, first_cut);
  auto const by_whole = omnibal::search_cuts(near, whole, 10, first_cut);
  for (std::size_t i = 0; i != 10; ++i) {
    CHECK(by_stage.candidates[i].score == by_whole.candidates[i].score);
  }
}

TEST_CASE("measuring ends with the budget or with the user's word") {
  cuts const anchor{0, 8, 16};
  random_score const score{1, 1000};
  std::size_t calls = 0;
  auto const measure = [&](boundaries_view boundaries) {
    ++calls;
    return 100.0 - boundaries[1];
  };
  auto const near = omnibal::neighbors(anchor, 4);
  auto const all = omnibal::search_cuts(near, score, 9, measure);
  CHECK(calls == 9);
  CHECK(all.measurements == 9);
  CHECK(all.candidates[all.best].boundaries == cuts{0, 12, 16});

  calls = 0;
  auto const some = omnibal::search_cuts(near, score, 9, measure, {.measurements = 4});
  CHECK(calls == 4);
  CHECK(some.measurements == 4);
  CHECK(some.candidates.size() == 9);
  CHECK(some.candidates[4].measured == std::numeric_limits<double>::infinity());

  calls = 0;
  double best_seen = 1e9;
  auto const go_on = [&](omnibal::search_progress<double> const& progress) {
    CHECK(progress.measurements == calls);
    CHECK(progress.best <= best_seen);
    best_seen = progress.best;
    return progress.measurements < 3;
  };
  CHECK(omnibal::search_cuts(near, score, 9, measure, {}, go_on).measurements == 3);
  CHECK(calls == 3);

  auto const none = omnibal::search_cuts(near, score, 9, measure, {.measurements = 0});
  CHECK(none.best == 0);
  CHECK(none.measurements == 0);
}

TEST_CASE("what could not run is infinite and never the best unless nothing could") {
  cuts const anchor{0, 8, 16};
  random_score const score{2, 1000};
  auto const only_seven = [](boundaries_view boundaries) {
    return boundaries[1] == 7 ? 5.0 : std::numeric_limits<double>::infinity();
  };
  auto const result = omnibal::search_cuts(omnibal::neighbors(anchor, 2), score, 5, only_seven);
  CHECK(result.candidates[result.best].boundaries == cuts{0, 7, 16});
}

TEST_CASE("the best of 10^30 neighbors are found at once") {
  std::vector<double> seconds(1000);
  test::random_amounts random(11);
  for (double& s : seconds) s = static_cast<double>(random.between(80, 120));
  auto const anchor = omnibal::partition_minimax(seconds, 32);
  omnibal::cut_score const score(seconds, seconds, 32);
  auto const result = omnibal::search_cuts(omnibal::neighbors(anchor.boundaries, 5), score, 50,
                                           [](boundaries_view) { return 1; });
  CHECK(result.candidates.size() == 50);
  CHECK(
      std::is_sorted(result.candidates.begin(), result.candidates.end(),
                     [](auto const& left, auto const& right) { return left.score < right.score; }));
}

namespace {

double score_of(omnibal::cut_score const& score, cuts const& at) {
  double sum = 0;
  for (std::size_t s = 0; s + 1 != at.size(); ++s) sum += score(s, at[s], at[s + 1]);
  return sum;
}

std::vector<double> times(double factor, std::vector<double> values) {
  for (double& value : values) value *= factor;
  return values;
}

}  // namespace

TEST_CASE("the score is the variance of the stages and the traffic at the cuts, without units") {
  std::vector<double> const seconds{3, 1, 2, 6, 1, 5};
  std::vector<double> const traffic{10, 20, 30, 40, 50, 60};
  cuts const at{0, 2, 4, 6};
  omnibal::cut_score const score(seconds, traffic, 3, {.variance = 2.0, .traffic = 0.5});
  // The stages take 4, 8 and 6; 20 and 40 are sent, what layers send in the mean, 30, at each cut.
  CHECK(score_of(score, at) == Approx(2.0 * (4.0 + 4.0 + 0.0) / 3 / 36 + 0.5));
  CHECK(score_of(score, {0, 1, 5, 6}) == Approx(2.0 * (9.0 + 16.0 + 1.0) / 3 / 36 + 0.5));
  CHECK(score_of(score, {0, 4, 5, 6}) ==
        Approx(2.0 * (36.0 + 25.0 + 1.0) / 3 / 36 + 0.5 * 90.0 / 60));
  // By default the traffic counts as much as times that vary by a hundredth.
  omnibal::cut_score const usual(seconds, traffic, 3);
  CHECK(score_of(usual, at) == Approx(8.0 / 3 / 36 + 0.01 * 0.01));
}

TEST_CASE("a score means the same in all units and for a model of twice as many equal layers") {
  for (std::uint64_t seed = 0; seed != 100; ++seed) {
    test::random_amounts random(seed);
    cuts const anchor = random_anchor(random);
    std::size_t const stages = anchor.size() - 1;
    std::vector<double> seconds;
    std::vector<double> traffic;
    for (std::uint32_t l = 0; l != anchor.back(); ++l) {
      seconds.push_back(static_cast<double>(random.between(1, 100)));
      traffic.push_back(static_cast<double>(random.between(1, 100)));
    }
    omnibal::cut_weights const weights{.variance = 1.0, .traffic = 0.1};
    double const score = score_of({seconds, traffic, stages, weights}, anchor);
    CHECK(score_of({times(1e-9, seconds), times(1e6, traffic), stages, weights}, anchor) ==
          Approx(score).epsilon(1e-12));
    // Even stages and the same traffic everywhere: nothing but the weight of the traffic.
    std::vector<double> const ones(2 * stages, 7.0);
    cuts pairs;
    for (std::size_t s = 0; s <= stages; ++s) pairs.push_back(static_cast<std::uint32_t>(2 * s));
    CHECK(score_of({ones, ones, stages, weights}, pairs) == Approx(stages == 1 ? 0.0 : 0.1));
  }
}

TEST_CASE("layers that take or send nothing do not count") {
  std::vector<double> const some{1, 2, 3};
  std::vector<double> const none{0, 0, 0};
  std::vector<double> const only_the_last{0, 0, 5};
  cuts const at{0, 1, 3};
  CHECK(score_of({none, some, 2}, at) == Approx(0.0001 * 1.0 / 1.5));
  CHECK(score_of({some, none, 2}, at) == Approx(4.0 / 9));
  CHECK(score_of({some, only_the_last, 2}, at) == Approx(4.0 / 9));
  CHECK(score_of({none, none, 2}, at) == 0.0);
  CHECK(score_of({{4}, {9}, 1}, {0, 1}) == 0.0);
}
