// SPDX-License-Identifier: Apache-2.0
#include "convert.hpp"
#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/stl.h>

namespace prefixes {

namespace py = pybind11;
using convert::count_of;
using convert::integer_list;
using convert::reject;
using results::groups;
using results::index_array;
using size_array = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

/// Groups of sequences, and their forest for the layouts.
struct prefix_packing {
  groups of;
  index_array oversized;
  size_array tokens;
  std::uint64_t computed_tokens = 0;
  omnibal::prefix_bounds bound;
  std::shared_ptr<omnibal::prefix_forest const> forest;
};

namespace {

omnibal::oversize_policy to_policy(std::string const& function, std::string const& name) {
  if (name == "list") return omnibal::oversize_policy::list;
  if (name == "own_group") return omnibal::oversize_policy::own_group;
  if (name == "reject") return omnibal::oversize_policy::reject;
  reject(function, "oversized is " + name + ", must be list, own_group or reject");
}

prefix_packing pack(py::object const& sequences, std::int64_t capacity,
                    std::optional<std::int64_t> group_price, std::int64_t multiple_of,
                    std::string const& oversized, std::string const& effort, std::uint64_t seed) {
  std::string const name = "pack_prefixes";
  std::vector<integer_list> lists;
  for (py::handle const sequence : sequences) {
    lists.emplace_back(name, "sequences[" + std::to_string(lists.size()) + "]", sequence);
  }
  std::vector<std::span<std::int64_t const>> rows;
  rows.reserve(lists.size());
  for (integer_list const& list : lists) rows.push_back(list.values());
  omnibal::pack_prefixes_options options;
  if (group_price) options.group_price = count_of(name, "group_price", *group_price);
  options.multiple_of = count_of(name, "multiple_of", multiple_of);
  options.oversized = to_policy(name, oversized);
  options.effort = convert::to_effort(name, effort);
  options.seed = seed;
  std::uint64_t const limit = count_of(name, "capacity", capacity);
  auto forest = std::make_shared<omnibal::prefix_forest>();
  omnibal::prefix_packing packed = convert::released([&] {
    *forest = omnibal::build_prefix_forest(rows);
    return omnibal::pack_prefixes(*forest, limit, options);
  });
  return {results::to_groups(std::move(packed.groups)),
          convert::to_array(std::move(packed.oversized)),
          convert::to_array(std::move(packed.tokens)),
          packed.computed_tokens,
          packed.bound,
          std::move(forest)};
}

py::dict layout_of(prefix_packing const& self, std::int64_t group) {
  index_array const members = self.of.at(static_cast<py::ssize_t>(group)).cast<index_array>();
  auto layout = omnibal::layout_prefixes(
      *self.forest, std::span(members.data(), static_cast<std::size_t>(members.size())));
  std::vector<std::uint32_t> sources;
  for (std::uint32_t const node : layout.nodes) {
    sources.push_back(self.forest->first_sequences()[node]);
  }
  py::dict result;
  result["sequences"] = convert::to_array(std::move(layout.sequences));
  result["ends"] = convert::to_array(std::move(layout.ends));
  result["sources"] = convert::to_array(std::move(sources));
  result["parents"] = convert::to_array(std::move(layout.parents));
  result["subtree_ends"] = convert::to_array(std::move(layout.subtree_ends));
  result["cu_seqlens"] = convert::to_array(std::move(layout.cu_seqlens));
  result["positions"] = convert::to_array(std::move(layout.positions));
  result["token_ends"] = convert::to_array(std::move(layout.token_ends));
  result["predictors"] = convert::to_array(std::move(layout.predictors));
  return result;
}

template <class T>
py::array_t<T> copy_of(std::span<T const> values) {
  return convert::to_array(std::vector<T>(values.begin(), values.end()));
}

py::tuple state_of(prefix_packing const& self) {
  return py::make_tuple(self.of, self.oversized, self.tokens, self.computed_tokens,
                        self.bound.tokens, self.bound.groups, copy_of(self.forest->parents()),
                        copy_of(self.forest->lengths()), copy_of(self.forest->ends()));
}

prefix_packing from_state(py::tuple const& state) {
  auto const parents = state[6].cast<index_array>();
  auto const lengths = state[7].cast<size_array>();
  auto const ends = state[8].cast<index_array>();
  auto const span_of = [](auto const& array) {
    return std::span(array.data(), static_cast<std::size_t>(array.size()));
  };
  return {state[0].cast<groups>(),
          state[1].cast<index_array>(),
          state[2].cast<size_array>(),
          state[3].cast<std::uint64_t>(),
          {state[4].cast<std::uint64_t>(), state[5].cast<std::size_t>()},
          std::make_shared<omnibal::prefix_forest>(omnibal::build_prefix_forest(
              omnibal::prefix_nodes{span_of(parents), span_of(lengths), span_of(ends)}))};
}

}  // namespace

void define(py::module_& module) {
  py::class_<prefix_packing> type(module, "PrefixPacking", docstrings::PrefixPacking);
  type.def_readonly("groups", &prefix_packing::of, "The sequences of each group.")
      .def_readonly("oversized", &prefix_packing::oversized,
                    "The sequences that exceed the capacity alone, ascending, uint32.")
      .def_readonly("tokens", &prefix_packing::tokens, "The tokens of each group, uint64.")
      .def_readonly("computed_tokens", &prefix_packing::computed_tokens,
                    "The sum of the tokens of all groups.")
      .def_property_readonly(
          "trie_tokens", [](prefix_packing const& self) { return self.forest->trie_tokens(); },
          "The tokens of all sequences, with each shared token once.")
      .def_property_readonly(
          "all_tokens", [](prefix_packing const& self) { return self.forest->all_tokens(); },
          "The tokens of all sequences, with each shared token once for each sequence.")
      .def_property_readonly(
          "bound_tokens", [](prefix_packing const& self) { return self.bound.tokens; },
          "No packing computes fewer tokens.")
      .def_property_readonly(
          "bound_groups", [](prefix_packing const& self) { return self.bound.groups; },
          "No packing has fewer groups.")
      .def("layout", &layout_of, docstrings::PrefixPacking_layout, py::arg("group"))
      .def("__len__", [](prefix_packing const& self) { return self.of.size(); })
      .def(
          "__getitem__",
          [](prefix_packing const& self, py::ssize_t group) { return self.of.at(group); },
          py::arg("group"))
      .def("__getitem__", &convert::elements_at, py::arg("group"))
      .def("__iter__", &convert::iterate)
      .def("__repr__", [](prefix_packing const& self) {
        auto const oversized = static_cast<std::size_t>(self.oversized.size());
        return convert::repr_text(
            "PrefixPacking",
            {convert::count_text(self.of.size(), "group"),
             "at least " + std::to_string(self.bound.groups),
             convert::count_text(static_cast<std::size_t>(self.computed_tokens), "token"),
             "at least " + std::to_string(self.bound.tokens),
             convert::count_text(oversized, "oversized sequence")});
      });
  convert::add_pickle(type, 9, &state_of, &from_state);
  module.def("pack_prefixes", &pack, docstrings::pack_prefixes, py::arg("sequences"),
             py::arg("capacity"), py::kw_only(), py::arg("group_price") = py::none(),
             py::arg("multiple_of") = 1, py::arg("oversized") = "list",
             py::arg("effort") = "normal", py::arg("seed") = 0);
}

}  // namespace prefixes
