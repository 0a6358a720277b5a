// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "fnv1a.hpp"
#include "samples.hpp"

#include <omnibal/demand.hpp>
#include <omnibal/group_loads.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/isf.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/objective.hpp>
#include <omnibal/pack/tune_capacity.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::resources;
using omnibal::solve_status;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Questions about images of 256 tokens each, mostly 5 of them, and some text.
std::vector<resources<2>> questions(std::size_t count) {
  test::random_amounts random(count);
  std::vector<resources<2>> samples(count);
  for (auto& sample : samples) {
    std::int64_t const percent = random.between(0, 99);
    std::int64_t const images = percent < 10 ? 1 : percent < 42 ? 3 : percent < 44 ? 4 : 5;
    sample = {images, 256 * images + random.between(20, 200)};
  }
  return samples;
}

/// A third of text without images and with a heavy tail, the rest questions.
std::vector<resources<2>> mixture(std::size_t count) {
  test::random_amounts random(count);
  auto samples = questions(count);
  for (auto& sample : samples) {
    if (random.between(0, 2) == 0) sample = {0, 30 + random.heavy_tail(5000)};
  }
  return samples;
}

/// Images and tokens that have nothing to do with each other.
std::vector<resources<2>> independent(std::size_t count) {
  test::random_amounts random(count);
  return test::make_samples<2>(count, [&](std::size_t, std::size_t r) {
    return r == 0 ? random.between(0, 5) : random.between(128, 2176);
  });
}

/// What an objective sees of the samples packed under a capacity, and what the result says of it.
template <std::size_t R, class Packer, class Objective>
omnibal::tuned_capacity<R> judge(std::vector<resources<R>> const& samples,
                                 resources<R> const& capacity, Packer const& pack,
                                 Objective const& objective) {
  auto const packed = pack(samples, std::identity{}, capacity);
  omnibal::tuned_capacity<R> result{.capacity = capacity,
                                    .groups = packed.groups.size(),
                                    .oversized = packed.oversized.size(),
                                    .objective = infinity};
  if (packed.groups.empty()) return result;
  auto const loads = omnibal::group_loads(packed.groups, samples, std::identity{});
  result.mean_group_size =
      static_cast<double>(packed.groups.item_count()) / static_cast<double>(packed.groups.size());
  for (std::size_t r = 0; r != R; ++r) {
    omnibal::detail::int128 sum = 0;
    for (auto const& load : loads) sum += load[r];
    result.fill[r] = static_cast<double>(sum) / static_cast<double>(loads.size()) /
                     static_cast<double>(capacity[r]);
  }
  result.objective =
      objective(omnibal::packed_samples<R>{capacity, samples, packed.groups.view(), loads});
  return result;
}

template <std::size_t R>
bool is_accepted(omnibal::tuned_capacity<R> const& judged, std::size_t samples, double target,
                 double width, double max_oversized) {
  return judged.mean_group_size >= target && judged.mean_group_size <= target + width &&
         static_cast<double>(judged.oversized) <= max_oversized * static_cast<double>(samples);
}

/// The least objective of all accepted capacities up to `most`.
template <std::size_t R, class Packer, class Objective>
double min_objective(std::vector<resources<R>> const& samples, double target,
                     resources<R> const& most, resources<R> const& granularity, Packer const& pack,
                     Objective const& objective) {
  double least = infinity;
  resources<R> capacity = granularity;
  for (std::size_t r = 0; r != R;) {
    auto const judged = judge(samples, capacity, pack, objective);
    if (is_accepted(judged, samples.size(), target, 1.0, 0.01)) {
      least = std::min(least, judged.objective);
    }
    for (r = 0; r != R && (capacity[r] += granularity[r]) > most[r]; ++r) {
      capacity[r] = granularity[r];
    }
  }
  return least;
}

constexpr auto one_attempt = [](auto const& samples, auto const& demand, auto const& capacity) {
  return omnibal::best_fit_decreasing(samples, demand, capacity);
};

