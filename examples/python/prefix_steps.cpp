// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "exchange.hpp"
#include "prefixes.hpp"
#include "results.hpp"

#include <omnibal/prefix/balance_prefixes.hpp>
#include <omnibal/prefix/prefix_exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace prefix_steps {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::number_array;
using convert::reject;
using convert::released;
using results::index_array;

/// Micro-batches of sequences, and their forest for the layouts.
struct balanced : results::steps {
  index_array oversized;
  prefixes::size_array tokens;
  number_array work;
  std::uint64_t computed_tokens = 0;
  prefixes::forest on;
};

/// The exchange of copies of nodes.
struct exchanged {
  exchange::plan plan;
  index_array nodes;
};

}  // namespace prefix_steps

namespace pybind11::detail {
template <>
struct type_caster<prefix_steps::balanced> : convert::value_caster<prefix_steps::balanced> {};
template <>
struct type_caster<prefix_steps::exchanged> : convert::value_caster<prefix_steps::exchanged> {};
}  // namespace pybind11::detail

namespace prefix_steps {

namespace {

balanced balance(py::object const& sequences, std::int64_t ranks, std::int64_t capacity,
                 py::object const& cost, py::object const& keys, double max_overload,
                 std::int64_t exchanges, std::optional<std::int64_t> group_price,
                 std::int64_t multiple_of, std::string const& oversized, std::string const& effort,
                 std::uint64_t seed) {
  std::string const name = "balance_prefixes";
  omnibal::balance_prefixes_options options;
  options.max_overload = max_overload;
  options.exchanges = count_of(name, "exchanges", exchanges);
  if (group_price) options.packing.group_price = count_of(name, "group_price", *group_price);
  options.packing.multiple_of = count_of(name, "multiple_of", multiple_of);
  options.packing.oversized = prefixes::to_policy(name, oversized);
  options.packing.effort = convert::to_effort(name, effort);
  options.packing.seed = seed;
  std::size_t const parts = count_of(name, "ranks", ranks);
  std::uint64_t const limit = count_of(name, "capacity", capacity);
  std::optional<convert::key_list> sets;
  if (!keys.is_none()) sets.emplace(name, keys);
  prefixes::forest const on = prefixes::forest_of(name, "sequences", sequences);
  prefixes::path_work const work(name, cost, *on.of);
  omnibal::prefix_steps found = released([&] {
    if (!sets) return omnibal::balance_prefixes(*on.of, parts, limit, work, options);
    return omnibal::balance_prefixes(*on.of, parts, limit, work, sets->values(), options);
  });
  py::array const tokens = convert::to_array(std::move(found.tokens));
  return {results::to_steps(found.batches),
          convert::to_array(std::move(found.oversized)),
          tokens.attr("reshape")(found.batches.size(), parts),
          convert::to_array(std::move(found.work)),
          found.computed_tokens,
          on};
}

py::dict layout_of(balanced const& self, std::int64_t step, std::int64_t rank) {
  std::size_t const ranks = self.ranks;
  if (step < 0 || static_cast<std::size_t>(step) >= self.size() || rank < 0 ||
      static_cast<std::size_t>(rank) >= ranks) {
    throw py::index_error("there is no such step or rank");
  }
  auto const cell = static_cast<std::size_t>(step) * ranks + static_cast<std::size_t>(rank);
  auto const members = self.cells.at(static_cast<py::ssize_t>(cell)).cast<index_array>();
  return prefixes::layout_of(*self.on.of, prefixes::indices_of(members));
}

/// The groups of an argument that is `Steps` or `Groups`.
omnibal::grouping to_cells(std::string const& function, py::object const& given) {
  if (py::isinstance<results::steps>(given)) {
    return results::to_grouping(given.cast<results::steps const&>().cells);
  }
  if (py::isinstance<results::groups>(given)) {
    return results::to_grouping(given.cast<results::groups const&>());
  }
  throw py::type_error("omnibal." + function + ": cells is a " +
                       std::string(py::str(py::type::of(given).attr("__name__"))) +
                       ", must be Steps or Groups");
}

exchanged plan_exchange(py::object const& forest, py::object const& home_offsets,
                        py::object const& cells, std::int64_t token_bytes,
                        std::int64_t ranks_per_node, py::object const& node_of) {
  std::string const name = "prefix_exchange";
  integer_list const offsets(name, "home_offsets", home_offsets);
  omnibal::grouping const given = to_cells(name, cells);
  exchange::nodes const places(name, ranks_per_node, node_of);
  prefixes::forest const on = prefixes::forest_of(name, "forest", forest);
  omnibal::prefix_exchange_plan found = released([&] {
    return omnibal::prefix_exchange(*on.of, offsets.values(), given, token_bytes, places.options());
  });
  return {{std::move(found.plan), places}, convert::to_array(std::move(found.nodes))};
}

void define_steps(py::module_& module) {
  py::class_<balanced, results::steps> type(module, "PrefixSteps", docstrings::PrefixSteps);
  type.def_readonly("oversized", &balanced::oversized,
                    "The sequences that exceed the capacity alone, ascending, uint32.")
      .def_readonly("tokens", &balanced::tokens,
                    "The tokens of each micro-batch, of shape (steps, ranks), uint64.")
      .def_readonly("work", &balanced::work, "The work of each rank in all steps, float64.")
      .def_readonly("computed_tokens", &balanced::computed_tokens,
                    "The sum of the tokens of all micro-batches.")
      .def_readonly("forest", &balanced::on, "The forest of the sequences.")
      .def("layout", &layout_of, docstrings::PrefixSteps_layout, py::arg("step"), py::arg("rank"))
      .def("__repr__", [](balanced const& self) {
        auto const oversized = static_cast<std::size_t>(self.oversized.size());
        return convert::repr_text(
            "PrefixSteps",
            {convert::count_text(self.size(), "step") + " of " +
                 convert::count_text(self.ranks, "rank"),
             convert::count_text(static_cast<std::size_t>(self.computed_tokens), "token"),
             convert::count_text(oversized, "oversized sequence")});
      });
  convert::add_pickle(
      type, 7,
      [](balanced const& self) {
        return py::make_tuple(self.ranks, self.cells, self.oversized, self.tokens, self.work,
                              self.computed_tokens, self.on);
      },
      [](py::tuple const& state) {
        auto const ranks = state[0].cast<std::size_t>();
        auto const cells = state[1].cast<results::groups>();
        if (ranks == 0 || cells.size() % ranks != 0) {
          reject("PrefixSteps", "the state has ranks and cells that disagree");
        }
        return balanced{{ranks, cells, std::vector<bool>(cells.size(), false)},
                        state[2].cast<index_array>(),
                        state[3].cast<prefixes::size_array>(),
                        state[4].cast<number_array>(),
                        state[5].cast<std::uint64_t>(),
                        state[6].cast<prefixes::forest>()};
      });
  omnibal::balance_prefixes_options const standard;
  module.def("balance_prefixes", &balance, docstrings::balance_prefixes, py::arg("sequences"),
             py::arg("ranks"), py::arg("capacity"), py::kw_only(), py::arg("cost") = py::none(),
             py::arg("keys") = py::none(), py::arg("max_overload") = standard.max_overload,
             py::arg("exchanges") = standard.exchanges, py::arg("group_price") = py::none(),
             py::arg("multiple_of") = 1, py::arg("oversized") = "list",
             py::arg("effort") = "normal", py::arg("seed") = 0);
}

void define_exchange(py::module_& module) {
  py::class_<exchanged> type(module, "PrefixExchangePlan", docstrings::PrefixExchangePlan);
  type.def_readonly("plan", &exchanged::plan, "The exchange, whose samples are copies of nodes.")
      .def_readonly("nodes", &exchanged::nodes,
                    "The node of each sample of the plan before the exchange, uint32.")
      .def("__repr__", [](exchanged const& self) {
        return convert::repr_text(
            "PrefixExchangePlan",
            {std::to_string(self.plan.of.sample_count()) +
                 (self.plan.of.sample_count() == 1 ? " copy" : " copies") + " of nodes",
             convert::count_text(self.plan.of.ranks(), "rank"),
             std::to_string(self.plan.of.moved_bytes()) + " bytes moved"});
      });
  convert::add_pickle_of(type, &exchanged::plan, &exchanged::nodes);
  module.def("prefix_exchange", &plan_exchange, docstrings::prefix_exchange, py::arg("forest"),
             py::arg("home_offsets"), py::arg("cells"), py::arg("token_bytes"), py::kw_only(),
             py::arg("ranks_per_node") = 1, py::arg("node_of") = py::none());
}

}  // namespace

void define(py::module_& module) {
  define_steps(module);
  define_exchange(module);
}

}  // namespace prefix_steps
