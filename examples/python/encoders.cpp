// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "pipeline.hpp"

#include <omnibal/pipeline/encoder_work.hpp>
#include <omnibal/pipeline/place_encoder.hpp>
#include <omnibal/pipeline/simulate_encoder.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace encoders {

namespace py = pybind11;
using convert::count_of;
using convert::reject;
using convert::released;
using omnibal::operation_kind;

namespace {

/// A number for all micro-batches, or a number for each.
class batch_array {
 public:
  batch_array(std::string const& name, py::object const& given, bool may_be_float)
      : name_(name), array_(convert::any_array("EncoderWork", name, given)) {
    if (array_.ndim() > 1) {
      reject("EncoderWork", name + " has " + std::to_string(array_.ndim()) +
                                " dimensions, must be a number, or one for each micro-batch");
    }
    if (is_float() && may_be_float) return;
    array_ = convert::as_integers("EncoderWork", name, array_,
                                  may_be_float ? "integers or floats" : "integers");
  }

  [[nodiscard]] py::array const& array() const { return array_; }
  [[nodiscard]] bool is_float() const { return array_.dtype().kind() == 'f'; }
  [[nodiscard]] std::optional<std::size_t> micro_batches() const {
    if (array_.ndim() == 0) return std::nullopt;
    return static_cast<std::size_t>(array_.size());
  }

  template <class T>
  [[nodiscard]] std::vector<T> numbers(std::string const& function, std::size_t count) const {
    if (micro_batches() && *micro_batches() != count) {
      reject(function, "encoder." + name_ + " has " + std::to_string(array_.size()) +
                           " elements, must have " + std::to_string(count) +
                           ", one for each micro-batch");
    }
    using values = py::array_t<T, py::array::c_style | py::array::forcecast>;
    values const given(array_);
    if (array_.ndim() == 0) return std::vector<T>(count, *given.data());
    return {given.data(), given.data() + given.size()};
  }

 private:
  std::string name_;
  py::array array_;
};

/// The arguments of `EncoderWork`.
struct encoder_work {
  batch_array forward;
  batch_array backward;
  batch_array transfer;
  batch_array activation_bytes;
  batch_array output_bytes;
  std::size_t pieces;
  std::vector<std::uint32_t> devices;
  std::vector<std::uint32_t> readers;

  [[nodiscard]] bool is_float() const {
    return forward.is_float() || backward.is_float() || transfer.is_float();
  }
  [[nodiscard]] bool has_bytes() const {
    return activation_bytes.array().attr("any")().cast<bool>() ||
           output_bytes.array().attr("any")().cast<bool>();
  }
  [[nodiscard]] std::optional<std::size_t> micro_batches() const {
    for (auto const* const list :
         {&forward, &backward, &transfer, &activation_bytes, &output_bytes}) {
      if (list->micro_batches()) return list->micro_batches();
    }
    return std::nullopt;
  }

  template <class T>
  [[nodiscard]] omnibal::encoder_work<T> of(std::string const& function, std::size_t count) const {
    auto const forwards = forward.numbers<T>(function, count);
    auto const backwards = backward.numbers<T>(function, count);
    auto const transfers = transfer.numbers<T>(function, count);
    omnibal::encoder_work<T> result{
        .activation_bytes = activation_bytes.numbers<std::int64_t>(function, count),
        .output_bytes = output_bytes.numbers<std::int64_t>(function, count),
        .pieces = pieces,
        .devices = devices,
        .readers = readers};
    for (std::size_t m = 0; m != count; ++m) {
      result.times.push_back({.forward = forwards[m], .backward = backwards[m]});
      result.transfers.push_back({.forward = transfers[m], .backward = transfers[m]});
    }
    return result;
  }
};

struct encoder_simulation {
  py::object makespan;
  double bubble_share;
  py::array busy;
  py::array peak_bytes;
  py::array language;
  py::array encoder;
};

struct encoder_placement {
  omnibal::placed_lists lists;
  encoder_simulation step;
  py::object language_makespan;
  py::object before_makespan;
  py::object lower_bound;
};

}  // namespace

}  // namespace encoders

