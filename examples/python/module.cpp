// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/version.hpp>

#include <stdexcept>
#include <string>

#include <pybind11/stl.h>

namespace activations {
void define(pybind11::module_& module);
}
namespace algorithms {
void define(pybind11::module_& module);
}
namespace contexts {
void define(pybind11::module_& module);
}
namespace configurations {
void define(pybind11::module_& module);
}
namespace deferral {
void define(pybind11::module_& module);
}
namespace encoders {
void define(pybind11::module_& module);
}
namespace exchange {
void define(pybind11::module_& module);
}
namespace experts {
void define(pybind11::module_& module);
}
namespace fits {
void define(pybind11::module_& module);
}
namespace histograms {
void define(pybind11::module_& module);
}
namespace machines {
void define(pybind11::module_& module);
}
namespace measures {
void define(pybind11::module_& module);
}
namespace models {
void define(pybind11::module_& module);
}
namespace packs {
void define(pybind11::module_& module);
}
namespace parts {
void define(pybind11::module_& module);
}
namespace pipeline {
void define(pybind11::module_& module);
}
namespace plans {
void define(pybind11::module_& module);
}
namespace prefixes {
void define(pybind11::module_& module);
}
namespace prefix_layouts {
void define(pybind11::module_& module);
}
namespace prefix_steps {
void define(pybind11::module_& module);
}
namespace samplers {
void define(pybind11::module_& module);
}
namespace sampling {
void define(pybind11::module_& module);
}
namespace schedules {
void define(pybind11::module_& module);
}
namespace slices {
void define(pybind11::module_& module);
}

