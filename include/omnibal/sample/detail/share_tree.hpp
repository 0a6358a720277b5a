// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Sequences in which several sources alternate evenly, with random access to every draw.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The source of a draw, and the number of earlier draws from that source.
struct source_draw {
  std::uint32_t source;
  std::uint64_t ordinal;
};

/// An endless sequence of sources in which each source appears evenly spread and in proportion to
/// its share.
///
/// Two sources form an even sequence if the number of draws of the first source in every prefix is
/// its share of the prefix, rounded. The source of a draw and its ordinal then follow from one
/// division. A Huffman tree forms a sequence of many sources: a node is a source for its parent,
/// and the ordinal of a draw from a node is the position in the sequence of the node. Each node on
/// the path to a source adds an error of at most 1/2 times the source's share of the node. In a
/// Huffman tree the shares of the nodes on the path to the root grow at least as Fibonacci numbers.
/// Therefore the error in any prefix is at most half the sum of the reciprocals of these numbers,
/// 1.68.
class share_tree {
 public:
  /// Precondition: at least one share is positive, and their sum is below 2^32.
  explicit share_tree(std::vector<std::uint64_t> shares)
      : shares_(std::move(shares)),
        leaves_(static_cast<std::uint32_t>(shares_.size())),
        parents_(2 * shares_.size(), 0) {
    using entry = std::pair<std::uint64_t, std::uint32_t>;
    std::priority_queue<entry, std::vector<entry>, std::greater<>> waiting;
    for (std::uint32_t i = 0; i != leaves_; ++i) {
      if (shares_[i] != 0) waiting.push({shares_[i], i});
    }
    while (waiting.size() > 1) {
      auto const [left_share, left] = waiting.top();
      waiting.pop();
      auto const [right_share, right] = waiting.top();
      waiting.pop();
      std::uint32_t const made = leaves_ + static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({left_share + right_share, left_share, left, right});
      parents_[left] = made;
      parents_[right] = made;
      waiting.push({left_share + right_share, made});
    }
    period_ = waiting.top().first;
    root_ = waiting.top().second;
  }

  /// Returns the period, the sum of the shares. A block of one period that begins at a multiple of
  /// the period contains each source exactly as often as its share.
  [[nodiscard]] std::uint64_t period() const { return period_; }

  /// Returns the share of a source.
  [[nodiscard]] std::uint64_t share(std::size_t source) const { return shares_[source]; }

  /// Returns the shares of all sources.
  [[nodiscard]] std::vector<std::uint64_t> const& shares() const { return shares_; }

  /// Returns the draw at a position.
  [[nodiscard]] source_draw draw(std::uint64_t position) const {
    std::uint64_t const periods = position / period_;
    position %= period_;
    std::uint32_t at = root_;
    while (at >= leaves_) {
      node const& split = nodes_[at - leaves_];
      std::uint64_t const scaled = position * split.left_share + split.share / 2;
      std::uint64_t const taken_left = scaled / split.share;
      bool const is_left = scaled % split.share + split.left_share >= split.share;
      position = is_left ? taken_left : position - taken_left;
      at = is_left ? split.left : split.right;
    }
    return {at, periods * shares_[at] + position};
  }

  /// Returns the number of draws of each source before a position.
  [[nodiscard]] std::vector<std::uint64_t> counts(std::uint64_t position) const {
    std::uint64_t const periods = position / period_;
    std::vector<std::uint64_t> counts(leaves_ + nodes_.size(), 0);
    counts[root_] = position % period_;
    for (std::size_t k = nodes_.size(); k-- != 0;) {
      node const& split = nodes_[k];
      std::uint64_t const both = counts[leaves_ + k];
      counts[split.left] = (both * split.left_share + split.share / 2) / split.share;
      counts[split.right] = both - counts[split.left];
    }
    counts.resize(leaves_);
    for (std::size_t i = 0; i != leaves_; ++i) counts[i] += periods * shares_[i];
    return counts;
  }

  /// Returns the position of a draw: the inverse of `draw`. Precondition: the position is below
  /// 2^64.
  [[nodiscard]] std::uint64_t position_of(source_draw const& of) const {
    std::uint64_t const periods = of.ordinal / shares_[of.source];
    std::uint64_t position = of.ordinal % shares_[of.source];
    for (std::uint32_t at = of.source; at != root_; at = parents_[at]) {
      node const& split = nodes_[parents_[at] - leaves_];
      std::uint64_t const half = split.share / 2;
      position = at == split.left
                     ? ((position + 1) * split.share - half - 1) / split.left_share
                     : (position * split.share + half) / (split.share - split.left_share);
    }
    return periods * period_ + position;
  }

 private:
  struct node {
    std::uint64_t share;
    std::uint64_t left_share;
    std::uint32_t left;
    std::uint32_t right;
  };

  std::vector<std::uint64_t> shares_;
  std::uint32_t leaves_;
  std::uint32_t root_;
  std::uint64_t period_;
  /// The inner nodes, children first; node k has the number `leaves_ + k`.
  std::vector<node> nodes_;
  /// The parent of each source and of each inner node except the root.
  std::vector<std::uint32_t> parents_;
};

}  // namespace omnibal::inline v0::detail
