// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A plan of an exchange as Python has it.

#include "convert.hpp"

#include <omnibal/exchange/exchange_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace exchange {

namespace py = pybind11;

/// The nodes of ranks, as the arguments of a function give them.
struct nodes {
  std::size_t ranks_per_node = 1;
  std::vector<std::uint32_t> of_rank;

  nodes() = default;
  nodes(std::string const& function, std::int64_t per_node, py::object const& given)
      : ranks_per_node(convert::count_of(function, "ranks_per_node", per_node)),
        of_rank(convert::to_indices(function, "node_of",
                                    convert::optional_list(function, "node_of", given).values())) {}

  /// Options that view the nodes.
  [[nodiscard]] omnibal::placement_options options() const& {
    return {.ranks_per_node = ranks_per_node, .node_of = of_rank};
  }
  void options() const&& = delete;
};

/// A plan with the nodes of its ranks, which a pickled plan needs.
struct plan {
  omnibal::exchange_plan of;
  nodes on;
};

}  // namespace exchange

namespace pybind11::detail {
template <>
struct type_caster<exchange::plan> : convert::value_caster<exchange::plan> {};
}  // namespace pybind11::detail
