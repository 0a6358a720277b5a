// SPDX-License-Identifier: Apache-2.0
#include "error_text.hpp"
#include "list_order.hpp"

#include <omnibal/comm/ragged.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <catch.hpp>

using omnibal::build_prefix_forest;
using omnibal::prefix_blocks;
using omnibal::prefix_forest;
using omnibal::prefix_nodes;

namespace {

constexpr std::uint32_t none = prefix_forest::no_parent;

// Arrays of arguments must have names, because a temporary array would end before the call.
template <class Parents, class Lengths>
concept nodes_of = requires(Parents&& parents, Lengths&& lengths) {
  prefix_nodes{std::forward<Parents>(parents), std::forward<Lengths>(lengths), {}};
};
template <class Lengths>
concept blocks_of = requires(Lengths&& lengths) {
  prefix_blocks{8, std::forward<Lengths>(lengths)};
};
using numbers = std::vector<std::uint32_t>;
using tokens_list = std::vector<std::uint64_t>;
static_assert(nodes_of<numbers&, tokens_list const&>);
static_assert(nodes_of<std::span<std::uint32_t>, std::span<std::uint64_t const>>);
static_assert(!nodes_of<numbers, tokens_list&>);
static_assert(!nodes_of<numbers&, tokens_list>);
static_assert(!nodes_of<numbers&, tokens_list const>);
static_assert(blocks_of<tokens_list&> && !blocks_of<tokens_list>);

template <class Token>
std::vector<std::vector<Token>> random_sequences(omnibal::rng::engine& random) {
  std::vector<std::vector<Token>> sequences(omnibal::rng::below(random, 9));
  std::uint64_t const letters = 1 + omnibal::rng::below(random, 3);
  for (auto& sequence : sequences) {
    sequence.resize(omnibal::rng::below(random, 8));
    for (Token& token : sequence) token = static_cast<Token>(omnibal::rng::below(random, letters));
  }
  return sequences;
}

/// The number of equal tokens at the beginning of both.
template <class Token>
std::uint64_t common(std::vector<Token> const& left, std::vector<Token> const& right) {
  auto const end = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  return static_cast<std::uint64_t>(end.first - left.begin());
}

std::uint64_t common(prefix_forest const& forest, std::uint32_t left, std::uint32_t right) {
  while (left != right) {
    std::uint32_t& later = left > right ? left : right;
    if (forest.parents()[later] == none) return 0;
    later = forest.parents()[later];
  }
  return forest.depths()[left];
}

/// Checks what every forest promises.
void require_order(prefix_forest const& forest) {
  std::vector<std::uint32_t> first(forest.size(), none);
  for (std::uint32_t i = 0; i != forest.sequence_count(); ++i) {
    for (std::uint32_t v = forest.ends()[i]; v != none; v = forest.parents()[v]) {
      first[v] = std::min(first[v], i);
    }
  }
  for (std::uint32_t v = 0; v != forest.size(); ++v) {
    std::uint32_t const parent = forest.parents()[v];
    REQUIRE(forest.first_sequences()[v] == first[v]);
    std::uint64_t above = 0;
    if (parent != none) {
      REQUIRE(parent < v);
      REQUIRE(v < forest.subtree_ends()[parent]);
      REQUIRE(forest.subtree_ends()[v] <= forest.subtree_ends()[parent]);
      above = forest.depths()[parent];
    }
    REQUIRE(forest.depths()[v] == above + forest.lengths()[v]);
  }
}

template <class Call>
std::string error_of(Call const& call) {
  return test::error_text<std::invalid_argument>(call);
}

}  // namespace

// The guide shows this forest; it must be what a reader computes by hand.
TEST_CASE("build_prefix_forest finds shared prefixes of token ids") {
  std::vector<std::vector<int>> const sequences{
      {7, 7, 1, 2, 3}, {7, 7, 4}, {9}, {7, 7, 1, 2, 5, 6}, {7, 7}};
  auto const forest = build_prefix_forest(sequences);
  // 7 7 | 1 2 | 3, 5 6 | 4 | 9
  CHECK(std::vector<std::uint32_t>(forest.parents().begin(), forest.parents().end()) ==
        std::vector<std::uint32_t>{none, 0, 1, 1, 0, none});
  CHECK(std::vector<std::uint64_t>(forest.lengths().begin(), forest.lengths().end()) ==
        std::vector<std::uint64_t>{2, 2, 1, 2, 1, 1});
  CHECK(std::vector<std::uint32_t>(forest.ends().begin(), forest.ends().end()) ==
        std::vector<std::uint32_t>{2, 4, 5, 3, 0});
  CHECK(forest.all_tokens() == 17);
  CHECK(forest.trie_tokens() == 9);
  CHECK(forest.sequence_tokens(3) == 6);
}

