// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The group of paths with the largest sum of prices.

#include <omnibal/detail/pattern_master.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/piece_packer.hpp>
#include <omnibal/prefix/prefix_forest.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The pricing problem of `column_generation` for the paths below a node: a knapsack on a tree, by
/// dynamic programming over the nodes in depth-first order. Lengths are rounded down to units of
/// the capacity, which only admits more groups, so that a bound remains a bound. Values are
/// integers below 2^53 in `double`, so that sums are exact.
class path_pricing {
 public:
  /// The paths with ends [first, last) of `ends`, below a node whose path has `above` tokens. The
  /// nodes below it are [begin, end). `room` is the capacity without the tokens above.
  path_pricing(prefix_forest const& forest, path_ends const& ends, std::size_t first,
               std::size_t last, std::uint32_t begin, std::uint32_t end, std::uint64_t above,
               std::uint64_t room)
      : alone_(last - first, 1) {
    collect_nodes(forest, ends, first, last, begin, end);
    units_ = std::min<std::uint64_t>(
        room, std::clamp<std::size_t>(max_cells / nodes_.size(), std::size_t{64}, max_units));
    for (node& one : nodes_) {
      one.length = static_cast<std::uint64_t>(static_cast<uint128>(one.length) * units_ / room);
    }
    table_.resize((nodes_.size() + 1) * (units_ + 1));
    std::vector<std::uint64_t> depths;
    std::vector<std::uint64_t> shared;
    for (std::size_t t = first; t != last; ++t) {
      depths.push_back(ends.depths[t] - above);
      shared.push_back(t == first ? 0 : ends.shared[t] - above);
    }
    rng::engine words(0);
    packer_.pack(depths, shared, {room, 32, 0}, words);
  }

  [[nodiscard]] std::span<std::uint32_t const> alone() const { return alone_; }

  /// Returns the next group of a packing, at last an empty one.
  [[nodiscard]] pattern greedy(std::span<std::uint32_t const>) {
    pattern result;
    if (next_ == packer_.size()) return result;
    packer_.visit(next_++, [&](std::uint32_t t) { result.push_back({t, 1}); });
    return result;
  }

  /// Finds the best group at these prices. Returns false if that needs more than `steps` steps,
  /// which are reduced otherwise.
  [[nodiscard]] bool run(std::span<std::int64_t const> prices, std::size_t& steps) {
    std::size_t const cost = table_.size() / 8;
    if (steps < cost) return false;
    steps -= cost;
    spent_ += cost;
    ++runs_;
    std::size_t const width = units_ + 1;
    std::size_t const count = nodes_.size();
    std::fill(table_.end() - static_cast<std::ptrdiff_t>(width), table_.end(), 0.0);
    for (std::size_t i = count; i-- != 0;) {
      double const price = price_of(prices, nodes_[i]);
      std::size_t const length = std::min(nodes_[i].length, width);
      double* const row = table_.data() + i * width;
      double const* const without = table_.data() + nodes_[i].after * width;
      double const* const with = table_.data() + (i + 1) * width;
      std::copy(without, without + length, row);
      for (std::size_t w = length; w != width; ++w) {
        row[w] = std::max(without[w], price + with[w - length]);
      }
    }
    best_worth_ = static_cast<std::int64_t>(table_[units_]);
    trace(prices);
    return true;
  }

  /// Returns the steps of all runs, and the number of runs.
  [[nodiscard]] std::size_t spent() const { return spent_; }
  [[nodiscard]] std::size_t changes() const { return runs_; }

  [[nodiscard]] std::int64_t best_worth() const { return best_worth_; }
  [[nodiscard]] pattern const& best() const { return best_; }

 private:
  static constexpr std::uint32_t none = prefix_forest::no_parent;
  static constexpr std::size_t max_cells = std::size_t{1} << 21;
  static constexpr std::size_t max_units = 1024;

  struct node {
    std::uint64_t length;
    std::uint32_t path;
    std::uint32_t after;
  };

  /// Collects the nodes that a path needs. A chain of nodes without a branch or an end is one node.
  void collect_nodes(prefix_forest const& forest, path_ends const& ends, std::size_t first,
                     std::size_t last, std::uint32_t begin, std::uint32_t end) {
    std::size_t const count = end - begin;
    std::vector<std::uint32_t> path(count, none);
    std::vector<std::uint32_t> branches(count, 0);
    for (std::size_t t = last; t-- != first;) {
      std::uint32_t v = ends.nodes[t];
      path[v - begin] = static_cast<std::uint32_t>(t - first);
      while (v != none && v >= begin && branches[v - begin]++ == 0) v = forest.parents()[v];
    }
    // The place of the first needed node from each one on.
    std::vector<std::uint32_t> place(count + 1);
    std::uint64_t chain = 0;
    for (std::uint32_t k = 0; k != count; ++k) {
      place[k] = static_cast<std::uint32_t>(nodes_.size());
      if (branches[k] == 0) continue;
      chain += forest.lengths()[begin + k];
      if (path[k] == none && branches[k] == 1) continue;
      nodes_.push_back({chain, path[k], begin + k});
      chain = 0;
    }
    place[count] = static_cast<std::uint32_t>(nodes_.size());
    for (node& one : nodes_) {
      one.after = place[std::min(forest.subtree_ends()[one.after], end) - begin];
    }
  }

  [[nodiscard]] static double price_of(std::span<std::int64_t const> prices, node const& one) {
    if (one.path == none || prices[one.path] <= 0) return 0.0;
    return static_cast<double>(prices[one.path]);
  }

  void trace(std::span<std::int64_t const> prices) {
    best_.clear();
    std::size_t const width = units_ + 1;
    std::size_t left = units_;
    for (std::size_t i = 0; i != nodes_.size();) {
      double const value = table_[i * width + left];
      if (value == table_[nodes_[i].after * width + left]) {
        i = nodes_[i].after;
        continue;
      }
      if (price_of(prices, nodes_[i]) > 0.0) best_.push_back({nodes_[i].path, 1});
      left -= nodes_[i].length;
      ++i;
    }
  }

  std::vector<std::uint32_t> alone_;
  std::vector<node> nodes_;
  std::size_t units_ = 0;
  std::vector<double> table_;
  piece_packer packer_;
  std::size_t next_ = 0;
  std::size_t spent_ = 0;
  std::size_t runs_ = 0;
  std::int64_t best_worth_ = 0;
  pattern best_;
};

}  // namespace omnibal::inline v0::detail
