// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times of a step and the schedules as Python gives them.

#include "convert.hpp"

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/dual_pipe_v.hpp>
#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/zb_h1.hpp>
#include <omnibal/pipeline/zb_v.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
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

/// The words of the kinds of operations.
inline constexpr std::array<char const*, 3> kinds{"forward", "backward", "weight"};

/// A number for each virtual stage and micro-batch, without a copy for those that are equal.
template <class T>
struct unit_table {
  std::vector<T> values;
  std::size_t stage_step = 0;
  std::size_t micro_batch_step = 0;

  [[nodiscard]] T operator()(std::size_t virtual_stage, std::size_t micro_batch) const {
    return values[virtual_stage * stage_step + micro_batch * micro_batch_step];
  }
};

/// An argument that is a number, a number for each virtual stage, or a row for each virtual stage
/// with a number for each micro-batch.
class unit_array {
 public:
  unit_array(std::string const& function, std::string const& name, py::handle given)
      : function_(function), name_(name), array_(convert::any_array(function, name, given)) {
    if (!is_float()) {
      array_ = convert::as_integers(function_, name_, array_, "integers or floats");
    }
  }

  [[nodiscard]] bool is_float() const { return array_.dtype().kind() == 'f'; }
  void require_integers() const {
    if (is_float()) static_cast<void>(convert::as_integers(function_, name_, array_));
  }

  /// Returns the number of micro-batches, if the argument has one.
  [[nodiscard]] std::optional<std::size_t> micro_batches() const {
    if (array_.ndim() != 2) return std::nullopt;
    return static_cast<std::size_t>(array_.shape(1));
  }

  /// Returns the numbers for `count` virtual stages or cuts. Errors: `std::invalid_argument` if the
  /// argument has another shape.
  template <class T>
  [[nodiscard]] unit_table<T> table(std::size_t count, std::size_t micro_batches) const {
    bool const has_rows = array_.ndim() == 0 || is_size(0, count);
    bool const has_columns = array_.ndim() < 2 || is_size(1, micro_batches);
    if (array_.ndim() > 2 || !has_rows || !has_columns) {
      std::string const rows = std::to_string(count);
      reject(function_, name_ + " has the shape " + std::string(py::str(array_.attr("shape"))) +
                            ", must be a number or have the shape (" + rows + ",) or (" + rows +
                            ", " + std::to_string(micro_batches) + ")");
    }
    using numbers = py::array_t<T, py::array::c_style | py::array::forcecast>;
    numbers const given(array_);
    return {.values = {given.data(), given.data() + given.size()},
            .stage_step = array_.ndim() == 0   ? 0
                          : array_.ndim() == 1 ? 1
                                               : micro_batches,
            .micro_batch_step = array_.ndim() == 2 ? 1U : 0U};
  }

 private:
  [[nodiscard]] bool is_size(py::ssize_t dimension, std::size_t wanted) const {
    return static_cast<std::size_t>(array_.shape(dimension)) == wanted;
  }

  std::string function_;
  std::string name_;
  py::array array_;
};

/// The arguments that all functions have: what a step takes.
struct step_arguments {
  unit_array forward;
  unit_array backward;
  std::optional<unit_array> weight;
  unit_array transfer;
  unit_array bytes;

  step_arguments(std::string const& function, py::handle forward_times, py::handle backward_times,
                 py::handle weight_times, py::handle transfer_times, py::handle activation_bytes)
      : forward(function, "forward", forward_times),
        backward(function, "backward", backward_times),
        transfer(function, "transfer", transfer_times),
        bytes(function, "bytes",
              activation_bytes.is_none() ? py::object(py::int_(0))
                                         : py::reinterpret_borrow<py::object>(activation_bytes)) {
    if (!weight_times.is_none()) weight.emplace(function, "weight", weight_times);
    bytes.require_integers();
  }

