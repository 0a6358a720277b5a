// SPDX-License-Identifier: Apache-2.0
#include "every_byte.hpp"
#include "every_plan.hpp"
#include "noisy_layers.hpp"

#include <omnibal/recompute/select_recompute.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch.hpp>

namespace {

using omnibal::activation_option;
using omnibal::select_recompute;
using omnibal::select_recompute_options;
using omnibal::solve_status;
using test::layers_type;
using test::noisy_layers;
using test::share_of_all_bytes;
using test::uniform;

/// How far the numbers of layers of a kind are apart, and how many transient bytes they have.
struct spread {
  std::int64_t of_numbers;
  std::int64_t of_transients;
};

/// Layers of up to three kinds with two to four choices, with bytes small enough for a table.
layers_type small_layers(omnibal::rng::engine& random, std::size_t count, spread const& given) {
  std::vector<test::layer_choices> kinds(static_cast<std::size_t>(uniform(random, 1, 3)));
  std::int64_t const choices = uniform(random, 2, 4);
  for (auto& kind : kinds) {
    activation_option<> way{0, uniform(random, 100, 400)};
    for (std::int64_t left = choices; left != 0; --left) {
      kind.push_back(way);
      way.time += uniform(random, 50, 2000);
      way.bytes = std::max<std::int64_t>(0, way.bytes - uniform(random, 20, 150));
    }
  }
  layers_type layers;
  for (std::size_t l = 0; l != count; ++l) {
    auto const kind = static_cast<std::size_t>(uniform(random, 0, std::ssize(kinds) - 1));
    auto& layer = layers.emplace_back(kinds[kind]);
    for (auto& way : layer) {
      std::int64_t const off = given.of_numbers;
      way.time = std::max<std::int64_t>(0, way.time + 4 * uniform(random, -off, off));
      way.bytes = std::max<std::int64_t>(0, way.bytes + uniform(random, -off, off) / 3);
      way.transient_bytes = uniform(random, 0, given.of_transients);
    }
  }
  return layers;
}

/// From what is too little to what is nearly enough for everything.
std::int64_t small_budget(omnibal::rng::engine& random, layers_type const& layers,
                          select_recompute_options const& options) {
  std::int64_t least = options.reserve_bytes;
  std::int64_t most = options.reserve_bytes;
  for (auto const& layer : layers) {
    auto const [few, many] = std::minmax_element(
        layer.begin(), layer.end(), [](activation_option<> const& a, activation_option<> const& b) {
          return a.bytes < b.bytes;
        });
    least += options.in_flight * few->bytes;
    most += options.in_flight * many->bytes;
  }
  return uniform(random, least, most);
}

}  // namespace

TEST_CASE("select_recompute agrees with a table of all bytes for nearly equal layers", "[slow]") {
  omnibal::rng::engine random(1);
  int solved = 0;
  int unproven = 0;
  for (int round = 0; round != 400; ++round) {
    CAPTURE(round);
    spread const given{round % 3 == 0 ? 0 : uniform(random, 1, 30),
                       round % 4 == 0 ? uniform(random, 1, 40) : 0};
    auto const layers =
        small_layers(random, static_cast<std::size_t>(uniform(random, 1, 40)), given);
    select_recompute_options options{.in_flight = uniform(random, 1, 3),
                                     .reserve_bytes = round % 5 == 0 ? uniform(random, 0, 20) : 0};
    std::int64_t const budget = small_budget(random, layers, options);
    std::int64_t const best = test::min_time_by_bytes(layers, budget, options);
    for (std::size_t const states : {4u, 32u, 256u}) {
      for (double const tolerance : {0.0, 0.0005, 0.9}) {
        options.states = states;
        options.max_gap = tolerance;
        CAPTURE(states, tolerance);
        auto const result = select_recompute(layers, budget, options);
        REQUIRE((result.status == solve_status::solved) == (best != test::no_choices));
        if (best == test::no_choices) continue;
        ++solved;
        CHECK(test::plan_fault(layers, result, budget, options) == "");
        CHECK(result.lower_bound <= best);
        CHECK(result.time >= best);
        if (!result.proven) ++unproven;
        if (states != 256 || tolerance > 0.0005) continue;
        CHECK(static_cast<double>(result.time) <= 1.0005 * static_cast<double>(best));
        CHECK(static_cast<double>(result.lower_bound) >= 0.998 * static_cast<double>(best));
      }
    }
  }
  CHECK(solved > 3000);
  CHECK(unproven > 100);
}

