// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "levels.hpp"
#include "results.hpp"

#include <omnibal/balance/schedule_steps.hpp>
#include <omnibal/hierarchy/level_metrics.hpp>
#include <omnibal/hierarchy/level_steps.hpp>
#include <omnibal/metrics.hpp>
#include <omnibal/step_spread.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace pybind11::detail {
template <>
struct type_caster<omnibal::level_figures> : convert::value_caster<omnibal::level_figures> {};
}  // namespace pybind11::detail

namespace measures {

namespace py = pybind11;
using convert::count_of;
using convert::demand_list;
using convert::integer_list;
using convert::released;
using results::groups;

namespace {

py::array unscheduled_groups(results::steps const& schedule, std::int64_t count,
                             py::object const& carried) {
  std::string const name = "unscheduled_groups";
  auto const steps = results::to_schedule(schedule);
  auto const before = convert::to_indices(
      name, "carried", convert::optional_list(name, "carried", carried).values());
  auto const wanted = count_of(name, "groups", count);
  return convert::to_array(
      released([&] { return omnibal::unscheduled_groups(steps, wanted, before); }));
}

double step_overlap(results::steps const& first, results::steps const& second) {
  auto const left = results::to_schedule(first);
  auto const right = results::to_schedule(second);
  return released([&] { return omnibal::step_overlap(left, right); });
}

py::object to_python(double ratio) { return py::float_(ratio); }

template <std::size_t R>
py::object to_python(omnibal::resources<R, double> const& ratios) {
  return convert::to_array(std::vector<double>(ratios.amounts, ratios.amounts + R));
}

py::dict step_spread(results::steps const& schedule, py::object const& loads) {
  std::string const name = "step_spread";
  demand_list const rows(name, "loads", loads);
  auto const steps = results::to_schedule(schedule);
  return arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
    auto const spread = [&](auto const& list) {
      auto const found = released([&] { return omnibal::step_spread(steps, list); });
      py::dict result;
      result["totals"] = to_python(found.totals);
      result["within"] = to_python(found.within);
      result["variation"] = to_python(found.variation);
      return result;
    };
    if constexpr (kinds() == 1) {
      return spread(samples);
    } else {
      std::vector<omnibal::resources<kinds()>> list;
      list.reserve(samples.size());
      for (auto const& sample : samples) list.push_back(demand(sample));
      return spread(list);
    }
  });
}

double attention_balance(results::steps const& schedule, groups const& of,
                         py::object const& lengths) {
  integer_list const list("attention_balance", "lengths", lengths);
  auto const steps = results::to_schedule(schedule);
  auto const given = results::to_grouping(of);
  return released([&] { return omnibal::attention_balance(steps, given, list.values()); });
}

double communication_ratio(groups const& of, py::object const& lengths, py::object const& degrees) {
  std::string const name = "communication_ratio";
  integer_list const list(name, "lengths", lengths);
  integer_list const ranks(name, "degrees", degrees);
  auto const given = results::to_grouping(of);
  if (ranks.values().size() != given.size()) {
    convert::reject(name, "degrees has " + std::to_string(ranks.values().size()) +
                              " elements, must have " + std::to_string(given.size()) +
                              ", one for each group");
  }
  return released([&] {
    return omnibal::communication_ratio(given, list.values(),
                                        [&](std::uint32_t group) { return ranks.values()[group]; });
  });
}

std::vector<results::steps> level_steps(levels::level_packing const& packed,
                                        py::object const& loads, std::int64_t ranks,
                                        std::uint64_t seed, std::uint64_t epoch,
                                        double max_dist_ratio, std::string const& remainder) {
  std::string const name = "level_steps";
  demand_list const rows(name, "loads", loads);
  auto const given = levels::to_packed(name, packed);
  auto const wanted = count_of(name, "ranks", ranks);
  omnibal::schedule_steps_options options;
  options.seed = seed;
  options.epoch = epoch;
  options.max_dist_ratio = max_dist_ratio;
  options.remainder = static_cast<omnibal::remainder_policy>(
      convert::word_of(name, "remainder", remainder, {"short_step", "repeat"}));
  auto const found =
      arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
        if constexpr (kinds() == 1) {
          return released([&] { return omnibal::level_steps(given, samples, wanted, options); });
        } else {
          std::vector<omnibal::resources<kinds()>> list;
          list.reserve(samples.size());
          for (auto const& sample : samples) list.push_back(demand(sample));
          return released([&] { return omnibal::level_steps(given, list, wanted, options); });
        }
      });
  std::vector<results::steps> result;
  for (omnibal::steps const& level : found) result.push_back(results::to_steps(level));
  return result;
}

omnibal::level_figures level_metrics(levels::level_packing const& packed,
                                     std::vector<results::steps> const& schedules,
                                     py::object const& lengths) {
  std::string const name = "level_metrics";
  integer_list const list(name, "lengths", lengths);
  auto const given = levels::to_packed(name, packed);
  std::vector<omnibal::steps> steps;
  for (results::steps const& level : schedules) steps.push_back(results::to_schedule(level));
  return released([&] { return omnibal::level_metrics(given, steps, list.values()); });
}

void define_figures(py::module_& module) {
  using figures = omnibal::level_figures;
  py::class_<figures> type(module, "LevelFigures", docstrings::LevelFigures);
  type.def_readonly("data_balance", &figures::data_balance,
                    "The share of a step in which ranks are idle until the rank with the most "
                    "tokens ends.")
      .def_readonly("attention_balance", &figures::attention_balance,
                    "The same share if the time of a rank is its attention.")
      .def_readonly("communication_ratio", &figures::communication_ratio,
                    "The share of tokens that several ranks share.")
      .def_readonly("pad_ratio", &figures::pad_ratio,
                    "The share of padding if each pack is padded to the length of its level.")
      .def("__repr__", [](figures const& self) {
        auto const fact = [](std::string const& text, double value) {
          return text + " " + convert::number_text(py::float_(value));
        };
        return convert::repr_text("LevelFigures",
                                  {fact("data balance", self.data_balance),
                                   fact("attention balance", self.attention_balance),
                                   fact("communication ratio", self.communication_ratio),
                                   fact("pad ratio", self.pad_ratio)});
      });
  convert::add_pickle_of(type, &figures::data_balance, &figures::attention_balance,
                         &figures::communication_ratio, &figures::pad_ratio);
  module.def("level_metrics", &level_metrics, docstrings::level_metrics, py::arg("packed"),
             py::arg("schedules"), py::arg("lengths"));
}

}  // namespace

void define(py::module_& module) {
  define_figures(module);
  module.def("unscheduled_groups", &unscheduled_groups, docstrings::unscheduled_groups,
             py::arg("schedule"), py::arg("groups"), py::arg("carried") = py::none());
  module.def("step_overlap", &step_overlap, docstrings::step_overlap, py::arg("first"),
             py::arg("second"));
  module.def("step_spread", &step_spread, docstrings::step_spread, py::arg("schedule"),
             py::arg("loads"));
  module.def("attention_balance", &attention_balance, docstrings::attention_balance,
             py::arg("schedule"), py::arg("groups"), py::arg("lengths"));
  module.def("communication_ratio", &communication_ratio, docstrings::communication_ratio,
             py::arg("groups"), py::arg("lengths"), py::arg("degrees"));
  module.def("level_steps", &level_steps, docstrings::level_steps, py::arg("packed"),
             py::arg("loads"), py::arg("ranks"), py::kw_only(), py::arg("seed") = 0,
             py::arg("epoch") = 0, py::arg("max_dist_ratio") = 0.005,
             py::arg("remainder") = "short_step");
}

}  // namespace measures
