// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"
#include "docstrings.hpp"

#include <omnibal/recompute/activation_frontier.hpp>
#include <omnibal/recompute/activation_layer.hpp>
#include <omnibal/recompute/activations_result.hpp>
#include <omnibal/recompute/measure_activations.hpp>
#include <omnibal/recompute/select_activations.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace activations {

namespace py = pybind11;
using convert::reject;
using convert::released;
using choice_lists = std::vector<std::vector<omnibal::activation_choice>>;

namespace {

/// A layer whose times are integers, or floats if one of them is.
struct activation_layer {
  std::variant<omnibal::activation_layer<std::int64_t>, omnibal::activation_layer<double>> of;

  template <class T>
  [[nodiscard]] omnibal::activation_layer<T> with_times() const {
    return std::visit(
        [](auto const& layer) {
          omnibal::activation_layer<T> result{
              .modules = {},
              .forward_time = static_cast<T>(layer.forward_time),
              .backward_time = static_cast<T>(layer.backward_time),
              .forward_transient_bytes = layer.forward_transient_bytes,
              .backward_transient_bytes = layer.backward_transient_bytes,
              .forward_traffic_bytes = layer.forward_traffic_bytes,
              .backward_traffic_bytes = layer.backward_traffic_bytes};
          for (auto const& module : layer.modules) {
            result.modules.push_back(
                {module.bytes, static_cast<T>(module.recompute_time), module.need});
          }
          return result;
        },
        of);
  }
};

struct activations_result {
  std::string status;
  choice_lists choices;
  py::object added_time;
  py::object lower_bound;
  bool proven;
  std::int64_t peak_bytes;
  std::int64_t offloaded_bytes;
  std::int64_t missing_bytes;
};

struct activation_usage {
  py::object added_time;
  std::int64_t peak_bytes;
  std::int64_t kept_bytes;
  std::int64_t offloaded_bytes;
  std::int64_t held_bytes;
  py::array forward_bytes;
  py::array backward_bytes;
};

}  // namespace

}  // namespace activations

namespace pybind11::detail {
template <>
struct type_caster<activations::activation_layer>
    : convert::value_caster<activations::activation_layer> {};
template <>
struct type_caster<activations::activations_result>
    : convert::value_caster<activations::activations_result> {};
template <>
struct type_caster<activations::activation_usage>
    : convert::value_caster<activations::activation_usage> {};
}  // namespace pybind11::detail

