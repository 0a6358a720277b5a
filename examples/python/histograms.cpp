// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "results.hpp"
#include "rows.hpp"
#include "threads.hpp"

#include <omnibal/pack/best_patterns.hpp>
#include <omnibal/pack/pack_histogram.hpp>
#include <omnibal/pack/pattern_plan.hpp>
#include <omnibal/pack/place_samples.hpp>
#include <omnibal/pack/sample_histogram.hpp>
#include <omnibal/pack/share_of_shard.hpp>
#include <omnibal/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace histograms {

namespace py = pybind11;
using convert::count_of;
using convert::demand_list;
using convert::integer_list;
using convert::limit_list;
using convert::reject;
using convert::released;

static_assert(arrays::max_kinds == 3);

/// How often each demand occurs, for one to three resources.
struct histogram {
  std::variant<omnibal::sample_histogram<1>, omnibal::sample_histogram<2>,
               omnibal::sample_histogram<3>>
      of;

  [[nodiscard]] std::size_t kinds() const { return of.index() + 1; }
};

/// A plan of a histogram, and the limits that it obeys.
struct plan {
  std::variant<omnibal::pattern_plan<1>, omnibal::pattern_plan<2>, omnibal::pattern_plan<3>> of;
  limit_list capacity;
  /// The steps of `best_patterns`; empty if the plan is of `pack_histogram`.
  std::optional<std::int64_t> pattern_steps;
};

}  // namespace histograms

namespace pybind11::detail {
template <>
struct type_caster<histograms::histogram> : convert::value_caster<histograms::histogram> {};
template <>
struct type_caster<histograms::plan> : convert::value_caster<histograms::plan> {};
}  // namespace pybind11::detail

namespace histograms {

namespace {

histogram count_samples(py::object const& demands, std::int64_t threads) {
  std::string const name = "count_samples";
  demand_list const rows(name, "demands", demands);
  arrays::executor const on_threads = convert::to_executor(name, threads);
  return released([&] {
    return arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto) {
      return arrays::with_executor(on_threads, [&](auto const& run) {
        return histogram{omnibal::count_samples(samples, demand, run)};
      });
    });
  });
}

histogram from_entries(py::object const& demands, py::object const& counts) {
  std::string const name = "SampleHistogram";
  demand_list const rows(name, "demands", demands);
  integer_list const numbers(name, "counts", counts);
  arrays::integers const given = numbers.values();
  return arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
    if (given.size() != samples.size()) {
      reject(name, "counts has " + std::to_string(given.size()) + " elements, must have " +
                       std::to_string(samples.size()) + ", one for each demand");
    }
    std::vector<omnibal::demand_count<kinds()>> entries;
    entries.reserve(samples.size());
    for (std::size_t i = 0; i != samples.size(); ++i) {
      omnibal::resources<kinds()> amounts{};
      if constexpr (kinds() == 1) {
        amounts[0] = samples[i];
      } else {
        amounts = demand(samples[i]);
      }
      entries.push_back({amounts, count_of(name, "counts[" + std::to_string(i) + "]", given[i])});
    }
    return histogram{omnibal::sample_histogram<kinds()>(std::move(entries))};
  });
}

void check_kinds(std::string const& function, histogram const& other, std::size_t kinds) {
  if (other.kinds() == kinds) return;
  reject(function, "the histograms have " + std::to_string(kinds) + " and " +
                       std::to_string(other.kinds()) + " resources, must have as many");
}

void merge(histogram& self, histogram const& other) {
  check_kinds("SampleHistogram.merge", other, self.kinds());
  std::visit([&](auto& of) { of.merge(std::get<std::decay_t<decltype(of)>>(other.of)); }, self.of);
}

/// A number for each entry, or a row of them.
py::array demands_of(histogram const& self) {
  return std::visit(
      [&](auto const& of) -> py::array {
        std::vector<std::int64_t> amounts;
        amounts.reserve(of.entries().size() * self.kinds());
        for (auto const& entry : of.entries()) {
          for (std::size_t r = 0; r != self.kinds(); ++r) amounts.push_back(entry.demand[r]);
        }
        py::array result = convert::to_array(std::move(amounts));
        if (self.kinds() == 1) return result;
        return result.attr("reshape")(-1, self.kinds());
      },
      self.of);
}

py::array counts_of(histogram const& self) {
  return std::visit(
      [](auto const& of) -> py::array {
        std::vector<std::int64_t> counts;
        counts.reserve(of.entries().size());
        for (auto const& entry : of.entries()) {
          counts.push_back(static_cast<std::int64_t>(entry.count));
        }
        return convert::to_array(std::move(counts));
      },
      self.of);
}