constexpr auto few_rounds = [](auto const& samples, auto const& demand, auto const& capacity) {
  return omnibal::isf(samples, demand, capacity, {.rounds = 5});
};

/// Counts its calls by the number of samples.
template <class Packer>
struct counting {
  Packer pack;
  std::map<std::size_t, std::size_t>* calls;

  template <class Samples, class Demand, class Capacity>
  omnibal::packing operator()(Samples const& samples, Demand const& demand,
                              Capacity const& capacity) const {
    ++(*calls)[samples.size()];
    return pack(samples, demand, capacity);
  }
};

/// Everything that the result promises of itself.
template <std::size_t R, class Packer, class Objective>
void check_promises(std::vector<resources<R>> const& samples, double target, Packer const& pack,
                    Objective const& objective,
                    omnibal::tune_capacity_options<R> const& options = {}) {
  std::map<std::size_t, std::size_t> calls;
  auto const result = omnibal::tune_capacity(samples, std::identity{}, target,
                                             counting<Packer>{pack, &calls}, objective, options);
  std::size_t called = 0;
  for (auto const& [size, count] : calls) called += count;
  CHECK(result.packings == called);
  if (samples.empty()) {
    CHECK(result == omnibal::tuned<R>{});
    return;
  }
  REQUIRE(!result.finalists.empty());
  CHECK(result.finalists.size() == calls[samples.size()]);
  CHECK(result.best == result.finalists.front());
  bool accepted_before = true;
  for (std::size_t k = 0; k != result.finalists.size(); ++k) {
    auto const& judged = result.finalists[k];
    CHECK(judged == judge(samples, judged.capacity, pack, objective));
    bool const accepted =
        is_accepted(judged, samples.size(), target, options.width, options.max_oversized);
    CHECK((accepted_before || !accepted));
    if (accepted && k != 0) CHECK(result.finalists[k - 1].objective <= judged.objective);
    accepted_before = accepted;
    for (std::size_t r = 0; r != R; ++r) {
      CHECK(judged.capacity[r] > 0);
      CHECK(judged.capacity[r] % std::max<std::int64_t>(1, options.granularity[r]) == 0);
    }
    CHECK(std::count_if(result.finalists.begin(), result.finalists.end(),
                        [&](auto const& other) { return other.capacity == judged.capacity; }) == 1);
  }
  bool const best_accepted =
      is_accepted(result.best, samples.size(), target, options.width, options.max_oversized);
  CHECK(result.status == (best_accepted ? solve_status::solved : solve_status::not_found));

  auto warnings = omnibal::capacity_warnings(samples, std::identity{}, result.best.capacity,
                                             options.common_share);
  for (auto& warning : warnings) {
    auto const unit = std::max<std::int64_t>(1, options.granularity[warning.kind]);
    if (warning.enough % unit != 0) warning.enough += unit - warning.enough % unit;
  }
  CHECK(result.warnings == warnings);
}

}  // namespace

TEMPLATE_TEST_CASE("tune_capacity keeps its promises", "[slow]",
                   (std::integral_constant<std::size_t, 1>),
                   (std::integral_constant<std::size_t, 2>),
                   (std::integral_constant<std::size_t, 3>)) {
  constexpr std::size_t kinds = TestType::value;
  omnibal::tune_capacity_options<kinds> options;
  options.candidates = 30;
  options.first_samples = 40;
  for (auto const& set : test::small_sets<kinds>(1, 80)) {
    INFO(set.name);
    for (double const target : {1.0, 4.0, 37.5, 1000.0}) {
      INFO(target);
      options.granularity[0] = 16;
      options.width = 1.0;
      check_promises(set.samples, target, one_attempt, omnibal::unused_capacity{}, options);
      options.granularity = {};
      options.width = 0.5;
      check_promises(set.samples, target, few_rounds, omnibal::published_rule<>{3}, options);
      check_promises(set.samples, target, omnibal::next_fit, omnibal::published_rule<>{}, options);
    }
  }
}

