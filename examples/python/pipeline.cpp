// SPDX-License-Identifier: Apache-2.0
#include "pipeline.hpp"

#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/list_schedule.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/order_micro_batches.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/pipeline/sliced_1f1b.hpp>
#include <omnibal/pipeline/write_schedule.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace pipeline {

namespace py = pybind11;
using convert::count_of;
using convert::reject;
using convert::released;
using omnibal::chunk_layout;

namespace {

struct micro_batch_order {
  py::array order;
  py::object makespan;
  py::object given_makespan;
  py::object lower_bound;
};

struct simulation {
  py::object makespan;
  double bubble_share;
  py::array busy;
  py::array peak_bytes;
  py::object timeline;
};

}  // namespace

}  // namespace pipeline

namespace pybind11::detail {
template <>
struct type_caster<pipeline::micro_batch_order>
    : convert::value_caster<pipeline::micro_batch_order> {};
template <>
struct type_caster<pipeline::simulation> : convert::value_caster<pipeline::simulation> {};
}  // namespace pybind11::detail

namespace pipeline {

namespace {

micro_batch_order order_micro_batches(
    py::object const& forward, py::object const& backward, std::int64_t stages,
    std::optional<std::int64_t> micro_batches, py::object const& weight, py::object const& transfer,
    py::object const& schedule, std::optional<std::int64_t> chunks, std::int64_t simulations) {
  std::string const name = "order_micro_batches";
  step_arguments const step(name, forward, backward, weight, transfer, py::none());
  scheduled const given = to_schedule(name, step, schedule, stages, micro_batches, chunks);
  omnibal::order_micro_batches_options const options{
      .simulations = count_of(name, "simulations", simulations)};
  return with_tables(step, given.layout, [&](auto const& tables) {
    return std::visit(
        [&](auto const& of) -> micro_batch_order {
          check_weight<std::remove_cvref_t<decltype(of)>>(name, step);
          auto found = released([&] {
            return with_name(name, [&] {
              return omnibal::order_micro_batches(of, tables.times(), tables.transfer, options);
            });
          });
          return {convert::to_array(std::move(found.order)), py::cast(found.makespan),
                  py::cast(found.given_makespan), py::cast(found.lower_bound)};
        },
        given.schedule);
  });
}

py::array largest_in_middle(py::object const& costs) {
  convert::cost_array const list("largest_in_middle", "costs", costs);
  return convert::to_array(released([&] {
    return std::visit([](auto const& numbers) { return omnibal::largest_in_middle(numbers); },
                      list.list());
  }));
}

/// Returns the schedule 'sliced_1f1b', or none if the schedule is another one.
[[nodiscard]] std::optional<omnibal::sliced_1f1b> sliced_of(
    std::string const& function, py::object const& schedule, py::object const& slices,
    std::int64_t stages, std::optional<std::int64_t> micro_batches,
    std::optional<std::int64_t> chunks) {
  bool const is_sliced =
      py::isinstance<py::str>(schedule) && schedule.cast<std::string>() == sliced_name;
  if (is_sliced == slices.is_none()) {
    reject(function, is_sliced ? "slices is None, must be given with the schedule 'sliced_1f1b'"
                               : "slices is given, which requires the schedule 'sliced_1f1b'");
  }
  if (!is_sliced) return std::nullopt;
  auto const counts = convert::to_indices(
      function, "slices", convert::integer_list(function, "slices", slices).values());
  if (counts.empty()) reject(function, "slices is empty, must have a number for each sequence");
  for (std::size_t i = 0; i != counts.size(); ++i) {
    if (counts[i] == 0)
      reject(function, "slices[" + std::to_string(i) + "] is 0, must be positive");
  }
  omnibal::sliced_1f1b result(count_of(function, "stages", stages), counts);
  if (micro_batches) {
    check_equal(function, "micro_batches", count_of(function, "micro_batches", *micro_batches),
                result.micro_batches, "the sum of slices");
  }
  if (chunks) {
    check_equal(function, "chunks", count_of(function, "chunks", *chunks), 1,
                "the schedule 'sliced_1f1b'");
  }
  return result;
}

simulation simulate_pipeline(py::object const& forward, py::object const& backward,
                             std::int64_t stages, std::optional<std::int64_t> micro_batches,
                             py::object const& weight, py::object const& transfer,
                             py::object const& bytes, py::object const& schedule,
                             std::optional<std::int64_t> chunks, py::object const& slices,
                             std::string const& timeline) {
  std::string const name = "simulate_pipeline";
  omnibal::simulate_pipeline_options const options{
      .timeline = static_cast<omnibal::timeline_policy>(
          convert::word_of(name, "timeline", timeline, {"none", "recorded"}))};
  bool const is_recorded = options.timeline == omnibal::timeline_policy::recorded;
  step_arguments const step(name, forward, backward, weight, transfer, bytes);
  auto const simulated = [&](auto const& of, auto const& tables) -> simulation {
    check_weight<std::remove_cvref_t<decltype(of)>>(name, step);
    auto found = released([&] {
      return omnibal::simulate_pipeline(of, tables.times(), tables.transfer, tables.bytes, options);
    });
    return {py::cast(found.makespan), found.bubble_share, convert::to_array(std::move(found.busy)),
            convert::to_array(std::move(found.peak_bytes)),
            is_recorded ? py::object(to_timeline(found.timeline)) : py::none()};
  };
  if (auto const sliced = sliced_of(name, schedule, slices, stages, micro_batches, chunks)) {
    chunk_layout const layout{.stages = sliced->stages, .micro_batches = sliced->micro_batches};
    return with_tables(step, layout,
                       [&](auto const& tables) { return simulated(*sliced, tables); });
  }
  scheduled const given = to_schedule(name, step, schedule, stages, micro_batches, chunks);
  return with_tables(step, given.layout, [&](auto const& tables) {
    return std::visit([&](auto const& of) { return simulated(of, tables); }, given.schedule);
  });
}

constexpr std::array<char const*, 3> placements{"looped", "v_shape", "bidirectional"};

[[nodiscard]] omnibal::chunk_placement to_placement(std::string const& function,
                                                    std::string const& placement) {
  for (std::size_t i = 0; i != placements.size(); ++i) {
    if (placement == placements[i]) return static_cast<omnibal::chunk_placement>(i);
  }
  reject(function, "placement is '" + placement + "', must be looped, v_shape or bidirectional");
}

/// Returns the most activation bytes of each stage; none without a limit.
[[nodiscard]] std::vector<std::int64_t> memory_of(py::object const& memory, bool has_bytes,
                                                  std::size_t stages) {
  std::string const name = "list_schedule";
  if (memory.is_none()) return {};
  if (!has_bytes) {
    reject(name, "memory is given, but bytes is None: every micro-batch has 0 bytes");
  }
  py::array const given = convert::any_array(name, "memory", memory);
  if (given.ndim() > 1) {
    reject(name, "memory has " + std::to_string(given.ndim()) +
                     " dimensions, must be a number, or one for each stage");
  }
  auto const numbers = convert::as_integers(name, "memory", given);
  if (given.ndim() == 0) return std::vector<std::int64_t>(stages, *numbers.data());
  if (static_cast<std::size_t>(given.size()) != stages) {
    reject(name, "memory has " + std::to_string(given.size()) + " elements, must have " +
                     std::to_string(stages) + ", one for each stage");
  }
  return {numbers.data(), numbers.data() + numbers.size()};
}

listed_schedule list_schedule(py::object const& forward, py::object const& backward,
                              std::int64_t stages, std::optional<std::int64_t> micro_batches,
                              py::object const& weight, py::object const& transfer,
                              py::object const& bytes, py::object const& memory,
                              std::int64_t chunks, std::string const& placement,
                              std::string const& objective) {
  std::string const name = "list_schedule";
  step_arguments const step(name, forward, backward, weight, transfer, bytes);
  chunk_layout const layout{.stages = count_of(name, "stages", stages),
                            .micro_batches = step.micro_batches(name, micro_batches),
                            .chunks = count_of(name, "chunks", chunks),
                            .placement = to_placement(name, placement)};
  layout.check(name);
  if (objective != "makespan" && objective != "longest_stage") {
    reject(name, "objective is '" + objective + "', must be makespan or longest_stage");
  }
  omnibal::list_schedule_options const options{
      .objective = objective == "makespan" ? omnibal::list_objective::makespan
                                           : omnibal::list_objective::longest_stage};
  auto const limits = memory_of(memory, !bytes.is_none(), layout.stages);
  return with_tables(step, layout, [&](auto const& tables) {
    auto const found_by = [&](auto const& times) -> listed_schedule {
      auto found = released([&] {
        return omnibal::list_schedule(layout, times, tables.transfer, tables.bytes, limits,
                                      options);
      });
      return {std::move(found.schedule), objective, py::cast(found.makespan),
              py::cast(found.longest_stage), py::cast(found.lower_bound)};
    };
    return step.weight ? found_by(tables.times()) : found_by(tables.whole_times());
  });
}

/// Returns for each stage a list of (kind, chunk, micro_batch).
[[nodiscard]] py::list operations_of(listed_schedule const& self) {
  std::array<py::str, 3> const names{kinds[0], kinds[1], kinds[2]};
  py::list result;
  std::visit(
      [&](auto const& schedule) {
        for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
          py::list row;
          for (auto const& [kind, chunk, micro_batch] : schedule.operations(stage)) {
            row.append(py::make_tuple(names[static_cast<std::size_t>(kind)], chunk, micro_batch));
          }
          result.append(row);
        }
      },
      self.schedule);
  return result;
}

[[nodiscard]] omnibal::operation_lists to_lists(py::handle given) {
  omnibal::operation_lists result;
  for (py::handle const row : given) {
    result.emplace_back();
    for (py::handle const operation : row) {
      auto const [kind, chunk, micro_batch] =
          operation.cast<std::tuple<std::string, std::uint32_t, std::uint32_t>>();
      auto const number = kind == kinds[0] ? 0 : kind == kinds[1] ? 1 : 2;
      result.back().push_back({static_cast<omnibal::operation_kind>(number), chunk, micro_batch});
    }
  }
  return result;
}

[[nodiscard]] std::string csv_of(listed_schedule const& self) {
  std::string text;
  std::visit(
      [&](auto const& schedule) { omnibal::write_schedule(schedule, std::back_inserter(text)); },
      self.schedule);
  return text;
}

void write_csv(listed_schedule const& self, py::object const& path) {
  std::string const text = csv_of(self);
  py::object const file =
      py::module_::import("io").attr("open")(path, "w", py::arg("newline") = "\n");
  try {
    file.attr("write")(text);
  } catch (...) {
    file.attr("close")();
    throw;
  }
  file.attr("close")();
}

[[nodiscard]] char const* placement_of(listed_schedule const& self) {
  return placements[static_cast<std::size_t>(self.layout().placement)];
}

[[nodiscard]] std::string to_repr(listed_schedule const& self) {
  bool const is_makespan = self.objective == "makespan";
  py::object const& value = is_makespan ? self.makespan : self.longest_stage;
  std::size_t const batches = self.layout().micro_batches;
  return convert::repr_text(
      "ListedSchedule",
      {convert::count_text(self.layout().stages, "stage"),
       self.layout().chunks == 1 ? "" : convert::count_text(self.layout().chunks, "chunk"),
       std::to_string(batches) + (batches == 1 ? " micro-batch" : " micro-batches"),
       convert::bounded_text(is_makespan ? "makespan" : "longest stage", value, self.lower_bound,
                             value.equal(self.lower_bound))});
}

[[nodiscard]] std::string to_repr(micro_batch_order const& self) {
  return convert::repr_text("MicroBatchOrder",
                            {"makespan " + convert::number_text(self.makespan) + " instead of " +
                                 convert::number_text(self.given_makespan),
                             "at least " + convert::number_text(self.lower_bound),
                             self.makespan.equal(self.lower_bound) ? "proven" : ""});
}

[[nodiscard]] std::string to_repr(simulation const& self) {
  return convert::repr_text(
      "Simulation", {"makespan " + convert::number_text(self.makespan),
                     "bubble share " + convert::number_text(py::float_(self.bubble_share))});
}

/// Lets a schedule be pickled: its sizes and operations, which are checked again.
void add_pickle(py::class_<listed_schedule>& type) {
  convert::add_pickle(
      type, 9,
      [](listed_schedule const& self) {
        chunk_layout const& layout = self.layout();
        return py::make_tuple(layout.stages, layout.micro_batches, layout.chunks,
                              placement_of(self), self.splits_backward(), operations_of(self),
                              self.objective, py::make_tuple(self.makespan, self.longest_stage),
                              self.lower_bound);
      },
      [](py::tuple const& state) -> listed_schedule {
        chunk_layout const layout{
            .stages = state[0].cast<std::size_t>(),
            .micro_batches = state[1].cast<std::size_t>(),
            .chunks = state[2].cast<std::size_t>(),
            .placement = to_placement("ListedSchedule", state[3].cast<std::string>())};
        auto const lists = to_lists(state[5]);
        listed schedule;
        if (state[4].cast<bool>()) {
          schedule = omnibal::listed_schedule<true>(layout, lists);
        } else {
          schedule = omnibal::listed_schedule<false>(layout, lists);
        }
        auto const times = state[7].cast<py::tuple>();
        return {std::move(schedule), state[6].cast<std::string>(), times[0], times[1], state[8]};
      });
}

void define_results(py::module_& module) {
  py::class_<listed_schedule> listed_type(module, "ListedSchedule", docstrings::ListedSchedule);
  listed_type
      .def_property_readonly(
          "stages", [](listed_schedule const& self) { return self.layout().stages; },
          "The number of stages, which PyTorch calls ranks.")
      .def_property_readonly(
          "micro_batches", [](listed_schedule const& self) { return self.layout().micro_batches; },
          "The number of micro-batches of the step.")
      .def_property_readonly(
          "chunks", [](listed_schedule const& self) { return self.layout().chunks; },
          "The chunks of the model on each stage.")
      .def_property_readonly("placement", &placement_of, "'looped', 'v_shape' or 'bidirectional'.")
      .def_property_readonly("splits_backward", &listed_schedule::splits_backward,
                             "True if the gradients of the weights are operations of their own.")
      .def_property_readonly(
          "operations", &operations_of,
          "For each stage a list of (kind, chunk, micro_batch) in the order in which it runs "
          "them; kind is 'forward', 'backward' or 'weight'. Each access makes new lists.")
      .def_readonly("objective", &listed_schedule::objective, "'makespan' or 'longest_stage'.")
      .def_readonly("makespan", &listed_schedule::makespan, "The end of the last operation.")
      .def_readonly("longest_stage", &listed_schedule::longest_stage,
                    "The longest time from the first operation of a stage to its last one.")
      .def_readonly("lower_bound", &listed_schedule::lower_bound,
                    "No order of the operations within the memory has a smaller objective.")
      .def("to_csv", &csv_of, docstrings::ListedSchedule_to_csv)
      .def("write_csv", &write_csv, py::arg("path"), docstrings::ListedSchedule_write_csv)
      .def("__repr__", [](listed_schedule const& self) { return to_repr(self); });
  add_pickle(listed_type);
  py::class_<micro_batch_order> order_type(module, "MicroBatchOrder", docstrings::MicroBatchOrder);
  order_type
      .def_readonly("order", &micro_batch_order::order,
                    "For each place of the schedule the micro-batch that runs there, uint32.")
      .def_readonly("makespan", &micro_batch_order::makespan, "The time of the step in this order.")
      .def_readonly("given_makespan", &micro_batch_order::given_makespan,
                    "The time of the step in the given order.")
      .def_readonly("lower_bound", &micro_batch_order::lower_bound,
                    "No order of the micro-batches has a shorter step.")
      .def("__repr__", [](micro_batch_order const& self) { return to_repr(self); });
  convert::add_pickle_of(order_type, &micro_batch_order::order, &micro_batch_order::makespan,
                         &micro_batch_order::given_makespan, &micro_batch_order::lower_bound);
  py::class_<simulation> simulation_type(module, "Simulation", docstrings::Simulation);
  simulation_type.def_readonly("makespan", &simulation::makespan, "The end of the last operation.")
      .def_readonly("bubble_share", &simulation::bubble_share,
                    "The share of the time of all stages that they are idle.")
      .def_readonly("busy", &simulation::busy, "The time that each stage works.")
      .def_readonly("peak_bytes", &simulation::peak_bytes,
                    "The most activation bytes that each stage keeps at once, int64.")
      .def_readonly("timeline", &simulation::timeline,
                    "All operations, an array with the fields kind, stage, chunk, micro_batch, "
                    "begin and end, ordered by stage; None unless it is recorded.")
      .def("__repr__", [](simulation const& self) { return to_repr(self); });
  convert::add_pickle_of(simulation_type, &simulation::makespan, &simulation::bubble_share,
                         &simulation::busy, &simulation::peak_bytes, &simulation::timeline);
}

}  // namespace

