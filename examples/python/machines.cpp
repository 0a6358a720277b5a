// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"

#include "docstrings.hpp"
#include "fields.hpp"

#include <omnibal/cost/fit_machine.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/cost/machines.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace machines {

namespace py = pybind11;
using convert::reject;
using omnibal::machine;

/// A constant of a fit, with a name that can be pickled.
struct fitted {
  std::string name;
  double value = 0;
  double relative_error = 0;
  double inflation = 0;
  bool is_at_bound = false;
};

/// The result of a fit.
struct fit {
  machine of{};
  std::vector<fitted> constants;
  double mean_error = 0;
  double largest_error = 0;
};

}  // namespace machines

namespace pybind11::detail {
template <>
struct type_caster<machines::fitted> : convert::value_caster<machines::fitted> {};
template <>
struct type_caster<machines::fit> : convert::value_caster<machines::fit> {};
}  // namespace pybind11::detail

namespace machines {

namespace {

[[nodiscard]] std::vector<fields::field<machine>> const& members() {
  static std::vector<fields::field<machine>> const result = [] {
    std::vector<fields::field<machine>> list;
    for (omnibal::machine_constant const& constant : omnibal::machine_constants) {
      list.push_back(fields::number_field<machine>(std::string(constant.name), constant.member));
    }
    list.push_back(fields::integer_field<machine>("devices_per_node", &machine::devices_per_node));
    return list;
  }();
  return result;
}

struct named_machine {
  std::string_view name;
  machine const& of;
};

/// The machines of the library by their names.
constexpr named_machine named_machines[] = {
    {"a100_start", omnibal::machines::a100_start},
    {"h100_start", omnibal::machines::h100_start},
    {"b200_start", omnibal::machines::b200_start},
    {"gb200_start", omnibal::machines::gb200_start},
    {"a100_infiniband", omnibal::machines::a100_infiniband},
    {"a100_omnipath", omnibal::machines::a100_omnipath},
    {"a100_roce", omnibal::machines::a100_roce},
    {"a100_fsdp", omnibal::machines::a100_fsdp},
    {"h100", omnibal::machines::h100},
    {"h100_fsdp", omnibal::machines::h100_fsdp},
    {"h100_500w", omnibal::machines::h100_500w},
    {"b200", omnibal::machines::b200},
    {"b300", omnibal::machines::b300},
    {"gb200", omnibal::machines::gb200},
    {"gb300", omnibal::machines::gb300},
};

[[nodiscard]] std::vector<std::string> names() {
  std::vector<std::string> result;
  for (named_machine const& one : named_machines) result.emplace_back(one.name);
  return result;
}

[[nodiscard]] machine named(std::string const& name) {
  return named_machines[convert::word_of("Machine.named", "name", name, names())].of;
}

/// Returns a machine with changed members, which is checked.
[[nodiscard]] machine changed(machine result, py::dict const& given) {
  fields::set_all("Machine", members(), result, given);
  omnibal::detail::check_machine("Machine", result);
  return result;
}

[[nodiscard]] machine make(py::kwargs const& given) {
  for (omnibal::machine_constant const& constant : omnibal::machine_constants) {
    bool const has_default =
        machine{}.*constant.member != 0 || omnibal::detail::is_duration(constant);
    if (has_default || given.contains(constant.name)) continue;
    throw py::type_error("omnibal.Machine: the argument '" + std::string(constant.name) +
                         "' is missing");
  }
  return changed({}, given);
}

/// Returns the constants to fit by their names.
[[nodiscard]] std::vector<omnibal::machine_member> to_constants(py::object const& given) {
  std::vector<std::string> words;
  for (omnibal::machine_constant const& one : omnibal::machine_constants) {
    words.emplace_back(one.name);
  }
  if (given.is_none()) fields::reject_type("fit_machine", "constants", given, "a list of str");
  if (py::isinstance<py::sequence>(given) && py::len(given) == 0) {
    reject("fit_machine", "constants is empty, must have the name of a constant");
  }
  std::vector<omnibal::machine_member> result;
  for (std::size_t const place :
       fields::to_words<std::size_t>("fit_machine", "constants", given, words)) {
    result.push_back(omnibal::machine_constants[place].member);
  }
  return result;
}

fit fit_machine(py::object const& runs, py::object const& seconds, py::object const& predict,
                machine const& start, py::object const& constants, double prior,
                double outlier_share, double bound_factor, std::int64_t rounds) {
  std::string const name = "fit_machine";
  if (!py::isinstance<py::iterable>(runs)) fields::reject_type(name, "runs", runs, "a list");
  py::list const list(runs);
  py::array const given = convert::any_array(name, "seconds", seconds);
  if (given.ndim() != 1 || static_cast<std::size_t>(given.size()) != list.size()) {
    reject(name, "there are " + std::to_string(list.size()) + " runs, but seconds has the shape " +
                     std::string(py::str(given.attr("shape"))) + ", must have one for each run");
  }
  std::string const kind(1, given.dtype().kind());
  if (given.size() != 0 && std::string("fiu").find(kind) == std::string::npos) {
    reject(name,
           "the type of seconds is " + std::string(py::str(given.dtype())) + ", must be numbers");
  }
  auto const measured = convert::as_numbers(name, "seconds", given);
  if (PyCallable_Check(predict.ptr()) == 0) {
    fields::reject_type(name, "predict", predict, "a function of a run and a Machine");
  }
  std::vector<py::ssize_t> places(list.size());
  std::iota(places.begin(), places.end(), py::ssize_t{0});
  // `predict` is code of Python, so that this thread keeps the interpreter.
  auto const found = omnibal::fit_machine(
      places, [&](py::ssize_t run) { return measured.at(run); },
      [&](py::ssize_t run, machine const& on) {
        py::object const result = predict(list[static_cast<std::size_t>(run)], on);
        return fields::to_number(name, "the result of predict", result);
      },
      start, to_constants(constants),
      {.prior = prior,
       .outlier_share = outlier_share,
       .bound_factor = bound_factor,
       .rounds = convert::count_of(name, "rounds", rounds)});
  fit result{.of = found.fitted,
             .constants = {},
             .mean_error = found.mean_error,
             .largest_error = found.largest_error};
  for (auto const& one : found.constants) {
    result.constants.push_back(
        {std::string(one.name), one.value, one.relative_error, one.inflation, one.is_at_bound});
  }
  return result;
}

[[nodiscard]] std::string to_text(double number) {
  return convert::number_text(py::float_(number));
}

[[nodiscard]] std::string to_repr(fitted const& self) {
  return convert::repr_text(
      "FittedConstant",
      {self.name + " " + to_text(self.value), "relative error " + to_text(self.relative_error),
       "inflation " + to_text(self.inflation), self.is_at_bound ? "at its bound" : ""});
}

[[nodiscard]] std::string to_repr(fit const& self) {
  return convert::repr_text("MachineFit", {convert::count_text(self.constants.size(), "constant"),
                                           "mean error " + to_text(self.mean_error),
                                           "largest error " + to_text(self.largest_error)});
}

void define_machine(py::module_& module) {
  py::class_<machine> type(module, "Machine", docstrings::Machine);
  type.def(py::init(&make), docstrings::Machine_init);
  for (omnibal::machine_constant const& constant : omnibal::machine_constants) {
    type.def_readonly(std::string(constant.name).c_str(), constant.member,
                      "A constant; see the class.");
  }
  type.def_readonly("devices_per_node", &machine::devices_per_node,
                    "The number of devices that fast links connect.")
      .def_static("named", &named, py::arg("name"), docstrings::Machine_named)
      .def_static("names", &names, docstrings::Machine_names)
      .def(
          "replace",
          [](machine const& self, py::kwargs const& changes) { return changed(self, changes); },
          docstrings::Machine_replace)
      .def(
          "to_dict", [](machine const& self) { return fields::to_dict(members(), self); },
          docstrings::Machine_to_dict)
      .def("__eq__",
           [](machine const& self, py::object const& other) {
             return py::isinstance<machine>(other) && self == other.cast<machine const&>();
           })
      .def("__hash__",
           [](machine const& self) { return py::hash(fields::to_tuple(members(), self)); })
      .def("__repr__", [](machine const& self) {
        return fields::to_repr("Machine", members(), self, machine{.fp8_gain = 0});
      });
  convert::add_pickle(
      type, members().size(), [](machine const& self) { return fields::to_tuple(members(), self); },
      [](py::tuple const& state) {
        auto const result = fields::from_tuple("Machine", members(), state);
        omnibal::detail::check_machine("Machine", result);
        return result;
      });
}

void define_fits(py::module_& module) {
  py::class_<fitted> constant_type(module, "FittedConstant", docstrings::FittedConstant);
  constant_type.def_readonly("name", &fitted::name, "The name of the member of a Machine.")
      .def_readonly("value", &fitted::value, "The fitted value.")
      .def_readonly("relative_error", &fitted::relative_error,
                    "The standard error divided by the value.")
      .def_readonly("inflation", &fitted::inflation,
                    "The factor by which other constants increase the variance of this one.")
      .def_readonly("is_at_bound", &fitted::is_at_bound,
                    "True if the value is at a bound: the start times or over bound_factor.")
      .def("__repr__", [](fitted const& self) { return to_repr(self); });
  convert::add_pickle_of(constant_type, &fitted::name, &fitted::value, &fitted::relative_error,
                         &fitted::inflation, &fitted::is_at_bound);
  py::class_<fit> type(module, "MachineFit", docstrings::MachineFit);
  type.def_readonly("fitted", &fit::of, "The Machine with the fitted constants.")
      .def_readonly("constants", &fit::constants,
                    "A FittedConstant for each fitted constant, in the order of the argument.")
      .def_readonly("mean_error", &fit::mean_error,
                    "The mean relative error of the predictions of the runs.")
      .def_readonly("largest_error", &fit::largest_error,
                    "The largest relative error of the predictions of the runs.")
      .def("__repr__", [](fit const& self) { return to_repr(self); });
  convert::add_pickle_of(type, &fit::of, &fit::constants, &fit::mean_error, &fit::largest_error);
}

}  // namespace

void define(py::module_& module) {
  define_machine(module);
  define_fits(module);
  module.def("fit_machine", &fit_machine, docstrings::fit_machine, py::arg("runs"),
             py::arg("seconds"), py::arg("predict"), py::arg("start"), py::arg("constants"),
             py::kw_only(), py::arg("prior") = 0.02, py::arg("outlier_share") = 0.05,
             py::arg("bound_factor") = 30.0, py::arg("rounds") = 60);
}

}  // namespace machines
