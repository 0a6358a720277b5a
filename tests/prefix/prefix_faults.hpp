// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is wrong with a packing of a forest, and small random forests.

#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace test {

/// The tokens of the union of the paths of sequences, node by node.
inline std::uint64_t union_tokens(omnibal::prefix_forest const& forest,
                                  std::span<std::uint32_t const> sequences) {
  std::set<std::uint32_t> nodes;
  for (std::uint32_t const sequence : sequences) {
    for (std::uint32_t v = forest.ends()[sequence]; v != omnibal::prefix_forest::no_parent;
         v = forest.parents()[v]) {
      nodes.insert(v);
    }
  }
  std::uint64_t tokens = 0;
  for (std::uint32_t const v : nodes) tokens += forest.lengths()[v];
  return tokens;
}

/// What is wrong with a packing whose oversized sequences are listed.
inline std::string fault(omnibal::prefix_packing const& packed,
                         omnibal::prefix_forest const& forest, std::uint64_t capacity) {
  std::vector<int> seen(forest.sequence_count(), 0);
  std::uint64_t sum = 0;
  if (packed.tokens.size() != packed.groups.size()) return "tokens and groups differ in number";
  for (std::size_t g = 0; g != packed.groups.size(); ++g) {
    std::uint64_t const tokens = union_tokens(forest, packed.groups[g]);
    if (tokens != packed.tokens[g]) return "the tokens of a group are wrong";
    if (tokens > capacity) return "a group exceeds the capacity";
    for (std::uint32_t const sequence : packed.groups[g]) ++seen[sequence];
    sum += tokens;
  }
  for (std::uint32_t const sequence : packed.oversized) {
    if (forest.sequence_tokens(sequence) <= capacity) return "a sequence is not oversized";
    ++seen[sequence];
  }
  if (std::count(seen.begin(), seen.end(), 1) != static_cast<std::ptrdiff_t>(seen.size())) {
    return "a sequence is not in one place";
  }
  if (sum != packed.computed_tokens) return "the sum of the tokens is wrong";
  return "";
}

/// A forest of up to `most` nodes with lengths from 0 to `longest`.
inline omnibal::prefix_forest random_forest(omnibal::rng::engine& random, std::size_t most,
                                            std::size_t sequences, std::uint64_t longest) {
  std::size_t const nodes = 1 + omnibal::rng::below(random, most);
  std::vector<std::uint32_t> parents;
  std::vector<std::uint64_t> lengths;
  for (std::uint32_t v = 0; v != nodes; ++v) {
    bool const is_root = v == 0 || omnibal::rng::below(random, 5) == 0;
    parents.push_back(is_root ? omnibal::prefix_forest::no_parent
                              : static_cast<std::uint32_t>(omnibal::rng::below(random, v)));
    lengths.push_back(omnibal::rng::below(random, longest + 1));
  }
  std::vector<std::uint32_t> ends(omnibal::rng::below(random, sequences + 1));
  for (std::uint32_t& end : ends) {
    end = static_cast<std::uint32_t>(omnibal::rng::below(random, nodes));
  }
  return omnibal::build_prefix_forest(omnibal::prefix_nodes{parents, lengths, ends});
}

}  // namespace test
