// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/exchange/compose.hpp>
#include <omnibal/exchange/make_orchestration.hpp>
#include <omnibal/exchange/make_plan.hpp>
#include <omnibal/exchange/placement.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace exchange {

using convert::cost_table;
using convert::count_of;
using convert::integer_list;
using convert::reject;
using convert::released;
using convert::speed_array;
using results::groups;

struct placed {
  py::array rank_of_part;
  std::int64_t moved_bytes = 0;
  std::int64_t moved_bytes_across_nodes = 0;
  std::int64_t min_across_nodes = 0;
  bool proven = false;
};

/// The plans of all phases of a step, and the nodes of their ranks.
struct orchestrated {
  omnibal::orchestration of;
  nodes on;

  [[nodiscard]] plan samples() const { return {of.samples, on}; }

  template <omnibal::exchange_plan omnibal::encoder_routes::*Route>
  [[nodiscard]] std::vector<plan> routes() const {
    std::vector<plan> result;
    for (auto const& encoder : of.encoders) result.push_back({encoder.*Route, on});
    return result;
  }
};

}  // namespace exchange

namespace pybind11::detail {
template <>
struct type_caster<exchange::placed> : convert::value_caster<exchange::placed> {};
template <>
struct type_caster<exchange::orchestrated> : convert::value_caster<exchange::orchestrated> {};
}  // namespace pybind11::detail

namespace exchange {

namespace {

/// A balancer that is a function of Python: it receives the costs as the caller has given them, and
/// the number of parts.
struct python_balancer {
  py::object const& function;
  py::object const& costs;

  template <class Costs>
  [[nodiscard]] omnibal::grouping operator()(Costs const&, std::size_t parts,
                                             std::identity const&) const {
    py::gil_scoped_acquire const acquire;
    py::object const found = function(costs, parts);
    if (!py::isinstance<groups>(found)) {
      throw py::type_error("omnibal.make_plan: balance returned a " +
                           std::string(py::str(py::type::of(found).attr("__name__"))) +
                           ", must return Groups");
    }
    return results::to_grouping(found.cast<groups const&>());
  }
};

/// The options of a plan. The arguments must outlive them.
omnibal::make_plan_options plan_options(nodes const& on, double max_overload,
                                        arrays::numbers speeds) {
  return {.ranks_per_node = on.ranks_per_node,
          .node_of = on.of_rank,
          .max_overload = max_overload,
          .speeds = speeds};
}

plan make_plan(py::object const& home_offsets, py::object const& costs, py::object const& bytes,
               py::object const& balance, double max_overload, std::int64_t ranks_per_node,
               py::object const& node_of, py::object const& speeds) {
  std::string const name = "make_plan";
  integer_list const offsets(name, "home_offsets", home_offsets);
  integer_list const sizes(name, "bytes", bytes);
  plan result{{}, nodes(name, ranks_per_node, node_of)};
  bool const is_word = py::isinstance<py::str>(balance);
  if (is_word)
    static_cast<void>(convert::word_of(name, "balance", py::str(balance), {"rebalance"}));
  if (py::isinstance<groups>(costs)) {
    auto const parts = results::to_grouping(costs.cast<groups const&>());
    result.of = released([&] {
      return omnibal::make_plan(offsets.values(), parts, sizes.values(), result.on.options());
    });
    return result;
  }
  cost_table const list(name, "costs", costs);
  speed_array const given(name, speeds);
  auto const values = given.list();
  auto const options = plan_options(result.on, max_overload, values);
  result.of = released([&] {
    return list.visit([&](auto const& amounts) {
      if (is_word) return omnibal::make_plan(offsets.values(), amounts, sizes.values(), options);
      return omnibal::make_plan(offsets.values(), amounts, sizes.values(), options,
                                python_balancer{balance, costs});
    });
  });
  return result;
}

plan compose(plan const& first, plan const& second, py::object const& bytes) {
  integer_list const sizes("compose", "bytes", bytes);
  auto const options = second.on.options();
  return {released([&] { return omnibal::compose(first.of, second.of, sizes.values(), options); }),
          second.on};
}

placed place(groups const& home, groups const& parts, py::object const& bytes,
             std::int64_t ranks_per_node, py::object const& node_of) {
  std::string const name = "placement";
  integer_list const sizes(name, "bytes", bytes);
  nodes const on(name, ranks_per_node, node_of);
  auto const before = results::to_grouping(home);
  auto const after = results::to_grouping(parts);
  auto found =
      released([&] { return omnibal::placement(before, after, sizes.values(), on.options()); });
  return {convert::to_array(std::move(found.rank_of_part)), found.moved_bytes,
          found.moved_bytes_across_nodes, found.min_across_nodes, found.proven};
}

/// The lists of an encoder: pieces of each sample; costs, bytes and output bytes of each piece.
struct encoder_lists {
  std::vector<std::uint32_t> pieces;
  integer_list costs;
  integer_list bytes;
  integer_list output_bytes;