namespace pybind11::detail {
template <>
struct type_caster<encoders::encoder_work> : convert::value_caster<encoders::encoder_work> {};
template <>
struct type_caster<encoders::encoder_simulation>
    : convert::value_caster<encoders::encoder_simulation> {};
template <>
struct type_caster<encoders::encoder_placement>
    : convert::value_caster<encoders::encoder_placement> {};
}  // namespace pybind11::detail

namespace encoders {

namespace {

[[nodiscard]] std::vector<std::uint32_t> list_of(std::string const& name, py::object const& given) {
  return convert::to_indices("EncoderWork", name,
                             convert::optional_list("EncoderWork", name, given).values());
}

encoder_work make_work(py::object const& forward, py::object const& backward,
                       py::object const& transfer, py::object const& activation_bytes,
                       py::object const& output_bytes, std::int64_t pieces,
                       py::object const& devices, py::object const& readers) {
  if (pieces < 1) {
    reject("EncoderWork", "pieces is " + std::to_string(pieces) + ", must be at least 1");
  }
  encoder_work result{.forward = {"forward", forward, true},
                      .backward = {"backward", backward, true},
                      .transfer = {"transfer", transfer, true},
                      .activation_bytes = {"activation_bytes", activation_bytes, false},
                      .output_bytes = {"output_bytes", output_bytes, false},
                      .pieces = static_cast<std::size_t>(pieces),
                      .devices = list_of("devices", devices),
                      .readers = {0}};
  if (!devices.is_none() && result.devices.empty()) {
    reject("EncoderWork", "devices is empty, must be None or have a device");
  }
  if (!readers.is_none()) result.readers = list_of("readers", readers);
  return result;
}

constexpr std::array<char const*, 2> parts{"language", "encoder"};

/// Returns for each device a list of (part, kind, chunk, micro_batch).
[[nodiscard]] py::list to_python(omnibal::placed_lists const& lists) {
  std::array<py::str, 2> const part_names{parts[0], parts[1]};
  std::array<py::str, 3> const kind_names{pipeline::kinds[0], pipeline::kinds[1],
                                          pipeline::kinds[2]};
  py::list result;
  for (auto const& list : lists) {
    py::list row;
    for (auto const& [part, kind, chunk, micro_batch] : list) {
      row.append(py::make_tuple(part_names[static_cast<std::size_t>(part)],
                                kind_names[static_cast<std::size_t>(kind)], chunk, micro_batch));
    }
    result.append(row);
  }
  return result;
}

[[nodiscard]] omnibal::placed_operation to_operation(std::string const& function,
                                                     std::string const& name, py::handle given,
                                                     std::vector<std::string> const& part_words,
                                                     std::vector<std::string> const& kind_words) {
  using row = std::tuple<std::string, std::string, std::int64_t, std::int64_t>;
  row operation;
  try {
    operation = given.cast<row>();
  } catch (py::cast_error const&) {
    reject(function, name + " is " + std::string(py::repr(given)) +
                         ", must be a tuple (part, kind, chunk, micro_batch)");
  }
  auto const& [part, kind, chunk, micro_batch] = operation;
  std::array<std::int64_t, 2> const numbers{chunk, micro_batch};
  auto const indices = convert::to_indices(function, name, numbers);
  return {.part = static_cast<omnibal::model_part>(
              convert::word_of(function, "the part of " + name, part, part_words)),
          .kind = static_cast<operation_kind>(
              convert::word_of(function, "the kind of " + name, kind, kind_words)),
          .chunk = indices[0],
          .micro_batch = indices[1]};
}

[[nodiscard]] omnibal::placed_lists to_lists(std::string const& function, py::object const& given) {
  std::vector<std::string> const part_words(parts.begin(), parts.end());
  std::vector<std::string> const kind_words(pipeline::kinds.begin(), pipeline::kinds.end());
  omnibal::placed_lists result;
  for (py::handle const list : given) {
    std::string const device = "lists[" + std::to_string(result.size()) + "]";
    result.emplace_back();
    for (py::handle const one : list) {
      std::string const name = device + "[" + std::to_string(result.back().size()) + "]";
      result.back().push_back(to_operation(function, name, one, part_words, kind_words));
    }
  }
  return result;
}

template <class T>
[[nodiscard]] encoder_simulation to_python(omnibal::encoder_simulation<T>&& found) {
  return {py::cast(found.makespan),
          found.bubble_share,
          convert::to_array(std::move(found.busy)),
          convert::to_array(std::move(found.peak_bytes)),
          pipeline::to_timeline(found.language),
          pipeline::to_timeline(found.encoder)};
}

/// A schedule as lists, so that the functions below are compiled for two schedules.
template <class Schedule>
[[nodiscard]] auto as_listed(Schedule const& schedule) {
  constexpr bool splits = Schedule::splits_backward;
  if constexpr (std::is_same_v<Schedule, omnibal::listed_schedule<splits>>) {
    return schedule;
  } else {
    schedule.check();
    omnibal::operation_lists lists(schedule.stages);
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      omnibal::detail::for_each_operation(
          schedule, stage, [&](operation_kind kind, omnibal::pipeline_unit const& unit) {
            lists[stage].push_back({kind, unit.chunk, unit.micro_batch});
          });
    }
    return omnibal::listed_schedule<splits>(
        {schedule.stages, schedule.micro_batches, schedule.chunk_count()}, lists);
  }
}

/// Calls `body` with the schedule, the times, the transfers and the bytes of the language model,
/// and the work of the encoder.
template <class Body>
auto with_work(std::string const& function, pipeline::step_arguments const& step,
               pipeline::scheduled const& given, encoder_work const& encoder, Body const& body) {
  auto const with_time = [&]<class T>(std::type_identity<T>) {
    pipeline::step_tables<T> const tables(step, given.layout);
    auto const work = encoder.of<T>(function, given.layout.micro_batches);
    return std::visit(
        [&](auto const& of) {
          pipeline::check_weight<std::remove_cvref_t<decltype(of)>>(function, step);
          auto const schedule = as_listed(of);
          return pipeline::with_name(function, [&] { return body(schedule, tables, work); });
        },
        given.schedule);
  };
  if (step.is_float() || encoder.is_float()) return with_time(std::type_identity<double>{});
  return with_time(std::type_identity<std::int64_t>{});
}

/// Returns the most bytes of each device; none without a limit.
[[nodiscard]] std::vector<std::int64_t> memory_of(py::object const& memory, bool has_bytes,
                                                  encoder_work const& encoder, std::size_t stages) {
  std::string const name = "place_encoder";
  if (memory.is_none()) return {};
  if (!has_bytes && !encoder.has_bytes()) {
    reject(name,
           "memory is given, but bytes is None and encoder has no bytes: every micro-batch "
           "has 0 bytes");
  }
  py::array const given = convert::any_array(name, "memory", memory);
  if (given.ndim() > 1) {
    reject(name, "memory has " + std::to_string(given.ndim()) +
                     " dimensions, must be a number, or one for each device");
  }
  std::size_t devices = stages;
  for (std::uint32_t const device : encoder.devices) {
    devices = std::max(devices, std::size_t{device} + 1);
  }
  auto const numbers = convert::as_integers(name, "memory", given);
  if (given.ndim() != 0) {
    if (static_cast<std::size_t>(given.size()) == devices) {
      return {numbers.data(), numbers.data() + numbers.size()};
    }
    reject(name, "memory has " + std::to_string(given.size()) + " elements, must have " +
                     std::to_string(devices) + ", one for each device");
  }
  // The library reports devices that do not exist; a wrong number of one must not allocate.
  devices = std::min(devices, stages + encoder.devices.size());
  return std::vector<std::int64_t>(devices, *numbers.data());
}

encoder_placement place_encoder(py::object const& forward, py::object const& backward,
                                std::int64_t stages, encoder_work const& encoder,
                                std::optional<std::int64_t> micro_batches, py::object const& weight,
                                py::object const& transfer, py::object const& bytes,
                                py::object const& schedule, std::optional<std::int64_t> chunks,
                                py::object const& memory, std::int64_t simulations) {
  std::string const name = "place_encoder";
  pipeline::step_arguments const step(name, forward, backward, weight, transfer, bytes);
  auto const given = pipeline::to_schedule(name, step, schedule, stages, micro_batches, chunks,
                                           encoder.micro_batches());
  auto const limits = memory_of(memory, !bytes.is_none(), encoder, given.layout.stages);
  omnibal::place_encoder_options const options{.simulations =
                                                   count_of(name, "simulations", simulations)};
  return with_work(
      name, step, given, encoder, [&](auto const& of, auto const& tables, auto const& work) {
        auto found = released([&] {
          return omnibal::place_encoder(of, tables.times(), tables.transfer, tables.bytes, work,
                                        limits, options);
        });
        return encoder_placement{std::move(found.lists), to_python(std::move(found.step)),
                                 py::cast(found.language_makespan), py::cast(found.before_makespan),
                                 py::cast(found.lower_bound)};
      });
}

encoder_simulation simulate_encoder(py::object const& forward, py::object const& backward,
                                    std::int64_t stages, encoder_work const& encoder,
                                    py::object const& lists,
                                    std::optional<std::int64_t> micro_batches,
                                    py::object const& weight, py::object const& transfer,
                                    py::object const& bytes, py::object const& schedule,
                                    std::optional<std::int64_t> chunks) {
  std::string const name = "simulate_encoder";
  pipeline::step_arguments const step(name, forward, backward, weight, transfer, bytes);
  auto const given = pipeline::to_schedule(name, step, schedule, stages, micro_batches, chunks,
                                           encoder.micro_batches());
  auto const placed = to_lists(name, lists);
  return with_work(name, step, given, encoder,
                   [&](auto const& of, auto const& tables, auto const& work) {
                     return to_python(released([&] {
                       return omnibal::simulate_encoder(of, tables.times(), tables.transfer,
                                                        tables.bytes, work, placed);
                     }));
                   });
}

void define_work(py::module_& module) {
  py::class_<encoder_work> type(module, "EncoderWork", docstrings::EncoderWork);
  auto const array_of = [](batch_array encoder_work::*member) {
    return [member](encoder_work const& self) { return (self.*member).array(); };
  };
  type.def(py::init(&make_work), py::arg("forward"), py::arg("backward"), py::kw_only(),
           py::arg("transfer") = 0, py::arg("activation_bytes") = 0, py::arg("output_bytes") = 0,
           py::arg("pieces") = 1, py::arg("devices") = py::none(), py::arg("readers") = py::none(),
           docstrings::EncoderWork_init)
      .def_property_readonly("forward", array_of(&encoder_work::forward),
                             "The time of the forward pass of the whole encoder.")
      .def_property_readonly("backward", array_of(&encoder_work::backward),
                             "The time of the backward pass of the whole encoder.")
      .def_property_readonly("transfer", array_of(&encoder_work::transfer),
                             "The time to send the features, or their gradients back.")
      .def_property_readonly("activation_bytes", array_of(&encoder_work::activation_bytes),
                             "The bytes from the forward pass to the end of the backward pass.")
      .def_property_readonly("output_bytes", array_of(&encoder_work::output_bytes),
                             "The bytes of the features, and of their gradients.")
      .def_readonly("pieces", &encoder_work::pieces,
                    "The parts of equal size in which a micro-batch is encoded.")
      .def_readonly("devices", &encoder_work::devices,
                    "The devices that run the encoder; none if all stages do.")
      .def_readonly("readers", &encoder_work::readers, "The virtual stages that read the features.")
      .def("__repr__", [](encoder_work const& self) {
        return convert::repr_text(
            "EncoderWork",
            {convert::count_text(self.pieces, "piece"),
             self.devices.empty() ? "all stages"
                                  : convert::count_text(self.devices.size(), "device"),
             convert::count_text(self.readers.size(), "reader")});
      });
  convert::add_pickle(
      type, 8,
      [](encoder_work const& self) {
        py::object const devices = self.devices.empty() ? py::none() : py::cast(self.devices);
        return py::make_tuple(self.forward.array(), self.backward.array(), self.transfer.array(),
                              self.activation_bytes.array(), self.output_bytes.array(), self.pieces,
                              devices, self.readers);
      },
      [](py::tuple const& state) {
        return make_work(state[0], state[1], state[2], state[3], state[4],
                         state[5].cast<std::int64_t>(), state[6], state[7]);
      });
}

void define_simulation(py::module_& module) {
  py::class_<encoder_simulation> type(module, "EncoderSimulation", docstrings::EncoderSimulation);
  type.def_readonly("makespan", &encoder_simulation::makespan, "The end of the last operation.")
      .def_readonly("bubble_share", &encoder_simulation::bubble_share,
                    "The share of the time of all devices that they are idle.")
      .def_readonly("busy", &encoder_simulation::busy, "The time that each device works.")
      .def_readonly("peak_bytes", &encoder_simulation::peak_bytes,
                    "The most bytes that each device keeps at once: activations, features and "
                    "their gradients, int64.")
      .def_readonly("language", &encoder_simulation::language,
                    "The operations of the language model, an array with the fields of "
                    "`Simulation.timeline`.")
      .def_readonly("encoder", &encoder_simulation::encoder,
                    "The operations of the encoder in the same form; stage is the device, and "
                    "chunk is the piece.")
      .def("__repr__", [](encoder_simulation const& self) {
        return convert::repr_text(
            "EncoderSimulation",
            {"makespan " + convert::number_text(self.makespan),
             "bubble share " + convert::number_text(py::float_(self.bubble_share))});
      });
  convert::add_pickle_of(type, &encoder_simulation::makespan, &encoder_simulation::bubble_share,
                         &encoder_simulation::busy, &encoder_simulation::peak_bytes,
                         &encoder_simulation::language, &encoder_simulation::encoder);
}

void define_placement(py::module_& module) {
  py::class_<encoder_placement> type(module, "EncoderPlacement", docstrings::EncoderPlacement);
  type.def_property_readonly(
          "lists", [](encoder_placement const& self) { return to_python(self.lists); },
          "For each device a list of (part, kind, chunk, micro_batch) in the order in which it "
          "runs them; part is 'language' or 'encoder'. Each access makes new lists.")
      .def_readonly("step", &encoder_placement::step, "The `EncoderSimulation` of the lists.")
      .def_readonly("language_makespan", &encoder_placement::language_makespan,
                    "The time of the step without the encoder.")
      .def_readonly("before_makespan", &encoder_placement::before_makespan,
                    "The time of the step if the encoder runs before and after the language model.")
      .def_readonly("lower_bound", &encoder_placement::lower_bound,
                    "No placement that keeps the order of the language model has a shorter step.")
      .def("__repr__", [](encoder_placement const& self) {
        py::object const& makespan = self.step.makespan;
        return convert::repr_text("EncoderPlacement",
                                  {convert::count_text(self.lists.size(), "device"),
                                   "makespan " + convert::number_text(makespan) + " instead of " +
                                       convert::number_text(self.before_makespan),
                                   "at least " + convert::number_text(self.lower_bound),
                                   makespan.equal(self.lower_bound) ? "proven" : ""});
      });
  convert::add_pickle(
      type, 5,
      [](encoder_placement const& self) {
        return py::make_tuple(to_python(self.lists), self.step, self.language_makespan,
                              self.before_makespan, self.lower_bound);
      },
      [](py::tuple const& state) {
        return encoder_placement{to_lists("EncoderPlacement", state[0]),
                                 state[1].cast<encoder_simulation>(), state[2], state[3], state[4]};
      });
}

}  // namespace

void define(py::module_& module) {
  define_work(module);
  define_simulation(module);
  define_placement(module);
  module.def("place_encoder", &place_encoder, docstrings::place_encoder, py::arg("forward"),
             py::arg("backward"), py::arg("stages"), py::arg("encoder"),
             py::arg("micro_batches") = py::none(), py::kw_only(), py::arg("weight") = py::none(),
             py::arg("transfer") = 0, py::arg("bytes") = py::none(), py::arg("schedule") = "1f1b",
             py::arg("chunks") = py::none(), py::arg("memory") = py::none(),
             py::arg("simulations") = 2000);
  module.def("simulate_encoder", &simulate_encoder, docstrings::simulate_encoder,
             py::arg("forward"), py::arg("backward"), py::arg("stages"), py::arg("encoder"),
             py::arg("lists"), py::arg("micro_batches") = py::none(), py::kw_only(),
             py::arg("weight") = py::none(), py::arg("transfer") = 0, py::arg("bytes") = py::none(),
             py::arg("schedule") = "1f1b", py::arg("chunks") = py::none());
}

}  // namespace encoders