namespace results {

namespace {

groups checked_groups(py::object const& offsets, py::object const& items) {
  auto const as_indices = [](char const* name, py::object const& given) {
    auto const list = convert::integer_list("Groups", name, given);
    for (std::int64_t const value : list.values()) {
      if (value >= 0 && value <= UINT32_MAX) continue;
      convert::reject("Groups", std::string(name) + " have " + std::to_string(value) +
                                    ", must be in [0, " + std::to_string(UINT32_MAX) + "]");
    }
    return index_array(given);
  };
  groups result{as_indices("offsets", offsets), as_indices("items", items)};
  static_cast<void>(to_grouping(result));
  return result;
}

void define_groups(py::module_& module) {
  py::class_<groups> type(module, "Groups", docstrings::Groups);
  type.def(py::init(&checked_groups), py::arg("offsets"), py::arg("items"), docstrings::Groups_init)
      .def_readonly("offsets", &groups::offsets, "One more than there are groups, uint32.")
      .def_readonly("items", &groups::items, "The indices of all groups, uint32.")
      .def("__len__", &groups::size)
      .def("__getitem__", &groups::at, py::arg("group"))
      .def("__getitem__", &convert::elements_at, py::arg("group"))
      .def("__iter__", &convert::iterate)
      .def("tolist", &groups::to_list, docstrings::Groups_tolist)
      .def("__eq__",
           [](groups const& left, groups const& right) {
             auto const equal = py::module_::import("numpy").attr("array_equal");
             return equal(left.offsets, right.offsets).cast<bool>() &&
                    equal(left.items, right.items).cast<bool>();
           })
      .def("__repr__", [](groups const& self) {
        auto const items = static_cast<std::size_t>(self.items.size());
        return convert::repr_text(
            "Groups", {convert::count_text(self.size(), "group") + " of " + std::to_string(items) +
                       (items == 1 ? " index" : " indices")});
      });
  convert::add_pickle(
      type, 2, [](groups const& self) { return py::make_tuple(self.offsets, self.items); },
      [](py::tuple const& state) { return checked_groups(state[0], state[1]); });
}

void define_packing(py::module_& module) {
  py::class_<packing> type(module, "Packing", docstrings::Packing);
  type.def_readonly("groups", &packing::of, "The samples of each group.")
      .def_readonly("oversized", &packing::oversized,
                    "The samples that exceed the capacity alone, ascending, uint32.")
      .def_property_readonly(
          "lower_bound", [](packing const& self) { return self.report.lower_bound; },
          "No packing of these samples has fewer groups.")
      .def_property_readonly(
          "rounds", [](packing const& self) { return self.report.rounds; },
          "Rounds, passes or attempts.")
      .def_property_readonly(
          "below_keep", [](packing const& self) { return self.report.below_keep; },
          "Groups that do not satisfy the keep rule of isf.")
      .def("__len__", [](packing const& self) { return self.of.size(); })
      .def(
          "__getitem__", [](packing const& self, py::ssize_t group) { return self.of.at(group); },
          py::arg("group"))
      .def("__getitem__", &convert::elements_at, py::arg("group"))
      .def("__iter__", &convert::iterate)
      .def(
          "plot",
          [](packing const& self, py::object const& demands, py::object const& capacity,
             py::object const& axes) {
            auto const plot = py::module_::import("omnibal._plot").attr("plot_fill");
            return py::object(plot(self, demands, capacity, axes));
          },
          py::arg("demands"), py::arg("capacity"), py::arg("axes") = py::none(),
          docstrings::Packing_plot)
      .def("__repr__", [](packing const& self) {
        auto const oversized = static_cast<std::size_t>(self.oversized.size());
        return convert::repr_text("Packing", {convert::count_text(self.of.size(), "group"),
                                              "at least " + std::to_string(self.report.lower_bound),
                                              convert::count_text(oversized, "oversized sample")});
      });
  convert::add_pickle(
      type, 6,
      [](packing const& self) {
        auto const& report = self.report;
        return py::make_tuple(self.of, self.oversized, report.lower_bound, report.rounds,
                              report.item_rounds, report.below_keep);
      },
      [](py::tuple const& state) {
        return packing{state[0].cast<groups>(), state[1].cast<index_array>(),
                       omnibal::packing_report{.lower_bound = state[2].cast<std::size_t>(),
                                               .rounds = state[3].cast<std::size_t>(),
                                               .item_rounds = state[4].cast<std::uint64_t>(),
                                               .below_keep = state[5].cast<std::size_t>()}};
      });
}

void define_steps(py::module_& module) {
  auto const at = [](steps const& self, py::ssize_t step, py::ssize_t rank) {
    auto const count = static_cast<py::ssize_t>(self.size());
    auto const ranks = static_cast<py::ssize_t>(self.ranks);
    if (step < 0 || step >= count || rank < 0 || rank >= ranks) {
      throw py::index_error("there is no such step or rank");
    }
    return step * ranks + rank;
  };
  py::class_<steps> type(module, "Steps", docstrings::Steps);
  type.def_readonly("ranks", &steps::ranks, "The number of ranks.")
      .def_readonly("cells", &steps::cells, "All of them: group s * ranks + r is steps[s, r].")
      .def("__len__", &steps::size)
      .def(
          "__getitem__",
          [at](steps const& self, py::ssize_t step) {
            if (step < 0) step += static_cast<py::ssize_t>(self.size());
            py::list result;
            for (py::ssize_t rank = 0; rank != static_cast<py::ssize_t>(self.ranks); ++rank) {
              result.append(self.cells.at(at(self, step, rank)));
            }
            return result;
          },
          py::arg("place"))
      .def("__getitem__", &convert::elements_at, py::arg("place"))
      .def("__iter__", &convert::iterate)
      .def(
          "__getitem__",
          [at](steps const& self, std::pair<py::ssize_t, py::ssize_t> const& place) {
            return self.cells.at(at(self, place.first, place.second));
          },
          py::arg("place"))
      .def(
          "is_repeat",
          [at](steps const& self, py::ssize_t step, py::ssize_t rank) {
            return bool(self.repeats[static_cast<std::size_t>(at(self, step, rank))]);
          },
          py::arg("step"), py::arg("rank"), docstrings::Steps_is_repeat)
      .def("__repr__", [](steps const& self) {
        return convert::repr_text("Steps", {convert::count_text(self.size(), "step") + " of " +
                                            convert::count_text(self.ranks, "rank")});
      });
  convert::add_pickle(
      type, 3,
      [](steps const& self) { return py::make_tuple(self.ranks, self.cells, self.repeats); },
      [](py::tuple const& state) {
        steps result{state[0].cast<std::size_t>(), state[1].cast<groups>(),
                     state[2].cast<std::vector<bool>>()};
        if (result.ranks == 0 || result.repeats.size() != result.cells.size() ||
            result.cells.size() % result.ranks != 0) {
          convert::reject("Steps", "the state has ranks, cells and repeats that disagree");
        }
        return result;
      });
}

}  // namespace

void define(py::module_& module) {
  define_groups(module);
  define_packing(module);
  define_steps(module);
}

}  // namespace results