// Any two sequences must share exactly the tokens at which they are equal, for every token type.
TEMPLATE_TEST_CASE("build_prefix_forest equals pairwise comparison", "", std::int8_t, std::uint16_t,
                   std::int32_t, std::uint64_t) {
  omnibal::rng::engine random(1);
  for (int round = 0; round != 2000; ++round) {
    auto const sequences = random_sequences<TestType>(random);
    auto const forest = build_prefix_forest(sequences);
    require_order(forest);
    test::list_set<std::vector<TestType>> prefixes;
    for (std::uint32_t i = 0; i != sequences.size(); ++i) {
      REQUIRE(forest.sequence_tokens(i) == sequences[i].size());
      for (std::uint32_t j = 0; j != i; ++j) {
        REQUIRE(common(forest, forest.ends()[i], forest.ends()[j]) ==
                common(sequences[i], sequences[j]));
      }
      for (std::size_t k = 1; k <= sequences[i].size(); ++k) {
        prefixes.emplace(sequences[i].data(), sequences[i].data() + k);
      }
    }
    REQUIRE(forest.trie_tokens() == prefixes.size());
  }
}

// Long equal runs go through the block comparison; the difference may be in any byte of a block.
TEST_CASE("build_prefix_forest finds a difference at each place of long sequences") {
  std::vector<std::int32_t> const base(700, 5);
  for (std::size_t place = 0; place != base.size(); ++place) {
    std::vector<std::vector<std::int32_t>> sequences{base, base};
    sequences[1][place] = 6;
    auto const forest = build_prefix_forest(sequences);
    REQUIRE(forest.trie_tokens() == 2 * base.size() - place);
  }
}

// Rows of a ragged array and spans are the forms in which trainers keep tokens.
TEST_CASE("build_prefix_forest accepts spans and the rows of a ragged") {
  std::vector<std::uint32_t> const tokens{1, 2, 3, 1, 2, 4};
  std::vector<std::span<std::uint32_t const>> const spans{std::span(tokens).first(3),
                                                          std::span(tokens).last(3)};
  omnibal::ragged<std::uint32_t> rows;
  std::vector<std::uint64_t> const sizes{3, 3};
  rows.shape(sizes);
  std::copy(tokens.begin(), tokens.begin() + 3, rows[0].begin());
  std::copy(tokens.begin() + 3, tokens.end(), rows[1].begin());
  CHECK(build_prefix_forest(spans) == build_prefix_forest(rows));
  CHECK(build_prefix_forest(rows).trie_tokens() == 4);
}

// Given nodes in any order must become the forest that the token ids give.
TEST_CASE("build_prefix_forest orders given nodes depth first") {
  omnibal::rng::engine random(2);
  for (int round = 0; round != 2000; ++round) {
    auto sequences = random_sequences<int>(random);
    std::erase_if(sequences, [](auto const& sequence) { return sequence.empty(); });
    auto const forest = build_prefix_forest(sequences);
    // Node v gets the place (v * 5 + 1) mod a prime above all nodes; other places need no sequence.
    std::size_t const places = 61;
    auto const place = [](std::uint32_t v) { return (v * 5 + 1) % 61; };
    std::vector<std::uint32_t> parents(places, none);
    std::vector<std::uint64_t> lengths(places, 3);
    std::vector<std::uint32_t> ends;
    for (std::uint32_t v = 0; v != forest.size(); ++v) {
      std::uint32_t const parent = forest.parents()[v];
      parents[place(v)] = parent == none ? none : place(parent);
      lengths[place(v)] = forest.lengths()[v];
    }
    for (std::uint32_t const end : forest.ends()) ends.push_back(place(end));
    REQUIRE(build_prefix_forest(prefix_nodes{parents, lengths, ends}) == forest);
  }
}