plan pack_patterns(std::string const& name, histogram const& samples, py::object const& capacity,
                   std::optional<std::int64_t> pattern_steps) {
  limit_list limits(name, "capacity", capacity);
  return released([&] {
    return std::visit(
        [&]<std::size_t R>(omnibal::sample_histogram<R> const& of) {
          auto const bounds = arrays::limits_of<R>(name, "capacity", limits.values());
          if (!pattern_steps) {
            return plan{omnibal::pack_histogram(of, bounds), std::move(limits), pattern_steps};
          }
          std::size_t const steps = count_of(name, "pattern_steps", *pattern_steps);
          return plan{omnibal::best_patterns(of, bounds, {.pattern_steps = steps}),
                      std::move(limits), pattern_steps};
        },
        samples.of);
  });
}

plan pack_histogram(histogram const& samples, py::object const& capacity) {
  return pack_patterns("pack_histogram", samples, capacity, {});
}

plan best_patterns(histogram const& samples, py::object const& capacity,
                   std::int64_t pattern_steps) {
  return pack_patterns("best_patterns", samples, capacity, pattern_steps);
}

py::array share_of_shard(plan const& of, std::int64_t shard, std::int64_t shards) {
  std::string const name = "share_of_shard";
  std::size_t const number = count_of(name, "shard", shard);
  std::size_t const count = count_of(name, "shards", shards);
  return convert::to_array(std::visit(
      [&](auto const& patterns) { return omnibal::share_of_shard(patterns, number, count); },
      of.of));
}

py::array place_samples(plan const& of, py::object const& before, py::object const& demands) {
  std::string const name = "place_samples";
  demand_list const rows(name, "demands", demands);
  auto const place = [&]<std::size_t R>(omnibal::pattern_plan<R> const& patterns) {
    histogram passed{omnibal::sample_histogram<R>{}};
    if (!before.is_none()) passed = before.cast<histogram>();
    check_kinds(name, passed, R);
    auto const& earlier = std::get<omnibal::sample_histogram<R>>(passed.of);
    return released([&] {
      return arrays::with_rows(
          name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
            if constexpr (kinds() == R) {
              return omnibal::place_samples(patterns, earlier, samples, demand);
            } else {
              reject(name, "demands have " + std::to_string(kinds()) + " resources, must have " +
                               std::to_string(R));
              return std::vector<std::uint64_t>{};
            }
          });
    });
  };
  return convert::to_array(std::visit(place, of.of));
}

/// An array of a member of each part of a plan.
template <class T, class Member>
py::array parts_of(plan const& self, Member const& member) {
  return std::visit(
      [&](auto const& of) -> py::array {
        std::vector<T> values;
        values.reserve(of.parts.size());
        for (omnibal::pattern_part const& part : of.parts) values.push_back(member(part));
        return convert::to_array(std::move(values));
      },
      self.of);
}

template <class T, class Member>
py::array list_of(plan const& self, Member const& member) {
  return std::visit(
      [&](auto const& of) -> py::array {
        auto const& list = member(of);
        return convert::to_array(std::vector<T>(list.begin(), list.end()));
      },
      self.of);
}

void define_histogram(py::module_& module) {
  py::class_<histogram> type(module, "SampleHistogram", docstrings::SampleHistogram);
  type.def(py::init(&from_entries), py::arg("demands"), py::arg("counts"),
           docstrings::SampleHistogram_init)
      .def_property_readonly("demands", &demands_of,
                             "The different demands, ascending, int64: a row for each if there are "
                             "several resources.")
      .def_property_readonly("counts", &counts_of, "The number of samples of each demand, int64.")
      .def_property_readonly(
          "sample_count",
          [](histogram const& self) {
            return std::visit([](auto const& of) { return of.sample_count(); }, self.of);
          },
          "The number of samples.")
      .def("merge", &merge, py::arg("other"), docstrings::SampleHistogram_merge)
      .def("__len__",
           [](histogram const& self) {
             return std::visit([](auto const& of) { return of.entries().size(); }, self.of);
           })
      .def("__eq__",
           [](histogram const& left, histogram const& right) { return left.of == right.of; })
      .def("__repr__", [](histogram const& self) {
        return std::visit(
            [](auto const& of) {
              return convert::repr_text("SampleHistogram",
                                        {convert::count_text(of.sample_count(), "sample"),
                                         convert::count_text(of.entries().size(), "demand")});
            },
            self.of);
      });
  convert::add_pickle(
      type, 2,
      [](histogram const& self) { return py::make_tuple(demands_of(self), counts_of(self)); },
      [](py::tuple const& state) { return from_entries(state[0], state[1]); });
}

