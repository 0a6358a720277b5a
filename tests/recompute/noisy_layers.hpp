// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of a few kinds that are nearly equal.

#include "every_plan.hpp"

#include <omnibal/recompute/recompute_result.hpp>
#include <omnibal/rng/engine.hpp>

#include <cstddef>
#include <cstdint>

namespace test {

/// Layers with three choices, as many kinds as asked for, each number off by a share of `noise`.
inline layers_type noisy_layers(std::uint64_t seed, std::size_t count, std::size_t kinds,
                                double noise) {
  constexpr double times[4][3]{{0, 1300, 3980}, {0, 900, 3247}, {0, 1500, 4630}, {0, 500, 894}};
  constexpr double bytes[4][3]{{1968, 1181, 98}, {721, 487, 50}, {872, 587, 58}, {291, 200, 98}};
  omnibal::rng::engine random(seed);
  auto const noisy = [&](double value) {
    double const off = static_cast<double>(uniform(random, -1'000'000, 1'000'000)) * 1e-6;
    return static_cast<std::int64_t>(1e6 * value * (1 + noise * off));
  };
  layers_type layers(count);
  for (std::size_t i = 0; i != count; ++i) {
    std::size_t const kind = i * kinds / count;
    for (std::size_t j = 0; j != 3; ++j) {
      layers[i].push_back({noisy(times[kind][j]), noisy(bytes[kind][j])});
    }
  }
  return layers;
}

inline std::int64_t share_of_all_bytes(layers_type const& layers, double share) {
  double least = 0;
  double most = 0;
  for (auto const& layer : layers) {
    least += static_cast<double>(layer[2].bytes);
    most += static_cast<double>(layer[0].bytes);
  }
  return static_cast<std::int64_t>(least + share * (most - least));
}

/// The share of the time that the lower bound leaves open.
template <class Time>
double gap_of(omnibal::recompute_result<Time> const& result) {
  return static_cast<double>(result.time - result.lower_bound) / static_cast<double>(result.time);
}

}  // namespace test
