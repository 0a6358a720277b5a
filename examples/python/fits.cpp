// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/cost/affine_fit.hpp>
#include <omnibal/cost/measured_table.hpp>
#include <omnibal/cost/two_point_probe.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace fits {

namespace py = pybind11;
using convert::number_array;
using convert::reject;

/// An affine cost that was fitted to measurements.
struct affine {
  double offset = 0.0;
  number_array slopes;
  double root_mean_square_residual = 0.0;
  double largest_residual = 0.0;
  std::size_t largest_residual_index = 0;
  bool exact = false;
  number_array variance_inflation;
};

/// The line through two readings of free memory, with the readings, which a pickle needs.
struct probe {
  omnibal::memory_reading few;
  omnibal::memory_reading many;
  omnibal::checkpoint_line line;
};

/// A cost through measured points.
struct measured {
  convert::integer_array sizes;
  py::array values;
  std::variant<omnibal::measured_cost<std::int64_t>, omnibal::measured_cost<double>> cost;
};

}  // namespace fits

namespace pybind11::detail {
template <>
struct type_caster<fits::affine> : convert::value_caster<fits::affine> {};
template <>
struct type_caster<fits::probe> : convert::value_caster<fits::probe> {};
template <>
struct type_caster<fits::measured> : convert::value_caster<fits::measured> {};
template <>
struct type_caster<omnibal::checkpoint_count> : convert::value_caster<omnibal::checkpoint_count> {};
}  // namespace pybind11::detail

