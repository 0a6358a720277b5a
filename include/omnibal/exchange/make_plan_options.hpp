#pragma once

/// \file
/// Options of plans.

#include <omnibal/detail/node_layout.hpp>
#include <omnibal/detail/overload.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0 {

struct make_plan_options {
  /// Ranks 0 .. ranks_per_node - 1 are one node, the next ones another, the last may have fewer.
  /// Samples stay on their node where they fit, and parts are given to ranks so that few bytes
  /// leave a node.
  std::size_t ranks_per_node = 1;
  /// By which share of a lower bound the largest load may exceed it; see `keep_home`. Other
  /// balancers do not see it.
  double max_overload = 0.01;
};

struct placement_options {
  /// As in `make_plan_options`.
  std::size_t ranks_per_node = 1;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

inline void check_exchange_options(std::string_view function, make_plan_options const& options) {
  check_ranks_per_node(function, options.ranks_per_node);
  check_max_overload(function, options.max_overload);
}

}  // namespace omnibal::inline v0::detail
