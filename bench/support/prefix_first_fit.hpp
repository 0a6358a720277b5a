// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// First fit of sequences that share prefixes, as trainers do it.

#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bench {

struct first_fit_result {
  std::uint64_t tokens = 0;
  std::size_t groups = 0;
};

/// Each sequence goes to the first group in which the union of all paths fits.
inline first_fit_result first_fit(omnibal::prefix_forest const& forest, std::uint64_t capacity,
                                  std::vector<std::uint32_t> const& order) {
  std::vector<std::vector<char>> has_node;
  std::vector<std::uint64_t> tokens;
  for (std::uint32_t const i : order) {
    if (forest.sequence_tokens(i) > capacity) continue;
    std::size_t g = 0;
    std::uint64_t added = 0;
    for (; g != tokens.size(); ++g) {
      added = 0;
      for (std::uint32_t v = forest.ends()[i]; v != omnibal::prefix_forest::no_parent;
           v = forest.parents()[v]) {
        if (has_node[g][v] != 0) break;
        added += forest.lengths()[v];
      }
      if (tokens[g] + added <= capacity) break;
    }
    if (g == tokens.size()) {
      has_node.emplace_back(forest.size(), 0);
      tokens.push_back(0);
      added = forest.sequence_tokens(i);
    }
    for (std::uint32_t v = forest.ends()[i];
         v != omnibal::prefix_forest::no_parent && has_node[g][v] == 0; v = forest.parents()[v]) {
      has_node[g][v] = 1;
    }
    tokens[g] += added;
  }
  return {std::accumulate(tokens.begin(), tokens.end(), std::uint64_t{0}), tokens.size()};
}

enum class sequence_order { given, shuffled, longest_first };

inline std::vector<std::uint32_t> order_of(omnibal::prefix_forest const& forest,
                                           sequence_order kind) {
  std::vector<std::uint32_t> order(forest.sequence_count());
  std::iota(order.begin(), order.end(), 0U);
  if (kind == sequence_order::shuffled) {
    omnibal::rng::engine random(9);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[omnibal::rng::below(random, i)]);
    }
  }
  if (kind == sequence_order::longest_first) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
      return forest.sequence_tokens(left) > forest.sequence_tokens(right);
    });
  }
  return order;
}

}  // namespace bench