  [[nodiscard]] bool is_float() const {
    return forward.is_float() || backward.is_float() || (weight && weight->is_float()) ||
           transfer.is_float();
  }

  /// Returns the given number of micro-batches, or the number that the times have, or `other`.
  [[nodiscard]] std::size_t micro_batches(std::string const& function,
                                          std::optional<std::int64_t> given,
                                          std::optional<std::size_t> other = std::nullopt) const {
    if (given) return count_of(function, "micro_batches", *given);
    for (auto const& count : {forward.micro_batches(), backward.micro_batches(),
                              weight ? weight->micro_batches() : std::nullopt,
                              transfer.micro_batches(), bytes.micro_batches(), other}) {
      if (count) return *count;
    }
    reject(function,
           "micro_batches is None, must be given if no argument has a number for each "
           "micro-batch");
  }
};

/// The times of a virtual stage whose backward pass is not split.
template <class T>
struct whole_time {
  T forward{};
  T backward{};
};

/// What a step takes, by virtual stage and micro-batch.
template <class T>
struct step_tables {
  unit_table<T> forward;
  unit_table<T> backward;
  unit_table<T> weight;
  unit_table<T> transfer;
  unit_table<std::int64_t> bytes;

  step_tables(step_arguments const& given, chunk_layout const& layout) {
    std::size_t const stages = layout.stages * layout.chunks;
    std::size_t const batches = layout.micro_batches;
    forward = given.forward.table<T>(stages, batches);
    backward = given.backward.table<T>(stages, batches);
    weight = given.weight ? given.weight->table<T>(stages, batches) : unit_table<T>{{T{}}};
    transfer = given.transfer.table<T>(stages - 1, batches);
    bytes = given.bytes.table<std::int64_t>(stages, batches);
  }

  /// Returns a functor of the times of a virtual stage for a micro-batch.
  [[nodiscard]] auto times() const {
    return [this](std::size_t stage, std::size_t micro_batch) {
      return omnibal::stage_time<T>{.forward = forward(stage, micro_batch),
                                    .backward = backward(stage, micro_batch),
                                    .weight = weight(stage, micro_batch)};
    };
  }
  /// Returns a functor of the times without the gradients of the weights.
  [[nodiscard]] auto whole_times() const {
    return [this](std::size_t stage, std::size_t micro_batch) {
      return whole_time<T>{.forward = forward(stage, micro_batch),
                           .backward = backward(stage, micro_batch)};
    };
  }
};

/// Calls `body` with the tables of the arguments: integers, or floats if a time is one.
template <class Body>
auto with_tables(step_arguments const& given, chunk_layout const& layout, Body const& body) {
  if (given.is_float()) return body(step_tables<double>(given, layout));
  return body(step_tables<std::int64_t>(given, layout));
}

using listed = std::variant<omnibal::listed_schedule<false>, omnibal::listed_schedule<true>>;

/// The result of `list_schedule`.
struct listed_schedule {
  listed schedule;
  std::string objective;
  py::object makespan;
  py::object longest_stage;
  py::object lower_bound;

  [[nodiscard]] chunk_layout const& layout() const {
    return std::visit([](auto const& one) -> chunk_layout const& { return one; }, schedule);
  }
  [[nodiscard]] bool splits_backward() const { return schedule.index() == 1; }
};

}  // namespace pipeline

namespace pybind11::detail {
template <>
struct type_caster<pipeline::listed_schedule> : convert::value_caster<pipeline::listed_schedule> {};
}  // namespace pybind11::detail

