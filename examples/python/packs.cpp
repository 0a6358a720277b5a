// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "levels.hpp"
#include "results.hpp"

#include <omnibal/hierarchy/pack_levels.hpp>
#include <omnibal/pack/best_fit_decreasing.hpp>
#include <omnibal/pack/best_packing.hpp>
#include <omnibal/pack/capacity_warnings.hpp>
#include <omnibal/pack/cu_seqlens.hpp>
#include <omnibal/pack/next_fit.hpp>
#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/pack/split_long.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace packs {

namespace py = pybind11;
using convert::integer_list;
using convert::reject;
using convert::released;
using convert::word_of;
using levels::level_packing;
using results::groups;
using results::index_array;
using offset_array = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;
using number_array = convert::integer_array;

/// Groups of pieces of samples.
struct split_packing {
  index_array samples;
  index_array parts;
  number_array firsts;
  number_array lengths;
  groups of;
  std::size_t first_long_group = 0;
  index_array oversized;
  std::size_t lower_bound = 0;
};

/// The cumulative lengths of each group, one group after the other.
struct sequences {
  offset_array offsets;
  number_array begins;
  offset_array longest;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(longest.size()); }

  /// The cumulative lengths of a group, a view.
  [[nodiscard]] py::object at(py::ssize_t group) const {
    auto const count = static_cast<py::ssize_t>(size());
    if (group < 0) group += count;
    if (group < 0 || group >= count) throw py::index_error("there is no such group");
    return offsets[py::slice(begins.data()[group], begins.data()[group + 1], 1)];
  }
};

}  // namespace packs

namespace pybind11::detail {
template <>
struct type_caster<omnibal::capacity_warning<>>
    : convert::value_caster<omnibal::capacity_warning<>> {};
template <>
struct type_caster<packs::split_packing> : convert::value_caster<packs::split_packing> {};
template <>
struct type_caster<packs::sequences> : convert::value_caster<packs::sequences> {};
}  // namespace pybind11::detail

