#pragma once

/// \file
/// Which ranks are on which node.

#include <omnibal/check.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::detail {

/// Ranks 0 .. ranks_per_node - 1 are one node, the next ones another; the last may have fewer.
struct node_layout {
  std::size_t ranks = 0;
  std::size_t ranks_per_node = 1;

  [[nodiscard]] std::size_t nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
  [[nodiscard]] std::size_t node_of(std::size_t rank) const { return rank / ranks_per_node; }
  [[nodiscard]] std::size_t first_rank(std::size_t node) const { return node * ranks_per_node; }
  [[nodiscard]] std::size_t ranks_in(std::size_t node) const {
    return std::min(ranks_per_node, ranks - first_rank(node));
  }
};

inline void check_ranks_per_node(std::string_view function, std::size_t ranks_per_node) {
  check_positive(function, "options.ranks_per_node", ranks_per_node);
}

}  // namespace omnibal::inline v0::detail