TEST_CASE("select_recompute proves the best for up to four kinds of layers") {
  omnibal::rng::engine random(7);
  for (std::size_t kinds = 1; kinds <= 4; ++kinds) {
    for (int percent = 1; percent < 100; percent += 3) {
      auto const layers = noisy_layers(0, 93, kinds, 0.0);
      std::int64_t const budget =
          share_of_all_bytes(layers, 0.01 * percent) + uniform(random, 0, 999'999);
      auto const result = select_recompute(layers, budget);
      INFO(kinds << " kinds, " << percent << " %");
      CHECK(result.proven);
      CHECK(test::plan_fault(layers, result, budget, {}) == "");
    }
  }
}

TEST_CASE("select_recompute proves the best for nearly all mixes of up to four kinds") {
  omnibal::rng::engine random(8);
  int unproven = 0;
  for (int round = 0; round != 400; ++round) {
    CAPTURE(round);
    std::vector<test::layer_choices> kinds(static_cast<std::size_t>(round % 4) + 1);
    for (auto& kind : kinds) {
      activation_option<> way{0, uniform(random, 100'000'000, 2'000'000'000)};
      for (std::int64_t left = uniform(random, 2, 4); left != 0; --left) {
        kind.push_back(way);
        way.time += uniform(random, 1000, 3'000'000);
        way.bytes = way.bytes * uniform(random, 20, 95) / 100;
      }
    }
    layers_type layers;
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (std::size_t l = 0; l != 93; ++l) {
      layers.push_back(kinds[l * kinds.size() / 93]);
      least += layers.back().back().bytes;
      most += layers.back().front().bytes;
    }
    auto const result = select_recompute(layers, uniform(random, least, most));
    unproven += result.proven ? 0 : 1;
    CHECK(result.status == solve_status::solved);
  }
  CHECK(unproven <= 1);
}

TEST_CASE("select_recompute bounds nearly equal layers closely") {
  for (double const noise : {1e-6, 1e-3, 1e-2, 2e-2, 5e-2, 1e-1}) {
    for (std::size_t const kinds : {1u, 2u, 4u}) {
      double sum = 0;
      double most = 0;
      int count = 0;
      for (int percent = 2; percent < 98; percent += 4) {
        auto const layers = noisy_layers(static_cast<std::uint64_t>(percent), 93, kinds, noise);
        std::int64_t const budget = share_of_all_bytes(layers, 0.01 * percent);
        auto const result = select_recompute(layers, budget);
        CHECK(test::plan_fault(layers, result, budget, {}) == "");
        // More states may only find what the bound allows, and hardly ever less than fewer do.
        auto const more =
            select_recompute(layers, budget, {.effort = omnibal::effort::thorough, .max_gap = 0});
        CHECK(more.time <= result.time + result.time / 100'000);
        CHECK(more.time >= result.lower_bound);
        sum += test::gap_of(result);
        most = std::max(most, test::gap_of(result));
        ++count;
      }
      INFO(kinds << " kinds, noise " << noise << ", mean gap " << sum / count << ", largest "
                 << most);
      CHECK(sum / count < (noise <= 1e-3 ? 0.0002 : 0.001));
      CHECK(most < (noise <= 1e-3 ? 0.002 : noise <= 1e-2 ? 0.003 : 0.008));
    }
  }
}

TEST_CASE("select_recompute bounds layers whose transient bytes are nearly equal") {
  omnibal::rng::engine random(9);
  for (int round = 0; round != 40; ++round) {
    auto layers = noisy_layers(static_cast<std::uint64_t>(round), 64, 2, 0.02);
    std::int64_t peak = 0;
    for (auto& layer : layers) {
      for (auto& way : layer) {
        way.transient_bytes = 2'100'000'000 - way.bytes + uniform(random, -9'000'000, 9'000'000);
        peak = std::max(peak, way.transient_bytes);
      }
    }
    select_recompute_options const options{.in_flight = uniform(random, 1, 8)};
    double const share = 0.01 * static_cast<double>(uniform(random, 2, 90));
    std::int64_t const budget = options.in_flight * share_of_all_bytes(layers, share) + peak;
    auto const result = select_recompute(layers, budget, options);
    INFO("round " << round << ", gap " << test::gap_of(result));
    CHECK(test::plan_fault(layers, result, budget, options) == "");
    CHECK(test::gap_of(result) < 0.008);
  }
}