namespace activations {

namespace {

constexpr std::array<char const*, 3> choice_words{"keep", "recompute", "offload"};

/// Returns a time as an array of NumPy without dimensions.
[[nodiscard]] py::array time_of(std::string const& name, py::object const& given) {
  py::array const array = convert::any_array("ActivationLayer", name, given);
  if (array.ndim() != 0) {
    reject("ActivationLayer",
           name + " has " + std::to_string(array.ndim()) + " dimensions, must be a number");
  }
  if (array.dtype().kind() == 'f') return array;
  return convert::as_integers("ActivationLayer", name, array, "an integer or a float");
}

/// Returns whether each module is required.
[[nodiscard]] std::vector<bool> required_of(py::object const& required, std::size_t modules) {
  if (required.is_none()) return std::vector<bool>(modules, false);
  py::array const array = convert::any_array("ActivationLayer", "required", required);
  bool const is_size = array.ndim() == 1 && static_cast<std::size_t>(array.size()) == modules;
  if (!is_size || array.dtype().kind() != 'b') {
    reject("ActivationLayer", "required has the type " + std::string(py::str(array.dtype())) +
                                  " and the shape " + std::string(py::str(array.attr("shape"))) +
                                  ", must be bool and (" + std::to_string(modules) + ",)");
  }
  return array.cast<std::vector<bool>>();
}

activation_layer make_layer(py::object const& bytes, py::object const& recompute_time,
                            py::object const& forward_time, py::object const& backward_time,
                            py::object const& required, std::int64_t forward_transient_bytes,
                            std::int64_t backward_transient_bytes,
                            std::int64_t forward_traffic_bytes,
                            std::int64_t backward_traffic_bytes) {
  std::string const name = "ActivationLayer";
  convert::integer_list const sizes(name, "bytes", bytes);
  convert::cost_array const costs(name, "recompute_time", recompute_time);
  py::array const forward = time_of("forward_time", forward_time);
  py::array const backward = time_of("backward_time", backward_time);
  std::size_t const count = sizes.values().size();
  auto const needs = required_of(required, count);
  auto const made = [&]<class T>(std::type_identity<T>, auto const& times) {
    if (times.size() != count) {
      reject(name, "recompute_time has " + std::to_string(times.size()) + " elements, must have " +
                       std::to_string(count) + " as bytes");
    }
    omnibal::activation_layer<T> layer{.modules = {},
                                       .forward_time = forward.attr("item")().cast<T>(),
                                       .backward_time = backward.attr("item")().cast<T>(),
                                       .forward_transient_bytes = forward_transient_bytes,
                                       .backward_transient_bytes = backward_transient_bytes,
                                       .forward_traffic_bytes = forward_traffic_bytes,
                                       .backward_traffic_bytes = backward_traffic_bytes};
    for (std::size_t i = 0; i != count; ++i) {
      layer.modules.push_back(
          {sizes.values()[i], static_cast<T>(times[i]),
           needs[i] ? omnibal::module_need::required : omnibal::module_need::optional});
    }
    return activation_layer{std::move(layer)};
  };
  bool const is_float = forward.dtype().kind() == 'f' || backward.dtype().kind() == 'f';
  return std::visit(
      [&](auto const& times) {
        using time_type = std::remove_cv_t<typename std::decay_t<decltype(times)>::value_type>;
        if (is_float) return made(std::type_identity<double>{}, times);
        return made(std::type_identity<time_type>{}, times);
      },
      costs.list());
}

/// Calls `body` with the layers: with integers, or with floats if a time is one.
template <class Body>
auto with_layers(std::vector<activation_layer> const& layers, Body const& body) {
  auto const with_time = [&]<class T>(std::type_identity<T>) {
    std::vector<omnibal::activation_layer<T>> list;
    list.reserve(layers.size());
    for (activation_layer const& layer : layers) list.push_back(layer.with_times<T>());
    return body(list);
  };
  for (activation_layer const& layer : layers) {
    if (layer.of.index() == 1) return with_time(std::type_identity<double>{});
  }
  return with_time(std::type_identity<std::int64_t>{});
}

template <class T>
[[nodiscard]] activations_result to_python(omnibal::activations_result<T>&& found) {
  return {.status = convert::to_text(found.status),
          .choices = std::move(found.choices),
          .added_time = py::cast(found.added_time),
          .lower_bound = py::cast(found.lower_bound),
          .proven = found.proven,
          .peak_bytes = found.peak_bytes,
          .offloaded_bytes = found.offloaded_bytes,
          .missing_bytes = found.missing_bytes};
}

[[nodiscard]] omnibal::select_activations_options to_options(std::string const& function,
                                                             std::int64_t in_flight,
                                                             std::string const& effort,
                                                             std::optional<std::int64_t> labels) {
  omnibal::select_activations_options result{.in_flight = in_flight,
                                             .effort = convert::to_effort(function, effort)};
  if (labels) result.labels = convert::count_of(function, "labels", *labels);
  return result;
}

activations_result select_activations(std::vector<activation_layer> const& layers,
                                      std::int64_t budget, double bytes_per_time,
                                      std::int64_t forward_traffic_bytes,
                                      std::int64_t backward_traffic_bytes, std::int64_t in_flight,
                                      std::string const& effort,
                                      std::optional<std::int64_t> labels) {
  omnibal::offload_link const link{bytes_per_time, forward_traffic_bytes, backward_traffic_bytes};
  auto const options = to_options("select_activations", in_flight, effort, labels);
  return with_layers(layers, [&](auto const& list) {
    return to_python(
        released([&] { return omnibal::select_activations(list, budget, link, options); }));
  });
}

std::vector<activations_result> activation_frontier(
    std::vector<activation_layer> const& layers, py::object const& budgets, double bytes_per_time,
    std::int64_t forward_traffic_bytes, std::int64_t backward_traffic_bytes, std::int64_t in_flight,
    std::string const& effort, std::optional<std::int64_t> labels) {
  omnibal::offload_link const link{bytes_per_time, forward_traffic_bytes, backward_traffic_bytes};
  convert::integer_list const limits("activation_frontier", "budgets", budgets);
  auto const options = to_options("activation_frontier", in_flight, effort, labels);
  return with_layers(layers, [&](auto const& list) {
    auto found = released(
        [&] { return omnibal::activation_frontier(list, limits.values(), link, options); });
    std::vector<activations_result> result;
    for (auto& one : found) result.push_back(to_python(std::move(one)));
    return result;
  });
}

[[nodiscard]] choice_lists to_choices(std::string const& function,
                                      std::vector<std::vector<std::string>> const& given) {
  std::vector<std::string> const words(choice_words.begin(), choice_words.end());
  choice_lists result;
  for (auto const& layer : given) {
    std::string const name = "an element of choices[" + std::to_string(result.size()) + "]";
    result.emplace_back();
    for (std::string const& word : layer) {
      result.back().push_back(
          static_cast<omnibal::activation_choice>(convert::word_of(function, name, word, words)));
    }
  }
  return result;
}

[[nodiscard]] std::vector<std::vector<std::string>> to_words(choice_lists const& choices) {
  std::vector<std::vector<std::string>> result;
  for (auto const& layer : choices) {
    result.emplace_back();
    for (auto const choice : layer) {
      result.back().emplace_back(choice_words[static_cast<std::size_t>(choice)]);
    }
  }
  return result;
}

activation_usage measure_activations(std::vector<activation_layer> const& layers,
                                     std::vector<std::vector<std::string>> const& choices,
                                     double bytes_per_time, std::int64_t forward_traffic_bytes,
                                     std::int64_t backward_traffic_bytes, std::int64_t in_flight) {
  omnibal::offload_link const link{bytes_per_time, forward_traffic_bytes, backward_traffic_bytes};
  auto const given = to_choices("measure_activations", choices);
  return with_layers(layers, [&](auto const& list) -> activation_usage {
    auto found = released(
        [&] { return omnibal::measure_activations(list, given, link, {.in_flight = in_flight}); });
    return {py::cast(found.added_time),
            found.peak_bytes,
            found.kept_bytes,
            found.offloaded_bytes,
            found.held_bytes,
            convert::to_array(std::move(found.forward_bytes)),
            convert::to_array(std::move(found.backward_bytes))};
  });
}

[[nodiscard]] py::array bytes_of(activation_layer const& self) {
  return std::visit(
      [](auto const& layer) {
        std::vector<std::int64_t> result;
        for (auto const& module : layer.modules) result.push_back(module.bytes);
        return convert::to_array(std::move(result));
      },
      self.of);
}

[[nodiscard]] py::array times_of(activation_layer const& self) {
  return std::visit(
      [](auto const& layer) -> py::array {
        std::vector<std::decay_t<decltype(layer.forward_time)>> result;
        for (auto const& module : layer.modules) result.push_back(module.recompute_time);
        return convert::to_array(std::move(result));
      },
      self.of);
}

[[nodiscard]] py::array required_modules(activation_layer const& self) {
  return std::visit(
      [](auto const& layer) -> py::array {
        std::vector<std::uint8_t> result;
        for (auto const& module : layer.modules) {
          result.push_back(module.need == omnibal::module_need::required ? 1 : 0);
        }
        return convert::to_array(std::move(result)).attr("astype")("bool");
      },
      self.of);
}

void define_layer(py::module_& module) {
  py::class_<activation_layer> type(module, "ActivationLayer", docstrings::ActivationLayer);
  auto const member = [](auto const& get) {
    return [get](activation_layer const& self) {
      return std::visit([&](auto const& layer) { return py::object(py::cast(get(layer))); },
                        self.of);
    };
  };
  auto const forward_time = member([](auto const& layer) { return layer.forward_time; });
  auto const backward_time = member([](auto const& layer) { return layer.backward_time; });
  auto const forward_transient =
      member([](auto const& layer) { return layer.forward_transient_bytes; });
  auto const backward_transient =
      member([](auto const& layer) { return layer.backward_transient_bytes; });
  auto const forward_traffic =
      member([](auto const& layer) { return layer.forward_traffic_bytes; });
  auto const backward_traffic =
      member([](auto const& layer) { return layer.backward_traffic_bytes; });
  type.def(py::init(&make_layer), py::arg("bytes"), py::arg("recompute_time"),
           py::arg("forward_time"), py::arg("backward_time"), py::kw_only(),
           py::arg("required") = py::none(), py::arg("forward_transient_bytes") = 0,
           py::arg("backward_transient_bytes") = 0, py::arg("forward_traffic_bytes") = 0,
           py::arg("backward_traffic_bytes") = 0, docstrings::ActivationLayer_init)
      .def_property_readonly("bytes", &bytes_of, "The bytes of each module, int64.")
      .def_property_readonly("recompute_time", &times_of,
                             "The time to recompute each module, int64 or float64.")
      .def_property_readonly("required", &required_modules,
                             "True for each module that cannot be recomputed.")
      .def_property_readonly("forward_time", forward_time, "The time of the forward pass.")
      .def_property_readonly("backward_time", backward_time,
                             "The time of the backward pass without recomputation.")
      .def_property_readonly("forward_transient_bytes", forward_transient,
                             "The additional bytes while the forward pass runs.")
      .def_property_readonly("backward_transient_bytes", backward_transient,
                             "The additional bytes while the backward pass runs.")
      .def_property_readonly("forward_traffic_bytes", forward_traffic,
                             "The other bytes that the link sends from this forward pass on.")
      .def_property_readonly("backward_traffic_bytes", backward_traffic,
                             "The other bytes that the link fetches from this backward pass on.")
      .def("__repr__", [](activation_layer const& self) {
        py::object const sum = bytes_of(self).attr("sum")();
        auto const modules = static_cast<std::size_t>(bytes_of(self).size());
        return convert::repr_text("ActivationLayer", {convert::count_text(modules, "module"),
                                                      convert::number_text(sum) + " bytes"});
      });
  convert::add_pickle(
      type, 9,
      [=](activation_layer const& self) {
        return py::make_tuple(bytes_of(self), times_of(self), forward_time(self),
                              backward_time(self), required_modules(self), forward_transient(self),
                              backward_transient(self), forward_traffic(self),
                              backward_traffic(self));
      },
      [](py::tuple const& state) {
        return make_layer(state[0], state[1], state[2], state[3], state[4],
                          state[5].cast<std::int64_t>(), state[6].cast<std::int64_t>(),
                          state[7].cast<std::int64_t>(), state[8].cast<std::int64_t>());
      });
}

void define_result(py::module_& module) {
  py::class_<activations_result> type(module, "ActivationsResult", docstrings::ActivationsResult);
  type.def_readonly("status", &activations_result::status, "'solved' or 'infeasible'.")
      .def_property_readonly(
          "choices", [](activations_result const& self) { return to_words(self.choices); },
          "For each layer a list with 'keep', 'recompute' or 'offload' for each module; empty if "
          "infeasible. Each access makes new lists.")
      .def_readonly("added_time", &activations_result::added_time,
                    "The sum of the recomputation times of the recomputed modules.")
      .def_readonly("lower_bound", &activations_result::lower_bound,
                    "No choices within the budget add less time.")
      .def_readonly("proven", &activations_result::proven,
                    "True if no choices within the budget add less time, or if there are none.")
      .def_readonly("peak_bytes", &activations_result::peak_bytes,
                    "The most bytes on the device; if infeasible, the smallest possible peak.")
      .def_readonly("offloaded_bytes", &activations_result::offloaded_bytes,
                    "The bytes of one micro-batch that are offloaded.")
      .def_readonly("missing_bytes", &activations_result::missing_bytes,
                    "The bytes by which the peak exceeds the budget; 0 unless infeasible.")
      .def("__repr__", [](activations_result const& self) {
        return convert::repr_text(
            "ActivationsResult",
            {self.status,
             convert::bounded_text("added time", self.added_time, self.lower_bound, self.proven),
             "peak " + std::to_string(self.peak_bytes) + " bytes"});
      });
  convert::add_pickle(
      type, 8,
      [](activations_result const& self) {
        return py::make_tuple(self.status, to_words(self.choices), self.added_time,
                              self.lower_bound, self.proven, self.peak_bytes, self.offloaded_bytes,
                              self.missing_bytes);
      },
      [](py::tuple const& state) -> activations_result {
        return {.status = state[0].cast<std::string>(),
                .choices = to_choices("ActivationsResult",
                                      state[1].cast<std::vector<std::vector<std::string>>>()),
                .added_time = state[2],
                .lower_bound = state[3],
                .proven = state[4].cast<bool>(),
                .peak_bytes = state[5].cast<std::int64_t>(),
                .offloaded_bytes = state[6].cast<std::int64_t>(),
                .missing_bytes = state[7].cast<std::int64_t>()};
      });
}

void define_usage(py::module_& module) {
  py::class_<activation_usage> type(module, "ActivationUsage", docstrings::ActivationUsage);
  type.def_readonly("added_time", &activation_usage::added_time,
                    "The sum of the recomputation times of the recomputed modules.")
      .def_readonly("peak_bytes", &activation_usage::peak_bytes, "The most bytes on the device.")
      .def_readonly("kept_bytes", &activation_usage::kept_bytes,
                    "The bytes of one micro-batch that are kept.")
      .def_readonly("offloaded_bytes", &activation_usage::offloaded_bytes,
                    "The bytes of one micro-batch that are offloaded.")
      .def_readonly("held_bytes", &activation_usage::held_bytes,
                    "The bytes of one micro-batch on the device between its passes.")
      .def_readonly("forward_bytes", &activation_usage::forward_bytes,
                    "The most bytes on the device during the forward pass of each layer, int64.")
      .def_readonly("backward_bytes", &activation_usage::backward_bytes,
                    "The most bytes on the device during the backward pass of each layer, int64.")
      .def("__repr__", [](activation_usage const& self) {
        return convert::repr_text("ActivationUsage",
                                  {"added time " + convert::number_text(self.added_time),
                                   "peak " + std::to_string(self.peak_bytes) + " bytes"});
      });
  convert::add_pickle_of(type, &activation_usage::added_time, &activation_usage::peak_bytes,
                         &activation_usage::kept_bytes, &activation_usage::offloaded_bytes,
                         &activation_usage::held_bytes, &activation_usage::forward_bytes,
                         &activation_usage::backward_bytes);
}

}  // namespace

void define(py::module_& module) {
  define_layer(module);
  define_result(module);
  define_usage(module);
  module.def("select_activations", &select_activations, docstrings::select_activations,
             py::arg("layers"), py::arg("budget"), py::arg("bytes_per_time"), py::kw_only(),
             py::arg("forward_traffic_bytes") = 0, py::arg("backward_traffic_bytes") = 0,
             py::arg("in_flight") = 1, py::arg("effort") = "normal",
             py::arg("labels") = py::none());
  module.def("activation_frontier", &activation_frontier, docstrings::activation_frontier,
             py::arg("layers"), py::arg("budgets"), py::arg("bytes_per_time"), py::kw_only(),
             py::arg("forward_traffic_bytes") = 0, py::arg("backward_traffic_bytes") = 0,
             py::arg("in_flight") = 1, py::arg("effort") = "normal",
             py::arg("labels") = py::none());
  module.def("measure_activations", &measure_activations, docstrings::measure_activations,
             py::arg("layers"), py::arg("choices"), py::arg("bytes_per_time"), py::kw_only(),
             py::arg("forward_traffic_bytes") = 0, py::arg("backward_traffic_bytes") = 0,
             py::arg("in_flight") = 1);
}

}  // namespace activations
