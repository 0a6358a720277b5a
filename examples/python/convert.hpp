// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// NumPy arrays as the arrays of the library and back: no copy of what has the right layout, none
/// of a result.

#include "../arrays/arrays.hpp"
#include "../arrays/rows.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

namespace convert {

namespace py = pybind11;

[[noreturn]] inline void reject(std::string const& function, std::string const& text) {
  throw std::invalid_argument("omnibal::" + function + ": " + text);
}

/// An error of an argument that has an error of Python as its cause.
class caused_error : public std::invalid_argument {
 public:
  caused_error(std::string const& text, py::error_already_set cause)
      : std::invalid_argument(text), cause_(std::move(cause)) {}

  [[nodiscard]] py::error_already_set const& cause() const { return cause_; }

 private:
  py::error_already_set cause_;
};

/// Whether an error of Python says that an argument is wrong. Other errors, such as
/// KeyboardInterrupt and MemoryError, reach the caller as they are.
[[nodiscard]] inline bool is_of_argument(py::error_already_set const& error) {
  return error.matches(PyExc_TypeError) || error.matches(PyExc_ValueError) ||
         error.matches(PyExc_OverflowError);
}

/// Returns what `body` returns. An error of Python that says that an argument is wrong becomes a
/// ValueError with a text, whose cause is that error.
template <class Body>
auto with_text(std::string const& function, std::string const& text, Body const& body) {
  try {
    return body();
  } catch (py::error_already_set const& error) {
    if (!is_of_argument(error)) throw;
    throw caused_error("omnibal::" + function + ": " + text, error);
  }
}

/// Runs `body` while other threads of Python run.
template <class Body>
auto released(Body const& body) {
  py::gil_scoped_release const release;
  return body();
}

/// A number of things that Python gives, where a negative one is an error with a text.
[[nodiscard]] inline std::size_t count_of(std::string const& function, std::string const& name,
                                          std::int64_t value) {
  if (value < 0) reject(function, name + " is " + std::to_string(value) + ", must not be negative");
  return static_cast<std::size_t>(value);
}

/// What Python gives as an array of NumPy: an array, a list, or anything with the array protocol.
/// `py::array::ensure` would clear the error of Python, which may be a KeyboardInterrupt.
[[nodiscard]] inline py::array any_array(
    std::string const& function, std::string const& name, py::handle given,
    std::string const& reason =
        " is no array of numbers, and no list of them; its rows must be as long") {
  return with_text(function, name + reason,
                   [&] { return py::array(py::module_::import("numpy").attr("asarray")(given)); });
}

using integer_array = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using number_array = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// As 64-bit integers beside each other: itself where it is that already.
[[nodiscard]] inline integer_array as_integers(std::string const& function, std::string const& name,
                                               py::array const& given,
                                               std::string const& wanted = "integers") {
  char const kind = given.dtype().kind();
  if (kind == 'O' && given.size() != 0) {
    reject(function, name + " has a number that 64 bits do not hold, or what is no number");
  }
  if (kind != 'i' && kind != 'u' && given.size() != 0) {
    reject(function, "the type of " + name + " is " + std::string(py::str(given.dtype())) +
                         ", must be " + wanted);
  }
  if (kind == 'u' && given.attr("itemsize").cast<int>() == 8 && given.size() != 0) {
    auto const largest = given.attr("max")().cast<std::uint64_t>();
    if (largest > static_cast<std::uint64_t>(INT64_MAX)) {
      reject(function, name + " go up to " + std::to_string(largest) + ", must be at most " +
                           std::to_string(INT64_MAX));
    }
  }
  return integer_array(given);
}

/// As floating-point numbers beside each other: itself where it is that already.
[[nodiscard]] inline number_array as_numbers(std::string const& function, std::string const& name,
                                             py::array const& given) {
  return with_text(function, name + " has an element that is no number",
                   [&] { return number_array(given); });
}

/// A list of integers.
class integer_list {
 public:
  integer_list() = default;
  integer_list(std::string const& function, std::string const& name, py::handle given) {
    py::array const array = any_array(function, name, given);
    if (array.ndim() != 1) {
      reject(function, name + " have " + std::to_string(array.ndim()) + " dimensions, must have 1");
    }
    array_ = as_integers(function, name, array);
  }

  [[nodiscard]] arrays::integers values() const {
    return {array_.data(), static_cast<std::size_t>(array_.size())};
  }