namespace fits {

namespace {

/// Sizes as an array with a row for each point: one array, or a tuple of columns.
py::array to_rows(std::string const& function, py::object const& given) {
  py::object source = given;
  if (convert::demand_list::is_columns(given)) {
    py::list columns;
    for (py::handle const column : given) {
      columns.append(convert::any_array(function, "sizes", column));
    }
    source = py::module_::import("numpy").attr("stack")(columns, py::arg("axis") = 1);
  }
  py::array const array = convert::any_array(function, "sizes", source);
  if (array.ndim() == 1) return array.attr("reshape")(-1, 1);
  if (array.ndim() == 2 && array.shape(1) >= 1 && array.shape(1) <= 3) return array;
  reject(function, "sizes must have a number or a row of up to three numbers for each point");
}

template <std::size_t R, class T, class Array>
affine fit(Array const& sizes, Array const& values, omnibal::affine_fit_options const& options) {
  auto const count = static_cast<std::size_t>(values.size());
  auto const size_of = [rows = sizes.data()](std::size_t point) {
    omnibal::resources<R, T> result{};
    for (std::size_t r = 0; r != R; ++r) result[r] = rows[point * R + r];
    return result;
  };
  auto const value_of = [numbers = values.data()](std::size_t point) { return numbers[point]; };
  std::vector<std::size_t> points(count);
  std::iota(points.begin(), points.end(), std::size_t{0});
  auto const found =
      convert::released([&] { return omnibal::affine_fit(points, size_of, value_of, options); });
  auto const list = [](omnibal::resources<R, double> const& given) {
    return convert::to_array(std::vector<double>(given.amounts, given.amounts + R));
  };
  return {found.offset,
          list(found.slopes),
          found.root_mean_square_residual,
          found.largest_residual,
          found.largest_residual_index,
          found.exact,
          list(found.variance_inflation)};
}

template <class T, class Array>
affine fit_kinds(Array const& sizes, Array const& values,
                 omnibal::affine_fit_options const& options) {
  switch (sizes.shape(1)) {
    case 1: return fit<1, T>(sizes, values, options);
    case 2: return fit<2, T>(sizes, values, options);
    default: return fit<3, T>(sizes, values, options);
  }
}

affine affine_fit(py::object const& sizes, py::object const& values, std::string const& offset,
                  std::string const& signs, std::string const& loss) {
  std::string const name = "affine_fit";
  py::array const rows = to_rows(name, sizes);
  py::array const results = convert::any_array(name, "values", values);
  if (results.ndim() != 1 || results.shape(0) != rows.shape(0)) {
    reject(name, "there are " + std::to_string(rows.shape(0)) + " sizes and " +
                     std::to_string(results.size()) + " values, must be one for each point");
  }
  omnibal::affine_fit_options const options{
      .offset = static_cast<omnibal::fit_offset>(
          convert::word_of(name, "offset", offset, {"free", "zero"})),
      .signs = static_cast<omnibal::fit_signs>(
          convert::word_of(name, "signs", signs, {"any", "not_negative"})),
      .loss = static_cast<omnibal::fit_loss>(
          convert::word_of(name, "loss", loss, {"squares", "huber"}))};
  if (rows.dtype().kind() == 'f' || results.dtype().kind() == 'f') {
    return fit_kinds<double>(convert::as_numbers(name, "sizes", rows),
                             convert::as_numbers(name, "values", results), options);
  }
  std::string const wanted = "integers or floats";
  return fit_kinds<std::int64_t>(convert::as_integers(name, "sizes", rows, wanted),
                                 convert::as_integers(name, "values", results, wanted), options);
}

/// The cost of each size: zero where the formula is negative.
py::object cost_of(affine const& self, py::object const& sizes) {
  std::string const name = "affine_cost";
  auto const kinds = static_cast<py::ssize_t>(self.slopes.size());
  bool const is_tuple = py::isinstance<py::tuple>(sizes);
  py::array const given = is_tuple ? py::array() : convert::any_array(name, "sizes", sizes);
  bool const is_one = !is_tuple && given.ndim() == 0;
  py::array const rows = to_rows(name, is_one ? py::object(given.attr("reshape")(1)) : sizes);
  if (rows.shape(1) != kinds) {
    reject(name, "sizes have " + std::to_string(rows.shape(1)) + " kinds, must have " +
                     std::to_string(kinds));
  }
  auto const numbers = convert::as_numbers(name, "sizes", rows);
  std::vector<double> result;
  for (py::ssize_t i = 0; i != numbers.shape(0); ++i) {
    double sum = self.offset;
    for (py::ssize_t r = 0; r != kinds; ++r) sum += self.slopes.at(r) * numbers.at(i, r);
    result.push_back(std::max(0.0, sum));
  }
  if (is_one) return py::float_(result.front());
  return convert::to_array(std::move(result));
}

std::vector<std::size_t> collinear_kinds(affine const& self, double most) {
  std::vector<std::size_t> result;
  for (py::ssize_t r = 0; r != self.variance_inflation.size(); ++r) {
    if (self.variance_inflation.at(r) > most) result.push_back(static_cast<std::size_t>(r));
  }
  return result;
}

std::string to_repr(affine const& self) {
  std::string slopes;
  for (py::handle const slope : self.slopes) {
    slopes += (slopes.empty() ? "" : ", ") + convert::number_text(slope);
  }
  return convert::repr_text(
      "AffineCost",
      {"offset " + convert::number_text(py::float_(self.offset)), "slopes [" + slopes + "]",
       self.exact ? "exact"
                  : "largest residual " + convert::number_text(py::float_(self.largest_residual))});
}

/// Returns the reading of a pair (checkpointed_layers, free_bytes).
omnibal::memory_reading to_reading(std::string const& name, py::object const& given) {
  convert::integer_list const list("two_point_probe", name, given);
  if (list.values().size() != 2) {
    reject("two_point_probe", name + " has " + std::to_string(list.values().size()) +
                                  " elements, must be a pair (checkpointed_layers, free_bytes)");
  }
  return {list.values()[0], list.values()[1]};
}

probe two_point_probe(py::object const& few, py::object const& many) {
  omnibal::memory_reading const first = to_reading("few", few);
  omnibal::memory_reading const last = to_reading("many", many);
  return {first, last, omnibal::two_point_probe(first, last)};
}

py::tuple to_pair(omnibal::memory_reading const& reading) {
  return py::make_tuple(reading.checkpointed_layers, reading.free_bytes);
}

measured measured_table(py::object const& sizes, py::object const& values) {
  std::string const name = "measured_table";
  convert::integer_list const list(name, "sizes", sizes);
  convert::cost_array const costs(name, "values", values);
  return std::visit(
      [&](auto const& numbers) -> measured {
        auto const points = list.values();
        if (numbers.size() != points.size()) {
          reject(name, "values has " + std::to_string(numbers.size()) + " elements, must have " +
                           std::to_string(points.size()) + ", one for each size");
        }
        std::vector<std::size_t> places(points.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        auto cost = omnibal::measured_table(
            places, [&](std::size_t i) { return points[i]; },
            [&](std::size_t i) { return numbers[i]; });
        using value_type = std::remove_cv_t<typename std::decay_t<decltype(numbers)>::value_type>;
        return {convert::to_array(std::vector<std::int64_t>(points.begin(), points.end())),
                convert::to_array(std::vector<value_type>(numbers.begin(), numbers.end())),
                std::move(cost)};
      },
      costs.list());
}

/// The value of a size, or an array of the values of an array of sizes.
py::object value_of(measured const& self, py::object const& sizes) {
  std::string const name = "measured_table";
  auto const given = convert::as_integers(name, "sizes", convert::any_array(name, "sizes", sizes));
  return std::visit(
      [&](auto const& cost) -> py::object {
        if (given.ndim() == 0) return py::cast(cost(*given.data()));
        std::vector<std::decay_t<decltype(cost(0))>> result;
        result.reserve(static_cast<std::size_t>(given.size()));
        convert::released([&] {
          for (py::ssize_t i = 0; i != given.size(); ++i) result.push_back(cost(given.data()[i]));
        });
        return convert::to_array(std::move(result)).attr("reshape")(given.attr("shape"));
      },
      self.cost);
}

void define_probe(py::module_& module) {
  using count = omnibal::checkpoint_count;
  py::class_<count> count_type(module, "CheckpointCount", docstrings::CheckpointCount);
  count_type
      .def_property_readonly(
          "status", [](count const& self) { return convert::to_text(self.status); },
          "'solved' or 'infeasible'.")
      .def_readonly("layers", &count::layers,
                    "The number of checkpointed layers; all layers if infeasible.")
      .def_readonly("missing_bytes", &count::missing_bytes, "The missing bytes if infeasible.")
      .def("__repr__", [](count const& self) {
        bool const is_solved = self.status == omnibal::solve_status::solved;
        return convert::repr_text(
            "CheckpointCount",
            {convert::to_text(self.status),
             convert::count_text(static_cast<std::size_t>(self.layers), "layer"),
             is_solved ? "" : std::to_string(self.missing_bytes) + " bytes missing"});
      });
  convert::add_pickle(
      count_type, 3,
      [](count const& self) {
        return py::make_tuple(static_cast<int>(self.status), self.layers, self.missing_bytes);
      },
      [](py::tuple const& state) {
        return count{.status = static_cast<omnibal::solve_status>(state[0].cast<int>()),
                     .layers = state[1].cast<std::int64_t>(),
                     .missing_bytes = state[2].cast<std::int64_t>()};
      });
  py::class_<probe> type(module, "CheckpointLine", docstrings::CheckpointLine);
  type.def_property_readonly(
          "bytes_per_layer", [](probe const& self) { return self.line.bytes_per_layer(); },
          "The bytes that a checkpointed layer frees.")
      .def(
          "free_bytes",
          [](probe const& self, std::int64_t layers) { return self.line.free_bytes(layers); },
          py::arg("checkpointed_layers"), docstrings::CheckpointLine_free_bytes)
      .def(
          "checkpointed_for",
          [](probe const& self, std::int64_t layers, std::int64_t target) {
            return self.line.checkpointed_for(layers, target);
          },
          py::arg("layers"), py::arg("target_bytes") = 0,
          docstrings::CheckpointLine_checkpointed_for)
      .def("__repr__", [](probe const& self) {
        auto const bytes = py::float_(self.line.bytes_per_layer());
        return convert::repr_text("CheckpointLine",
                                  {convert::number_text(bytes) + " bytes per layer"});
      });
  convert::add_pickle(
      type, 2,
      [](probe const& self) { return py::make_tuple(to_pair(self.few), to_pair(self.many)); },
      [](py::tuple const& state) { return two_point_probe(state[0], state[1]); });
  module.def("two_point_probe", &two_point_probe, docstrings::two_point_probe, py::arg("few"),
             py::arg("many"));
}

void define_table(py::module_& module) {
  py::class_<measured> type(module, "MeasuredCost", docstrings::MeasuredCost);
  type.def_readonly("sizes", &measured::sizes, "The measured sizes, int64.")
      .def_readonly("values", &measured::values, "The measured values, int64 or float64.")
      .def("__call__", &value_of, py::arg("sizes"), docstrings::MeasuredCost_call)
      .def("__repr__", [](measured const& self) {
        auto const points = static_cast<std::size_t>(self.sizes.size());
        return convert::repr_text("MeasuredCost", {convert::count_text(points, "point")});
      });
  convert::add_pickle(
      type, 2, [](measured const& self) { return py::make_tuple(self.sizes, self.values); },
      [](py::tuple const& state) { return measured_table(state[0], state[1]); });
  module.def("measured_table", &measured_table, docstrings::measured_table, py::arg("sizes"),
             py::arg("values"));
}

}  // namespace

void define(py::module_& module) {
  define_probe(module);
  define_table(module);
  py::class_<affine> type(module, "AffineCost", docstrings::AffineCost);
  type.def_readonly("offset", &affine::offset, "The cost of size zero.")
      .def_readonly("slopes", &affine::slopes, "The cost of one unit of each kind, float64.")
      .def_readonly("root_mean_square_residual", &affine::root_mean_square_residual,
                    "The root of the mean squared difference between points and cost.")
      .def_readonly("largest_residual", &affine::largest_residual,
                    "The largest difference between a point and the cost.")
      .def_readonly("largest_residual_index", &affine::largest_residual_index,
                    "The point with that difference.")
      .def_readonly("exact", &affine::exact,
                    "True if the coefficients are integers that reproduce every point.")
      .def_readonly("variance_inflation", &affine::variance_inflation,
                    "How much other kinds and the offset increase the variance of each slope.")
      .def("__call__", &cost_of, py::arg("sizes"), docstrings::AffineCost_call)
      .def("collinear_kinds", &collinear_kinds, py::arg("most") = 100.0,
           docstrings::AffineCost_collinear_kinds)
      .def("__repr__", &to_repr);
  convert::add_pickle_of(type, &affine::offset, &affine::slopes, &affine::root_mean_square_residual,
                         &affine::largest_residual, &affine::largest_residual_index, &affine::exact,
                         &affine::variance_inflation);
  module.def("affine_fit", &affine_fit, docstrings::affine_fit, py::arg("sizes"), py::arg("values"),
             py::kw_only(), py::arg("offset") = "free", py::arg("signs") = "any",
             py::arg("loss") = "squares");
}

}  // namespace fits