void define_plan(py::module_& module) {
  py::class_<plan> type(module, "PatternPlan", docstrings::PatternPlan);
  type.def_property_readonly(
          "histogram",
          [](plan const& self) {
            return std::visit([](auto const& of) { return histogram{of.histogram}; }, self.of);
          },
          "The samples that the plan packs.")
      .def_property_readonly(
          "offsets",
          [](plan const& self) {
            return list_of<std::int64_t>(self, [](auto const& of) { return of.offsets; });
          },
          "Pattern p has the parts offsets[p] to offsets[p + 1], int64.")
      .def_property_readonly(
          "entries",
          [](plan const& self) {
            return parts_of<std::uint32_t>(self, [](auto const& part) { return part.entry; });
          },
          "The demand of each part, an index of `histogram.demands`, uint32.")
      .def_property_readonly(
          "counts",
          [](plan const& self) {
            return parts_of<std::uint64_t>(self, [](auto const& part) { return part.count; });
          },
          "The samples of each part in each group of its pattern, uint64.")
      .def_property_readonly(
          "multiplicities",
          [](plan const& self) {
            return list_of<std::uint64_t>(self, [](auto const& of) { return of.multiplicities; });
          },
          "The number of groups of each pattern, uint64.")
      .def_property_readonly(
          "oversized",
          [](plan const& self) {
            return list_of<std::uint32_t>(self, [](auto const& of) { return of.oversized; });
          },
          "The demands that exceed the capacity by themselves, uint32.")
      .def_property_readonly(
          "group_count",
          [](plan const& self) {
            return std::visit([](auto const& of) { return of.group_count; }, self.of);
          },
          "The number of groups.")
      .def_property_readonly(
          "lower_bound",
          [](plan const& self) {
            return std::visit([](auto const& of) { return of.lower_bound; }, self.of);
          },
          "No packing of these samples has fewer groups.")
      .def_property_readonly(
          "proven",
          [](plan const& self) {
            return std::visit([](auto const& of) { return of.is_proven(); }, self.of);
          },
          "True if no packing of these samples has fewer groups.")
      .def("__len__",
           [](plan const& self) {
             return std::visit([](auto const& of) { return of.multiplicities.size(); }, self.of);
           })
      .def("__eq__", [](plan const& left, plan const& right) { return left.of == right.of; })
      .def("__repr__", [](plan const& self) {
        return std::visit(
            [](auto const& of) {
              return convert::repr_text("PatternPlan",
                                        {convert::count_text(of.group_count, "group"),
                                         convert::count_text(of.multiplicities.size(), "pattern"),
                                         "at least " + std::to_string(of.lower_bound)});
            },
            self.of);
      });
  // The same samples and limits have the same plan.
  convert::add_pickle(
      type, 3,
      [](plan const& self) {
        auto const limits = self.capacity.values();
        return py::make_tuple(
            std::visit([](auto const& of) { return histogram{of.histogram}; }, self.of),
            convert::to_array(std::vector<std::int64_t>(limits.begin(), limits.end())),
            self.pattern_steps);
      },
      [](py::tuple const& state) {
        return pack_patterns("PatternPlan", state[0].cast<histogram>(), state[1],
                             state[2].cast<std::optional<std::int64_t>>());
      });
}

}  // namespace

void define(py::module_& module) {
  define_histogram(module);
  define_plan(module);
  module.attr("NO_GROUP") = omnibal::no_group;
  module.def("count_samples", &count_samples, docstrings::count_samples, py::arg("demands"),
             py::kw_only(), py::arg("threads") = 1);
  module.def("pack_histogram", &pack_histogram, docstrings::pack_histogram, py::arg("histogram"),
             py::arg("capacity"));
  module.def("best_patterns", &best_patterns, docstrings::best_patterns, py::arg("histogram"),
             py::arg("capacity"), py::arg("pattern_steps") = std::int64_t{1} << 28);
  module.def("share_of_shard", &share_of_shard, docstrings::share_of_shard, py::arg("plan"),
             py::arg("shard"), py::arg("shards"));
  module.def("place_samples", &place_samples, docstrings::place_samples, py::arg("plan"),
             py::arg("before"), py::arg("demands"));
}

}  // namespace histograms