 private:
  integer_array array_{0};
};

/// Nothing, or a list of integers.
[[nodiscard]] inline integer_list optional_list(std::string const& function,
                                                std::string const& name, py::handle given) {
  return given.is_none() ? integer_list() : integer_list(function, name, given);
}

/// A key for each sample: an integer, or a text.
class key_list {
 public:
  key_list(std::string const& function, py::handle given) {
    py::array array = any_array(function, "keys", given);
    if (array.ndim() != 1) {
      reject(function, "keys have " + std::to_string(array.ndim()) + " dimensions, must have 1");
    }
    char const kind = array.dtype().kind();
    if (kind == 'U' || kind == 'S') {
      // The order of the sets does not depend on the order of the keys.
      auto const unique = py::module_::import("numpy").attr("unique");
      array = py::array(py::tuple(unique(array, py::arg("return_inverse") = true))[1]);
    }
    numbers_ = as_integers(function, "keys", array, "integers or texts");
  }

  [[nodiscard]] arrays::integers values() const {
    return {numbers_.data(), static_cast<std::size_t>(numbers_.size())};
  }

 private:
  integer_array numbers_{0};
};

/// Indices of 32 bits.
[[nodiscard]] inline std::vector<std::uint32_t> to_indices(std::string const& function,
                                                           std::string const& name,
                                                           arrays::integers values) {
  std::vector<std::uint32_t> result;
  for (std::int64_t const value : values) {
    if (value < 0 || value > UINT32_MAX) {
      reject(function, "an element of " + name + " is " + std::to_string(value) +
                           ", must be in [0, " + std::to_string(UINT32_MAX) + "]");
    }
    result.push_back(static_cast<std::uint32_t>(value));
  }
  return result;
}

/// The place of a word among the words that an argument may be.
[[nodiscard]] inline std::size_t word_of(std::string const& function, std::string const& name,
                                         std::string const& given,
                                         std::vector<std::string> const& words) {
  std::string list;
  for (std::size_t i = 0; i != words.size(); ++i) {
    if (given == words[i]) return i;
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  reject(function, name + " is '" + given + "', must be " + list);
}

/// Capacities and the like: a number, or one for each resource.
class limit_list {
 public:
  limit_list(std::string const& function, std::string const& name, py::handle given) {
    if (given.is_none()) return;
    py::array const array = any_array(function, name, given);
    if (array.ndim() > 1) {
      reject(function, name + " has " + std::to_string(array.ndim()) +
                           " dimensions, must be a number, or one for each resource");
    }
    integer_array const numbers = as_integers(function, name, array);
    values_.assign(numbers.data(), numbers.data() + numbers.size());
  }

  [[nodiscard]] arrays::integers values() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
};

/// The capacity of parts: as in `limit_list`, or a row of numbers for each part. With one resource,
/// several numbers are the capacities of the parts.
class capacity_rows {
 public:
  capacity_rows(std::string const& function, std::string const& name, py::handle given,
                std::size_t kinds) {
    py::array const array = any_array(function, name, given);
    if (array.ndim() > 2) {
      reject(function, name + " has " + std::to_string(array.ndim()) +
                           " dimensions, must have at most 2: parts and resources");
    }
    integer_array const numbers = as_integers(function, name, array);
    values_.assign(numbers.data(), numbers.data() + numbers.size());
    bool const is_of_parts = array.ndim() == 2 || (kinds == 1 && values_.size() > 1);
    if (is_of_parts) rows_ = static_cast<std::size_t>(array.shape(0));
    if (is_of_parts && rows_ == 0) reject(function, name + " has no row");
  }

  [[nodiscard]] arrays::capacity_list list() const { return {values_, rows_}; }

 private:
  std::vector<std::int64_t> values_;
  std::size_t rows_ = 0;
};

/// What samples take: an array with a number, or a row of numbers, for each; or a tuple with an
/// array for each resource.
class demand_list {
 public:
  demand_list(std::string const& function, std::string const& name, py::handle given) {
    py::array array =
        any_array(function, name, is_columns(given) ? columns(function, name, given) : given);
    if (array.ndim() != 1 && array.ndim() != 2) {
      reject(function, name + " have " + std::to_string(array.ndim()) +
                           " dimensions, must have 1, or 2 for several resources");
    }
    kinds_ = array.ndim() == 1 ? 1 : static_cast<std::size_t>(array.shape(1));
    array_ = as_integers(function, name, array);
  }

  [[nodiscard]] arrays::demand_table table() const {
    return {{array_.data(), static_cast<std::size_t>(array_.size())}, kinds_};
  }
  [[nodiscard]] std::size_t kinds() const { return kinds_; }

  /// A tuple of arrays, and not one of numbers.
  [[nodiscard]] static bool is_columns(py::handle given) {
    if (!py::isinstance<py::tuple>(given)) return false;
    auto const tuple = py::reinterpret_borrow<py::tuple>(given);
    return !tuple.empty() && py::hasattr(tuple[0], "__len__");
  }

 private:
  [[nodiscard]] static py::object columns(std::string const& function, std::string const& name,
                                          py::handle given) {
    py::list arrays;
    for (py::handle const column : given) {
      py::array const array = any_array(function, name, column);
      if (array.ndim() != 1) {
        reject(function, name + " have a column of " + std::to_string(array.ndim()) +
                             " dimensions, must have 1");
      }
      auto const first = arrays.empty() ? array : py::array(arrays[0]);
      if (array.size() != first.size()) {
        reject(function, name + " have columns of " + std::to_string(first.size()) + " and " +
                             std::to_string(array.size()) + " samples, must have as many");
      }
      arrays.append(array);
    }
    return py::module_::import("numpy").attr("stack")(arrays, py::arg("axis") = 1);
  }

  integer_array array_;
  std::size_t kinds_ = 1;
};

/// One cost for each sample: integers, or floating-point numbers.
class cost_array {
 public:
  cost_array(std::string const& function, std::string const& name, py::handle given) {
    py::array const array = any_array(function, name, given);
    if (array.ndim() != 1) {
      reject(function, name + " have " + std::to_string(array.ndim()) + " dimensions, must have 1");
    }
    if (array.dtype().kind() != 'f' || array.size() == 0) {
      integers_ = as_integers(function, name, array, "integers or floats");
      return;
    }
    is_float_ = true;
    numbers_ = as_numbers(function, name, array);
  }

  [[nodiscard]] arrays::cost_list list() const {
    if (is_float_) {
      return arrays::numbers(numbers_.data(), static_cast<std::size_t>(numbers_.size()));
    }
    return arrays::integers(integers_.data(), static_cast<std::size_t>(integers_.size()));
  }

 private:
  bool is_float_ = false;
  integer_array integers_{0};
  number_array numbers_{0};
};

/// Speeds of parts or ranks, one number for each; none if the argument is `None`.
class speed_array {
 public:
  speed_array(std::string const& function, py::handle given) {
    if (given.is_none()) return;
    py::array const array = any_array(function, "speeds", given);
    if (array.ndim() != 1) {
      reject(function, "speeds have " + std::to_string(array.ndim()) + " dimensions, must have 1");
    }
    numbers_ = as_numbers(function, "speeds", array);
  }

  [[nodiscard]] arrays::numbers list() const {
    return arrays::numbers(numbers_.data(), static_cast<std::size_t>(numbers_.size()));
  }

 private:
  number_array numbers_{0};
};

/// One cost for each sample as `cost_array`, or a row of integers as `demand_list`.
class cost_table {
 public:
  cost_table(std::string const& function, std::string const& name, py::handle given)
      : function_(function) {
    if (demand_list::is_columns(given) || any_array(function, name, given).ndim() == 2) {
      rows_.emplace(function, name, given);
    } else {
      list_.emplace(function, name, given);
    }
  }

  /// Calls `body` with a span of integers or of numbers, or with a list of resources.
  template <class Body>
  auto visit(Body const& body) const {
    if (list_) return std::visit(body, list_->list());
    return arrays::with_rows(function_, rows_->table(),
                             [&](auto samples, auto const& demand, auto kinds) {
                               if constexpr (kinds() == 1) {
                                 return body(samples);
                               } else {
                                 std::vector<omnibal::resources<kinds()>> list;
                                 list.reserve(samples.size());
                                 for (auto const& sample : samples) list.push_back(demand(sample));
                                 return body(list);
                               }
                             });
  }

 private:
  std::string function_;
  std::optional<cost_array> list_;
  std::optional<demand_list> rows_;
};

/// An object of Python that `__new__` made without a value has nothing that C++ may read.
template <class T>
struct value_caster : py::detail::type_caster_base<T> {
  bool load(py::handle source, bool convert) {
    if (py::isinstance<T>(source)) {
      auto* const object = reinterpret_cast<py::detail::instance*>(source.ptr());
      if (object->get_value_and_holder().value_ptr() == nullptr) {
        throw py::value_error("omnibal: an object of type " +
                              std::string(py::str(py::type::of(source).attr("__name__"))) +
                              " has no value, as it was made by __new__ alone");
      }
    }
    return py::detail::type_caster_base<T>::load(source, convert);
  }
};

/// Lets results be pickled, and copied, with every protocol: `state` makes a tuple of `size`
/// elements, and `made` takes it.
template <class Class, class State, class Made>
void add_pickle(Class& type, std::size_t size, State const& state, Made const& made) {
  using value = typename Class::type;
  type.def(py::pickle(state, [size, made](py::tuple const& given) {
    if (given.size() != size) reject("pickle", "the state has another number of elements");
    return made(given);
  }));
  auto const reduce = [state](py::object const& self) {
    return py::make_tuple(py::module_::import("copyreg").attr("__newobj__"),
                          py::make_tuple(py::type::of(self)), state(self.cast<value const&>()));
  };
  type.def("__reduce__", reduce);
  type.def("__reduce_ex__", [reduce](py::object const& self, int) { return reduce(self); });
}

/// The same for a structure: a tuple of its members.
template <class Class, class... Members>
void add_pickle_of(Class& type, Members... members) {
  using value = typename Class::type;
  add_pickle(
      type, sizeof...(Members),
      [members...](value const& self) { return py::make_tuple(self.*members...); },
      [members...](py::tuple const& given) {
        value result{};
        std::size_t place = 0;
        ((result.*members = given[place++].cast<std::decay_t<decltype(result.*members)>>()), ...);
        return result;
      });
}

/// An array of what lies elsewhere, which `owner` keeps alive. Its strides are given, since
/// pybind11 before 2.12 does not know the size of an element of NumPy 2.
template <class Array, class T>
[[nodiscard]] Array view_of(T const* data, std::size_t size, py::capsule const& owner) {
  std::vector<py::ssize_t> const shape{static_cast<py::ssize_t>(size)};
  std::vector<py::ssize_t> const strides{static_cast<py::ssize_t>(sizeof(T))};
  return Array(shape, strides, data, owner);
}

/// A vector as an array that owns it.
template <class T>
[[nodiscard]] py::array_t<T> to_array(std::vector<T>&& values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  auto const* const data = owner->data();
  std::size_t const size = owner->size();
  py::capsule const capsule(owner.get(), [](void* v) { delete static_cast<std::vector<T>*>(v); });
  owner.release();
  return view_of<py::array_t<T>>(data, size, capsule);
}

[[nodiscard]] inline py::object to_python(arrays::cost_value const& value) {
  return std::visit([](auto number) -> py::object { return py::cast(number); }, value);
}

/// A number in a text: six digits of a float, all of an integer.
[[nodiscard]] inline std::string number_text(py::handle number) {
  bool const is_float = py::isinstance<py::float_>(number);
  return py::str(is_float ? "{:.6g}" : "{}").format(number);
}

/// A number of things in a text, such as "1 group" or "2 groups".
[[nodiscard]] inline std::string count_text(std::size_t count, std::string const& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

/// What repr shows of an object: "Type(fact, fact)", without the facts that are empty.
[[nodiscard]] inline std::string repr_text(std::string const& type,
                                           std::vector<std::string> const& facts) {
  std::string result;
  for (std::string const& fact : facts) {
    if (!fact.empty()) result += (result.empty() ? "" : ", ") + fact;
  }
  return type + "(" + result + ")";
}

/// The facts of a solution in a text: its value, and how far that is from the best.
[[nodiscard]] inline std::string bounded_text(std::string const& name, py::handle value,
                                              py::handle lower_bound, bool proven) {
  return name + " " + number_text(value) + ", at least " + number_text(lower_bound) +
         (proven ? ", proven" : "");
}

/// An iterator over what has `__getitem__` with an index.
[[nodiscard]] inline py::iterator iterate(py::handle sequence) {
  auto const result = py::reinterpret_steal<py::object>(PySeqIter_New(sequence.ptr()));
  if (!result) throw py::error_already_set();
  return py::iterator(result);
}

/// The elements of a slice of what has `__len__` and `__getitem__` with an index.
[[nodiscard]] inline py::list elements_at(py::object const& sequence, py::slice const& places) {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t step = 0;
  std::size_t count = 0;
  if (!places.compute(py::len(sequence), &first, &last, &step, &count)) {
    throw py::error_already_set();
  }
  py::list result;
  for (std::size_t i = 0; i != count; ++i) result.append(sequence[py::int_(first + i * step)]);
  return result;
}

[[nodiscard]] inline char const* to_text(omnibal::solve_status status) {
  switch (status) {
    case omnibal::solve_status::solved: return "solved";
    case omnibal::solve_status::not_found: return "not_found";
    default: return "infeasible";
  }
}

[[nodiscard]] inline omnibal::effort to_effort(std::string const& function,
                                               std::string const& name) {
  if (name == "fast") return omnibal::effort::fast;
  if (name == "normal") return omnibal::effort::normal;
  if (name == "thorough") return omnibal::effort::thorough;
  reject(function, "effort is '" + name + "', must be fast, normal or thorough");
}

}  // namespace convert
