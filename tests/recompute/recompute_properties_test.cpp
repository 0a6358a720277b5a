// SPDX-License-Identifier: Apache-2.0
#include "every_plan.hpp"
#include "noisy_layers.hpp"

#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_option;
using omnibal::select_recompute;
using omnibal::select_recompute_options;
using omnibal::solve_status;
using test::layer_choices;
using test::layers_type;
using test::noisy_layers;
using test::share_of_all_bytes;
using test::uniform;

/// A few layers with one to four choices. The smaller `range`, the more ties, zeros and beaten
/// choices.
layers_type random_layers(omnibal::rng::engine& random, std::size_t count, std::int64_t range,
                          bool has_peaks) {
  layers_type layers(count);
  for (std::size_t i = 0; i != count; ++i) {
    if (i != 0 && uniform(random, 0, 2) == 0) {
      layers[i] = layers[i - 1];
      continue;
    }
    for (std::int64_t left = uniform(random, 1, 4); left != 0; --left) {
      layers[i].push_back({uniform(random, 0, range), uniform(random, 0, range),
                           has_peaks ? uniform(random, 0, range) : 0});
    }
  }
  return layers;
}

/// A budget between what is too little and what is enough for everything.
std::int64_t random_budget(omnibal::rng::engine& random, layers_type const& layers,
                           select_recompute_options const& options) {
  std::int64_t most = options.reserve_bytes;
  for (auto const& layer : layers) {
    for (auto const& way : layer) most += options.in_flight * way.bytes + way.transient_bytes;
  }
  return uniform(random, 0, most);
}

}  // namespace

