// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "exchange.hpp"
#include "results.hpp"

#include <omnibal/check.hpp>
#include <omnibal/context/context_cost.hpp>
#include <omnibal/context/context_exchange.hpp>
#include <omnibal/context/context_groups.hpp>
#include <omnibal/context/context_pieces.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace contexts {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::limit_list;
using convert::reject;
using convert::released;
using convert::speed_array;
using results::groups;
using results::index_array;

struct context_plan {
  std::string status;
  index_array micro_step_offsets;
  index_array first_ranks;
  index_array degrees;
  convert::number_array times;
  groups samples;
  double makespan;
  double lower_bound;
  bool proven;
  std::uint64_t idle_ranks;
  std::uint32_t sample;
  std::uint32_t min_degree;
  std::uint64_t digest;
};

/// The pieces of a step, with their options, which a pickled layout needs.
struct layout {
  context_plan plan;
  convert::integer_array lengths;
  std::int64_t ranks;
  std::int64_t multiple;
  std::string padding;
  std::shared_ptr<omnibal::context_layout const> of;
};

}  // namespace contexts

namespace pybind11::detail {
template <>
struct type_caster<contexts::context_plan> : convert::value_caster<contexts::context_plan> {};
template <>
struct type_caster<contexts::layout> : convert::value_caster<contexts::layout> {};
}  // namespace pybind11::detail

