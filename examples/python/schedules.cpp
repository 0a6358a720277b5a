// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "pipeline.hpp"

#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/write_trace.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace schedules {

namespace py = pybind11;
using convert::reject;
using convert::released;

namespace {

/// Returns the schedule of a word with its sizes, or of a `ListedSchedule`, which has them.
[[nodiscard]] pipeline::scheduled sized_schedule(std::string const& function,
                                                 py::object const& schedule,
                                                 std::optional<std::int64_t> stages,
                                                 std::optional<std::int64_t> micro_batches,
                                                 std::optional<std::int64_t> chunks) {
  if (py::isinstance<pipeline::listed_schedule>(schedule)) {
    auto const& listed = schedule.cast<pipeline::listed_schedule const&>();
    std::size_t const count =
        stages ? convert::count_of(function, "stages", *stages) : listed.layout().stages;
    return pipeline::listed_of(function, listed, count, micro_batches, chunks);
  }
  std::string const word = pipeline::schedule_word(function, schedule);
  if (!stages || !micro_batches) {
    reject(function, std::string(stages ? "micro_batches" : "stages") +
                         " is None, must be given unless the schedule is a ListedSchedule");
  }
  return pipeline::named_schedule(function, word, convert::count_of(function, "stages", *stages),
                                  convert::count_of(function, "micro_batches", *micro_batches),
                                  chunks);
}

py::array peak_in_flight(py::object const& schedule, std::optional<std::int64_t> stages,
                         std::optional<std::int64_t> micro_batches,
                         std::optional<std::int64_t> chunks) {
  auto const given = sized_schedule("peak_in_flight", schedule, stages, micro_batches, chunks);
  return convert::to_array(released([&] {
    return std::visit([](auto const& of) { return omnibal::peak_in_flight(of); }, given.schedule);
  }));
}

/// Returns for each stage an array with a row for each moment.
py::list chunks_in_flight(py::object const& schedule, std::optional<std::int64_t> stages,
                          std::optional<std::int64_t> micro_batches,
                          std::optional<std::int64_t> chunks) {
  auto const given = sized_schedule("chunks_in_flight", schedule, stages, micro_batches, chunks);
  auto found = released([&] {
    return std::visit([](auto const& of) { return omnibal::chunks_in_flight(of); }, given.schedule);
  });
  py::list result;
  for (omnibal::chunk_counts& stage : found) {
    auto const columns = static_cast<py::ssize_t>(stage.chunks);
    result.append(convert::to_array(std::move(stage.counts)).attr("reshape")(-1, columns));
  }
  return result;
}

py::object estimate_makespan(py::object const& times, std::int64_t micro_batches,
                             std::int64_t chunks, std::string const& placement) {
  std::string const name = "estimate_makespan";
  convert::cost_array const list(name, "times", times);
  omnibal::chunk_layout layout{
      .micro_batches = convert::count_of(name, "micro_batches", micro_batches),
      .chunks = convert::count_of(name, "chunks", chunks),
      .placement = static_cast<omnibal::chunk_placement>(
          convert::word_of(name, "placement", placement, {"looped", "v_shape"}))};
  std::size_t const count =
      std::visit([](auto const& numbers) { return numbers.size(); }, list.list());
  if (layout.chunks == 0) reject(name, "chunks is 0, must be positive");
  if (count == 0 || count % layout.chunks != 0) {
    reject(name, "times has " + std::to_string(count) +
                     " elements, must have one for each virtual stage, a multiple of the chunks, "
                     "which is " +
                     std::to_string(layout.chunks));
  }
  layout.stages = count / layout.chunks;
  return std::visit(
      [&](auto const& numbers) -> py::object {
        return py::cast(released([&] { return omnibal::estimate_makespan(numbers, layout); }));
      },
      list.list());
}

/// Returns a field of an array of operations.
[[nodiscard]] py::array field_of(py::array const& timeline, char const* field) {
  py::object const names = timeline.dtype().attr("names");
  if (names.is_none() || !names.contains(field)) {
    reject("write_trace", "timeline has no field '" + std::string(field) +
                              "', must have the fields kind, stage, chunk, micro_batch, begin and "
                              "end");
  }
  return timeline[py::str(field)];
}

[[nodiscard]] std::vector<std::uint32_t> indices_of(py::array const& timeline, char const* field) {
  convert::integer_list const list("write_trace", "timeline['" + std::string(field) + "']",
                                   field_of(timeline, field));
  return convert::to_indices("write_trace", "timeline['" + std::string(field) + "']",
                             list.values());
}

[[nodiscard]] std::vector<omnibal::operation_kind> kinds_of(py::array const& timeline) {
  std::vector<std::string> const words(pipeline::kinds.begin(), pipeline::kinds.end());
  std::vector<omnibal::operation_kind> result;
  for (py::handle const kind : field_of(timeline, "kind").attr("tolist")()) {
    std::string const word = py::str(kind);
    result.push_back(static_cast<omnibal::operation_kind>(
        convert::word_of("write_trace", "a kind of timeline", word, words)));
  }
  return result;
}

template <class T>
[[nodiscard]] std::vector<omnibal::timed_operation<T>> operations_of(py::array const& timeline) {
  using numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;
  auto const kinds = kinds_of(timeline);
  auto const stages = indices_of(timeline, "stage");
  auto const chunks = indices_of(timeline, "chunk");
  auto const batches = indices_of(timeline, "micro_batch");
  numbers const begins(field_of(timeline, "begin"));
  numbers const ends(field_of(timeline, "end"));
  std::vector<omnibal::timed_operation<T>> result;
  for (std::size_t i = 0; i != kinds.size(); ++i) {
    if (ends.data()[i] < begins.data()[i]) {
      reject("write_trace",
             "timeline['end'] of operation " + std::to_string(i) + " is below timeline['begin']");
    }
    result.push_back(
        {kinds[i], stages[i], chunks[i], batches[i], begins.data()[i], ends.data()[i]});
  }
  return result;
}

template <class T>
[[nodiscard]] std::string trace_of(std::vector<omnibal::timed_operation<T>> const& operations,
                                   omnibal::write_trace_options const& options,
                                   std::optional<std::vector<std::string>> const& stage_names) {
  if (stage_names) {
    for (auto const& one : operations) {
      if (one.stage < stage_names->size()) continue;
      reject("write_trace", "stage_names has " + std::to_string(stage_names->size()) +
                                " names, but timeline has stage " + std::to_string(one.stage));
    }
  }
  std::string text;
  auto const name_of = [&](std::uint32_t stage) {
    return stage_names ? (*stage_names)[stage] : omnibal::number_stages{}(stage);
  };
  released(
      [&] { return omnibal::write_trace(operations, options, name_of, std::back_inserter(text)); });
  return text;
}

std::string write_trace(py::object const& timeline, std::string const& unit,
                        std::string const& process, std::int64_t process_id,
                        std::optional<std::vector<std::string>> const& stage_names) {
  std::string const name = "write_trace";
  if (timeline.is_none()) {
    reject(name,
           "timeline is None, must be the timeline of a simulation that records it, with "
           "timeline='recorded'");
  }
  py::array const given = convert::any_array(name, "timeline", timeline);
  if (given.ndim() != 1) {
    reject(name, "timeline has " + std::to_string(given.ndim()) + " dimensions, must have 1");
  }
  if (process_id < 0 || process_id > UINT32_MAX) {
    reject(name, "process_id is " + std::to_string(process_id) + ", must be in [0, " +
                     std::to_string(UINT32_MAX) + "]");
  }
  omnibal::write_trace_options const options{
      .unit = static_cast<omnibal::time_unit>(convert::word_of(
          name, "unit", unit, {"nanoseconds", "microseconds", "milliseconds", "seconds"})),
      .process = process,
      .process_id = static_cast<std::uint32_t>(process_id)};
  bool is_float = false;
  for (auto const* const field : {"begin", "end"}) {
    py::array const times = field_of(given, field);
    bool const has_floats = times.dtype().kind() == 'f';
    is_float |= has_floats;
    if (!has_floats) {
      static_cast<void>(convert::as_integers(name, "timeline['" + std::string(field) + "']", times,
                                             "integers or floats"));
    }
  }
  if (is_float) return trace_of(operations_of<double>(given), options, stage_names);
  return trace_of(operations_of<std::int64_t>(given), options, stage_names);
}

}  // namespace

void define(py::module_& module) {
  module.def("peak_in_flight", &peak_in_flight, docstrings::peak_in_flight, py::arg("schedule"),
             py::arg("stages") = py::none(), py::arg("micro_batches") = py::none(), py::kw_only(),
             py::arg("chunks") = py::none());
  module.def("chunks_in_flight", &chunks_in_flight, docstrings::chunks_in_flight,
             py::arg("schedule"), py::arg("stages") = py::none(),
             py::arg("micro_batches") = py::none(), py::kw_only(), py::arg("chunks") = py::none());
  module.def("estimate_makespan", &estimate_makespan, docstrings::estimate_makespan,
             py::arg("times"), py::arg("micro_batches"), py::kw_only(), py::arg("chunks") = 1,
             py::arg("placement") = "looped");
  module.def("write_trace", &write_trace, docstrings::write_trace, py::arg("timeline"),
             py::kw_only(), py::arg("unit") = "nanoseconds", py::arg("process") = "pipeline",
             py::arg("process_id") = 0, py::arg("stage_names") = py::none());
}

}  // namespace schedules
