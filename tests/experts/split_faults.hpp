// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of splits of tokens over copies of experts, and the least largest rank by brute force over
// sets of ranks.

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/experts/split_experts.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace test {

/// Tokens, copies and first tokens of one batch.
struct split_instance {
  std::vector<std::int64_t> tokens;
  std::vector<std::uint32_t> placement;
  std::vector<std::int64_t> first_tokens;

  [[nodiscard]] std::size_t ranks() const { return first_tokens.size(); }
  [[nodiscard]] std::size_t rank_of(std::size_t slot) const {
    return slot / (placement.size() / ranks());
  }

  /// Returns the mean, rounded up, of the tokens that can only go into a set of ranks.
  [[nodiscard]] std::int64_t mean_of(std::vector<std::uint8_t> const& is_in) const {
    std::vector<std::uint8_t> leaves(tokens.size(), 0);
    for (std::size_t s = 0; s != placement.size(); ++s) {
      if (is_in[rank_of(s)] == 0) leaves[placement[s]] = 1;
    }
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (std::size_t e = 0; e != tokens.size(); ++e) sum += leaves[e] != 0 ? 0 : tokens[e];
    for (std::size_t r = 0; r != ranks(); ++r) {
      sum += is_in[r] != 0 ? first_tokens[r] : 0;
      count += is_in[r];
    }
    return count == 0 ? 0 : sum / count + (sum % count != 0 ? 1 : 0);
  }

  /// Returns the largest such mean of all sets, which is the least largest rank.
  [[nodiscard]] std::int64_t least_largest() const {
    std::int64_t result = 0;
    for (std::size_t set = 1; set != std::size_t{1} << ranks(); ++set) {
      std::vector<std::uint8_t> is_in;
      for (std::size_t r = 0; r != ranks(); ++r) is_in.push_back(set >> r & 1);
      result = std::max(result, mean_of(is_in));
    }
    return result;
  }
};

/// Returns placed experts and a batch whose tokens differ from the loads of the placement.
inline split_instance placed_batch(std::uint64_t seed, std::size_t experts, std::size_t slots,
                                   std::size_t ranks) {
  omnibal::rng::engine random(seed);
  split_instance result;
  std::vector<std::int64_t> loads;
  for (std::size_t e = 0; e != experts; ++e) {
    std::uint64_t const limit = std::uint64_t{2} << omnibal::rng::below(random, 12);
    auto const load = static_cast<std::int64_t>(omnibal::rng::below(random, limit));
    loads.push_back(load);
    result.tokens.push_back(load / 2 + static_cast<std::int64_t>(omnibal::rng::below(random, 64)));
  }
  result.placement = omnibal::place_experts(loads, slots, ranks).experts;
  result.first_tokens.assign(ranks, 0);
  return result;
}

/// Returns what is wrong with a split; empty if nothing is.
inline std::string split_faults(split_instance const& given, omnibal::expert_split const& split) {
  if (split.tokens.size() != given.placement.size()) return "number of slots";
  auto left = given.tokens;
  auto ranks = given.first_tokens;
  for (std::size_t s = 0; s != split.tokens.size(); ++s) {
    if (split.tokens[s] < 0) return "negative tokens";
    left[given.placement[s]] -= split.tokens[s];
    ranks[given.rank_of(s)] += split.tokens[s];
  }
  if (std::count(left.begin(), left.end(), 0) != std::ssize(left)) return "tokens of an expert";
  if (ranks != split.rank_tokens) return "tokens of the ranks";
  if (*std::max_element(ranks.begin(), ranks.end()) != split.largest) return "largest rank";
  std::vector<std::uint8_t> is_in(given.ranks(), 0);
  for (std::uint32_t const rank : split.full_ranks) is_in[rank] = 1;
  if (!std::is_sorted(split.full_ranks.begin(), split.full_ranks.end())) return "order of ranks";
  if (given.mean_of(is_in) != split.largest) return "no proof";
  return "";
}

}  // namespace test
