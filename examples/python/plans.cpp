// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/activation_option.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/plan_pipeline.hpp>
#include <omnibal/plan/write_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace plans {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::limit_list;
using convert::reject;

/// A plan with times that are integers or numbers.
struct pipeline_plan {
  std::variant<omnibal::pipeline_plan<std::int64_t>, omnibal::pipeline_plan<double>> of;

  template <class Body>
  auto visit(Body const& body) const {
    return std::visit(body, of);
  }
};

}  // namespace plans

namespace pybind11::detail {
template <>
struct type_caster<plans::pipeline_plan> : convert::value_caster<plans::pipeline_plan> {};
}  // namespace pybind11::detail

namespace plans {

namespace {

std::vector<std::uint32_t> indices_of(std::string const& function, std::string const& name,
                                      py::object const& given) {
  return convert::to_indices(function, name,
                             convert::optional_list(function, name, given).values());
}

/// The choices of all layers as lists, and where each layer begins.
struct choice_lists {
  convert::cost_array times;
  integer_list bytes;
  integer_list transient;
  std::vector<std::uint32_t> offsets;
};

/// An array with a row for each layer as one list, and where the layers begin.
py::array flattened(std::string const& function, std::string const& name, py::object const& given,
                    py::object const& offsets) {
  py::array const array = convert::any_array(function, name, given);
  py::ssize_t const wanted = offsets.is_none() ? 2 : 1;
  if (array.ndim() == wanted) return array.attr("ravel")();
  reject(function, name +
                       " must have a row for each layer and a column for each choice; or it is "
                       "a list of all choices, and offsets says where each layer begins");
}

choice_lists to_choices(std::string const& function, py::object const& times,
                        py::object const& bytes, py::object const& transient_bytes,
                        py::object const& offsets) {
  py::array const time_array = flattened(function, "times", times, offsets);
  py::array const byte_array = flattened(function, "bytes", bytes, offsets);
  std::vector<std::uint32_t> places;
  if (offsets.is_none()) {
    auto const rows = static_cast<py::ssize_t>(py::len(times));
    for (py::ssize_t layer = 0; layer <= rows; ++layer) {
      places.push_back(
          static_cast<std::uint32_t>(rows == 0 ? 0 : layer * (time_array.size() / rows)));
    }
  } else {
    places = indices_of(function, "offsets", offsets);
  }
  py::object transient = py::list();
  if (!transient_bytes.is_none()) {
    transient = flattened(function, "transient_bytes", transient_bytes, offsets);
  }
  bool const agrees = time_array.size() == byte_array.size() &&
                      (transient_bytes.is_none() ||
                       static_cast<py::ssize_t>(py::len(transient)) == time_array.size());
  if (!agrees) {
    reject(function, "times, bytes and transient_bytes must have as many numbers, but times have " +
                         std::to_string(time_array.size()) + " and bytes have " +
                         std::to_string(byte_array.size()));
  }
  bool is_whole = !places.empty() && places.front() == 0 &&
                  places.back() == static_cast<std::size_t>(time_array.size());
  for (std::size_t l = 1; l < places.size(); ++l) is_whole &= places[l - 1] <= places[l];
  if (!is_whole) {
    reject(function, "offsets must start with 0, not decrease and end with " +
                         std::to_string(time_array.size()));
  }
  return {convert::cost_array(function, "times", time_array),
          integer_list(function, "bytes", byte_array),
          integer_list(function, "transient_bytes", transient), std::move(places)};
}

template <class Times>
auto to_layers(choice_lists const& given, Times times, arrays::integers state_bytes) {
  using time = std::remove_cv_t<typename Times::element_type>;
  auto const bytes = given.bytes.values();
  auto const transient = given.transient.values();
  std::vector<omnibal::plan_layer<time>> result;
  for (std::size_t layer = 0; layer + 1 < given.offsets.size(); ++layer) {
    omnibal::plan_layer<time> next;
    for (std::uint32_t i = given.offsets[layer]; i != given.offsets[layer + 1]; ++i) {
      next.choices.push_back({times[i], bytes[i], transient.empty() ? 0 : transient[i]});
    }
    next.state_bytes = state_bytes.empty() ? 0 : state_bytes[layer];
    result.push_back(std::move(next));
  }
  return result;
}

pipeline_plan plan_pipeline(py::object const& times, py::object const& bytes, std::int64_t stages,
                            std::int64_t micro_batches, py::object const& memory,
                            py::object const& offsets, py::object const& transient_bytes,
                            py::object const& state_bytes, py::object const& reserve_bytes,
                            py::object const& in_flight, py::object const& min_layers,
                            py::object const& max_layers, py::object const& forbidden_cuts,
                            bool allow_empty, double max_gap, std::string const& effort) {
  std::string const name = "plan_pipeline";
  auto const choices = to_choices(name, times, bytes, transient_bytes, offsets);
  integer_list const states = convert::optional_list(name, "state_bytes", state_bytes);
  std::size_t const layers = choices.offsets.size() - 1;
  if (!states.values().empty() && states.values().size() != layers) {
    reject(name, "state_bytes have " + std::to_string(states.values().size()) +
                     " elements, must have " + std::to_string(layers) + ", one for each layer");
  }
  auto const list = [&](char const* argument, py::object const& given) {
    return omnibal::weight_list<std::int64_t>(limit_list(name, argument, given).values());
  };
  omnibal::pipeline_machine machine;
  machine.stages = count_of(name, "stages", stages);
  machine.memory_bytes = list("memory", memory);
  machine.reserve_bytes = list("reserve_bytes", reserve_bytes);
  omnibal::plan_pipeline_options options;
  options.micro_batches = count_of(name, "micro_batches", micro_batches);
  if (!in_flight.is_none()) options.in_flight = list("in_flight", in_flight);
  if (!min_layers.is_none()) options.constraints.min_layers = list("min_layers", min_layers);
  if (!max_layers.is_none()) options.constraints.max_layers = list("max_layers", max_layers);
  options.constraints.forbidden_cuts = indices_of(name, "forbidden_cuts", forbidden_cuts);
  if (allow_empty) options.constraints.empty = omnibal::empty_stages::allowed;
  options.max_gap = max_gap;
  options.effort = convert::to_effort(name, effort);
  return std::visit(
      [&](auto given) -> pipeline_plan {
        auto const model = to_layers(choices, given, states.values());
        return {convert::released([&] { return omnibal::plan_pipeline(model, machine, options); })};
      },
      choices.times.list());
}

/// One member of all stages.
template <class Member>
py::array column(pipeline_plan const& self, Member const& member) {
  return self.visit([&](auto const& plan) -> py::array {
    using value = std::remove_cvref_t<decltype(member(plan.stages[0]))>;
    std::vector<value> result;
    for (auto const& stage : plan.stages) result.push_back(member(stage));
    return convert::to_array(std::move(result));
  });
}

std::string json_of(pipeline_plan const& self) {
  std::string text;
  self.visit([&](auto const& plan) { omnibal::write_plan(plan, std::back_inserter(text)); });
  return text;
}

std::string megatron_layout(pipeline_plan const& self, std::string const& letters) {
  std::string text;
  self.visit([&](auto const& plan) {
    std::size_t const layers = plan.boundaries.empty() ? 0 : plan.boundaries.back();
    if (letters.size() != layers) {
      reject("write_megatron_layout", "letters has " + std::to_string(letters.size()) +
                                          " letters, must have " + std::to_string(layers) +
                                          ", one for each layer");
    }
    omnibal::write_megatron_layout(
        plan, [&](std::uint32_t layer) { return letters[layer]; }, std::back_inserter(text));
  });
  return text;
}

results::groups recompute_lists(pipeline_plan const& self, std::int64_t choice) {
  std::size_t const given = count_of("recompute_lists", "choice", choice);
  if (given > UINT32_MAX) reject("recompute_lists", "choice is too large");
  return self.visit([&](auto const& plan) {
    return results::to_groups(omnibal::recompute_lists(plan, static_cast<std::uint32_t>(given)));
  });
}

std::string to_repr(pipeline_plan const& self) {
  return self.visit([](auto const& plan) {
    if (plan.status != omnibal::solve_status::solved) {
      return convert::repr_text(
          "PipelinePlan",
          {convert::to_text(plan.status), std::to_string(plan.missing_bytes) + " bytes missing"});
    }
    return convert::repr_text(
        "PipelinePlan",
        {convert::to_text(plan.status), convert::count_text(plan.stages.size(), "stage"),
         convert::bounded_text("step time", py::cast(plan.step_time), py::cast(plan.lower_bound),
                               plan.proven)});
  });
}

template <class Time>
py::tuple to_tuple(omnibal::pipeline_plan<Time> const& plan) {
  py::list stages;
  for (auto const& stage : plan.stages) {
    stages.append(py::make_tuple(stage.time, stage.bytes, stage.in_flight));
  }
  return py::make_tuple(static_cast<int>(plan.status), plan.boundaries, plan.choices, stages,
                        plan.step_time, plan.lower_bound, plan.proven, plan.stage,
                        plan.missing_bytes);
}

template <class Time>
omnibal::pipeline_plan<Time> to_plan(py::tuple const& state) {
  omnibal::pipeline_plan<Time> result;
  result.status = static_cast<omnibal::solve_status>(state[0].cast<int>());
  result.boundaries = state[1].cast<std::vector<std::uint32_t>>();
  result.choices = state[2].cast<std::vector<std::uint32_t>>();
  for (py::handle const given : state[3]) {
    auto const stage = py::reinterpret_borrow<py::tuple>(given);
    result.stages.push_back(
        {stage[0].cast<Time>(), stage[1].cast<std::int64_t>(), stage[2].cast<std::int64_t>()});
  }
  result.step_time = state[4].cast<Time>();
  result.lower_bound = state[5].cast<Time>();
  result.proven = state[6].cast<bool>();
  result.stage = state[7].cast<std::uint32_t>();
  result.missing_bytes = state[8].cast<std::int64_t>();
  return result;
}

void define_plan(py::module_& module) {
  py::class_<pipeline_plan> type(module, "PipelinePlan", docstrings::PipelinePlan);
  type.def_property_readonly(
          "status",
          [](pipeline_plan const& self) {
            return self.visit([](auto const& plan) { return convert::to_text(plan.status); });
          },
          "'solved', or 'infeasible' if no plan fits the memory.")
      .def_property_readonly(
          "boundaries",
          [](pipeline_plan const& self) {
            return self.visit(
                [](auto plan) { return convert::to_array(std::move(plan.boundaries)); });
          },
          "Stage s has the layers boundaries[s] to boundaries[s + 1], uint32.")
      .def_property_readonly(
          "choices",
          [](pipeline_plan const& self) {
            return self.visit([](auto plan) { return convert::to_array(std::move(plan.choices)); });
          },
          "The number of the choice of each layer, uint32.")
      .def_property_readonly(
          "stage_times",
          [](pipeline_plan const& self) {
            return column(self, [](auto const& stage) { return stage.time; });
          },
          "The time of a micro-batch on each stage.")
      .def_property_readonly(
          "stage_bytes",
          [](pipeline_plan const& self) {
            return column(self, [](auto const& stage) { return stage.bytes; });
          },
          "The most bytes that each stage uses, with the reserve, int64.")
      .def_property_readonly(
          "in_flight",
          [](pipeline_plan const& self) {
            return column(self, [](auto const& stage) { return stage.in_flight; });
          },
          "The most micro-batches whose activations each stage keeps, int64.")
      .def_property_readonly(
          "step_time",
          [](pipeline_plan const& self) {
            return self.visit(
                [](auto const& plan) { return py::object(py::cast(plan.step_time)); });
          },
          "The time of a step.")
      .def_property_readonly(
          "lower_bound",
          [](pipeline_plan const& self) {
            return self.visit(
                [](auto const& plan) { return py::object(py::cast(plan.lower_bound)); });
          },
          "No plan within the memory has a shorter step.")
      .def_property_readonly(
          "proven",
          [](pipeline_plan const& self) {
            return self.visit([](auto const& plan) { return plan.proven; });
          },
          "True if no plan has a shorter step.")
      .def_property_readonly(
          "stage",
          [](pipeline_plan const& self) {
            return self.visit([](auto const& plan) { return plan.stage; });
          },
          "If infeasible, the stage that lacks most.")
      .def_property_readonly(
          "missing_bytes",
          [](pipeline_plan const& self) {
            return self.visit([](auto const& plan) { return plan.missing_bytes; });
          },
          "If infeasible, the bytes that the memory of every stage lacks.")
      .def("recompute_lists", &recompute_lists, py::arg("choice"),
           docstrings::PipelinePlan_recompute_lists)
      .def("to_json", &json_of, docstrings::PipelinePlan_to_json)
      .def("megatron_layout", &megatron_layout, py::arg("letters"),
           docstrings::PipelinePlan_megatron_layout)
      .def("__repr__", &to_repr);
  convert::add_pickle(
      type, 2,
      [](pipeline_plan const& self) {
        return py::make_tuple(self.of.index() == 0,
                              self.visit([](auto const& plan) { return to_tuple(plan); }));
      },
      [](py::tuple const& state) -> pipeline_plan {
        auto const members = state[1].cast<py::tuple>();
        if (members.size() != 9) reject("pickle", "the state has another number of elements");
        if (state[0].cast<bool>()) return {to_plan<std::int64_t>(members)};
        return {to_plan<double>(members)};
      });
}

}  // namespace

void define(py::module_& module) {
  define_plan(module);
  module.def("plan_pipeline", &plan_pipeline, docstrings::plan_pipeline, py::arg("times"),
             py::arg("bytes"), py::arg("stages"), py::arg("micro_batches"), py::arg("memory"),
             py::kw_only(), py::arg("offsets") = py::none(),
             py::arg("transient_bytes") = py::none(), py::arg("state_bytes") = py::none(),
             py::arg("reserve_bytes") = 0, py::arg("in_flight") = py::none(),
             py::arg("min_layers") = py::none(), py::arg("max_layers") = py::none(),
             py::arg("forbidden_cuts") = py::none(), py::arg("allow_empty") = false,
             py::arg("max_gap") = 0.0001, py::arg("effort") = "normal");
}

}  // namespace plans
