// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Forests of prefixes from token ids, from hashes of blocks, or from parents and lengths.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/lvalue_span.hpp>
#include <omnibal/prefix/build_prefix_forest/prefix_trie.hpp>
#include <omnibal/prefix/prefix_forest.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// A range of sequences of token ids: vectors, spans, the rows of a `ragged`. A sequence is a
/// contiguous array of integers that stays valid as long as the range.
template <class Sequences>
concept token_sequences = sample_range<Sequences> &&
    std::ranges::contiguous_range<sample_reference<Sequences>> &&
    std::ranges::sized_range<sample_reference<Sequences>> &&
    std::integral<std::ranges::range_value_t<sample_reference<Sequences>>> &&
    (std::is_lvalue_reference_v<sample_reference<Sequences>> ||
     std::ranges::enable_borrowed_range<std::remove_cvref_t<sample_reference<Sequences>>>);

/// The nodes of a forest that the caller has built, in any order. A sequence is the path from a
/// root to its node in `ends`.
struct prefix_nodes {
  /// The parent of each node, `prefix_forest::no_parent` for a root.
  detail::lvalue_span<std::uint32_t> parents = {};
  /// The number of tokens of each node.
  detail::lvalue_span<std::uint64_t> lengths = {};
  /// The node at which each sequence ends.
  detail::lvalue_span<std::uint32_t> ends = {};
};

/// The lengths of sequences that are given as hashes of blocks, such as the blocks of a cache of
/// keys and values. The hash of a block may depend on the blocks before it, or only on the tokens
/// of the block.
struct prefix_blocks {
  /// The number of tokens of a block; the last block of a sequence may have fewer.
  std::uint64_t block_tokens = 0;
  /// The number of tokens of each sequence.
  detail::lvalue_span<std::uint64_t> lengths = {};
};

struct build_prefix_forest_fn {
  /// Builds the forest of the sequences from their token ids. Sequences share nodes up to the first
  /// token in which they differ, so two siblings never begin with the same token. Equal sequences
  /// end at the same node. Sequences without tokens end at one root without tokens.
  ///
  /// Complexity: each token of a sequence is compared at most once, and tokens that no other
  /// sequence can share are not read; the tokens at which sequences differ are sorted with n log n
  /// comparisons. Memory: 48 bytes per sequence and 28 per node, including the result. Determinism:
  /// portable. Errors: `std::length_error` if there are more than 2^32 - 1 sequences or nodes.
  template <token_sequences Sequences>
  [[nodiscard]] prefix_forest operator()(Sequences const& sequences) const {
    auto const rows = rows_of("sequences", sequences);
    prefix_forest result;
    detail::build_trie(rows, detail::forest_writer{result});
    detail::forest_writer{result}.finish(name);
    return result;
  }

  /// Builds the forest of sequences from the hashes of their blocks. Sequences share the blocks at
  /// their beginning that have equal hashes. Different blocks with equal hashes are treated as
  /// equal. The lengths in the result are numbers of tokens.
  ///
  /// Further errors: `std::invalid_argument` if `block_tokens` is zero, if a sequence has another
  /// number of hashes than blocks, or if equal hashes name blocks with different numbers of tokens.
  template <token_sequences Hashes>
  [[nodiscard]] prefix_forest operator()(Hashes const& hashes, prefix_blocks const& blocks) const {
    detail::check_positive(name, "blocks.block_tokens", blocks.block_tokens);
    auto const rows = rows_of("hashes", hashes);
    detail::check_size(name, "blocks.lengths", blocks.lengths.size(), rows.size(), "sequences");
    for (std::size_t i = 0; i != rows.size(); ++i) {
      std::uint64_t const length = blocks.lengths[i];
      std::uint64_t const count =
          length / blocks.block_tokens + (length % blocks.block_tokens != 0 ? 1 : 0);
      if (rows[i].size() == count) continue;
      detail::throw_invalid(name, "hashes[", i, "] has ", rows[i].size(), " values for ", count,
                            " blocks, because blocks.lengths[", i, "] is ", length);
    }
    prefix_forest result;
    detail::forest_writer const writer{result};
    detail::build_trie(rows, writer);
    set_block_lengths(result, writer, blocks);
    writer.finish(name);
    for (std::size_t i = 0; i != rows.size(); ++i) {
      if (result.sequence_tokens(i) == blocks.lengths[i]) continue;
      detail::throw_invalid(name, "hashes[", i,
                            "] has the hash of a block with another number of "
                            "tokens, because blocks.lengths[",
                            i, "] is ", blocks.lengths[i], " and the blocks have ",
                            result.sequence_tokens(i));
    }
    return result;
  }