TEST_CASE("select_recompute finds the best of all plans") {
  omnibal::rng::engine random(1);
  std::size_t infeasible = 0;
  for (int round = 0; round != 6000; ++round) {
    select_recompute_options const options{
        .in_flight = uniform(random, 1, 3),
        .reserve_bytes = round % 3 == 0 ? uniform(random, 0, 9) : 0};
    constexpr std::int64_t ranges[]{1, 3, 10, 1000, 1'000'000'000};
    auto const count = static_cast<std::size_t>(uniform(random, 0, 6));
    auto const layers = random_layers(random, count, ranges[round % 5], round % 2 == 0);
    std::int64_t const budget = random_budget(random, layers, options);
    auto const best = test::try_every_plan(layers, budget, options);
    auto const result = select_recompute(layers, budget, options);
    INFO("round " << round << ", budget " << budget);
    REQUIRE((result.status == solve_status::solved) == best.feasible);
    if (!best.feasible) {
      ++infeasible;
      CHECK(result.bytes == best.min_bytes);
      CHECK(result.missing_bytes == best.min_bytes - budget);
      continue;
    }
    CHECK(test::plan_fault(layers, result, budget, options) == "");
    CHECK(result.proven);
    CHECK(result.time == best.min_time);
  }
  CHECK(infeasible > 100);
  CHECK(infeasible < 3000);
}

TEST_CASE("select_recompute with few states stays within the budget and above its bound") {
  omnibal::rng::engine random(2);
  for (int round = 0; round != 3000; ++round) {
    select_recompute_options options{.in_flight = uniform(random, 1, 3)};
    auto const count = static_cast<std::size_t>(uniform(random, 4, 7));
    auto const layers =
        random_layers(random, count, round % 2 == 0 ? 40 : 1'000'000, round % 3 == 0);
    std::int64_t const budget = random_budget(random, layers, options);
    auto const best = test::try_every_plan(layers, budget, options);
    if (!best.feasible) continue;
    for (std::size_t const states : {1u, 2u, 5u}) {
      options.states = states;
      auto const result = select_recompute(layers, budget, options);
      INFO("round " << round << ", states " << states);
      CHECK(test::plan_fault(layers, result, budget, options) == "");
      CHECK(result.lower_bound <= best.min_time);
      CHECK(result.time >= best.min_time);
    }
  }
}

TEST_CASE("select_recompute of floating-point times agrees with that of integers") {
  omnibal::rng::engine random(3);
  for (int round = 0; round != 500; ++round) {
    auto const layers = random_layers(random, 5, 1000, round % 2 == 0);
    std::vector<std::vector<activation_option<double>>> seconds(layers.size());
    for (std::size_t i = 0; i != layers.size(); ++i) {
      for (auto const& way : layers[i]) {
        seconds[i].push_back(
            {std::ldexp(static_cast<double>(way.time), -20), way.bytes, way.transient_bytes});
      }
    }
    std::int64_t const budget = random_budget(random, layers, {});
    auto const whole = select_recompute(layers, budget);
    auto const floating = select_recompute(seconds, budget);
    CHECK(floating.choices == whole.choices);
    CHECK(floating.proven == whole.proven);
    CHECK(floating.time == std::ldexp(static_cast<double>(whole.time), -20));
    CHECK(floating.lower_bound == floating.time);
  }
}

TEST_CASE("select_recompute bounds floating-point times from below") {
  auto const layers = noisy_layers(4, 60, 1, 0.02);
  std::vector<std::vector<activation_option<double>>> seconds(layers.size());
  for (std::size_t i = 0; i != layers.size(); ++i) {
    for (auto const& way : layers[i]) {
      seconds[i].push_back({1e-9 * static_cast<double>(way.time), way.bytes});
    }
  }
  std::int64_t const budget = share_of_all_bytes(layers, 0.4);
  auto const few = select_recompute(seconds, budget, {.states = 16});
  auto const many = select_recompute(seconds, budget, {.states = 4096});
  CHECK(!few.proven);
  CHECK(few.lower_bound <= many.time);
  CHECK(few.lower_bound > 0.9 * few.time);
  CHECK(many.time <= few.time);
}

TEST_CASE("select_recompute needs no more time with more budget or more choices") {
  omnibal::rng::engine random(5);
  for (int round = 0; round != 300; ++round) {
    auto layers = random_layers(random, 6, 60, true);
    std::int64_t const most = random_budget(random, layers, {});
    std::int64_t last = -1;
    for (std::int64_t budget = most; budget > most - 60; --budget) {
      auto const result = select_recompute(layers, budget);
      if (result.status == solve_status::infeasible) break;
      REQUIRE(result.proven);
      CHECK(result.time >= last);
      last = result.time;
    }
    auto const before = select_recompute(layers, most);
    layers[static_cast<std::size_t>(uniform(random, 0, 5))].push_back(
        {uniform(random, 0, 60), uniform(random, 0, 60), uniform(random, 0, 60)});
    auto const after = select_recompute(layers, most);
    if (before.status == solve_status::infeasible) continue;
    REQUIRE(after.status == solve_status::solved);
    CHECK(after.time <= before.time);
  }
}

TEST_CASE("select_recompute needs the same time whatever the order of the layers") {
  omnibal::rng::engine random(6);
  for (std::uint64_t round = 0; round != 60; ++round) {
    auto const layers = round % 2 == 0 ? noisy_layers(round, 40, 2, 0.01)
                                       : random_layers(random, 30, 50, round % 3 == 0);
    std::int64_t const budget = random_budget(random, layers, {});
    std::vector<std::uint32_t> order(layers.size());
    std::iota(order.begin(), order.end(), 0u);
    omnibal::rng::fisher_yates{round}(std::span(order), 0);
    layers_type shuffled;
    for (std::uint32_t const i : order) shuffled.push_back(layers[i]);
    auto const options = select_recompute_options{.states = 20};
    auto const given = select_recompute(layers, budget, options);
    auto const other = select_recompute(shuffled, budget, options);
    CHECK(given.time == other.time);
    CHECK(given.lower_bound == other.lower_bound);
    CHECK(given.status == other.status);
  }
}

TEST_CASE("select_recompute adds bytes exactly where slots would hide them") {
  // Each tensor is 0.4 of a slot of a thousandth of the budget: rounded, all of them would fit.
  constexpr std::int64_t budget = 1'000'000;
  layers_type const layers(3075, layer_choices{{0, 400}, {1, 0}});
  auto const result = select_recompute(layers, budget);
  CHECK(result.bytes == budget);
  CHECK(result.time == 3075 - 2500);
  CHECK(result.proven);
}

TEST_CASE("select_recompute does not stop at the greedy choice") {
  // By time for a byte the first is kept, and then no other one fits: 40 of 108 are lost.
  layers_type const layers{{{0, 60}, {68, 0}}, {{0, 50}, {54, 0}}, {{0, 50}, {54, 0}}};
  auto const result = select_recompute(layers, 100);
  CHECK(result.choices == std::vector<std::uint32_t>{1, 0, 0});
  CHECK(result.time == 68);
  CHECK(result.proven);
}