  encoder_lists(std::string const& function, py::handle given, std::size_t number) {
    std::string const of = "encoders[" + std::to_string(number) + "]";
    if (!py::isinstance<py::sequence>(given) || py::len(given) != 4) {
      reject(function, of + " must have four lists: pieces, costs, bytes and output_bytes");
    }
    auto const lists = py::reinterpret_borrow<py::sequence>(given);
    pieces = convert::to_indices(function, of + ".pieces",
                                 integer_list(function, of + ".pieces", lists[0]).values());
    costs = integer_list(function, of + ".costs", lists[1]);
    bytes = integer_list(function, of + ".bytes", lists[2]);
    output_bytes = integer_list(function, of + ".output_bytes", lists[3]);
  }
};

orchestrated make_orchestration(py::object const& home_offsets, py::object const& costs,
                                py::object const& bytes, py::object const& encoders,
                                double max_overload, std::int64_t ranks_per_node,
                                py::object const& node_of, py::object const& speeds) {
  std::string const name = "make_orchestration";
  integer_list const offsets(name, "home_offsets", home_offsets);
  integer_list const amounts(name, "costs", costs);
  integer_list const sizes(name, "bytes", bytes);
  std::vector<encoder_lists> lists;
  if (!encoders.is_none()) {
    for (py::handle const encoder : encoders) lists.emplace_back(name, encoder, lists.size());
  }
  orchestrated result{{}, nodes(name, ranks_per_node, node_of)};
  speed_array const given(name, speeds);
  auto const values = given.list();
  auto const options = plan_options(result.on, max_overload, values);
  using phase = omnibal::encoder_phase<std::span<std::uint32_t const>, arrays::integers,
                                       arrays::integers, arrays::integers>;
  std::vector<phase> phases;
  for (encoder_lists const& list : lists) {
    phases.push_back(
        phase{list.pieces, list.costs.values(), list.bytes.values(), list.output_bytes.values()});
  }
  omnibal::language_phase<arrays::integers, arrays::integers> const language{amounts.values(),
                                                                             sizes.values()};
  result.of = released(
      [&] { return omnibal::make_orchestration(offsets.values(), language, phases, options); });
  return result;
}

/// Errors: an `IndexError` for a rank that does not exist.
std::size_t rank_in(omnibal::exchange_plan const& plan, std::int64_t rank) {
  if (rank < 0 || static_cast<std::size_t>(rank) >= plan.ranks()) {
    throw py::index_error("there is no rank " + std::to_string(rank) + " among " +
                          std::to_string(plan.ranks()));
  }
  return static_cast<std::size_t>(rank);
}

template <class T, class Range>
py::array array_of(Range const& values) {
  return convert::to_array(std::vector<T>(values.begin(), values.end()));
}

groups groups_of(omnibal::grouping_view view) {
  return results::to_groups(
      {{view.offsets().begin(), view.offsets().end()}, {view.items().begin(), view.items().end()}});
}

/// The values in the order after the exchange: an array, or a list of other things.
py::object permuted(plan const& self, py::object const& values) {
  auto const order = self.of.arrivals().items();
  if (py::len(values) != order.size()) {
    reject("exchange_plan::permuted", "values has " + std::to_string(py::len(values)) +
                                          " elements, must have " + std::to_string(order.size()) +
                                          ", one for each sample");
  }
  if (py::isinstance<py::array>(values)) return values[array_of<std::uint32_t>(order)];
  py::list result;
  for (std::uint32_t const sample : order) result.append(values[py::int_(sample)]);
  return result;
}

void define_plan(py::module_& module) {
  py::class_<plan> type(module, "ExchangePlan", docstrings::ExchangePlan);
  type.def_property_readonly(
          "ranks", [](plan const& self) { return self.of.ranks(); }, "The number of ranks.")
      .def_property_readonly(
          "home_offsets",
          [](plan const& self) { return array_of<std::uint32_t>(self.of.home_offsets()); },
          "Before the exchange, rank r has the samples home_offsets[r] to home_offsets[r + 1].")
      .def_property_readonly(
          "arrivals", [](plan const& self) { return groups_of(self.of.arrivals()); },
          "The samples of each rank after the exchange, in the order of their arrival.")
      .def_property_readonly(
          "departures", [](plan const& self) { return groups_of(self.of.departures()); },
          "The places of the samples of each rank in the items of `arrivals`.")
      .def_property_readonly(
          "bytes", [](plan const& self) { return array_of<std::int64_t>(self.of.bytes()); },
          "The bytes of each sample, int64.")
      .def_property_readonly(
          "moved_bytes", [](plan const& self) { return self.of.moved_bytes(); },
          "The bytes of the samples that change their rank.")
      .def_property_readonly(
          "moved_bytes_across_nodes",
          [](plan const& self) { return self.of.moved_bytes_across_nodes(); },
          "The bytes of the samples that change their node.")
      .def_property_readonly(
          "digest", [](plan const& self) { return self.of.digest(); },
          "Equal on all ranks that have the same plan.")
      .def(
          "sends",
          [](plan const& self, std::int64_t rank) {
            return results::to_groups(self.of.sends(rank_in(self.of, rank)));
          },
          py::arg("rank"), docstrings::ExchangePlan_sends)
      .def(
          "send_counts",
          [](plan const& self, std::int64_t rank) {
            return array_of<std::int64_t>(self.of.send_counts(rank_in(self.of, rank)));
          },
          py::arg("rank"), docstrings::ExchangePlan_send_counts)
      .def(
          "receive_counts",
          [](plan const& self, std::int64_t rank) {
            return array_of<std::int64_t>(self.of.receive_counts(rank_in(self.of, rank)));
          },
          py::arg("rank"), docstrings::ExchangePlan_receive_counts)
      .def("permuted", &permuted, py::arg("values"), docstrings::ExchangePlan_permuted)
      .def(
          "inverse",
          [](plan const& self) {
            return plan{self.of.inverse(), self.on};
          },
          docstrings::ExchangePlan_inverse)
      .def("__len__", [](plan const& self) { return self.of.sample_count(); })
      .def("__eq__", [](plan const& left, plan const& right) { return left.of == right.of; })
      .def("__repr__", [](plan const& self) {
        return convert::repr_text("ExchangePlan",
                                  {convert::count_text(self.of.sample_count(), "sample"),
                                   convert::count_text(self.of.ranks(), "rank"),
                                   std::to_string(self.of.moved_bytes()) + " bytes moved"});
      });
  convert::add_pickle(
      type, 5,
      [](plan const& self) {
        return py::make_tuple(
            array_of<std::uint32_t>(self.of.home_offsets()), groups_of(self.of.arrivals()),
            array_of<std::int64_t>(self.of.bytes()), self.on.ranks_per_node, self.on.of_rank);
      },
      [](py::tuple const& state) {
        // The nodes of an absent list are those of the number of ranks per node.
        py::object const list = state[4];
        return make_plan(state[0], state[1], state[2], py::str("rebalance"), 0.01,
                         state[3].cast<std::int64_t>(),
                         py::len(list) == 0 ? py::object(py::none()) : list, py::none());
      });
}

void define_placement(py::module_& module) {
  py::class_<placed> type(module, "Placement", docstrings::Placement);
  type.def_readonly("rank_of_part", &placed::rank_of_part, "The rank of each part, uint32.")
      .def_readonly("moved_bytes", &placed::moved_bytes,
                    "The bytes of the samples that change their rank.")
      .def_readonly("moved_bytes_across_nodes", &placed::moved_bytes_across_nodes,
                    "The bytes of the samples that change their node.")
      .def_readonly("min_across_nodes", &placed::min_across_nodes,
                    "No placement moves fewer bytes across nodes.")
      .def_readonly("proven", &placed::proven,
                    "True if no placement moves fewer bytes across nodes and, among such "
                    "placements, across ranks.")
      .def("__repr__", [](placed const& self) {
        return convert::repr_text(
            "Placement",
            {convert::count_text(static_cast<std::size_t>(self.rank_of_part.size()), "part"),
             std::to_string(self.moved_bytes) + " bytes moved", self.proven ? "proven" : ""});
      });
  convert::add_pickle_of(type, &placed::rank_of_part, &placed::moved_bytes,
                         &placed::moved_bytes_across_nodes, &placed::min_across_nodes,
                         &placed::proven);
}

py::array pieces_of_samples(orchestrated const& self, std::int64_t encoder, std::int64_t rank) {
  if (encoder < 0 || static_cast<std::size_t>(encoder) >= self.of.encoders.size()) {
    throw py::index_error("there is no encoder " + std::to_string(encoder));
  }
  omnibal::encoder_routes const& routes = self.of.encoders[static_cast<std::size_t>(encoder)];
  return array_of<std::uint32_t>(
      routes.pieces_of_samples(self.of.samples, rank_in(self.of.samples, rank)));
}

void define_orchestration(py::module_& module) {
  py::class_<orchestrated> type(module, "Orchestration", docstrings::Orchestration);
  type.def_property_readonly("samples", &orchestrated::samples,
                             "The exchange of the samples for the language model.")
      .def_property_readonly("inputs", &orchestrated::routes<&omnibal::encoder_routes::inputs>,
                             "For each encoder, the exchange of its pieces to the ranks that "
                             "encode them.")
      .def_property_readonly("outputs", &orchestrated::routes<&omnibal::encoder_routes::outputs>,
                             "For each encoder, the exchange of its outputs to the ranks of their "
                             "samples in the language model.")
      .def_property_readonly(
          "digest", [](orchestrated const& self) { return self.of.digest(); },
          "Equal on all ranks that have the same plans.")
      .def("pieces_of_samples", &pieces_of_samples, py::arg("encoder"), py::arg("rank"),
           docstrings::Orchestration_pieces_of_samples)
      .def("__repr__", [](orchestrated const& self) {
        return convert::repr_text("Orchestration",
                                  {convert::count_text(self.of.samples.sample_count(), "sample"),
                                   convert::count_text(self.of.samples.ranks(), "rank"),
                                   convert::count_text(self.of.encoders.size(), "encoder")});
      });
  convert::add_pickle(
      type, 4,
      [](orchestrated const& self) {
        py::list offsets;
        for (auto const& encoder : self.of.encoders) {
          offsets.append(array_of<std::uint32_t>(encoder.piece_offsets));
        }
        return py::make_tuple(self.samples(), self.routes<&omnibal::encoder_routes::inputs>(),
                              self.routes<&omnibal::encoder_routes::outputs>(), offsets);
      },
      [](py::tuple const& state) {
        plan const samples = state[0].cast<plan>();
        orchestrated result{{samples.of, {}}, samples.on};
        auto const inputs = state[1].cast<std::vector<plan>>();
        auto const outputs = state[2].cast<std::vector<plan>>();
        auto const offsets = state[3].cast<std::vector<std::vector<std::uint32_t>>>();
        if (inputs.size() != offsets.size() || outputs.size() != offsets.size()) {
          reject("Orchestration", "the state has lists of different numbers of encoders");
        }
        std::size_t const least = samples.of.sample_count() + samples.of.ranks();
        for (std::size_t e = 0; e != offsets.size(); ++e) {
          if (offsets[e].size() != least) {
            reject("Orchestration", "the state has another number of offsets of pieces");
          }
          result.of.encoders.push_back({inputs[e].of, outputs[e].of, offsets[e]});
        }
        return result;
      });
}

}  // namespace

void define(py::module_& module) {
  define_plan(module);
  define_placement(module);
  define_orchestration(module);
  module.def("make_plan", &make_plan, docstrings::make_plan, py::arg("home_offsets"),
             py::arg("costs"), py::arg("bytes"), py::kw_only(), py::arg("balance") = "rebalance",
             py::arg("max_overload") = 0.01, py::arg("ranks_per_node") = 1,
             py::arg("node_of") = py::none(), py::arg("speeds") = py::none());
  module.def("compose", &compose, docstrings::compose, py::arg("first"), py::arg("second"),
             py::arg("bytes"));
  module.def("placement", &place, docstrings::placement, py::arg("home"), py::arg("parts"),
             py::arg("bytes"), py::kw_only(), py::arg("ranks_per_node") = 1,
             py::arg("node_of") = py::none());
  module.def("make_orchestration", &make_orchestration, docstrings::make_orchestration,
             py::arg("home_offsets"), py::arg("costs"), py::arg("bytes"),
             py::arg("encoders") = py::none(), py::kw_only(), py::arg("max_overload") = 0.01,
             py::arg("ranks_per_node") = 1, py::arg("node_of") = py::none(),
             py::arg("speeds") = py::none());
}

}  // namespace exchange