  /// Builds the forest of sequences from given nodes. The result has the nodes in depth-first
  /// order, without nodes that are on no path of a sequence. Nodes with equal tokens are not
  /// merged.
  ///
  /// Complexity: linear. Errors: `std::invalid_argument` if the numbers of parents and lengths
  /// differ, if a parent or an end is not a node, or if parents form a cycle. Further errors:
  /// `std::overflow_error` if the sum of all lengths, or of all sequences, exceeds 2^64 - 1.
  [[nodiscard]] prefix_forest operator()(prefix_nodes const& nodes) const {
    check_nodes(nodes);
    check_no_cycle(nodes);
    std::vector<std::uint32_t> const first_sequence = first_sequences_of(nodes);
    prefix_forest result;
    detail::forest_writer const writer{result};
    write_depth_first(nodes, first_sequence, child_lists_of(nodes, first_sequence), writer);
    writer.finish(name);
    return result;
  }

 private:
  static constexpr std::string_view name = "build_prefix_forest";
  static constexpr std::uint32_t none = prefix_forest::no_parent;

  /// The children of each node as linked lists, in ascending order of their first sequences.
  struct child_lists {
    /// The first child of each node, then the first root; `none` if there is none.
    std::vector<std::uint32_t> first_child;
    std::vector<std::uint32_t> next_sibling;
  };

  template <class Sequences>
  [[nodiscard]] static auto rows_of(std::string_view argument, Sequences const& sequences) {
    using token = std::ranges::range_value_t<sample_reference<Sequences>>;
    detail::check_index_count(name, argument, std::ranges::size(sequences));
    std::vector<std::span<token const>> rows;
    rows.reserve(std::ranges::size(sequences));
    for (auto&& row : sequences) rows.emplace_back(std::ranges::data(row), std::ranges::size(row));
    return rows;
  }

  /// Converts the lengths of nodes from blocks to tokens. The nodes are in depth-first order, so
  /// the number of blocks above a node is known when the loop reaches it.
  static void set_block_lengths(prefix_forest const& forest, detail::forest_writer const& writer,
                                prefix_blocks const& blocks) {
    std::vector<std::uint64_t> above(forest.size(), 0);
    for (std::uint32_t v = 0; v != forest.size(); ++v) {
      std::uint32_t const parent = forest.parents()[v];
      std::uint64_t const begin = parent == prefix_forest::no_parent ? 0 : above[parent];
      above[v] = begin + forest.lengths()[v];
      std::uint64_t const length = blocks.lengths[forest.first_sequences()[v]];
      std::uint64_t const whole = length / blocks.block_tokens;
      std::uint64_t const end = above[v] > whole ? length : above[v] * blocks.block_tokens;
      writer.set_length(v, end - begin * blocks.block_tokens);
    }
  }

  static void check_nodes(prefix_nodes const& nodes) {
    std::size_t const count = nodes.parents.size();
    detail::check_index_count(name, "nodes.parents", count);
    detail::check_index_count(name, "nodes.ends", nodes.ends.size());
    detail::check_size(name, "nodes.lengths", nodes.lengths.size(), count, "nodes");
    for (std::size_t v = 0; v != count; ++v) {
      if (nodes.parents[v] == none || nodes.parents[v] < count) continue;
      detail::throw_invalid(name, "nodes.parents[", v, "] is ", nodes.parents[v],
                            ", must be a node, less than ", count, ", or no_parent");
    }
    for (std::size_t i = 0; i != nodes.ends.size(); ++i) {
      if (nodes.ends[i] < count) continue;
      detail::throw_invalid(name, "nodes.ends[", i, "] is ", nodes.ends[i],
                            ", must be a node, less than ", count);
    }
  }