// A cache hashes blocks; blocks must share as the tokens in whole blocks do.
TEST_CASE("build_prefix_forest shares whole blocks of equal hashes") {
  omnibal::rng::engine random(3);
  for (int round = 0; round != 2000; ++round) {
    auto const sequences = random_sequences<int>(random);
    std::uint64_t const block = 1 + omnibal::rng::below(random, 3);
    std::vector<std::vector<std::uint64_t>> hashes;
    std::vector<std::uint64_t> lengths;
    for (auto const& sequence : sequences) {
      lengths.push_back(sequence.size());
      hashes.emplace_back();
      std::uint64_t hash = 1;
      for (std::size_t k = 0; k != sequence.size(); ++k) {
        hash = omnibal::rng::mix(hash * 31 + static_cast<std::uint64_t>(sequence[k]) + 1);
        if ((k + 1) % block == 0 || k + 1 == sequence.size()) hashes.back().push_back(hash);
      }
    }
    auto const forest = build_prefix_forest(hashes, prefix_blocks{block, lengths});
    require_order(forest);
    for (std::uint32_t i = 0; i != sequences.size(); ++i) {
      REQUIRE(forest.sequence_tokens(i) == sequences[i].size());
      for (std::uint32_t j = 0; j != i; ++j) {
        std::uint64_t expected = common(sequences[i], sequences[j]);
        if (sequences[i] != sequences[j]) expected -= expected % block;
        REQUIRE(common(forest, forest.ends()[i], forest.ends()[j]) == expected);
      }
    }
  }
}

// The errors must name the argument and the value.
TEST_CASE("build_prefix_forest names wrong arguments") {
  std::vector<std::uint32_t> const parents{1, 2, 1, none};
  std::vector<std::uint64_t> const lengths{4, 4, 4, 4};
  std::vector<std::uint32_t> const ends{3};
  CHECK(error_of([&] {
          (void)build_prefix_forest(prefix_nodes{parents, lengths, ends});
        }) ==
        "omnibal::build_prefix_forest: nodes.parents[1] is 2, but node 1 is its own ancestor");
  std::vector<std::uint32_t> const outside{9, none};
  CHECK(error_of([&] {
          (void)build_prefix_forest(prefix_nodes{outside, std::span(lengths).first(2), ends});
        }) ==
        "omnibal::build_prefix_forest: nodes.parents[0] is 9, must be a node, less than 2, "
        "or no_parent");
  CHECK(error_of([&] {
          (void)build_prefix_forest(prefix_nodes{std::span(outside).last(1), {}, ends});
        }) == "omnibal::build_prefix_forest: nodes.lengths has 0 values for 1 nodes");
  CHECK(error_of([&] {
          (void)build_prefix_forest(
              prefix_nodes{std::span(outside).last(1), std::span(lengths).first(1), ends});
        }) == "omnibal::build_prefix_forest: nodes.ends[0] is 3, must be a node, less than 1");

  std::vector<std::vector<std::uint64_t>> const hashes{{1, 2}, {1, 2, 3}};
  std::vector<std::uint64_t> tokens{8, 12};
  CHECK(error_of([&] {
          (void)build_prefix_forest(hashes, prefix_blocks{0, tokens});
        }) == "omnibal::build_prefix_forest: blocks.block_tokens is 0, must be positive");
  CHECK(error_of([&] {
          (void)build_prefix_forest(hashes, prefix_blocks{8, tokens});
        }) ==
        "omnibal::build_prefix_forest: hashes[0] has 2 values for 1 blocks, because "
        "blocks.lengths[0] is 8");
  tokens[0] = 7;
  CHECK(error_of([&] {
          (void)build_prefix_forest(hashes, prefix_blocks{4, tokens});
        }) ==
        "omnibal::build_prefix_forest: hashes[1] has the hash of a block with another number of "
        "tokens, because blocks.lengths[1] is 12 and the blocks have 11");

  std::vector<std::uint64_t> const huge{~std::uint64_t{0}, 1};
  std::vector<std::uint32_t> const chain{none, 0};
  std::vector<std::uint32_t> const end{1};
  CHECK_THROWS_AS(build_prefix_forest(prefix_nodes{chain, huge, end}), std::overflow_error);
}

// A chain as deep as a sequence is long must not overflow a stack or take quadratic time.
TEST_CASE("build_prefix_forest builds a chain of 100,000 nodes") {
  std::vector<std::int32_t> const tokens(100'000, 1);
  std::vector<std::span<std::int32_t const>> sequences;
  for (std::size_t k = 1; k <= tokens.size(); ++k) sequences.push_back(std::span(tokens).first(k));
  auto const forest = build_prefix_forest(std::span(sequences).last(3000));
  CHECK(forest.size() == 3000);
  CHECK(forest.trie_tokens() == tokens.size());
  CHECK(build_prefix_forest(prefix_nodes{forest.parents(), forest.lengths(), forest.ends()}) ==
        forest);
}