void define(py::module_& module) {
  define_results(module);
  module.def("simulate_pipeline", &simulate_pipeline, docstrings::simulate_pipeline,
             py::arg("forward"), py::arg("backward"), py::arg("stages"),
             py::arg("micro_batches") = py::none(), py::kw_only(), py::arg("weight") = py::none(),
             py::arg("transfer") = 0, py::arg("bytes") = py::none(), py::arg("schedule") = "1f1b",
             py::arg("chunks") = py::none(), py::arg("slices") = py::none(),
             py::arg("timeline") = "none");
  module.def("order_micro_batches", &order_micro_batches, docstrings::order_micro_batches,
             py::arg("forward"), py::arg("backward"), py::arg("stages"),
             py::arg("micro_batches") = py::none(), py::kw_only(), py::arg("weight") = py::none(),
             py::arg("transfer") = 0, py::arg("schedule") = "1f1b", py::arg("chunks") = py::none(),
             py::arg("simulations") = 1000);
  module.def("largest_in_middle", &largest_in_middle, docstrings::largest_in_middle,
             py::arg("costs"));
  module.def("list_schedule", &list_schedule, docstrings::list_schedule, py::arg("forward"),
             py::arg("backward"), py::arg("stages"), py::arg("micro_batches") = py::none(),
             py::kw_only(), py::arg("weight") = py::none(), py::arg("transfer") = 0,
             py::arg("bytes") = py::none(), py::arg("memory") = py::none(), py::arg("chunks") = 1,
             py::arg("placement") = "looped", py::arg("objective") = "makespan");
}

}  // namespace pipeline