  static void check_no_cycle(prefix_nodes const& nodes) {
    // If a node is its own ancestor, the walk to the root from this node reaches a node of the same
    // walk.
    std::size_t const count = nodes.parents.size();
    std::vector<std::uint32_t> walk_of(count, none);
    for (std::uint32_t start = 0; start != count; ++start) {
      std::uint32_t v = start;
      while (v != none && walk_of[v] == none) {
        walk_of[v] = start;
        v = nodes.parents[v];
      }
      if (v != none && walk_of[v] == start) {
        detail::throw_invalid(name, "nodes.parents[", v, "] is ", nodes.parents[v], ", but node ",
                              v, " is its own ancestor");
      }
    }
  }

  /// Returns the lowest sequence whose path contains each node; `none` for nodes on no path.
  [[nodiscard]] static std::vector<std::uint32_t> first_sequences_of(prefix_nodes const& nodes) {
    std::vector<std::uint32_t> result(nodes.parents.size(), none);
    for (std::size_t i = 0; i != nodes.ends.size(); ++i) {
      auto const sequence = static_cast<std::uint32_t>(i);
      for (std::uint32_t v = nodes.ends[i]; v != none && result[v] == none; v = nodes.parents[v]) {
        result[v] = sequence;
      }
    }
    return result;
  }

  /// Returns the children of each node that is on a path.
  [[nodiscard]] static child_lists child_lists_of(prefix_nodes const& nodes,
                                                  std::span<std::uint32_t const> first_sequence) {
    std::size_t const count = nodes.parents.size();
    child_lists result{.first_child = std::vector<std::uint32_t>(count + 1, none),
                       .next_sibling = std::vector<std::uint32_t>(count, none)};
    // Nodes are added in front of their lists. Therefore the sequences go from last to first.
    for (std::size_t i = nodes.ends.size(); i-- != 0;) {
      for (std::uint32_t v = nodes.ends[i]; v != none && first_sequence[v] == i;
           v = nodes.parents[v]) {
        std::uint32_t& head =
            result.first_child[nodes.parents[v] == none ? count : nodes.parents[v]];
        result.next_sibling[v] = std::exchange(head, v);
      }
    }
    return result;
  }

  /// Writes the nodes that are on a path, in depth-first order, and the ends of the sequences.
  static void write_depth_first(prefix_nodes const& nodes,
                                std::span<std::uint32_t const> first_sequence,
                                child_lists const& children, detail::forest_writer const& writer) {
    writer.start(nodes.ends.size());
    std::vector<std::uint32_t> written_as(nodes.parents.size(), none);
    std::vector<std::uint32_t> pending;
    if (children.first_child.back() != none) pending.push_back(children.first_child.back());
    while (!pending.empty()) {
      std::uint32_t const v = pending.back();
      pending.pop_back();
      std::uint32_t const parent = nodes.parents[v];
      written_as[v] = writer.push(parent == none ? none : written_as[parent], nodes.lengths[v],
                                  first_sequence[v]);
      if (children.next_sibling[v] != none) pending.push_back(children.next_sibling[v]);
      if (children.first_child[v] != none) pending.push_back(children.first_child[v]);
    }
    for (std::size_t i = 0; i != nodes.ends.size(); ++i) {
      writer.end(static_cast<std::uint32_t>(i), written_as[nodes.ends[i]]);
    }
  }
};

/// Builds the forest of prefixes that sequences share; see `build_prefix_forest_fn`.
inline constexpr build_prefix_forest_fn build_prefix_forest{};

}  // namespace omnibal::inline v0