namespace contexts {

namespace {

std::vector<std::uint32_t> to_indices(std::string const& function, std::string const& name,
                                      py::object const& given) {
  return convert::to_indices(function, name,
                             convert::optional_list(function, name, given).values());
}

std::uint32_t small_count(std::string const& function, std::string const& name,
                          std::int64_t value) {
  if (value > UINT32_MAX) {
    reject(function, name + " is " + std::to_string(value) + ", is too large");
  }
  return static_cast<std::uint32_t>(count_of(function, name, value));
}

omnibal::group_placement to_placement(std::string const& name, std::string const& placement) {
  if (placement == "anywhere") return omnibal::group_placement::anywhere;
  if (placement == "blocks") return omnibal::group_placement::blocks;
  reject(name, "placement is '" + placement + "', must be anywhere or blocks");
}

context_plan context_groups(py::object const& lengths, std::int64_t ranks, py::object const& cost,
                            double micro_step, std::int64_t bytes_per_token,
                            py::object const& capacity, py::object const& degrees,
                            std::int64_t ranks_per_node, std::string const& placement,
                            py::object const& speeds, std::int64_t multiple,
                            std::string const& effort) {
  std::string const name = "context_groups";
  integer_list const list(name, "lengths", lengths);
  py::array const table = convert::any_array(name, "cost", cost);
  if (table.ndim() != 2 || table.shape(1) != 3) {
    reject(name, "cost must have a row (fixed, linear, quadratic) for each degree");
  }
  auto const numbers = convert::as_numbers(name, "cost", table);
  omnibal::context_cost costs{.degrees = {}, .micro_step = micro_step};
  for (py::ssize_t d = 0; d != numbers.shape(0); ++d) {
    costs.degrees.push_back({numbers.at(d, 0), numbers.at(d, 1), numbers.at(d, 2)});
  }
  omnibal::context_groups_options options;
  if (!capacity.is_none() && bytes_per_token == 0) {
    reject(name, "capacity is given, but bytes_per_token is 0: every sample has 0 bytes");
  }
  limit_list const limits(name, "capacity", capacity);
  auto const capacities = limits.values();
  if (capacities.size() == 1) options.capacity = capacities.front();
  auto const wanted = count_of(name, "ranks", ranks);
  if (capacities.size() > 1) {
    omnibal::detail::check_size(name, "capacity", capacities.size(), wanted, "ranks");
    options.capacities.assign(capacities.begin(), capacities.end());
  }
  options.degrees = to_indices(name, "degrees", degrees);
  options.ranks_per_node = small_count(name, "ranks_per_node", ranks_per_node);
  options.placement = to_placement(name, placement);
  speed_array const given(name, speeds);
  auto const values = given.list();
  options.speeds.assign(values.begin(), values.end());
  options.multiple = small_count(name, "multiple", multiple);
  options.effort = convert::to_effort(name, effort);
  auto plan = released([&] {
    return arrays::context_groups(list.values(), wanted, costs, bytes_per_token, options);
  });
  std::vector<std::uint32_t> first_ranks;
  std::vector<std::uint32_t> group_degrees;
  std::vector<double> times;
  for (omnibal::context_group const& group : plan.groups) {
    first_ranks.push_back(group.first_rank);
    group_degrees.push_back(group.degree);
    times.push_back(group.time);
  }
  std::uint64_t const digest = plan.digest();
  return {convert::to_text(plan.status),
          convert::to_array(std::move(plan.micro_step_offsets)),
          convert::to_array(std::move(first_ranks)),
          convert::to_array(std::move(group_degrees)),
          convert::to_array(std::move(times)),
          results::to_groups(std::move(plan.samples)),
          plan.makespan,
          plan.lower_bound,
          plan.proven,
          plan.idle_ranks,
          plan.sample,
          plan.min_degree,
          digest};
}

/// The plan for the functions that take one, from arrays that Python code may have changed.
omnibal::context_plan to_plan(std::string const& function, context_plan const& given) {
  auto const count = static_cast<std::size_t>(given.first_ranks.size());
  if (static_cast<std::size_t>(given.degrees.size()) != count) {
    reject(function, "plan has " + std::to_string(count) + " first_ranks and " +
                         std::to_string(given.degrees.size()) + " degrees");
  }
  omnibal::context_plan result;
  if (given.status != "solved") result.status = omnibal::solve_status::infeasible;
  auto const* const offsets = given.micro_step_offsets.data();
  result.micro_step_offsets.assign(offsets, offsets + given.micro_step_offsets.size());
  for (std::size_t g = 0; g != count; ++g) {
    result.groups.push_back({given.first_ranks.data()[g], given.degrees.data()[g], 0.0});
  }
  result.samples = results::to_grouping(given.samples);
  result.sample = given.sample;
  return result;
}

omnibal::context_pieces_options options_of(std::string const& function, std::int64_t multiple,
                                           std::string const& padding) {
  return {.multiple = small_count(function, "multiple", multiple),
          .padding = static_cast<omnibal::context_padding>(
              convert::word_of(function, "padding", padding, {"to_multiple", "to_equal_pieces"}))};
}

layout context_pieces(context_plan const& plan, py::object const& lengths, std::int64_t ranks,
                      std::int64_t multiple, std::string const& padding) {
  std::string const name = "context_pieces";
  integer_list const list(name, "lengths", lengths);
  auto const given = to_plan(name, plan);
  auto const options = options_of(name, multiple, padding);
  auto const wanted = count_of(name, "ranks", ranks);
  auto made = released([&] {
    return std::make_shared<omnibal::context_layout const>(
        omnibal::context_pieces(given, list.values(), wanted, options));
  });
  auto const values = list.values();
  return {plan,    convert::to_array(std::vector<std::int64_t>(values.begin(), values.end())),
          ranks,   multiple,
          padding, std::move(made)};
}

std::int64_t padded_piece_tokens(std::int64_t length, std::int64_t degree, std::int64_t multiple,
                                 std::string const& padding) {
  std::string const name = "padded_piece_tokens";
  return omnibal::padded_piece_tokens(length, small_count(name, "degree", degree),
                                      options_of(name, multiple, padding));
}

exchange::plan context_exchange(layout const& given, py::object const& home_offsets,
                                std::int64_t token_bytes, std::int64_t ranks_per_node,
                                py::object const& node_of) {
  std::string const name = "context_exchange";
  integer_list const offsets(name, "home_offsets", home_offsets);
  exchange::plan result{{}, exchange::nodes(name, ranks_per_node, node_of)};
  result.of = released([&] {
    return omnibal::context_exchange(*given.of, offsets.values(), token_bytes, result.on.options());
  });
  return result;
}

std::string to_repr(context_plan const& self) {
  if (self.status != "solved") {
    std::string const fault = self.min_degree == 0
                                  ? " fits no group"
                                  : " needs " + convert::count_text(self.min_degree, "rank");
    return convert::repr_text("ContextPlan",
                              {self.status, "sample " + std::to_string(self.sample) + fault});
  }
  auto const steps = static_cast<std::size_t>(self.micro_step_offsets.size()) - 1;
  return convert::repr_text("ContextPlan",
                            {self.status, convert::count_text(self.samples.size(), "group"),
                             convert::count_text(steps, "micro-step"),
                             convert::bounded_text("makespan", py::float_(self.makespan),
                                                   py::float_(self.lower_bound), self.proven),
                             convert::count_text(self.idle_ranks, "idle rank")});
}

void define_plan(py::module_& module) {
  py::class_<context_plan> context_plan_type(module, "ContextPlan", docstrings::ContextPlan);
  context_plan_type.def_readonly("status", &context_plan::status, "'solved' or 'infeasible'.")
      .def_readonly("micro_step_offsets", &context_plan::micro_step_offsets,
                    "Where the groups of each micro-step begin, uint32.")
      .def_readonly("first_ranks", &context_plan::first_ranks,
                    "The first rank of each group, uint32.")
      .def_readonly("degrees", &context_plan::degrees, "The number of ranks of each group, uint32.")
      .def_readonly("times", &context_plan::times,
                    "What each group takes without the fixed time of a micro-step.")
      .def_readonly("samples", &context_plan::samples, "The samples of each group, ascending.")
      .def_readonly("makespan", &context_plan::makespan,
                    "How long the step takes if all ranks begin each micro-step together.")
      .def_readonly("lower_bound", &context_plan::lower_bound, "No plan takes less.")
      .def_readonly("proven", &context_plan::proven, "True where no plan takes less than this one.")
      .def_readonly("idle_ranks", &context_plan::idle_ranks,
                    "Ranks without a group, summed over the micro-steps.")
      .def_readonly("sample", &context_plan::sample,
                    "Where infeasible, the first sample that fits nowhere.")
      .def_readonly(
          "min_degree", &context_plan::min_degree,
          "Where infeasible, the least degree with which it would fit; 0 where none does.")
      .def_readonly("digest", &context_plan::digest, "Equal on all ranks that have the same plan.");
  context_plan_type.def("__repr__", [](context_plan const& self) { return to_repr(self); });
  convert::add_pickle_of(context_plan_type, &context_plan::status,
                         &context_plan::micro_step_offsets, &context_plan::first_ranks,
                         &context_plan::degrees, &context_plan::times, &context_plan::samples,
                         &context_plan::makespan, &context_plan::lower_bound, &context_plan::proven,
                         &context_plan::idle_ranks, &context_plan::sample,
                         &context_plan::min_degree, &context_plan::digest);
}

/// Errors: an `IndexError` for a micro-step or a rank that does not exist.
std::pair<std::size_t, std::size_t> place_in(layout const& self, std::int64_t micro_step,
                                             std::int64_t rank) {
  bool const exists = micro_step >= 0 && rank >= 0 &&
                      static_cast<std::size_t>(micro_step) < self.of->micro_steps() &&
                      static_cast<std::size_t>(rank) < self.of->ranks();
  if (!exists) throw py::index_error("there is no such micro-step or rank");
  return {static_cast<std::size_t>(micro_step), static_cast<std::size_t>(rank)};
}

/// One member of all pieces.
template <auto Member, class T>
py::array column(layout const& self) {
  std::vector<T> result;
  for (omnibal::context_piece const& piece : self.of->pieces()) result.push_back(piece.*Member);
  return convert::to_array(std::move(result));
}

template <class T>
py::array array_of(std::span<T const> values) {
  return convert::to_array(std::vector<T>(values.begin(), values.end()));
}

void define_layout(py::module_& module) {
  using piece = omnibal::context_piece;
  py::class_<layout> type(module, "ContextLayout", docstrings::ContextLayout);
  type.def_readonly("ranks", &layout::ranks, "The number of ranks.")
      .def_property_readonly(
          "micro_steps", [](layout const& self) { return self.of->micro_steps(); },
          "The number of micro-steps.")
      .def_property_readonly("samples", &column<&piece::sample, std::uint32_t>,
                             "The sample of each piece, uint32.")
      .def_property_readonly("firsts", &column<&piece::first, std::int32_t>,
                             "The position of the first token of each piece in its sample, int32.")
      .def_property_readonly("tokens", &column<&piece::tokens, std::int32_t>,
                             "The tokens of each piece without padding, int32.")
      .def_property_readonly("padded_tokens", &column<&piece::padded_tokens, std::int32_t>,
                             "The tokens of each piece with its padding, int32.")
      .def_property_readonly(
          "piece_offsets", [](layout const& self) { return array_of(self.of->piece_offsets()); },
          "Sample s has the pieces piece_offsets[s] to piece_offsets[s + 1], uint32.")
      .def_property_readonly(
          "cells",
          [](layout const& self) {
            auto const cells = self.of->cells();
            return results::to_groups({{cells.offsets().begin(), cells.offsets().end()},
                                       {cells.items().begin(), cells.items().end()}});
          },
          "The pieces of rank r in micro-step k are group k * ranks + r.")
      .def(
          "cu_seqlens",
          [](layout const& self, std::int64_t micro_step, std::int64_t rank) {
            auto const [step, at] = place_in(self, micro_step, rank);
            return array_of(self.of->cu_seqlens(step, at));
          },
          py::arg("micro_step"), py::arg("rank"), docstrings::ContextLayout_cu_seqlens)
      .def(
          "position_ids",
          [](layout const& self, std::int64_t micro_step, std::int64_t rank) {
            auto const [step, at] = place_in(self, micro_step, rank);
            std::vector<std::int32_t> ids;
            self.of->position_ids(step, at, std::back_inserter(ids));
            return convert::to_array(std::move(ids));
          },
          py::arg("micro_step"), py::arg("rank"), docstrings::ContextLayout_position_ids)
      .def("__len__", [](layout const& self) { return self.of->pieces().size(); })
      .def("__repr__", [](layout const& self) {
        return convert::repr_text("ContextLayout",
                                  {convert::count_text(self.of->pieces().size(), "piece") + " of " +
                                       convert::count_text(self.of->sample_count(), "sample"),
                                   convert::count_text(self.of->ranks(), "rank"),
                                   convert::count_text(self.of->micro_steps(), "micro-step")});
      });
  convert::add_pickle(
      type, 5,
      [](layout const& self) {
        return py::make_tuple(self.plan, self.lengths, self.ranks, self.multiple, self.padding);
      },
      [](py::tuple const& state) {
        return context_pieces(state[0].cast<context_plan>(), state[1],
                              state[2].cast<std::int64_t>(), state[3].cast<std::int64_t>(),
                              state[4].cast<std::string>());
      });
}

/// Returns a row (fixed, linear, quadratic) for each degree.
py::object tabulate_context_cost(py::function const& time, std::int64_t degrees,
                                 py::object const& lengths) {
  std::string const name = "tabulate_context_cost";
  omnibal::tabulate_context_options options;
  if (!lengths.is_none()) {
    integer_list const list(name, "lengths", lengths);
    auto const values = list.values();
    if (values.empty()) reject(name, "lengths is empty, must be None or have three lengths");
    options.lengths.assign(values.begin(), values.end());
  }
  auto const wanted = small_count(name, "degrees", degrees);
  // The functor is a function of Python, so the call holds the lock of the interpreter.
  auto const cost = omnibal::tabulate_context_cost(
      [&](std::int64_t length, std::uint32_t degree) {
        return py::float_(time(length, degree)).cast<double>();
      },
      wanted, options);
  std::vector<double> rows;
  for (omnibal::degree_time const& degree : cost.degrees) {
    rows.insert(rows.end(), {degree.fixed, degree.linear, degree.quadratic});
  }
  return convert::to_array(std::move(rows)).attr("reshape")(-1, 3);
}

}  // namespace

void define(py::module_& module) {
  module.def("tabulate_context_cost", &tabulate_context_cost, docstrings::tabulate_context_cost,
             py::arg("time"), py::arg("degrees"), py::kw_only(), py::arg("lengths") = py::none());
  define_plan(module);
  define_layout(module);
  module.def("context_groups", &context_groups, docstrings::context_groups, py::arg("lengths"),
             py::arg("ranks"), py::arg("cost"), py::kw_only(), py::arg("micro_step") = 0.0,
             py::arg("bytes_per_token") = 0, py::arg("capacity") = py::none(),
             py::arg("degrees") = py::none(), py::arg("ranks_per_node") = 0,
             py::arg("placement") = "anywhere", py::arg("speeds") = py::none(),
             py::arg("multiple") = 1, py::arg("effort") = "normal");
  module.def("context_pieces", &context_pieces, docstrings::context_pieces, py::arg("plan"),
             py::arg("lengths"), py::arg("ranks"), py::kw_only(), py::arg("multiple") = 1,
             py::arg("padding") = "to_multiple");
  module.def("padded_piece_tokens", &padded_piece_tokens, docstrings::padded_piece_tokens,
             py::arg("length"), py::arg("degree"), py::kw_only(), py::arg("multiple") = 1,
             py::arg("padding") = "to_multiple");
  module.def("context_exchange", &context_exchange, docstrings::context_exchange, py::arg("layout"),
             py::arg("home_offsets"), py::arg("token_bytes"), py::kw_only(),
             py::arg("ranks_per_node") = 1, py::arg("node_of") = py::none());
}

}  // namespace contexts
