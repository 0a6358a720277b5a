// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups of sizes on which the division of work on a device fails most easily.

#include <omnibal/grouping.hpp>
#include <omnibal/rng/engine.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace test {

struct named_sizes {
  std::string name;
  std::vector<std::size_t> sizes;
};

/// Numbers of items in groups: none, empty ones, many small, some large, one giant.
inline std::vector<named_sizes> group_sizes() {
  std::vector<named_sizes> result{{"no groups", {}},
                                  {"one empty", {0}},
                                  {"only empty", std::vector<std::size_t>(700, 0)},
                                  {"one of one", {1}},
                                  {"a warp and one more", {32, 33, 31, 64, 65}},
                                  {"a block and one more", {256, 257, 255}},
                                  {"one giant", {20000}},
                                  {"all alike", std::vector<std::size_t>(1000, 3)}};
  named_sizes mixed{"a giant among small ones", {}};
  named_sizes limits{"around the limits", {}};
  omnibal::rng::engine words(17);
  for (std::size_t g = 0; g != 900; ++g) {
    mixed.sizes.push_back(g == 500 ? 9000
                                   : static_cast<std::size_t>(omnibal::rng::below(words, 7)));
  }
  for (std::size_t const limit : {4096u, 4097u, 32u, 1u, 0u, 8192u, 33u, 0u}) {
    limits.sizes.push_back(limit);
  }
  result.push_back(std::move(mixed));
  result.push_back(std::move(limits));
  result.push_back({"empty ones at the end", {2, 0, 3, 0, 0, 0}});
  return result;
}

/// Groups of these sizes over the indices 0 .. their sum - 1, shuffled.
inline omnibal::grouping random_groups(std::vector<std::size_t> const& sizes, std::uint64_t seed) {
  std::vector<std::uint32_t> offsets{0};
  for (std::size_t const size : sizes) {
    offsets.push_back(offsets.back() + static_cast<std::uint32_t>(size));
  }
  std::vector<std::uint32_t> items(offsets.back());
  std::iota(items.begin(), items.end(), 0u);
  omnibal::rng::fisher_yates{seed}(std::span(items), 0);
  return {std::move(offsets), std::move(items)};
}

/// Uniform in [0, limit).
template <class T>
std::vector<T> random_weights(std::size_t count, std::uint64_t seed, std::uint64_t limit) {
  omnibal::rng::engine words(seed);
  std::vector<T> result(count);
  for (T& value : result) value = static_cast<T>(omnibal::rng::below(words, limit));
  return result;
}

}  // namespace test