TEST_CASE("tune_capacity keeps its promises where it tries parts first") {
  auto const samples = mixture(6000);
  for (double target = 1.0; target < 4.0; target += 0.5) {
    INFO(target);
    check_promises(samples, target, few_rounds, omnibal::published_rule<>{},
                   {.width = 0.01, .granularity = {1, 64}, .candidates = 30, .first_samples = 1});
  }
}

TEST_CASE("tune_capacity takes amounts of any size") {
  for (auto const& set : test::all_sets<2>(2, 60)) {
    INFO(set.name);
    check_promises(set.samples, 3.0, one_attempt, omnibal::unused_capacity{}, {.candidates = 20});
  }
}

TEST_CASE("tune_capacity finds the best of all capacities where there are few", "[slow]") {
  for (std::uint64_t const seed : {1u, 2u, 3u, 4u, 5u}) {
    INFO(seed);
    test::random_amounts random(seed);
    auto const samples = test::make_samples<2>(120, [&](std::size_t, std::size_t r) {
      return r == 0 ? random.between(0, 3) : random.between(1, 8);
    });
    for (double const target : {1.5, 2.0, 3.0}) {
      INFO(target);
      auto const check = [&](auto const& pack, auto const& objective) {
        auto const result =
            omnibal::tune_capacity(samples, std::identity{}, target, pack, objective,
                                   {.granularity = {1, 2}, .candidates = 10'000});
        double const least = min_objective(samples, target, {20, 50}, {1, 2}, pack, objective);
        CHECK(result.best.objective == least);
        CHECK(result.status == solve_status::solved);
      };
      check(one_attempt, omnibal::unused_capacity{});
      check(few_rounds, omnibal::published_rule<>{4});
    }
  }
  for (std::uint64_t const seed : {1u, 2u}) {
    test::random_amounts random(seed);
    auto const samples =
        test::make_samples<1>(300, [&](std::size_t, std::size_t) { return random.between(1, 40); });
    auto const result = omnibal::tune_capacity(samples, std::identity{}, 4.0, one_attempt,
                                               omnibal::unused_capacity{}, {.candidates = 10'000});
    CHECK(result.best.objective == min_objective(samples, 4.0, resources{220}, resources{1},
                                                 one_attempt, omnibal::unused_capacity{}));
  }
}

TEST_CASE("tune_capacity comes close to the best of many capacities", "[slow]") {
  auto const check = [](std::vector<resources<2>> const& samples, resources<2> const& most) {
    omnibal::published_rule<> const rule{};
    auto const result = omnibal::tune_capacity(samples, std::identity{}, 4.0, few_rounds, rule,
                                               {.granularity = {1, 64}});
    REQUIRE(result.status == solve_status::solved);
    double const least = min_objective(samples, 4.0, most, {1, 64}, few_rounds, rule);
    CHECK(result.best.objective <= least + 0.015);
    CHECK(result.packings < 300);
  };
  check(questions(6000), {28, 8000});
  check(mixture(6000), {20, 8000});
  check(independent(6000), {20, 8000});
}

TEST_CASE("tune_capacity tries many capacities on few samples and few on all") {
  auto const samples = questions(30'000);
  std::map<std::size_t, std::size_t> calls;
  counting<omnibal::best_fit_decreasing_fn> const pack{{}, &calls};
  auto const tune = [&](omnibal::tune_capacity_options<2> const& options, double target = 4.0) {
    calls.clear();
    return omnibal::tune_capacity(samples, std::identity{}, target, pack, options);
  };
  auto const result = tune({.granularity = {1, 16}, .first_samples = 1500, .finalists = 3});
  REQUIRE(calls.size() == 3);
  CHECK(calls[1500] > 64);
  CHECK(calls[1500] < 300);
  CHECK(calls[6000] == calls[1500] / 8);
  CHECK(calls[30'000] == 3);
  CHECK(result.finalists.size() == 3);
  // Enough samples for 256 groups of the largest wanted size.
  static_cast<void>(tune({.width = 1.0, .first_samples = 1}, 9.0));
  CHECK(calls.begin()->first == 2560);
  // Where nothing is accepted, up to four times the finalists.
  CHECK(tune({.width = 0.0, .first_samples = 1500, .finalists = 3}, 4.2).status ==
        solve_status::not_found);
  CHECK(calls[30'000] == 12);
}

TEST_CASE("tune_capacity tries parts in the order of the samples") {
  std::vector<std::int64_t> samples(10'000);
  for (std::size_t i = 0; i != samples.size(); ++i) {
    samples[i] = 100'000 + static_cast<std::int64_t>(i);
  }
  std::map<std::size_t, std::vector<std::int64_t>> parts;
  auto const pack = [&parts](auto const& demands, auto const& demand, auto const& capacity) {
    std::vector<std::int64_t> seen;
    for (auto const& amounts : demands) seen.push_back(amounts[0]);
    CHECK(std::is_sorted(seen.begin(), seen.end()));
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    parts.emplace(seen.size(), seen);
    return omnibal::next_fit(demands, demand, capacity);
  };
  auto const tune = [&](std::uint64_t seed) {
    parts.clear();
    static_cast<void>(omnibal::tune_capacity(samples, std::identity{}, 2.0, pack,
                                             omnibal::unused_capacity{},
                                             {.first_samples = 1000, .seed = seed}));
    return parts;
  };
  auto const first = tune(0);
  REQUIRE(first.size() == 3);
  CHECK(first.at(10'000) == samples);
  auto const& small = first.at(1000);
  auto const& large = first.at(4000);
  CHECK(std::includes(large.begin(), large.end(), small.begin(), small.end()));
  CHECK(tune(0) == first);
  CHECK(tune(1).at(1000) != small);
}

TEST_CASE("tune_capacity fills the groups of equal samples") {
  std::vector<resources<2>> const samples(1000, {3, 700});
  auto const result = omnibal::tune_capacity(samples, std::identity{}, 4.0, one_attempt,
                                             omnibal::unused_capacity{}, {.granularity = {1, 50}});
  CHECK(result.status == solve_status::solved);
  CHECK(result.best.capacity == resources{12, 2800});
  CHECK(result.best.mean_group_size == 4.0);
  CHECK(result.best.fill == resources{1.0, 1.0});
  CHECK(result.best.objective == 0.0);
  CHECK(result.best.groups == 250);
}

TEST_CASE("tune_capacity gives a resource that no sample takes the least capacity") {
  auto samples = mixture(3000);
  for (auto& sample : samples) sample[0] = 0;
  auto const result =
      omnibal::tune_capacity(samples, std::identity{}, 8.0, few_rounds, {.granularity = {4, 16}});
  CHECK(result.status == solve_status::solved);
  CHECK(result.best.capacity[0] == 4);
  CHECK(result.warnings.empty());
}

TEST_CASE("tune_capacity says where no capacity suits the target") {
  auto const samples = questions(40);
  auto const far = omnibal::tune_capacity(samples, std::identity{}, 100.0, omnibal::next_fit);
  CHECK(far.status == solve_status::not_found);
  CHECK(far.best.mean_group_size == 40.0);

  // One sample in ten takes as much as hundred others, and none may be left out.
  std::vector<std::int64_t> lengths(1000, 10);
  for (std::size_t i = 0; i != lengths.size(); i += 10) lengths[i] = 1000;
  auto const tune = [&](double max_oversized) {
    return omnibal::tune_capacity(lengths, std::identity{}, 4.0, omnibal::best_fit_decreasing,
                                  omnibal::unused_capacity{}, {.max_oversized = max_oversized});
  };
  CHECK(tune(0.1).status == solve_status::solved);
  CHECK(tune(0.1).best.oversized == 100);
  CHECK(tune(0.05).status == solve_status::not_found);
  CHECK(tune(0.05).best.oversized == 0);

  auto const nothing = omnibal::tune_capacity(std::vector<std::int64_t>(), std::identity{}, 4.0,
                                              omnibal::best_fit_decreasing);
  CHECK(nothing == omnibal::tuned<1>{});
  CHECK(nothing.status == solve_status::infeasible);
}

TEST_CASE("tune_capacity walks in proportion where it is asked to") {
  auto const samples = questions(3000);
  auto const result =
      omnibal::tune_capacity(samples, std::identity{}, 4.0, few_rounds, omnibal::published_rule<>{},
                             {.granularity = {1, 16}, .walk = omnibal::capacity_walk::together});
  CHECK(result.status == solve_status::solved);
  double images = 0;
  double tokens = 0;
  for (auto const& sample : samples) {
    images += static_cast<double>(sample[0]);
    tokens += static_cast<double>(sample[1]);
  }
  auto const tokens_per_image = 16 * std::llround(tokens / images / 16);
  CHECK(result.finalists.size() > 5);
  for (auto const& judged : result.finalists) {
    CHECK(judged.capacity[1] == judged.capacity[0] * tokens_per_image);
  }
}

TEST_CASE("tune_capacity takes floating-point demands") {
  test::random_amounts random(3);
  std::vector<resources<2, double>> samples(5000);
  for (auto& sample : samples) {
    sample = {static_cast<double>(random.between(1, 5)),
              static_cast<double>(random.between(1, 1'000'000)) / 1e9};
  }
  for (double const granularity : {0.0, 1e-6}) {
    auto const result =
        omnibal::tune_capacity(samples, std::identity{}, 4.0, omnibal::best_fit_decreasing,
                               {.granularity = {1.0, granularity}});
    CHECK(result.status == solve_status::solved);
    CHECK(result.best.objective < 0.1);
    CHECK(result.best.capacity[0] == std::floor(result.best.capacity[0]));
  }
}

TEST_CASE("capacity_warnings names what is hopeless") {
  auto const samples = questions(10'000);
  auto const fives = static_cast<std::size_t>(std::count_if(
      samples.begin(), samples.end(), [](auto const& sample) { return sample[0] == 5; }));
  auto const warn = [&](resources<2> const& capacity, auto... share) {
    return omnibal::capacity_warnings(samples, std::identity{}, capacity, share...);
  };
  using warnings = std::vector<omnibal::capacity_warning<>>;
  omnibal::capacity_warning<> const nine{
      .kind = 0, .capacity = 9, .commonest = 5, .samples = fives, .enough = 10};
  CHECK(warn({9, 4096}) == warnings{nine});
  CHECK(warn({9, 4096}, 0.5) == warnings{nine});
  CHECK(warn({9, 4096}, 0.6).empty());
  CHECK(warn({10, 4096}).empty());
  CHECK(warn({4, 4096}).size() == 1);
  // No number of tokens is common enough, unless one is called common that hardly is.
  CHECK(warn({18, 1500}).empty());
  CHECK(warn({18, 1500}, 0.0).size() == 1);

  // Samples without images are in the majority and fit any number of times.
  std::vector<std::int64_t> images(100, 0);
  std::fill_n(images.begin(), 20, 7);
  CHECK(omnibal::capacity_warnings(images, std::identity{}, 13).size() == 1);
  CHECK(omnibal::capacity_warnings(images, std::identity{}, 14).empty());
  CHECK(omnibal::capacity_warnings(std::vector<double>{0.3, 0.3}, std::identity{}, 0.5) ==
        std::vector<omnibal::capacity_warning<double>>{{0, 0.5, 0.3, 2, 0.6}});
  // Of equally common demands the largest counts.
  CHECK(omnibal::capacity_warnings(std::vector{3, 5, 3, 5}, std::identity{}, 9).size() == 1);
  CHECK(omnibal::capacity_warnings(std::vector<int>(), std::identity{}, 9).empty());

  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto const huge = omnibal::capacity_warnings(std::vector{most - 1}, std::identity{}, most);
  REQUIRE(huge.size() == 1);
  CHECK(huge[0].enough == most);
  // No even number up to the largest integer holds two of these.
  omnibal::detail::amount_profile<std::int64_t> const profiles[1] = {
      {.commonest = most - 1, .commonest_count = 1}};
  auto const even = omnibal::detail::warnings_of(resources<1>{most}, profiles, 1, 0.1, {2});
  REQUIRE(even.size() == 1);
  CHECK(even[0].enough == most);
}

TEST_CASE("tune_capacity never gives a hopeless capacity without a warning", "[slow]") {
  auto const samples = questions(2000);
  std::size_t warned = 0;
  for (double target = 1.0; target < 5.0; target += 0.125) {
    INFO(target);
    auto const result = omnibal::tune_capacity(samples, std::identity{}, target, one_attempt,
                                               {.width = 0.25, .granularity = {1, 16}});
    bool const hopeless = result.best.capacity[0] < 10;
    REQUIRE(result.warnings.size() == (hopeless ? 1 : 0));
    if (!hopeless) continue;
    ++warned;
    CHECK(result.warnings[0].kind == 0);
    CHECK(result.warnings[0].capacity == result.best.capacity[0]);
    CHECK(result.warnings[0].commonest == 5);
    CHECK(result.warnings[0].enough == 10);
  }
  CHECK(warned > 3);

  // With images in multiples of 4 the next capacity for two samples of 5 is 12.
  auto const coarse = omnibal::tune_capacity(samples, std::identity{}, 1.5, one_attempt,
                                             {.width = 0.25, .granularity = {4, 16}});
  REQUIRE(coarse.warnings.size() == 1);
  CHECK(coarse.warnings[0].enough == 12);
}

TEST_CASE("objectives give what their comments say") {
  std::vector<resources<2>> const demands{{1, 10}, {2, 20}, {3, 30}, {4, 60}};
  omnibal::grouping const groups({0, 1, 3, 4}, {0, 1, 2, 3});
  std::vector<resources<2>> const loads{{1, 10}, {5, 50}, {4, 60}};
  omnibal::packed_samples<2> const packed{{5, 80}, demands, groups.view(), loads};

  CHECK(omnibal::no_padding{}(packed) == 0.0);
  CHECK(omnibal::unused_capacity{}(packed) == Approx(1.0 - 10.0 / 15.0 + 1.0 - 120.0 / 240.0));
  std::vector<resources<2>> const text{{0, 40}};
  omnibal::grouping const one({0, 1}, {0});
  CHECK(omnibal::unused_capacity{}(omnibal::packed_samples<2>{{5, 80}, text, one.view(), text}) ==
        0.5);

  // One step of all groups, whatever their order.
  double const dist = 5.0 / 15.0 + 60.0 / 180.0;
  CHECK(omnibal::published_rule<>{3}(packed) == Approx(dist));
  CHECK(omnibal::published_rule<omnibal::unused_capacity>{3}(packed) ==
        Approx(dist + omnibal::unused_capacity{}(packed)));
  // A fourth rank waits the whole step; one rank never waits.
  CHECK(omnibal::published_rule<>{4}(packed) == Approx(10.0 / 20.0 + 120.0 / 240.0));
  CHECK(omnibal::published_rule<>{1}(packed) == 0.0);

  auto const cost = [](resources<2> const& load) { return 2 * load[0] + load[1]; };
  CHECK(omnibal::step_time{cost, 3}(packed) == Approx(68.0 / 4));
  CHECK(omnibal::step_time{cost, 9}(packed) == Approx(68.0 / 4));
  CHECK(omnibal::step_time{cost, 1}(packed) == Approx((12.0 + 60.0 + 68.0) / 4));
  // Two ranks: one complete step of two of the groups, with their samples; the third is left out.
  double const two = omnibal::step_time{cost, 2}(packed);
  CHECK((two == Approx(60.0 / 3) || two == Approx(68.0 / 2) || two == Approx(68.0 / 3)));
}

TEST_CASE("objectives deal the groups at random") {
  // Dealt in order, every step would be even.
  std::vector<resources<1>> loads(4000);
  omnibal::grouping groups;
  for (std::uint32_t g = 0; g != loads.size(); ++g) {
    loads[g] = {g < 2000 ? 1 : 3};
    groups.push(g);
    groups.close();
  }
  omnibal::packed_samples<1> const packed{{3}, loads, groups.view(), loads};
  double const first = omnibal::published_rule<>{.ranks = 2, .seed = 1}(packed);
  // Half of the steps have one group of each kind, and there a third is lost.
  CHECK(std::abs(first - 1.0 / 6) < 0.02);
  CHECK(omnibal::published_rule<>{.ranks = 2, .seed = 2}(packed) != first);
}

TEST_CASE("tune_capacity follows the objective") {
  auto const samples = mixture(3000);
  auto const tune = [&](auto const& objective) {
    auto const result = omnibal::tune_capacity(samples, std::identity{}, 4.0, few_rounds, objective,
                                               {.granularity = {1, 16}});
    CHECK(result.status == solve_status::solved);
    return result.best;
  };
  auto const images_only = [](omnibal::packed_samples<2> const& packed) {
    return static_cast<int>(packed.capacity[0]);
  };
  auto const min_images = tune(images_only);
  CHECK(min_images.objective == static_cast<double>(min_images.capacity[0]));
  CHECK(min_images.capacity[0] <= tune(omnibal::published_rule<>{}).capacity[0]);
  auto const quadratic = [](resources<2> const& load) { return load[1] * load[1]; };
  CHECK(tune(omnibal::step_time{quadratic}).mean_group_size <
        tune(omnibal::step_time{[](resources<2> const&) { return 1; }}).mean_group_size);
}

TEST_CASE("tune_capacity refuses bad arguments") {
  auto const samples = questions(100);
  auto const error = [&](double target, auto const& objective,
                         omnibal::tune_capacity_options<2> const& options = {}) {
    return test::error_text<std::invalid_argument>([&] {
      return omnibal::tune_capacity(samples, std::identity{}, target, omnibal::next_fit, objective,
                                    options);
    });
  };
  auto const check_option = [&](omnibal::tune_capacity_options<2> const& options,
                                std::string const& part) {
    std::string const text = error(4.0, omnibal::published_rule<>{}, options);
    INFO(text << " must name " << part);
    CHECK(text.find("omnibal::tune_capacity: options." + part) == 0);
  };
  auto const check_target = [&](double target, std::string const& part) {
    CHECK(error(target, omnibal::published_rule<>{}).find("omnibal::tune_capacity: " + part) == 0);
  };
  check_target(0.0, "target is 0");
  check_target(-2.5, "target is -2.5");
  check_target(infinity, "target is inf");
  check_target(not_a_number, "target is nan");
  check_option({.width = -1.0}, "width is -1");
  check_option({.width = not_a_number}, "width is nan");
  check_option({.width = infinity}, "width is inf");
  check_option({.granularity = {1, -16}}, "granularity[1] is -16");
  check_option({.max_oversized = 1.5}, "max_oversized is 1.5");
  check_option({.max_oversized = not_a_number}, "max_oversized is nan");
  check_option({.candidates = 0}, "candidates is 0");
  check_option({.first_samples = 0}, "first_samples is 0");
  check_option({.finalists = 0}, "finalists is 0");
  check_option({.common_share = -0.1}, "common_share is -0.1");

  auto const check_objective = [&](auto const& objective, std::string const& part) {
    std::string const text = error(4.0, objective);
    INFO(text << " must name " << part);
    CHECK(text.find(part) != std::string::npos);
  };
  check_objective([](auto const&) { return not_a_number; }, "tune_capacity: objective is nan");
  check_objective([](auto const&) { return infinity; }, "tune_capacity: objective is inf");
  check_objective(omnibal::published_rule<>{0}, "tune_capacity: objective.ranks is 0");
  auto const bad_cost = [](resources<2> const&) { return -1.0; };
  check_objective(omnibal::step_time{bad_cost}, "step_time: cost[");
  check_objective(omnibal::step_time{bad_cost, 0}, "tune_capacity: objective.ranks is 0");
  CHECK(test::error_text<std::invalid_argument>([] {
          return omnibal::tune_capacity(std::vector<int>(), std::identity{}, 4.0, omnibal::next_fit,
                                        omnibal::published_rule<>{0});
        }).find("objective.ranks is 0") != std::string::npos);
}

TEST_CASE("tune_capacity refuses bad demands and packers that lose samples") {
  auto const tune = [](auto const& samples, auto const& demand, auto const& pack) {
    return test::error_text<std::invalid_argument>(
        [&] { return omnibal::tune_capacity(samples, demand, 2.0, pack); });
  };
  std::vector<std::int64_t> const lengths{3, 4, -5};
  CHECK(tune(lengths, std::identity{}, omnibal::next_fit) ==
        "omnibal::tune_capacity: demand of sample 2 is -5 in resource 0, must be finite and not "
        "negative");
  CHECK(tune(
            lengths, [](std::int64_t) { return not_a_number; }, omnibal::next_fit)
            .find("tune_capacity: demand of sample 0 is") != std::string::npos);
  auto const lose = [](auto const& samples, auto const&, auto const&) {
    CHECK(samples.size() == 3);
    return omnibal::packing{omnibal::grouping({0, 1}, {0}), {}, {}};
  };
  CHECK(tune(questions(3), std::identity{}, lose) ==
        "omnibal::tune_capacity: the packer has 1 of 3 samples");
  CHECK(test::error_text<std::invalid_argument>([] {
          return omnibal::capacity_warnings(std::vector{1}, std::identity{}, 0);
        }) == "omnibal::capacity_warnings: capacity[0] is 0, must be positive and finite");
  CHECK(test::error_text<std::invalid_argument>([] {
          return omnibal::capacity_warnings(std::vector{1}, std::identity{}, 9, 2.0);
        }) == "omnibal::capacity_warnings: common_share is 2, must be in [0, 1]");
}

TEST_CASE("tune_capacity compiles only for packers and objectives") {
  using samples = std::vector<resources<2>>;
  auto const no_packing = [](auto const&, auto const&, auto const&) { return omnibal::grouping{}; };
  auto const text = [](auto const&) { return std::string(); };
  STATIC_REQUIRE(
      std::invocable<omnibal::tune_capacity_fn, samples, std::identity, double, omnibal::isf_fn>);
  STATIC_REQUIRE(
      std::invocable<omnibal::tune_capacity_fn, samples, std::identity, int, omnibal::isf_fn,
                     omnibal::unused_capacity, omnibal::tune_capacity_options<2>>);
  STATIC_REQUIRE_FALSE(std::invocable<omnibal::tune_capacity_fn, samples, std::identity, double,
                                      decltype(no_packing)>);
  STATIC_REQUIRE_FALSE(std::invocable<omnibal::tune_capacity_fn, samples, std::identity, double,
                                      omnibal::isf_fn, decltype(text)>);
  STATIC_REQUIRE_FALSE(
      std::invocable<omnibal::tune_capacity_fn, samples, std::identity, double, omnibal::isf_fn,
                     omnibal::unused_capacity, omnibal::tune_capacity_options<3>>);
  STATIC_REQUIRE(
      std::same_as<decltype(omnibal::tune_capacity(samples(), std::identity{}, 4, omnibal::isf)),
                   omnibal::tuned<2>>);
}

TEST_CASE("tune_capacity gives a golden result") {
  auto const digest = [](auto const& result) {
    test::fnv1a hash;
    hash.add(result.packings);
    for (auto const& judged : result.finalists) {
      for (auto const amount : judged.capacity.amounts) {
        hash.add(static_cast<std::uint64_t>(amount));
      }
      hash.add(judged.groups);
      hash.add(static_cast<std::uint64_t>(std::llround(judged.objective * 1e9)));
    }
    return hash.value();
  };
  auto const tune = [&](auto const& pack, std::size_t count) {
    return digest(omnibal::tune_capacity(mixture(count), std::identity{}, 4.0, pack,
                                         {.granularity = {1, 16}}));
  };
  CHECK(tune(omnibal::next_fit, 3000) == 0x009a0b3f3e51c8db);
  CHECK(tune(few_rounds, 20'000) == 0x7b99d4c335a03d34);
}
