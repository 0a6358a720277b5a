// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Samplers and mixtures as iterables of Python.

#include "convert.hpp"

#include <cstdint>

namespace iterations {

namespace py = pybind11;

/// An iteration that advances an object. `Owner` has the members `done()`, `steps_left()`, the
/// number of values that a new iteration yields, and `next()`.
template <class Owner>
struct iteration {
  py::object of;
  bool has_begun = false;

  [[nodiscard]] py::object next() {
    auto& self = of.cast<Owner&>();
    if (has_begun ? self.done() : self.steps_left() == 0) throw py::stop_iteration();
    has_begun = true;
    return self.next();
  }
};

/// Adds `__iter__` and `__len__` to a class.
template <class Owner>
void define(py::class_<Owner>& type, char const* name, char const* iter_text,
            char const* length_text) {
  // Only an iteration makes objects of this type, so that the module does not name it.
  py::class_<iteration<Owner>>(py::handle(), name, py::module_local())
      .def("__iter__", [](py::object const& self) { return self; })
      .def("__next__", &iteration<Owner>::next);
  type.def(
          "__iter__", [](py::object const& self) { return iteration<Owner>{self}; }, iter_text)
      .def("__len__", &Owner::steps_left, length_text);
}

inline constexpr char const* epoch_text =
    "Yields the rest of the epoch, or the next epoch if this one is done.";
inline constexpr char const* epoch_length_text =
    "The number of steps that an iteration yields: the rest of the epoch, or the next epoch if "
    "this one is done.";

}  // namespace iterations
