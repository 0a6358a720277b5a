// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "states.hpp"

#include <omnibal/context/deferral_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace deferral {

namespace py = pybind11;
using convert::reject;

/// The samples that run in a step.
struct step {
  py::array ids;
  py::array lengths;
  py::array delays;
};

namespace {

template <class To, class From>
py::array array_of(std::span<From const> values) {
  std::vector<To> result;
  for (From const value : values) result.push_back(static_cast<To>(value));
  return convert::to_array(std::move(result));
}

step to_python(omnibal::deferral_step const& given) {
  return {array_of<std::int64_t>(given.ids), array_of<std::int64_t>(given.lengths),
          array_of<std::uint32_t>(given.delays)};
}

std::uint32_t small_count(std::string const& name, std::int64_t value) {
  if (value > UINT32_MAX) {
    reject("deferral_queue", name + " is " + std::to_string(value) + ", is too large");
  }
  return static_cast<std::uint32_t>(convert::count_of("deferral_queue", name, value));
}

omnibal::deferral_state state_of(std::string const& bytes) {
  std::string const name = "deferral_queue";
  std::size_t place = 0;
  omnibal::deferral_state result;
  result.digest = states::take<std::uint64_t>(name, bytes, place);
  result.step = states::take<std::uint64_t>(name, bytes, place);
  while (place != bytes.size()) {
    result.waiting.push_back(states::take<omnibal::deferred_sample>(name, bytes, place));
  }
  return result;
}

}  // namespace

/// A queue with its options, which a pickled one needs.
class queue {
 public:
  queue(omnibal::deferral_queue_options const& options, std::optional<std::string> const& state)
      : options_(options),
        of_(state ? omnibal::deferral_queue(options, state_of(*state))
                  : omnibal::deferral_queue(options)) {}

  [[nodiscard]] omnibal::deferral_queue_options const& options() const { return options_; }
  [[nodiscard]] omnibal::deferral_queue const& of() const { return of_; }

  /// The function of the caller is called once, with the lengths of all samples.
  step push(py::object const& ids, py::object const& lengths, py::object const& cost) {
    std::string const name = "deferral_queue::push";
    convert::integer_list const given_ids(name, "ids", ids);
    convert::integer_list const given(name, "lengths", lengths);
    std::vector<std::int64_t> all(given.values().begin(), given.values().end());
    for (auto const& sample : of_.state().waiting) all.push_back(sample.length);
    std::size_t const count = all.size();
    convert::cost_array const costs(name, "cost(lengths)", cost(convert::to_array(std::move(all))));
    return std::visit(
        [&](auto list) {
          if (list.size() != count) {
            reject(name, "cost(lengths) has " + std::to_string(list.size()) +
                             " elements, must have " + std::to_string(count));
          }
          std::size_t next = 0;
          return to_python(of_.push(given_ids.values(), given.values(),
                                    [&](std::int64_t) { return list[next++]; }));
        },
        costs.list());
  }

  void load_state_dict(py::object const& given) {
    *this = queue(options_, states::bytes_of(given));
  }

  step flush() { return to_python(of_.flush()); }

  [[nodiscard]] py::bytes state() const {
    auto const given = of_.state();
    std::string bytes;
    states::append(bytes, given.digest);
    states::append(bytes, given.step);
    for (auto const& sample : given.waiting) states::append(bytes, sample);
    return py::bytes(bytes);
  }

 private:
  omnibal::deferral_queue_options options_;
  omnibal::deferral_queue of_;
};

}  // namespace deferral

namespace pybind11::detail {
template <>
struct type_caster<deferral::step> : convert::value_caster<deferral::step> {};
template <>
struct type_caster<deferral::queue> : convert::value_caster<deferral::queue> {};
}  // namespace pybind11::detail

namespace deferral {

void define(py::module_& module) {
  py::class_<step> step_type(module, "DeferralStep", docstrings::DeferralStep);
  step_type.def_readonly("ids", &step::ids, "The ids of the samples that run, int64.")
      .def_readonly("lengths", &step::lengths, "Their lengths, int64.")
      .def_readonly("delays", &step::delays, "The steps for which each one has waited, uint32.")
      .def("__len__", [](step const& self) { return static_cast<std::size_t>(self.ids.size()); })
      .def("__repr__", [](step const& self) {
        auto const count = static_cast<std::size_t>(self.ids.size());
        return convert::repr_text("DeferralStep", {convert::count_text(count, "sample")});
      });
  convert::add_pickle_of(step_type, &step::ids, &step::lengths, &step::delays);
  py::class_<queue> type(module, "DeferralQueue", docstrings::DeferralQueue);
  type.def(py::init([](std::int64_t group_size, std::int64_t max_delay, std::int64_t threshold,
                       std::uint64_t contents, std::optional<std::string> const& state) {
             return queue({.group_size = small_count("group_size", group_size),
                           .max_delay = small_count("max_delay", max_delay),
                           .threshold = threshold,
                           .contents = contents},
                          state);
           }),
           py::kw_only(), py::arg("group_size") = 1, py::arg("max_delay") = 8,
           py::arg("threshold") = 0, py::arg("contents") = 0, py::arg("state") = py::none(),
           docstrings::DeferralQueue_init)
      .def("push", &queue::push, py::arg("ids"), py::arg("lengths"), py::arg("cost"),
           docstrings::DeferralQueue_push)
      .def("flush", &queue::flush, docstrings::DeferralQueue_flush)
      .def("state", &queue::state, docstrings::DeferralQueue_state)
      .def(
          "state_dict", [](queue const& self) { return states::to_dict(self.state()); },
          docstrings::DeferralQueue_state_dict)
      .def("load_state_dict", &queue::load_state_dict, py::arg("state"),
           docstrings::DeferralQueue_load_state_dict)
      .def_property_readonly(
          "step", [](queue const& self) { return self.of().step(); },
          "The number of steps up to now.")
      .def(
          "__len__", [](queue const& self) { return self.of().size(); },
          "The number of samples that wait.")
      .def("__repr__", [](queue const& self) {
        return convert::repr_text("DeferralQueue",
                                  {"group size " + std::to_string(self.options().group_size),
                                   "waiting " + convert::count_text(self.of().size(), "sample")});
      });
  convert::add_pickle(
      type, 5,
      [](queue const& self) {
        auto const& given = self.options();
        return py::make_tuple(given.group_size, given.max_delay, given.threshold, given.contents,
                              self.state());
      },
      [](py::tuple const& state) {
        return queue({.group_size = state[0].cast<std::uint32_t>(),
                      .max_delay = state[1].cast<std::uint32_t>(),
                      .threshold = state[2].cast<std::int64_t>(),
                      .contents = state[3].cast<std::uint64_t>()},
                     state[4].cast<std::string>());
      });
}

}  // namespace deferral