namespace packs {

namespace {

omnibal::oversize_policy to_policy(std::string const& function, std::string const& name,
                                   std::string const& policy) {
  return static_cast<omnibal::oversize_policy>(
      word_of(function, name, policy, {"list", "own_group", "reject"}));
}

/// Calls `body` with the packer of this name.
template <class Body>
auto with_packer(std::string const& function, std::string const& name, Body const& body) {
  switch (word_of(function, "packer", name, {"best_fit_decreasing", "best_packing", "next_fit"})) {
    case 0: return body(omnibal::best_fit_decreasing);
    case 1: return body(omnibal::best_packing);
    default: return body(omnibal::next_fit);
  }
}

results::packing place_oversized(results::packing const& packed, std::string const& policy) {
  auto given = results::to_packed(packed);
  auto const chosen = to_policy("place_oversized", "policy", policy);
  return results::to_packing(
      released([&] { return omnibal::place_oversized(std::move(given), chosen); }));
}

split_packing split_long(py::object const& lengths, std::int64_t capacity,
                         std::string const& policy, std::string const& sizes, std::int64_t multiple,
                         std::string const& packer) {
  std::string const name = "split_long";
  integer_list const list(name, "lengths", lengths);
  omnibal::split_long_options const options{
      .policy = static_cast<omnibal::long_samples>(
          word_of(name, "policy", policy, {"reject", "own_group", "split"})),
      .sizes = static_cast<omnibal::piece_sizes>(word_of(name, "sizes", sizes, {"even", "full"})),
      .multiple = multiple};
  auto found = with_packer(name, packer, [&](auto const& pack) {
    return released([&] {
      return omnibal::split_long(list.values(), std::identity{}, capacity, pack, options);
    });
  });
  std::vector<std::uint32_t> samples;
  std::vector<std::uint32_t> parts;
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> sizes_of;
  for (omnibal::text_piece const& piece : found.pieces) {
    samples.push_back(piece.sample);
    parts.push_back(piece.part);
    firsts.push_back(piece.first);
    sizes_of.push_back(piece.length);
  }
  return {convert::to_array(std::move(samples)),         convert::to_array(std::move(parts)),
          convert::to_array(std::move(firsts)),          convert::to_array(std::move(sizes_of)),
          results::to_groups(std::move(found.groups)),   found.first_long_group,
          convert::to_array(std::move(found.oversized)), found.report.lower_bound};
}

sequences cu_seqlens(groups const& of, py::object const& lengths) {
  integer_list const list("cu_seqlens", "lengths", lengths);
  auto const given = results::to_grouping(of);
  auto const found = released([&] { return omnibal::cu_seqlens(given, list.values()); });
  std::vector<std::int32_t> longest;
  for (std::size_t group = 0; group != found.size(); ++group) {
    longest.push_back(found.longest(group));
  }
  auto const offsets = found.offsets();
  auto const begins = found.begins();
  return {convert::to_array(std::vector<std::int32_t>(offsets.begin(), offsets.end())),
          convert::to_array(std::vector<std::int64_t>(begins.begin(), begins.end())),
          convert::to_array(std::move(longest))};
}

/// The position of each token of a group in its sequence.
py::array position_ids(sequences const& self, py::ssize_t group) {
  auto const cumulative = offset_array(self.at(group));
  std::vector<std::int32_t> ids;
  for (py::ssize_t k = 1; k < cumulative.size(); ++k) {
    std::int32_t const length = cumulative.at(k) - cumulative.at(k - 1);
    for (std::int32_t id = 0; id < length; ++id) ids.push_back(id);
  }
  return convert::to_array(std::move(ids));
}

level_packing pack_levels(py::object const& lengths, py::object const& given,
                          std::string const& fill, std::string const& order,
                          std::string const& oversized, std::string const& packer) {
  std::string const name = "pack_levels";
  integer_list const list(name, "lengths", lengths);
  auto const settings = levels::to_settings(name, given);
  omnibal::pack_levels_options const options{
      .fill = static_cast<omnibal::level_fill>(word_of(name, "fill", fill, {"greedy", "none"})),
      .order = static_cast<omnibal::pack_order>(
          word_of(name, "order", order, {"by_attention", "as_packed"})),
      .oversized = to_policy(name, "oversized", oversized)};
  return levels::to_python(with_packer(name, packer, [&](auto const& pack) {
    return released([&] {
      return omnibal::pack_levels(list.values(), std::identity{}, settings, pack, options);
    });
  }));
}

void define_split(py::module_& module) {
  py::class_<split_packing> type(module, "SplitPacking", docstrings::SplitPacking);
  type.def_readonly("samples", &split_packing::samples, "The sample of each piece, uint32.")
      .def_readonly("parts", &split_packing::parts,
                    "The number of each piece within its sample, uint32.")
      .def_readonly("firsts", &split_packing::firsts, "The first token of each piece, int64.")
      .def_readonly("lengths", &split_packing::lengths, "The tokens of each piece, int64.")
      .def_readonly("groups", &split_packing::of, "The pieces of each group.")
      .def_readonly("first_long_group", &split_packing::first_long_group,
                    "From this group on, each group is one sample above the capacity.")
      .def_readonly("oversized", &split_packing::oversized,
                    "The samples that were rejected, ascending, uint32.")
      .def_readonly("lower_bound", &split_packing::lower_bound,
                    "No packing of these pieces has fewer groups.")
      .def("__len__", [](split_packing const& self) { return self.of.size(); })
      .def("__repr__", [](split_packing const& self) {
        auto const pieces = static_cast<std::size_t>(self.samples.size());
        return convert::repr_text("SplitPacking", {convert::count_text(self.of.size(), "group"),
                                                   convert::count_text(pieces, "piece"),
                                                   "at least " + std::to_string(self.lower_bound)});
      });
  convert::add_pickle_of(type, &split_packing::samples, &split_packing::parts,
                         &split_packing::firsts, &split_packing::lengths, &split_packing::of,
                         &split_packing::first_long_group, &split_packing::oversized,
                         &split_packing::lower_bound);
}

void define_sequences(py::module_& module) {
  py::class_<sequences> type(module, "SequenceOffsets", docstrings::SequenceOffsets);
  type.def_readonly("offsets", &sequences::offsets,
                    "The cumulative lengths of all groups, one group after the other, int32.")
      .def_readonly("begins", &sequences::begins,
                    "Where each group begins in `offsets`, and the end, int64.")
      .def_readonly("longest", &sequences::longest,
                    "The length of the longest sequence of each group, int32.")
      .def("position_ids", &position_ids, py::arg("group"),
           docstrings::SequenceOffsets_position_ids)
      .def("__len__", &sequences::size)
      .def("__getitem__", &sequences::at, py::arg("group"))
      .def("__getitem__", &convert::elements_at, py::arg("group"))
      .def("__iter__", &convert::iterate)
      .def("__repr__", [](sequences const& self) {
        return convert::repr_text("SequenceOffsets", {convert::count_text(self.size(), "group")});
      });
  convert::add_pickle(
      type, 3,
      [](sequences const& self) { return py::make_tuple(self.offsets, self.begins, self.longest); },
      [](py::tuple const& state) {
        sequences result{state[0].cast<offset_array>(), state[1].cast<number_array>(),
                         state[2].cast<offset_array>()};
        if (result.begins.size() != result.longest.size() + 1) {
          reject("SequenceOffsets", "the state has arrays that disagree");
        }
        return result;
      });
}

/// A capacity that does not fit two samples with the commonest demand.
using capacity_warning = omnibal::capacity_warning<>;

std::vector<capacity_warning> capacity_warnings(py::object const& demands,
                                                py::object const& capacity, double common_share) {
  std::string const name = "capacity_warnings";
  convert::demand_list const rows(name, "demands", demands);
  convert::limit_list const given(name, "capacity", capacity);
  return arrays::with_rows(name, rows.table(), [&](auto samples, auto const& demand, auto kinds) {
    auto const limits = arrays::limits_of<kinds()>(name, "capacity", given.values());
    return released(
        [&] { return omnibal::capacity_warnings(samples, demand, limits, common_share); });
  });
}

void define_warnings(py::module_& module) {
  py::class_<capacity_warning> type(module, "CapacityWarning", docstrings::CapacityWarning);
  type.def_readonly("kind", &capacity_warning::kind, "The index of the resource.")
      .def_readonly("capacity", &capacity_warning::capacity, "The capacity of the resource.")
      .def_readonly("commonest", &capacity_warning::commonest,
                    "The commonest demand above zero of the resource.")
      .def_readonly("samples", &capacity_warning::samples,
                    "The number of samples with this demand.")
      .def_readonly("enough", &capacity_warning::enough,
                    "The nearest capacity that fits two such samples; 2**63 - 1 if none exists.")
      .def(
          "__eq__",
          [](capacity_warning const& left, capacity_warning const& right) { return left == right; },
          py::is_operator())
      .def("__repr__", [](capacity_warning const& self) {
        return convert::repr_text(
            "CapacityWarning",
            {"resource " + std::to_string(self.kind), "capacity " + std::to_string(self.capacity),
             convert::count_text(self.samples, "sample") + " of " + std::to_string(self.commonest),
             std::to_string(self.enough) + " fits two"});
      });
  convert::add_pickle_of(type, &capacity_warning::kind, &capacity_warning::capacity,
                         &capacity_warning::commonest, &capacity_warning::samples,
                         &capacity_warning::enough);
  module.def("capacity_warnings", &capacity_warnings, docstrings::capacity_warnings,
             py::arg("demands"), py::arg("capacity"), py::kw_only(), py::arg("common_share") = 0.1);
}

void define_levels(py::module_& module) {
  py::class_<level_packing> type(module, "LevelPacking", docstrings::LevelPacking);
  type.def_readonly("levels", &level_packing::settings,
                    "For each level its length, its sequence-parallel degree and its checkpointed "
                    "layers, int64 of shape (levels, 3).")
      .def_readonly("groups", &level_packing::of,
                    "The packs of all levels, in the order of the levels.")
      .def_readonly("first_groups", &level_packing::first_groups,
                    "The first pack of each level, and the end, uint32.")
      .def_readonly("filled_in", &level_packing::filled_in,
                    "How many samples of shorter levels fill packs of each level, uint32.")
      .def_readonly("oversized", &level_packing::oversized,
                    "The samples above the last level that are in no pack, ascending, uint32.")
      .def("__len__", [](level_packing const& self) { return self.of.size(); })
      .def("__repr__", [](level_packing const& self) {
        auto const count = static_cast<std::size_t>(self.filled_in.size());
        auto const oversized = static_cast<std::size_t>(self.oversized.size());
        return convert::repr_text("LevelPacking",
                                  {convert::count_text(self.of.size(), "pack") + " in " +
                                       convert::count_text(count, "level"),
                                   convert::count_text(oversized, "oversized sample")});
      });
  convert::add_pickle_of(type, &level_packing::settings, &level_packing::of,
                         &level_packing::first_groups, &level_packing::filled_in,
                         &level_packing::oversized);
}

}  // namespace

void define(py::module_& module) {
  define_split(module);
  define_sequences(module);
  define_levels(module);
  define_warnings(module);
  module.def("place_oversized", &place_oversized, docstrings::place_oversized, py::arg("packed"),
             py::arg("policy"));
  module.def("split_long", &split_long, docstrings::split_long, py::arg("lengths"),
             py::arg("capacity"), py::kw_only(), py::arg("policy") = "split",
             py::arg("sizes") = "even", py::arg("multiple") = 1,
             py::arg("packer") = "best_fit_decreasing");
  module.def("cu_seqlens", &cu_seqlens, docstrings::cu_seqlens, py::arg("groups"),
             py::arg("lengths"));
  module.def("pack_levels", &pack_levels, docstrings::pack_levels, py::arg("lengths"),
             py::arg("levels"), py::kw_only(), py::arg("fill") = "greedy",
             py::arg("order") = "by_attention", py::arg("oversized") = "list",
             py::arg("packer") = "best_fit_decreasing");
}

}  // namespace packs
