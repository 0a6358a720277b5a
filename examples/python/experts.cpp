// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"
#include "docstrings.hpp"
#include "results.hpp"
#include "rows.hpp"
#include "threads.hpp"

#include <omnibal/experts/place_experts.hpp>
#include <omnibal/experts/spill_experts.hpp>
#include <omnibal/experts/split_experts.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace experts {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::reject;
using convert::released;
using results::index_array;
using count_array = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using load_array = py::array_t<double, py::array::c_style | py::array::forcecast>;

struct placement {
  py::array experts;
  load_array largest_loads;
  load_array lower_bounds;
  count_array moved;
};

struct split {
  py::array tokens;
  count_array rank_tokens;
  std::int64_t largest = 0;
  index_array full_ranks;
};

struct spill {
  index_array experts;
  index_array ranks;
  count_array tokens;
  count_array home_tokens;
  count_array rank_tokens;
  std::int64_t largest = 0;
  std::int64_t cap = 0;
  std::size_t fewest_copies = 0;
  std::string status;
  bool proven = false;
};

}  // namespace experts

namespace pybind11::detail {
template <>
struct type_caster<experts::placement> : convert::value_caster<experts::placement> {};
template <>
struct type_caster<experts::split> : convert::value_caster<experts::split> {};
template <>
struct type_caster<experts::spill> : convert::value_caster<experts::spill> {};
}  // namespace pybind11::detail

