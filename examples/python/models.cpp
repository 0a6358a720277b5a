// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/cost/device_model.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/models.hpp>
#include <omnibal/plan/pipeline_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace models {

namespace py = pybind11;
using convert::integer_list;

namespace {

model make(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t mlp,
           std::int64_t vocabulary, std::int64_t kv_heads, std::int64_t head_size, bool gated,
           bool tied, std::optional<std::int64_t> window, std::optional<expert_numbers> experts,
           std::int64_t dense_layers) {
  model const result{layers,    hidden, heads, mlp,    vocabulary, kv_heads,
                     head_size, gated,  tied,  window, experts,    dense_layers};
  std::string const name = "language_model";
  if (dense_layers < 0 || dense_layers > layers) {
    convert::reject(name, "dense_layers is " + std::to_string(dense_layers) +
                              ", must be from 0 to the layers, " + std::to_string(layers));
  }
  if (dense_layers != 0 && !experts) {
    convert::reject(name, "dense_layers is " + std::to_string(dense_layers) +
                              ", but experts is None: all layers are dense");
  }
  // Numbers that are wrong are errors here instead of in every call.
  static_cast<void>(omnibal::count_parameters(result.of()));
  static_cast<void>(omnibal::document_cost(result.of()));
  return result;
}

py::array document_cost(model const& self, py::object const& lengths) {
  integer_list const list("document_cost", "lengths", lengths);
  auto const cost = omnibal::document_cost(self.of());
  std::vector<std::int64_t> result;
  for (std::int64_t const length : list.values()) result.push_back(cost(length));
  return convert::to_array(std::move(result));
}

/// One number of each choice of each layer, as an array with a row for each layer.
template <class Member>
py::array rows_of(std::vector<omnibal::plan_layer<>> const& layers, Member const& member) {
  std::vector<std::int64_t> result;
  for (auto const& layer : layers) {
    for (auto const& choice : layer.choices) result.push_back(std::invoke(member, choice));
  }
  return convert::to_array(std::move(result)).attr("reshape")(layers.size(), -1);
}

template <class Member>
py::array column_of(std::vector<omnibal::layer_cost> const& costs, Member const& member) {
  std::vector<std::int64_t> result;
  for (auto const& cost : costs) result.push_back(std::invoke(member, cost));
  return convert::to_array(std::move(result));
}

py::dict layer_costs(model const& self, py::object const& lengths, std::int64_t flops_per_second,
                     std::optional<std::int64_t> bytes_per_second, std::int64_t tensor,
                     std::int64_t sequence, std::int64_t data, std::int64_t expert,
                     std::int64_t pipeline) {
  integer_list const list("layer_costs", "lengths", lengths);
  auto const of = self.of();
  auto const spans = omnibal::attention_spans(of);
  omnibal::micro_batch_work const work{
      .documents = omnibal::sequences_of(list.values(), std::identity{}, spans)};
  omnibal::parallel_degrees const degrees{
      .tensor = tensor, .sequence = sequence, .data = data, .expert = expert, .pipeline = pipeline};
  omnibal::device_model device{.flops_per_second = flops_per_second};
  if (bytes_per_second) device.bytes_per_second = *bytes_per_second;
  auto const costs = omnibal::layer_costs(of, work, degrees);
  auto const layers = omnibal::timed_layers(costs, device);
  using choice = omnibal::activation_option<>;
  py::dict result;
  result["times"] = rows_of(layers, &choice::time);
  result["bytes"] = rows_of(layers, &choice::bytes);
  result["transient_bytes"] = rows_of(layers, &choice::transient_bytes);
  result["state_bytes"] = column_of(costs, &omnibal::layer_cost::state_bytes);
  result["flops"] = column_of(costs, &omnibal::layer_cost::flops);
  result["cut_bytes"] = column_of(costs, &omnibal::layer_cost::cut_bytes);
  return result;
}

py::tuple to_tuple(model const& self) {
  return py::make_tuple(self.layers, self.hidden, self.heads, self.mlp, self.vocabulary,
                        self.kv_heads, self.head_size, self.gated, self.tied, self.window,
                        self.experts, self.dense_layers);
}

}  // namespace

void define(py::module_& module) {
  py::class_<model> type(module, "LanguageModel", docstrings::LanguageModel);
  type.def(py::init(&make), py::arg("layers"), py::arg("hidden"), py::arg("heads"), py::arg("mlp"),
           py::arg("vocabulary"), py::kw_only(), py::arg("kv_heads") = 0, py::arg("head_size") = 0,
           py::arg("gated") = true, py::arg("tied") = false, py::arg("window") = py::none(),
           py::arg("experts") = py::none(), py::arg("dense_layers") = 0,
           docstrings::LanguageModel_init)
      .def_property_readonly(
          "parameters",
          [](model const& self) { return omnibal::count_parameters(self.of()).total; },
          "The number of parameters.")
      .def_property_readonly(
          "active_parameters",
          [](model const& self) { return omnibal::count_parameters(self.of()).active; },
          "The number of parameters that one token uses.")
      .def("document_cost", &document_cost, py::arg("lengths"),
           docstrings::LanguageModel_document_cost)
      .def("layer_costs", &layer_costs, py::arg("lengths"), py::arg("flops_per_second"),
           py::arg("bytes_per_second") = py::none(), py::kw_only(), py::arg("tensor") = 1,
           py::arg("sequence") = 1, py::arg("data") = 1, py::arg("expert") = 1,
           py::arg("pipeline") = 1, docstrings::LanguageModel_layer_costs)
      .def("__repr__", [](model const& self) {
        auto const total = omnibal::count_parameters(self.of()).total;
        return convert::repr_text(
            "LanguageModel", {convert::count_text(static_cast<std::size_t>(self.layers), "layer"),
                              convert::count_text(static_cast<std::size_t>(total), "parameter")});
      });
  convert::add_pickle(type, 12, &to_tuple, [](py::tuple const& state) {
    return make(state[0].cast<std::int64_t>(), state[1].cast<std::int64_t>(),
                state[2].cast<std::int64_t>(), state[3].cast<std::int64_t>(),
                state[4].cast<std::int64_t>(), state[5].cast<std::int64_t>(),
                state[6].cast<std::int64_t>(), state[7].cast<bool>(), state[8].cast<bool>(),
                state[9].cast<std::optional<std::int64_t>>(),
                state[10].cast<std::optional<expert_numbers>>(), state[11].cast<std::int64_t>());
  });
}

}  // namespace models
