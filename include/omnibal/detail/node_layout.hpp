// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The ranks of each node.

#include <omnibal/check.hpp>
#include <omnibal/detail/lvalue_span.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The node of each rank. Ranks with equal numbers are on the same node; any numbers are allowed.
/// The view is empty if nodes have equal sizes.
using node_numbers = lvalue_span<std::uint32_t>;

/// The nodes of options: `node_of` if it is given, otherwise equal nodes.
struct given_nodes {
  std::size_t ranks_per_node = 1;
  node_numbers node_of = {};

  template <class Options>
  [[nodiscard]] static given_nodes of(Options const& options) {
    return {options.ranks_per_node, options.node_of};
  }

  [[nodiscard]] std::size_t operator()(std::size_t rank) const {
    return node_of.empty() ? rank / ranks_per_node : node_of[rank];
  }
};

template <class Options>
void check_nodes(std::string_view function, Options const& options, std::size_t ranks) {
  check_positive(function, "options.ranks_per_node", options.ranks_per_node);
  if (options.node_of.empty() || options.node_of.size() == ranks) return;
  throw_invalid(function, "options.node_of has ", options.node_of.size(),
                " elements, one for each rank, of which there are ", ranks);
}

/// Ranks sorted by node, so that the ranks of a node have consecutive places. Later calls reuse its
/// memory.
class node_layout {
 public:
  void set(given_nodes const& nodes, std::size_t ranks) {
    rank_at_.resize(ranks);
    std::iota(rank_at_.begin(), rank_at_.end(), 0u);
    if (!nodes.node_of.empty()) {
      std::sort(rank_at_.begin(), rank_at_.end(), [&](std::uint32_t left, std::uint32_t right) {
        return nodes(left) != nodes(right) ? nodes(left) < nodes(right) : left < right;
      });
    }
    is_sorted_ = std::is_sorted(rank_at_.begin(), rank_at_.end());
    place_of_.resize(ranks);
    node_of_.resize(ranks);
    first_.clear();
    largest_ = 1;
    for (std::uint32_t place = 0; place != ranks; ++place) {
      if (place == 0 || nodes(rank_at_[place]) != nodes(rank_at_[place - 1])) {
        first_.push_back(place);
      }
      largest_ = std::max<std::size_t>(largest_, place + 1 - first_.back());
      node_of_[place] = static_cast<std::uint32_t>(first_.size() - 1);
      place_of_[rank_at_[place]] = place;
    }
    first_.push_back(static_cast<std::uint32_t>(ranks));
  }

  [[nodiscard]] bool is_sorted() const { return is_sorted_; }
  [[nodiscard]] std::uint32_t place_of(std::size_t rank) const { return place_of_[rank]; }
  [[nodiscard]] std::uint32_t rank_at(std::size_t place) const { return rank_at_[place]; }

  [[nodiscard]] std::size_t ranks() const { return rank_at_.size(); }
  [[nodiscard]] std::size_t nodes() const { return first_.size() - 1; }
  /// Returns the node of the rank at a place. `first_rank` returns the place of the first rank of a
  /// node.
  [[nodiscard]] std::size_t node_of(std::size_t place) const { return node_of_[place]; }
  [[nodiscard]] std::span<std::uint32_t const> node_of() const { return node_of_; }
  [[nodiscard]] std::size_t first_rank(std::size_t node) const { return first_[node]; }
  [[nodiscard]] std::size_t ranks_in(std::size_t node) const {
    return first_[node + 1] - first_[node];
  }
  /// Returns the number of ranks of the largest node.
  [[nodiscard]] std::size_t ranks_per_node() const { return largest_; }

 private:
  std::vector<std::uint32_t> rank_at_;
  std::vector<std::uint32_t> place_of_;
  std::vector<std::uint32_t> node_of_;
  std::vector<std::uint32_t> first_{0};
  std::size_t largest_ = 1;
  bool is_sorted_ = true;
};

}  // namespace omnibal::inline v0::detail
