// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search for the group of paths with the largest sum of prices.

#include <omnibal/detail/pattern_master.hpp>
#include <omnibal/prefix/detail/path_ends.hpp>
#include <omnibal/prefix/detail/path_groups.hpp>
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
/// dynamic programming over the nodes in depth-first order. Lengths are rounded down to multiples
/// of a fraction of the capacity. This can only admit more groups, so the result of the linear
/// program stays a lower bound. Values are integers below 2^53 in `double`, so that sums are exact.
class path_pricing {
 public:
  /// Creates the problem for the paths [first, last) of `ends`, below a node whose path has `above`
  /// tokens. `room` is the capacity minus these tokens.
  path_pricing(path_ends const& ends, std::size_t first, std::size_t last, std::uint64_t above,
               std::uint64_t room)
      : alone_(last - first, 1) {
    std::vector<std::uint64_t> depths;
    std::vector<std::uint64_t> shared;
    for (std::size_t t = first; t != last; ++t) {
      depths.push_back(ends.depths[t] - above);
      shared.push_back(t == first ? 0 : ends.shared[t] - above);
    }
    collect_nodes(depths, shared);
    units_ = std::min<std::uint64_t>(
        room, std::clamp<std::size_t>(max_cells / nodes_.size(), std::size_t{64}, max_units));
    for (node& one : nodes_) {
      one.length = static_cast<std::uint64_t>(static_cast<uint128>(one.length) * units_ / room);
    }
    table_.resize((nodes_.size() + 1) * (units_ + 1));
    rng::engine random(0);
    path_assignment groups;
    piece_packer().pack(depths, shared, {.capacity = room, .split_ratio = split_ratio}, random,
                        groups);
    packing_.resize(groups.tokens.size());
    for (std::uint32_t t = 0; t != last - first; ++t)
      packing_[groups.group_of[t]].push_back({t, 1});
  }

  [[nodiscard]] std::span<std::uint32_t const> alone() const { return alone_; }

  /// Returns the next group of a first packing of the paths, or an empty group after the last one.
  [[nodiscard]] pattern greedy(std::span<std::uint64_t const>) {
    return next_ == packing_.size() ? pattern() : packing_[next_++];
  }

  /// Finds the group with the largest sum of these prices, and subtracts the required steps from
  /// `steps`. If fewer steps are left, returns false.
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

  /// Returns the number of steps of all runs. `changes` returns the number of runs.
  [[nodiscard]] std::size_t spent() const { return spent_; }
  [[nodiscard]] std::size_t changes() const { return runs_; }

  [[nodiscard]] std::int64_t best_worth() const { return best_worth_; }
  [[nodiscard]] pattern const& best() const { return best_; }

 private:
  static constexpr std::uint32_t none = prefix_forest::no_parent;
  static constexpr std::size_t max_cells = std::size_t{1} << 21;
  static constexpr std::size_t max_units = 1024;
  /// The split ratio of the first packing, whose groups are the first columns of the linear
  /// program.
  static constexpr std::uint64_t split_ratio = 2 * prefix_pieces::ratio_unit;

  struct node {
    std::uint64_t length;
    std::uint32_t path;
    std::size_t after;  ///< the node after the subtree
  };

  /// Collects the nodes at which paths end or diverge, in depth-first order.
  void collect_nodes(std::span<std::uint64_t const> depths, std::span<std::uint64_t const> shared) {
    struct open_node {
      std::uint64_t depth;
      std::size_t closed;
      std::uint32_t path;
    };
    std::vector<open_node> open(1, {0, 0, none});
    // The loop visits the paths from last to first, so nodes are completed in reverse depth-first
    // order.
    auto const leave = [&](std::uint64_t depth) {
      while (open.back().depth > depth) {
        open_node const now = open.back();
        open.pop_back();
        if (open.back().depth < depth) open.push_back({depth, now.closed, none});
        nodes_.push_back({now.depth - open.back().depth, now.path, now.closed});
      }
    };
    for (std::size_t t = depths.size(); t-- != 0;) {
      leave(t + 1 == depths.size() ? 0 : shared[t + 1]);
      auto const path = static_cast<std::uint32_t>(t);
      if (open.back().depth < depths[t]) {
        open.push_back({depths[t], nodes_.size(), path});
      } else if (open.size() > 1 && open.back().path == none) {
        open.back().path = path;
      } else {
        nodes_.push_back({0, path, nodes_.size()});
      }
    }
    leave(0);
    std::reverse(nodes_.begin(), nodes_.end());
    for (node& one : nodes_) one.after = nodes_.size() - one.after;
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
  std::vector<pattern> packing_;
  std::size_t next_ = 0;
  std::size_t spent_ = 0;
  std::size_t runs_ = 0;
  std::int64_t best_worth_ = 0;
  pattern best_;
};

}  // namespace omnibal::inline v0::detail