namespace {

void replace_all(std::string& text, std::string const& from, std::string const& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// A text of the library in the words of Python: its functions and arguments by their names here.
std::string to_python_text(std::string text) {
  replace_all(text, "omnibal::batch_mixture: ", "omnibal.BatchMixture: ");
  replace_all(text, "omnibal::checkpoint_line: ", "omnibal.CheckpointLine: ");
  replace_all(text, "omnibal::deferral_queue: ", "omnibal.DeferralQueue: ");
  replace_all(text, "omnibal::deferral_queue::push: ", "omnibal.DeferralQueue.push: ");
  replace_all(text, "omnibal::epoch_sampler: ", "omnibal.EpochSampler: ");
  replace_all(text, "omnibal::document_cost: ", "omnibal.LanguageModel.document_cost: ");
  replace_all(text, "omnibal::exchange_plan::permuted: ", "omnibal.ExchangePlan.permuted: ");
  replace_all(text, "omnibal::language_model: ", "omnibal.LanguageModel: ");
  replace_all(text, "omnibal::layer_costs: ", "omnibal.LanguageModel.layer_costs: ");
  replace_all(text, "omnibal::level_sampler: ", "omnibal.LevelSampler: ");
  replace_all(text, "omnibal::listed_schedule: ", "omnibal.ListedSchedule: ");
  replace_all(text, "omnibal::estimate_makespan: time[", "omnibal.estimate_makespan: times[");
  replace_all(text, "omnibal::measured_table: size[", "omnibal.measured_table: sizes[");
  replace_all(text, "omnibal::measured_table: value[", "omnibal.measured_table: values[");
  replace_all(text, "omnibal::measured_table: size ", "omnibal.MeasuredCost: size ");
  replace_all(text, "omnibal::mixture: ", "omnibal.Mixture: ");
  replace_all(text, "omnibal::online_packer: ", "omnibal.OnlinePacker: ");
  replace_all(text, "omnibal::online_padded_packer: ", "omnibal.OnlinePaddedPacker: ");
  replace_all(text, "omnibal::build_prefix_forest: blocks.", "omnibal.build_prefix_forest: ");
  replace_all(text, "omnibal::build_prefix_forest: hashes",
              "omnibal.build_prefix_forest: sequences");
  replace_all(text, "because blocks.", "because ");
  replace_all(text, "omnibal::build_prefix_forest: nodes.", "omnibal.PrefixForest: ");
  replace_all(text, ", or no_parent", ", or -1");
  replace_all(text, "omnibal::prefix_forest: ", "omnibal.PrefixForest: ");
  replace_all(text, "omnibal::prefix_work: ", "omnibal.PrefixWork: ");
  replace_all(text, "omnibal::recompute_lists: ", "omnibal.PipelinePlan.recompute_lists: ");
  replace_all(text, "omnibal::step_sampler: ", "omnibal.StepSampler: ");
  replace_all(text, "omnibal::write_megatron_layout: ", "omnibal.PipelinePlan.megatron_layout: ");
  replace_all(text, "omnibal::write_schedule: ", "omnibal.ListedSchedule.to_csv: ");
  replace_all(text, "omnibal::", "omnibal.");
  replace_all(text, "options.packing.", "");
  replace_all(text, "options.schedule.", "");
  replace_all(text, "options.", "");
  replace_all(text, "machine.memory_bytes", "memory");
  replace_all(text, "machine.", "");
  replace_all(text, "link.bytes", "bytes");
  replace_all(text, "link.forward", "forward");
  replace_all(text, "link.backward", "backward");
  replace_all(text, "constraints.", "");
  replace_all(text, "shard.", "");
  return text;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  // The docstrings begin with the signatures, in the form that inspect.signature reads.
  pybind11::options options;
  options.disable_function_signatures();
  module.attr("__version__") = std::to_string(OMNIBAL_VERSION_MAJOR) + "." +
                               std::to_string(OMNIBAL_VERSION_MINOR) + "." +
                               std::to_string(OMNIBAL_VERSION_PATCH);
  module.doc() = "omnibal on NumPy arrays; see the package omnibal.";
  // All that the library reports of an argument is a ValueError, sums that overflow included.
  pybind11::register_exception_translator([](std::exception_ptr fault) {
    try {
      if (fault) std::rethrow_exception(fault);
    } catch (convert::caused_error const& error) {
      pybind11::error_already_set cause = error.cause();
      pybind11::raise_from(cause, PyExc_ValueError, to_python_text(error.what()).c_str());
    } catch (std::logic_error const& error) {
      PyErr_SetString(PyExc_ValueError, to_python_text(error.what()).c_str());
    } catch (std::overflow_error const& error) {
      PyErr_SetString(PyExc_ValueError, to_python_text(error.what()).c_str());
    }
  });
  results::define(module);
  activations::define(module);
  algorithms::define(module);
  contexts::define(module);
  deferral::define(module);
  encoders::define(module);
  exchange::define(module);
  experts::define(module);
  fits::define(module);
  histograms::define(module);
  measures::define(module);
  models::define(module);
  machines::define(module);
  configurations::define(module);
  packs::define(module);
  parts::define(module);
  pipeline::define(module);
  plans::define(module);
  prefixes::define(module);
  prefix_layouts::define(module);
  prefix_steps::define(module);
  samplers::define(module);
  sampling::define(module);
  schedules::define(module);
  slices::define(module);
}