namespace experts {

namespace {

/// Errors: `std::invalid_argument` for an array of other than `dimensions` dimensions.
py::array shaped(std::string const& function, std::string const& name, py::handle given,
                 std::string const& shape, py::ssize_t dimensions) {
  py::array const result = convert::any_array(function, name, given);
  if (result.ndim() == dimensions) return result;
  reject(function, name + " has " + std::to_string(result.ndim()) +
                       " dimensions, must have the shape " + shape);
}

std::vector<std::uint32_t> all_indices(std::string const& function, std::string const& name,
                                       py::array const& given) {
  auto const values = convert::as_integers(function, name, given);
  return convert::to_indices(function, name,
                             {values.data(), static_cast<std::size_t>(values.size())});
}

template <class T>
py::array reshaped(std::vector<T>&& values, py::tuple const& shape) {
  return convert::to_array(std::move(values)).attr("reshape")(shape).template cast<py::array>();
}

/// Returns the old experts. Errors: `std::invalid_argument` for another shape, because an array
/// of the same size may have its ranks and slots exchanged.
std::vector<std::uint32_t> old_experts(py::object const& given, std::size_t layers,
                                       std::size_t ranks, std::size_t slots) {
  std::string const name = "place_experts";
  if (given.is_none()) return {};
  py::array const old = shaped(name, "old", given, "(layers, ranks, slots)", 3);
  if (!py::make_tuple(layers, ranks, slots).equal(old.attr("shape"))) {
    reject(name, "the shape of old is " + std::string(py::str(old.attr("shape"))) + ", must be " +
                     std::string(py::str(py::make_tuple(layers, ranks, slots))));
  }
  return all_indices(name, "old", old);
}

placement place(py::object const& loads, std::int64_t slots, std::int64_t ranks,
                py::object const& old, std::optional<std::int64_t> max_moved, std::int64_t groups,
                std::int64_t nodes, double max_gap, std::string const& effort, std::uint64_t seed,
                std::int64_t threads) {
  std::string const name = "place_experts";
  py::array const given = convert::any_array(name, "loads", loads);
  if (given.ndim() != 1 && given.ndim() != 2) {
    reject(name, "loads have " + std::to_string(given.ndim()) +
                     " dimensions, must have 1, or 2 for several layers");
  }
  convert::cost_array const list(name, "loads", given.attr("reshape")(-1));
  omnibal::place_experts_options options;
  options.layers = given.ndim() == 1 ? 1 : static_cast<std::size_t>(given.shape(0));
  auto const rank_count = count_of(name, "ranks", ranks);
  auto const slot_count = count_of(name, "slots", slots);
  auto const before = old_experts(old, options.layers, rank_count, slot_count);
  options.old = before;
  if (max_moved) options.max_moved = count_of(name, "max_moved", *max_moved);
  options.groups = count_of(name, "groups", groups);
  options.nodes = count_of(name, "nodes", nodes);
  options.max_gap = max_gap;
  options.effort = convert::to_effort(name, effort);
  options.seed = seed;
  arrays::executor const on_threads = convert::to_executor(name, threads);
  auto found = released([&] {
    return std::visit(
        [&](auto const& costs) {
          return arrays::with_executor(on_threads, [&](auto const& run) {
            return omnibal::place_experts(costs, slot_count, rank_count, options, run);
          });
        },
        list.list());
  });
  std::vector<std::int64_t> moved(found.moved.begin(), found.moved.end());
  return {reshaped(std::move(found.experts), py::make_tuple(found.layers, rank_count, slot_count)),
          convert::to_array(std::move(found.largest_loads)),
          convert::to_array(std::move(found.lower_bounds)), convert::to_array(std::move(moved))};
}

split divide(py::object const& tokens, py::object const& slots, py::object const& first_tokens) {
  std::string const name = "split_experts";
  integer_list const list(name, "tokens", tokens);
  py::array const given = shaped(name, "slots", slots, "(ranks, slots)", 2);
  auto const places = all_indices(name, "slots", given);
  integer_list const first = convert::optional_list(name, "first_tokens", first_tokens);
  auto const first_values = first.values();
  omnibal::split_experts_options options;
  options.first_tokens = first_values;
  auto const ranks = static_cast<std::size_t>(given.shape(0));
  auto found =
      released([&] { return omnibal::split_experts(list.values(), places, ranks, options); });
  return {reshaped(std::move(found.tokens), py::tuple(given.attr("shape"))),
          convert::to_array(std::move(found.rank_tokens)), found.largest,
          convert::to_array(std::move(found.full_ranks))};
}

spill plan_spill(py::object const& tokens, py::object const& home, std::int64_t ranks,
                 std::optional<std::int64_t> slots, double max_overload, std::string const& effort,
                 std::uint64_t seed) {
  std::string const name = "spill_experts";
  integer_list const list(name, "tokens", tokens);
  auto const homes = convert::to_indices(name, "home", integer_list(name, "home", home).values());
  omnibal::spill_experts_options options;
  if (slots) options.slots = count_of(name, "slots", *slots);
  options.max_overload = max_overload;
  options.effort = convert::to_effort(name, effort);
  options.seed = seed;
  auto const rank_count = count_of(name, "ranks", ranks);
  auto found =
      released([&] { return omnibal::spill_experts(list.values(), homes, rank_count, options); });
  std::vector<std::uint32_t> copy_experts;
  std::vector<std::uint32_t> copy_ranks;
  std::vector<std::int64_t> copy_tokens;
  for (omnibal::foreign_copy const& copy : found.copies) {
    copy_experts.push_back(copy.expert);
    copy_ranks.push_back(copy.rank);
    copy_tokens.push_back(copy.tokens);
  }
  return {convert::to_array(std::move(copy_experts)),
          convert::to_array(std::move(copy_ranks)),
          convert::to_array(std::move(copy_tokens)),
          convert::to_array(std::move(found.home_tokens)),
          convert::to_array(std::move(found.rank_tokens)),
          found.largest,
          found.cap,
          found.fewest_copies,
          convert::to_text(found.status),
          found.proven};
}

std::size_t length_of(py::array const& array, py::ssize_t axis = 0) {
  return static_cast<std::size_t>(array.shape(axis));
}

void define_placement(py::module_& module) {
  py::class_<placement> type(module, "ExpertPlacement", docstrings::ExpertPlacement);
  type.def_readonly("experts", &placement::experts,
                    "The expert of each slot, uint32 of shape (layers, ranks, slots).")
      .def_readonly("largest_loads", &placement::largest_loads,
                    "The load of the heaviest rank of each layer, float64.")
      .def_readonly("lower_bounds", &placement::lower_bounds,
                    "No placement of a layer has a lighter heaviest rank, float64.")
      .def_readonly("moved", &placement::moved,
                    "The copies of each layer on ranks that did not have them, int64.")
      .def("__repr__", [](placement const& self) {
        return convert::repr_text(
            "ExpertPlacement", {convert::count_text(length_of(self.experts), "layer"),
                                convert::count_text(length_of(self.experts, 1), "rank") + " of " +
                                    convert::count_text(length_of(self.experts, 2), "slot"),
                                std::string(py::str(self.moved.attr("sum")())) + " moved"});
      });
  convert::add_pickle_of(type, &placement::experts, &placement::largest_loads,
                         &placement::lower_bounds, &placement::moved);
}

void define_split(py::module_& module) {
  py::class_<split> type(module, "ExpertSplit", docstrings::ExpertSplit);
  type.def_readonly("tokens", &split::tokens,
                    "The tokens of each slot, int64 of shape (ranks, slots).")
      .def_readonly("rank_tokens", &split::rank_tokens,
                    "The tokens of each rank, its first ones included, int64.")
      .def_readonly("largest", &split::largest,
                    "The tokens of the rank with the most. No split of the copies has fewer.")
      .def_readonly("full_ranks", &split::full_ranks,
                    "The ranks that prove it: the mean of their tokens, rounded up, is `largest`.")
      .def("__repr__", [](split const& self) {
        return convert::repr_text("ExpertSplit",
                                  {convert::count_text(length_of(self.rank_tokens), "rank"),
                                   "largest " + std::to_string(self.largest)});
      });
  convert::add_pickle_of(type, &split::tokens, &split::rank_tokens, &split::largest,
                         &split::full_ranks);
}

void define_spill(py::module_& module) {
  py::class_<spill> type(module, "SpillPlan", docstrings::SpillPlan);
  type.def_readonly("experts", &spill::experts, "The expert of each foreign copy, uint32.")
      .def_readonly("ranks", &spill::ranks, "The rank of each foreign copy, uint32.")
      .def_readonly("tokens", &spill::tokens, "The tokens of each foreign copy, int64.")
      .def_readonly("home_tokens", &spill::home_tokens,
                    "The tokens of each expert that stay on its home rank, int64.")
      .def_readonly("rank_tokens", &spill::rank_tokens, "The tokens of each rank, int64.")
      .def_readonly("largest", &spill::largest, "The tokens of the rank with the most.")
      .def_readonly("cap", &spill::cap, "The most tokens that a rank may have.")
      .def_readonly("fewest_copies", &spill::fewest_copies,
                    "No plan that keeps the cap has fewer copies.")
      .def_readonly("status", &spill::status,
                    "'solved' if no rank exceeds the cap, 'infeasible' if the slots are too few "
                    "for `fewest_copies`, or 'not_found'.")
      .def_readonly("proven", &spill::proven,
                    "True if the plan keeps the cap and no plan has fewer copies.")
      .def("__len__", [](spill const& self) { return length_of(self.experts); })
      .def("__repr__", [](spill const& self) {
        std::size_t const copies = length_of(self.experts);
        return convert::repr_text(
            "SpillPlan", {self.status, std::to_string(copies) + (copies == 1 ? " copy" : " copies"),
                          "at least " + std::to_string(self.fewest_copies),
                          "largest " + std::to_string(self.largest)});
      });
  convert::add_pickle_of(type, &spill::experts, &spill::ranks, &spill::tokens, &spill::home_tokens,
                         &spill::rank_tokens, &spill::largest, &spill::cap, &spill::fewest_copies,
                         &spill::status, &spill::proven);
}

}  // namespace

void define(py::module_& module) {
  define_placement(module);
  define_split(module);
  define_spill(module);
  module.def("place_experts", &place, docstrings::place_experts, py::arg("loads"), py::arg("slots"),
             py::arg("ranks"), py::kw_only(), py::arg("old") = py::none(),
             py::arg("max_moved") = py::none(), py::arg("groups") = 1, py::arg("nodes") = 1,
             py::arg("max_gap") = 0.001, py::arg("effort") = "normal", py::arg("seed") = 0,
             py::arg("threads") = 1);
  module.def("split_experts", &divide, docstrings::split_experts, py::arg("tokens"),
             py::arg("slots"), py::kw_only(), py::arg("first_tokens") = py::none());
  module.def("spill_experts", &plan_spill, docstrings::spill_experts, py::arg("tokens"),
             py::arg("home"), py::arg("ranks"), py::kw_only(), py::arg("slots") = py::none(),
             py::arg("max_overload") = 0.1, py::arg("effort") = "normal", py::arg("seed") = 0);
}

}  // namespace experts
