#pragma once

/// \file
/// Options of plans.

#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/tolerance.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0 {

struct exchange_options {
  /// Ranks 0 .. ranks_per_node - 1 are one node, the next ones another, the last may have fewer.
  /// Samples stay on their node where they fit, and parts are given to ranks so that few bytes leave
  /// a node.
  std::size_t ranks_per_node = 1;
  /// By which share of a lower bound the largest load may exceed it; see `keep_home`. Other
  /// balancers do not see it.
  double tolerance = 0.01;
};

struct placement_options {
  /// As in `exchange_options`.
  std::size_t ranks_per_node = 1;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

inline void check_exchange_options(std::string_view function, exchange_options const& options) {
  check_ranks_per_node(function, options.ranks_per_node);
  check_tolerance(function, options.tolerance);
}

}  // namespace omnibal::inline v0::detail
