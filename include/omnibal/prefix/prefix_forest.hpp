// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Forests of token prefixes that sequences share.

#include <omnibal/check.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {
struct forest_writer;
}  // namespace detail

/// A forest of prefixes. Each node represents a run of tokens. The tokens of a sequence are the
/// tokens of the nodes on the path from a root to the node at which the sequence ends. Several
/// sequences may end at one node, and a sequence may end at a node with children. Nodes are in
/// depth-first order: a parent precedes its children, and the nodes of a subtree are consecutive.
/// Siblings are in the order of the lowest sequence that ends in their subtrees.
/// `build_prefix_forest` creates a forest.
class prefix_forest {
 public:
  /// The value of `parents()` for a root.
  static constexpr std::uint32_t no_parent = max_index_count;

  /// Creates a forest without nodes and sequences.
  prefix_forest() = default;

  /// Returns the number of nodes.
  [[nodiscard]] std::size_t size() const noexcept { return parents_.size(); }
  [[nodiscard]] bool empty() const noexcept { return parents_.empty(); }
  /// Returns the number of sequences.
  [[nodiscard]] std::size_t sequence_count() const noexcept { return ends_.size(); }

  /// Returns the parent of each node, `no_parent` for a root. Spans are valid as long as this
  /// object lives unchanged. A temporary has no such members.
  [[nodiscard]] std::span<std::uint32_t const> parents() const& noexcept { return parents_; }
  /// Returns the number of tokens of each node, without the tokens of its ancestors.
  [[nodiscard]] std::span<std::uint64_t const> lengths() const& noexcept { return lengths_; }
  /// Returns the number of tokens from the root through each node, including the tokens of the
  /// node.
  [[nodiscard]] std::span<std::uint64_t const> depths() const& noexcept { return depths_; }
  /// Returns the end of the subtree of each node v: the subtree is the nodes [v, end).
  [[nodiscard]] std::span<std::uint32_t const> subtree_ends() const& noexcept {
    return subtree_ends_;
  }
  /// Returns the lowest sequence whose path contains each node. The tokens of node v are the tokens
  /// [depth - length, depth) of this sequence.
  [[nodiscard]] std::span<std::uint32_t const> first_sequences() const& noexcept {
    return first_sequences_;
  }
  /// Returns the node at which each sequence ends.
  [[nodiscard]] std::span<std::uint32_t const> ends() const& noexcept { return ends_; }
  void parents() const&& = delete;
  void lengths() const&& = delete;
  void depths() const&& = delete;
  void subtree_ends() const&& = delete;
  void first_sequences() const&& = delete;
  void ends() const&& = delete;

  /// Returns the number of tokens of a sequence. Precondition: `sequence < sequence_count()`.
  [[nodiscard]] std::uint64_t sequence_tokens(std::size_t sequence) const {
    return depths_[ends_[sequence]];
  }
  /// Returns the number of tokens of all sequences. A token that n sequences share counts n times.
  [[nodiscard]] std::uint64_t all_tokens() const noexcept { return all_tokens_; }
  /// Returns the number of tokens of all nodes. A token that several sequences share counts once.
  [[nodiscard]] std::uint64_t trie_tokens() const noexcept { return trie_tokens_; }

  [[nodiscard]] friend bool operator==(prefix_forest const&, prefix_forest const&) = default;

 private:
  friend struct detail::forest_writer;

  std::vector<std::uint32_t> parents_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint64_t> depths_;
  std::vector<std::uint32_t> subtree_ends_;
  std::vector<std::uint32_t> first_sequences_;
  std::vector<std::uint32_t> ends_;
  std::uint64_t all_tokens_ = 0;
  std::uint64_t trie_tokens_ = 0;
};

namespace detail {

/// Fills a forest. The caller calls `start`, `push` for each node in depth-first order, `end` for
/// each sequence, and then `finish`.
struct forest_writer {
  prefix_forest& forest;

  void start(std::size_t sequences) const { forest.ends_.assign(sequences, 0); }

  /// Appends a node and returns it.
  std::uint32_t push(std::uint32_t parent, std::uint64_t length, std::uint32_t first) const {
    check_index_count("build_prefix_forest", "the forest", forest.parents_.size() + 1);
    forest.parents_.push_back(parent);
    forest.lengths_.push_back(length);
    forest.first_sequences_.push_back(first);
    return static_cast<std::uint32_t>(forest.parents_.size() - 1);
  }
  void end(std::uint32_t sequence, std::uint32_t node) const { forest.ends_[sequence] = node; }
  void set_length(std::uint32_t node, std::uint64_t length) const {
    forest.lengths_[node] = length;
  }

  /// Computes depths, ends of subtrees and sums.
  void finish(std::string_view function) const {
    std::size_t const count = forest.size();
    forest.depths_.resize(count);
    forest.subtree_ends_.resize(count);
    for (std::size_t v = 0; v != count; ++v) {
      std::uint64_t depth = forest.lengths_[v];
      if (forest.parents_[v] != prefix_forest::no_parent) {
        checked_add(function, "the length of a path", depth, forest.depths_[forest.parents_[v]]);
      }
      forest.depths_[v] = depth;
      checked_add(function, "the sum of the lengths", forest.trie_tokens_, forest.lengths_[v]);
      forest.subtree_ends_[v] = static_cast<std::uint32_t>(v + 1);
    }
    for (std::size_t v = count; v-- != 0;) {
      std::uint32_t const parent = forest.parents_[v];
      if (parent == prefix_forest::no_parent) continue;
      if (forest.subtree_ends_[parent] < forest.subtree_ends_[v]) {
        forest.subtree_ends_[parent] = forest.subtree_ends_[v];
      }
    }
    for (std::uint32_t const node : forest.ends_) {
      checked_add(function, "the tokens of all sequences", forest.all_tokens_,
                  forest.depths_[node]);
    }
  }
};

}  // namespace detail

}  // namespace omnibal::inline v0
