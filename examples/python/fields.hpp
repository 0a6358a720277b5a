// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The members of a structure as keyword arguments and attributes of Python.

#include "convert.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace fields {

namespace py = pybind11;

[[nodiscard]] inline std::string type_name(py::handle given) {
  return py::str(py::type::of(given).attr("__name__"));
}

[[noreturn]] inline void reject_type(std::string const& function, std::string const& name,
                                     py::handle given, std::string const& wanted) {
  throw py::type_error("omnibal." + function + ": " + name + " is of type " + type_name(given) +
                       ", must be " + wanted);
}

/// Returns an integer that Python or NumPy gives.
[[nodiscard]] inline std::int64_t to_integer(std::string const& function, std::string const& name,
                                             py::handle given) {
  auto const index = py::reinterpret_steal<py::object>(PyNumber_Index(given.ptr()));
  if (!index) {
    if (py::error_already_set const error; !convert::is_of_argument(error)) throw error;
    reject_type(function, name, given, "an int");
  }
  int overflow = 0;
  std::int64_t const value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow == 0) return value;
  convert::reject(function,
                  name + " is " + std::string(py::str(index)) + ", must be a number of 64 bits");
}

/// Returns a number that Python or NumPy gives.
[[nodiscard]] inline double to_number(std::string const& function, std::string const& name,
                                      py::handle given) {
  double const value = PyFloat_AsDouble(given.ptr());
  if (value != -1.0 || PyErr_Occurred() == nullptr) return value;
  if (py::error_already_set const error; !convert::is_of_argument(error)) throw error;
  reject_type(function, name, given, "a number");
}

/// Returns a word of Python, as its place among the allowed words.
template <class Value>
[[nodiscard]] Value to_word(std::string const& function, std::string const& name, py::handle given,
                            std::vector<std::string> const& words) {
  if (!py::isinstance<py::str>(given)) reject_type(function, name, given, "a str");
  return static_cast<Value>(convert::word_of(function, name, given.cast<std::string>(), words));
}

/// Returns the integers of a list, which must not be empty; none if it is `None`. A number is a
/// list of itself.
[[nodiscard]] inline std::vector<std::int64_t> to_integers(std::string const& function,
                                                           std::string const& name,
                                                           py::handle given) {
  if (given.is_none()) return {};
  convert::limit_list const list(function, name, given);
  auto const values = list.values();
  if (values.empty()) convert::reject(function, name + " is empty, must be None or have a value");
  return {values.begin(), values.end()};
}

/// The same for words.
template <class Value>
[[nodiscard]] std::vector<Value> to_words(std::string const& function, std::string const& name,
                                          py::handle given, std::vector<std::string> const& words) {
  if (given.is_none()) return {};
  if (py::isinstance<py::str>(given)) return {to_word<Value>(function, name, given, words)};
  if (!py::isinstance<py::iterable>(given)) {
    reject_type(function, name, given, "a str or a list of them");
  }
  std::vector<Value> result;
  for (py::handle const word : given) {
    result.push_back(to_word<Value>(function, name, word, words));
  }
  if (result.empty()) convert::reject(function, name + " is empty, must be None or have a value");
  return result;
}

/// A member of a structure. `set` throws an error that names the function and the member.
template <class T>
struct field {
  std::string name;
  std::function<py::object(T const&)> get;
  std::function<void(std::string const& function, T&, py::handle)> set;
};

/// A member that is an integer; `member(structure)` returns a reference to it.
template <class T, class Member>
[[nodiscard]] field<T> integer_field(std::string const& name, Member const& member) {
  return {
      .name = name,
      .get = [=](T const& of) -> py::object { return py::int_(std::invoke(member, of)); },
      .set = [=](std::string const& function, T& of,
                 py::handle given) { std::invoke(member, of) = to_integer(function, name, given); },
  };
}

/// A member that is a floating-point number.
template <class T, class Member>
[[nodiscard]] field<T> number_field(std::string const& name, Member const& member) {
  return {
      .name = name,
      .get = [=](T const& of) -> py::object { return py::float_(std::invoke(member, of)); },
      .set = [=](std::string const& function, T& of,
                 py::handle given) { std::invoke(member, of) = to_number(function, name, given); },
  };
}

/// A member that is an enumerator, which Python has as a word.
template <class T, class Member>
[[nodiscard]] field<T> word_field(std::string const& name, Member const& member,
                                  std::vector<std::string> const& words) {
  return {
      .name = name,
      .get = [=](T const& of) -> py::object {
        return py::str(words[static_cast<std::size_t>(std::invoke(member, of))]);
      },
      .set =
          [=](std::string const& function, T& of, py::handle given) {
            auto& value = std::invoke(member, of);
            value = to_word<std::decay_t<decltype(value)>>(function, name, given, words);
          },
  };
}

/// Sets the members that a dict has. Errors: `TypeError` for a name that is no member.
template <class T>
void set_all(std::string const& function, std::vector<field<T>> const& members, T& of,
             py::dict const& given) {
  for (auto const& [key, value] : given) {
    auto const name = py::str(key).cast<std::string>();
    bool is_known = false;
    for (field<T> const& member : members) {
      if (member.name != name) continue;
      member.set(function, of, value);
      is_known = true;
    }
    if (!is_known) {
      throw py::type_error("omnibal." + function + ": there is no argument '" + name + "'");
    }
  }
}

/// A value as Python has it without NumPy: an array is a list.
[[nodiscard]] inline py::object plain(py::object const& value) {
  return py::isinstance<py::array>(value) ? py::object(value.attr("tolist")()) : value;
}

/// All members as a dict.
template <class T>
[[nodiscard]] py::dict to_dict(std::vector<field<T>> const& members, T const& of) {
  py::dict result;
  for (field<T> const& member : members) result[member.name.c_str()] = plain(member.get(of));
  return result;
}

/// All members as a tuple, for `__reduce__`.
template <class T>
[[nodiscard]] py::tuple to_tuple(std::vector<field<T>> const& members, T const& of) {
  py::tuple result(members.size());
  for (std::size_t i = 0; i != members.size(); ++i) result[i] = members[i].get(of);
  return result;
}

/// The structure of a tuple of all members.
template <class T>
[[nodiscard]] T from_tuple(std::string const& function, std::vector<field<T>> const& members,
                           py::tuple const& given) {
  T result{};
  for (std::size_t i = 0; i != members.size(); ++i) members[i].set(function, result, given[i]);
  return result;
}

/// The shortest text of Python for a value, such as 6.89e+14.
[[nodiscard]] inline std::string value_text(py::object const& value) {
  if (py::isinstance<py::float_>(value)) {
    std::string const text = convert::number_text(value);
    if (py::float_(py::str(text)).equal(value)) return text;
  }
  return py::repr(value);
}

/// The call of Python that makes the structure, without members that are equal to `without`.
template <class T>
[[nodiscard]] std::string to_repr(std::string const& type, std::vector<field<T>> const& members,
                                  T const& of, T const& without) {
  std::vector<std::string> facts;
  for (field<T> const& member : members) {
    py::object const value = plain(member.get(of));
    if (value.equal(plain(member.get(without)))) continue;
    facts.push_back(member.name + "=" + value_text(value));
  }
  return convert::repr_text(type, facts);
}

}  // namespace fields