namespace pipeline {

using any_schedule =
    std::variant<omnibal::gpipe, omnibal::one_f_one_b, omnibal::interleaved_1f1b, omnibal::zb_h1,
                 omnibal::listed_schedule<false>, omnibal::listed_schedule<true>>;

[[nodiscard]] inline any_schedule schedule_of(std::string const& name, chunk_layout const& layout) {
  std::size_t const stages = layout.stages;
  std::size_t const batches = layout.micro_batches;
  if (name == "gpipe") return omnibal::gpipe{stages, batches};
  if (name == "1f1b") return omnibal::one_f_one_b{stages, batches};
  if (name == "interleaved_1f1b") return omnibal::interleaved_1f1b{stages, batches, layout.chunks};
  if (name == "zb_h1") return omnibal::zb_h1{stages, batches};
  if (name == "zb_v") return omnibal::zb_v(stages, batches);
  if (name == "dual_pipe_v") return omnibal::dual_pipe_v(stages, batches);
  return name == "v_half" ? omnibal::v_half(stages, batches) : omnibal::v_min(stages, batches);
}

/// The schedule of slices of sequences, which only `simulate_pipeline` has.
inline constexpr char const* sliced_name = "sliced_1f1b";

/// Returns the number of chunks that a schedule has by its name.
[[nodiscard]] inline std::size_t default_chunks(std::string const& function,
                                                std::string const& name) {
  for (auto const* const one : {"gpipe", "1f1b", "zb_h1"}) {
    if (name == one) return 1;
  }
  for (auto const* const two : {"interleaved_1f1b", "zb_v", "v_half", "v_min", "dual_pipe_v"}) {
    if (name == two) return 2;
  }
  reject(function, "schedule is '" + name +
                       "', must be gpipe, 1f1b, interleaved_1f1b, zb_h1, zb_v, v_half, v_min, "
                       "dual_pipe_v" +
                       (function == "simulate_pipeline" ? std::string(", ") + sliced_name : "") +
                       " or a ListedSchedule");
}

/// A schedule and its sizes.
struct scheduled {
  chunk_layout layout;
  any_schedule schedule;
};

inline void check_equal(std::string const& function, std::string const& name, std::size_t given,
                        std::size_t wanted, std::string const& owner) {
  if (given == wanted) return;
  reject(function, name + " is " + std::to_string(given) + ", must be " + std::to_string(wanted) +
                       " as in " + owner);
}

/// Returns the schedule of a result of `list_schedule`.
[[nodiscard]] inline scheduled listed_of(std::string const& function, listed_schedule const& given,
                                         std::size_t stages,
                                         std::optional<std::int64_t> micro_batches,
                                         std::optional<std::int64_t> chunks) {
  chunk_layout const& layout = given.layout();
  check_equal(function, "stages", stages, layout.stages, "the schedule");
  if (micro_batches) {
    check_equal(function, "micro_batches", count_of(function, "micro_batches", *micro_batches),
                layout.micro_batches, "the schedule");
  }
  if (chunks) {
    check_equal(function, "chunks", count_of(function, "chunks", *chunks), layout.chunks,
                "the schedule");
  }
  return {
      .layout = layout,
      .schedule = std::visit([](auto const& one) { return any_schedule(one); }, given.schedule)};
}

/// Returns the word of a schedule that is no `ListedSchedule`.
[[nodiscard]] inline std::string schedule_word(std::string const& function,
                                               py::object const& schedule) {
  if (!py::isinstance<py::str>(schedule)) {
    throw py::type_error("omnibal." + function + ": schedule is of type " +
                         std::string(py::str(py::type::of(schedule).attr("__name__"))) +
                         ", must be a str or a ListedSchedule");
  }
  auto name = schedule.cast<std::string>();
  static_cast<void>(default_chunks(function, name));
  return name;
}

/// Returns the schedule of a word that `schedule_word` has checked.
[[nodiscard]] inline scheduled named_schedule(std::string const& function, std::string const& name,
                                              std::size_t stages, std::size_t micro_batches,
                                              std::optional<std::int64_t> chunks) {
  std::size_t const known = default_chunks(function, name);
  chunk_layout const layout{.stages = stages,
                            .micro_batches = micro_batches,
                            .chunks = chunks ? count_of(function, "chunks", *chunks) : known};
  if (name != "interleaved_1f1b") {
    check_equal(function, "chunks", layout.chunks, known, "the schedule '" + name + "'");
  }
  layout.check(function);
  if (name == "dual_pipe_v" && micro_batches / 2 < stages) {
    reject(function, "micro_batches is " + std::to_string(micro_batches) +
                         ", must be at least twice the stages, which are " +
                         std::to_string(stages) + ", in the schedule 'dual_pipe_v'");
  }
  return {.layout = layout, .schedule = released([&] { return schedule_of(name, layout); })};
}

/// Returns a schedule; `other` is the number of micro-batches if neither it nor the times of the
/// step are given.
[[nodiscard]] inline scheduled to_schedule(std::string const& function, step_arguments const& step,
                                           py::object const& schedule, std::int64_t stages,
                                           std::optional<std::int64_t> micro_batches,
                                           std::optional<std::int64_t> chunks,
                                           std::optional<std::size_t> other = std::nullopt) {
  std::size_t const stage_count = count_of(function, "stages", stages);
  if (py::isinstance<listed_schedule>(schedule)) {
    return listed_of(function, schedule.cast<listed_schedule const&>(), stage_count, micro_batches,
                     chunks);
  }
  std::string const name = schedule_word(function, schedule);
  return named_schedule(function, name, stage_count,
                        step.micro_batches(function, micro_batches, other), chunks);
}

/// Throws if a schedule has gradients of weights and their times are missing.
template <class Schedule>
void check_weight(std::string const& function, step_arguments const& step) {
  if (!Schedule::splits_backward || step.weight) return;
  reject(function, "weight is None, must be given if the schedule splits the backward pass");
}

/// Runs `body`, whose errors name `simulate_pipeline`, with the name of the function that Python
/// calls.
template <class Body>
auto with_name(std::string const& function, Body const& body) {
  std::string const inner = "omnibal::simulate_pipeline: ";
  auto const text_of = [&](std::exception const& error) {
    std::string const text = error.what();
    return text.starts_with(inner) ? "omnibal::" + function + ": " + text.substr(inner.size())
                                   : text;
  };
  try {
    return body();
  } catch (std::logic_error const& error) {
    throw std::invalid_argument(text_of(error));
  } catch (std::overflow_error const& error) {
    throw std::overflow_error(text_of(error));
  }
}

/// Returns operations as an array with the fields kind, stage, chunk, micro_batch, begin and end.
template <class T>
[[nodiscard]] py::array to_timeline(std::vector<omnibal::timed_operation<T>> const& given) {
  py::module_ const numpy = py::module_::import("numpy");
  char const* const time = std::is_floating_point_v<T> ? "f8" : "i8";
  py::list fields;
  fields.append(py::make_tuple("kind", "U8"));
  for (auto const* const name : {"stage", "chunk", "micro_batch"}) {
    fields.append(py::make_tuple(name, "u4"));
  }
  for (auto const* const name : {"begin", "end"}) fields.append(py::make_tuple(name, time));
  py::array result = numpy.attr("empty")(given.size(), fields);
  auto const fill = [&](char const* name, auto const& member) {
    std::vector<std::decay_t<decltype(member(given.front()))>> values;
    values.reserve(given.size());
    for (auto const& one : given) values.push_back(member(one));
    result[py::str(name)] = convert::to_array(std::move(values));
  };
  std::vector<std::uint32_t> codes;
  for (auto const& one : given) codes.push_back(static_cast<std::uint32_t>(one.kind));
  result[py::str("kind")] =
      numpy.attr("array")(kinds).attr("take")(convert::to_array(std::move(codes)));
  fill("stage", [](auto const& one) { return one.stage; });
  fill("chunk", [](auto const& one) { return one.chunk; });
  fill("micro_batch", [](auto const& one) { return one.micro_batch; });
  fill("begin", [](auto const& one) { return one.begin; });
  fill("end", [](auto const& one) { return one.end; });
  return result;
}

}  // namespace pipeline
