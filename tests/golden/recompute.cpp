// SPDX-License-Identifier: Apache-2.0
// Prints a digest of what recomputation planning gives for seeded integers.
// expected/recompute.txt has these lines; where they change on purpose, replace it by the output of
// this program.

#include "../support/fnv1a.hpp"
#include "../support/samples.hpp"
#include "digest.hpp"

#include <omnibal/activation_option.hpp>
#include <omnibal/recompute/activation_frontier.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using golden::digest_of;
using golden::print;

/// Choices for layers of all kinds: equal, nearly equal, unlike each other.
void print_recompute(std::uint64_t seed) {
  test::fnv1a hash;
  for (std::int64_t const spread : {0, 1, 1000, 100'000}) {
    test::random_amounts random(seed + static_cast<std::uint64_t>(spread));
    std::vector<std::array<omnibal::activation_option<>, 3>> layers(60);
    std::int64_t most = 0;
    for (auto& layer : layers) {
      layer[0] = {random.between(0, spread), 200'000 + random.between(0, spread)};
      layer[1] = {130'000 + random.between(0, spread), 118'000 + random.between(0, spread),
                  80'000 + random.between(0, spread / 1000)};
      layer[2] = {398'000 + random.between(0, spread), random.between(0, spread), 190'000};
      most += layer[0].bytes;
    }
    for (std::int64_t const share : {0, 5, 30, 80, 100}) {
      auto const result =
          omnibal::select_recompute(layers, 2 * most / 100 * share, {.in_flight = 2, .states = 64});
      hash.add(digest_of(result.choices));
      hash.add(static_cast<std::uint64_t>(result.time));
      hash.add(static_cast<std::uint64_t>(result.lower_bound));
      hash.add(static_cast<std::uint64_t>(result.missing_bytes));
    }
  }
  print("select_recompute of seed " + std::to_string(seed), hash.value());
}

/// Modules of layers of all kinds with links from none to fast.
void print_activations(std::uint64_t seed) {
  test::fnv1a hash;
  for (std::int64_t const spread : {0, 1000, 100'000}) {
    test::random_amounts random(seed + static_cast<std::uint64_t>(spread));
    std::vector<omnibal::activation_layer<>> layers(24);
    std::int64_t most = 0;
    for (auto& layer : layers) {
      for (std::int64_t const bytes : {40'000, 230'000, 150'000}) {
        std::int64_t const time = 700'000'000 / bytes;
        layer.modules.push_back({bytes + random.between(0, spread), time + random.between(0, 9)});
        most += layer.modules.back().bytes;
      }
      layer.forward_time = 5000 + random.between(0, spread / 100);
      layer.backward_time = 2 * layer.forward_time;
    }
    for (std::int64_t const percent : {3, 30, 60, 100}) {
      for (double const rate : {0.0, 20.0}) {
        omnibal::offload_link const link{rate};
        auto const result = omnibal::select_activations(layers, most / 100 * percent, link);
        hash.add(static_cast<std::uint64_t>(result.added_time));
        hash.add(static_cast<std::uint64_t>(result.lower_bound));
        hash.add(static_cast<std::uint64_t>(result.peak_bytes));
        hash.add(static_cast<std::uint64_t>(result.missing_bytes));
        hash.add(static_cast<std::uint64_t>(result.offloaded_bytes));
        if (result.choices.empty()) continue;
        auto const usage = omnibal::measure_activations(layers, result.choices, link);
        for (std::int64_t const bytes : usage.backward_bytes) {
          hash.add(static_cast<std::uint64_t>(bytes));
        }
      }
    }
  }
  print("select_activations of seed " + std::to_string(seed), hash.value());
}

/// Budgets that are close to each other, with several micro-batches in flight.
void print_frontier(std::uint64_t seed) {
  test::fnv1a hash;
  test::random_amounts random(seed);
  std::vector<omnibal::activation_layer<>> layers(24);
  for (auto& layer : layers) {
    for (std::int64_t const bytes : {40'000, 230'000, 150'000}) {
      layer.modules.push_back({bytes + random.between(0, 9000), random.between(100, 9000)});
    }
    layer.forward_time = 5000;
    layer.backward_time = 10'000;
  }
  std::vector<std::int64_t> budgets;
  for (int k = 0; k != 40; ++k) budgets.push_back(8'000'000 + 2000 * k);
  auto const found =
      omnibal::activation_frontier(layers, budgets, omnibal::offload_link{20}, {.in_flight = 3});
  for (auto const& one : found) {
    hash.add(static_cast<std::uint64_t>(one.added_time));
    hash.add(static_cast<std::uint64_t>(one.lower_bound));
    hash.add(static_cast<std::uint64_t>(one.peak_bytes));
    hash.add(static_cast<std::uint64_t>(one.offloaded_bytes));
  }
  print("activation_frontier of seed " + std::to_string(seed), hash.value());
}

}  // namespace

int main() {
  for (std::uint64_t const seed : {std::uint64_t{1}, std::uint64_t{2}}) {
    print_recompute(seed);
    print_activations(seed);
    print_frontier(seed);
  }
}
