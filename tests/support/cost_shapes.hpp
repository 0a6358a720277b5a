// SPDX-License-Identifier: Apache-2.0
#pragma once

// Costs on which balancers fail most easily.

#include "parts.hpp"
#include "samples.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace test {

struct cost_shape {
  std::string name;
  std::vector<std::int64_t> costs;
};

/// Lists of at most `count` costs, for balancing into about `parts` parts.
inline std::vector<cost_shape> cost_shapes(std::uint64_t seed, std::size_t count,
                                           std::size_t parts) {
  std::vector<cost_shape> shapes;
  for (auto const& set : cost_sets<1>(seed, count)) {
    std::vector<std::int64_t> costs;
    for (auto const& sample : set.samples) costs.push_back(sample[0]);
    shapes.push_back({set.name, std::move(costs)});
  }
  random_amounts random(seed);
  auto const add = [&](std::string name, auto const& cost) {
    std::vector<std::int64_t> costs(count);
    for (std::size_t i = 0; i != count; ++i) costs[i] = cost(i);
    shapes.push_back({std::move(name), std::move(costs)});
  };
  // All but one, or all but two parts are full of giants, and the others get all the rest.
  for (std::size_t const spared : {1u, 2u, 3u, 7u}) {
    if (parts <= spared) continue;
    add(std::to_string(spared) + " parts without a giant", [&](std::size_t i) {
      return i + spared < parts ? std::int64_t{1} << 40 : random.between(1, 9);
    });
  }
  add("powers of two", [](std::size_t i) { return std::int64_t{1} << i % 50; });
  add("many zeros",
      [&](std::size_t) { return random.between(0, 9) == 0 ? random.between(1, 99) : 0; });
  add("few zeros",
      [&](std::size_t) { return random.between(0, 9) == 0 ? 0 : random.between(1, 99); });
  add("ones and one giant",
      [&](std::size_t i) { return i == 0 ? static_cast<std::int64_t>(count) : std::int64_t{1}; });
  add("slowly descending",
      [&](std::size_t i) { return static_cast<std::int64_t>(1'000'000 - 10 * i); });
  add("small and unlike", [&](std::size_t) {
    return random.between(0, 3) != 0 ? random.between(1, 3) : random.between(1, 40);
  });
  // All but two parts are full; of these the lower has three samples and the other two when both
  // have the same load.
  add("a tie of unlike counts", [&](std::size_t i) {
    constexpr std::int64_t two_parts[] = {7, 6, 3, 1, 1, 1};
    if (i + 2 < parts) return std::int64_t{1000};
    std::size_t const k = i + 2 - std::max(parts, std::size_t{2});
    return k < std::size(two_parts) ? two_parts[k] : 0;
  });
  if (count != 0) {
    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    add("the largest sum", [&](std::size_t i) {
      auto const n = static_cast<std::int64_t>(count);
      return i == 0 ? largest - largest / n * (n - 1) : largest / n;
    });
    add("one cost of 2^62", [&](std::size_t i) {
      return i == count / 2 ? std::int64_t{1} << 62 : random.between(0, 1000);
    });
  }
  return shapes;
}

}  // namespace test
