// SPDX-License-Identifier: Apache-2.0
#include "prefixes.hpp"

#include "docstrings.hpp"
#include "results.hpp"

#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/pack_prefixes.hpp>
#include <omnibal/prefix/prefix_bound.hpp>
#include <omnibal/prefix/prefix_work.hpp>

#include <algorithm>
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

using convert::count_of;
using convert::integer_list;
using convert::reject;
using convert::released;
using results::groups;
using results::index_array;

/// Groups of sequences, and their forest for the layouts.
struct prefix_packing {
  groups of;
  index_array oversized;
  size_array tokens;
  std::uint64_t computed_tokens = 0;
  omnibal::prefix_bounds bound;
  forest on;
};

}  // namespace prefixes

namespace pybind11::detail {
template <>
struct type_caster<prefixes::prefix_packing> : convert::value_caster<prefixes::prefix_packing> {};
template <>
struct type_caster<omnibal::prefix_bounds> : convert::value_caster<omnibal::prefix_bounds> {};
}  // namespace pybind11::detail

namespace prefixes {

namespace {

/// The token ids or the hashes of each sequence.
class token_lists {
 public:
  token_lists(std::string const& function, std::string const& name, py::object const& given) {
    for (py::handle const sequence : given) {
      lists_.emplace_back(function, name + "[" + std::to_string(lists_.size()) + "]", sequence);
    }
    rows_.reserve(lists_.size());
    for (integer_list const& list : lists_) rows_.push_back(list.values());
  }

  [[nodiscard]] std::vector<std::span<std::int64_t const>> const& rows() const { return rows_; }

 private:
  std::vector<integer_list> lists_;
  std::vector<std::span<std::int64_t const>> rows_;
};

forest shared(omnibal::prefix_forest&& given) {
  return {std::make_shared<omnibal::prefix_forest const>(std::move(given))};
}

/// Numbers of tokens.
std::vector<std::uint64_t> to_lengths(std::string const& function, py::object const& given) {
  integer_list const list(function, "lengths", given);
  std::vector<std::uint64_t> result;
  for (std::int64_t const value : list.values()) {
    result.push_back(count_of(function, "lengths[" + std::to_string(result.size()) + "]", value));
  }
  return result;
}

forest build(py::object const& sequences, std::optional<std::int64_t> block_tokens,
             py::object const& lengths) {
  std::string const name = "build_prefix_forest";
  token_lists const lists(name, "sequences", sequences);
  if (block_tokens.has_value() == lengths.is_none()) {
    reject(name, std::string(lengths.is_none() ? "block_tokens is given without lengths"
                                               : "lengths are given without block_tokens") +
                     ", must be both for hashes of blocks, and neither for token ids");
  }
  if (!block_tokens) {
    return shared(released([&] { return omnibal::build_prefix_forest(lists.rows()); }));
  }
  std::uint64_t const block = count_of(name, "block_tokens", *block_tokens);
  auto const tokens = to_lengths(name, lengths);
  return shared(released([&] {
    return omnibal::build_prefix_forest(lists.rows(), omnibal::prefix_blocks{block, tokens});
  }));
}

/// The forest of given nodes, where -1 and 2^32 - 1 are the parents of roots.
forest from_nodes(py::object const& parents, py::object const& lengths, py::object const& ends) {
  std::string const name = "prefix_forest";
  std::vector<std::uint32_t> above;
  integer_list const given(name, "parents", parents);
  for (std::int64_t const parent : given.values()) {
    if (parent < -1 || parent > UINT32_MAX) {
      reject(name, "parents[" + std::to_string(above.size()) + "] is " + std::to_string(parent) +
                       ", must be a node, less than " + std::to_string(given.values().size()) +
                       ", or -1");
    }
    above.push_back(static_cast<std::uint32_t>(parent));
  }
  auto const tokens = to_lengths(name, lengths);
  auto const last = convert::to_indices(name, "ends", integer_list(name, "ends", ends).values());
  return shared(released([&] {
    return omnibal::build_prefix_forest(omnibal::prefix_nodes{above, tokens, last});
  }));
}

/// An array of the forest that nobody can change, without a copy.
template <class T, std::span<T const> (omnibal::prefix_forest::*Values)() const& noexcept>
py::array_t<T> view(forest const& self) {
  auto owner = std::make_unique<forest>(self);
  std::span<T const> const values = ((*owner->of).*Values)();
  py::capsule const capsule(owner.get(), [](void* v) { delete static_cast<forest*>(v); });
  owner.release();
  auto result = convert::view_of<py::array_t<T>>(values.data(), values.size(), capsule);
  result.attr("setflags")(py::arg("write") = false);
  return result;
}

py::array sequence_tokens(forest const& self) {
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i != self.of->sequence_count(); ++i) {
    result.push_back(self.of->sequence_tokens(i));
  }
  return convert::to_array(std::move(result));
}

/// The nodes of a forest, for a pickled object.
py::tuple nodes_of(forest const& self) {
  return py::make_tuple(view<std::uint32_t, &omnibal::prefix_forest::parents>(self),
                        view<std::uint64_t, &omnibal::prefix_forest::lengths>(self),
                        view<std::uint32_t, &omnibal::prefix_forest::ends>(self));
}

forest from_state(py::tuple const& state) {
  auto const parents = state[0].cast<index_array>();
  auto const lengths = state[1].cast<size_array>();
  auto const ends = state[2].cast<index_array>();
  return shared(omnibal::build_prefix_forest(omnibal::prefix_nodes{
      indices_of(parents), std::span(lengths.data(), static_cast<std::size_t>(lengths.size())),
      indices_of(ends)}));
}

prefix_packing pack(py::object const& sequences, std::int64_t capacity,
                    std::optional<std::int64_t> group_price, std::int64_t multiple_of,
                    std::string const& oversized, std::string const& effort, std::uint64_t seed) {
  std::string const name = "pack_prefixes";
  omnibal::pack_prefixes_options options;
  if (group_price) options.group_price = count_of(name, "group_price", *group_price);
  options.multiple_of = count_of(name, "multiple_of", multiple_of);
  options.oversized = to_policy(name, oversized);
  options.effort = convert::to_effort(name, effort);
  options.seed = seed;
  std::uint64_t const limit = count_of(name, "capacity", capacity);
  forest on = forest_of(name, "sequences", sequences);
  omnibal::prefix_packing packed =
      released([&] { return omnibal::pack_prefixes(*on.of, limit, options); });
  return {results::to_groups(std::move(packed.groups)),
          convert::to_array(std::move(packed.oversized)),
          convert::to_array(std::move(packed.tokens)),
          packed.computed_tokens,
          packed.bound,
          std::move(on)};
}

py::dict layout_of_group(prefix_packing const& self, std::int64_t group) {
  index_array const members = self.of.at(static_cast<py::ssize_t>(group)).cast<index_array>();
  return layout_of(*self.on.of, indices_of(members));
}

omnibal::prefix_bounds bound(py::object const& sequences, std::int64_t capacity,
                             std::string const& effort) {
  std::string const name = "prefix_bound";
  omnibal::prefix_bound_options const options{.effort = convert::to_effort(name, effort)};
  std::uint64_t const limit = count_of(name, "capacity", capacity);
  forest const on = forest_of(name, "sequences", sequences);
  return released([&] { return omnibal::prefix_bound(*on.of, limit, options); });
}

omnibal::prefix_work make_work(double token, double pair) {
  for (auto const& [name, value] : {std::pair("token", token), std::pair("pair", pair)}) {
    if (value >= 0.0 && value - value == 0.0) continue;
    reject("prefix_work", std::string(name) + " is " + convert::number_text(py::float_(value)) +
                              ", must be finite and not negative");
  }
  return {token, pair};
}

/// The work between two positions, or between the positions of two arrays.
py::object work_between(omnibal::prefix_work const& self, py::object const& begin,
                        py::object const& end) {
  std::string const name = "prefix_work";
  auto const numpy = py::module_::import("numpy");
  auto const as_positions = [&](char const* argument, py::object const& given) {
    auto const positions =
        convert::as_integers(name, argument, convert::any_array(name, argument, given));
    for (py::ssize_t i = 0; i != positions.size(); ++i) {
      static_cast<void>(count_of(name, argument, positions.data()[i]));
    }
    return positions;
  };
  py::tuple const both = py::tuple(
      numpy.attr("broadcast_arrays")(as_positions("begin", begin), as_positions("end", end)));
  auto const first = convert::integer_array(both[0]);
  auto const last = convert::integer_array(both[1]);
  std::vector<double> result;
  for (py::ssize_t i = 0; i != first.size(); ++i) {
    result.push_back(self(static_cast<std::uint64_t>(first.data()[i]),
                          static_cast<std::uint64_t>(last.data()[i])));
  }
  if (first.ndim() == 0) return py::float_(result.front());
  return convert::to_array(std::move(result)).attr("reshape")(both[0].attr("shape"));
}

double work_of(py::object const& given, py::object const& sequences, py::object const& cost) {
  std::string const name = "prefix_work_of";
  forest const on = forest_of(name, "forest", given);
  auto const group =
      convert::to_indices(name, "sequences", integer_list(name, "sequences", sequences).values());
  path_work const work(name, cost, *on.of);
  return released([&] { return omnibal::prefix_work_of(*on.of, group, work); });
}

void define_forest(py::module_& module) {
  using of_library = omnibal::prefix_forest;
  py::class_<forest> type(module, "PrefixForest", docstrings::PrefixForest);
  type.def(py::init(&from_nodes), py::arg("parents"), py::arg("lengths"), py::arg("ends"),
           docstrings::PrefixForest_init)
      .def_property_readonly("parents", &view<std::uint32_t, &of_library::parents>,
                             "The parent of each node, 2**32 - 1 for a root, uint32.")
      .def_property_readonly(
          "lengths", &view<std::uint64_t, &of_library::lengths>,
          "The tokens of each node, without the tokens of its ancestors, uint64.")
      .def_property_readonly("depths", &view<std::uint64_t, &of_library::depths>,
                             "The tokens from the root through each node, uint64.")
      .def_property_readonly("subtree_ends", &view<std::uint32_t, &of_library::subtree_ends>,
                             "The subtree of node v is the nodes v to subtree_ends[v], uint32.")
      .def_property_readonly("first_sequences", &view<std::uint32_t, &of_library::first_sequences>,
                             "The lowest sequence whose path contains each node, uint32.")
      .def_property_readonly("ends", &view<std::uint32_t, &of_library::ends>,
                             "The node at which each sequence ends, uint32.")
      .def_property_readonly("sequence_tokens", &sequence_tokens,
                             "The number of tokens of each sequence, uint64.")
      .def_property_readonly(
          "sequence_count", [](forest const& self) { return self.of->sequence_count(); },
          "The number of sequences.")
      .def_property_readonly(
          "trie_tokens", [](forest const& self) { return self.of->trie_tokens(); },
          "The tokens of all sequences, with each shared token once.")
      .def_property_readonly(
          "all_tokens", [](forest const& self) { return self.of->all_tokens(); },
          "The tokens of all sequences, with each shared token once for each sequence.")
      .def("__len__", [](forest const& self) { return self.of->size(); })
      .def("__eq__", [](forest const& left, forest const& right) { return *left.of == *right.of; })
      .def("__repr__", [](forest const& self) {
        return convert::repr_text(
            "PrefixForest",
            {convert::count_text(self.of->size(), "node"),
             convert::count_text(self.of->sequence_count(), "sequence"),
             std::to_string(self.of->trie_tokens()) + " of " +
                 convert::count_text(static_cast<std::size_t>(self.of->all_tokens()), "token")});
      });
  convert::add_pickle(type, 3, &nodes_of, &from_state);
  module.def("build_prefix_forest", &build, docstrings::build_prefix_forest, py::arg("sequences"),
             py::kw_only(), py::arg("block_tokens") = py::none(), py::arg("lengths") = py::none());
}

void define_work(py::module_& module) {
  omnibal::prefix_work const standard;
  py::class_<omnibal::prefix_work> type(module, "PrefixWork", docstrings::PrefixWork);
  type.def(py::init(&make_work), py::arg("token") = standard.token, py::arg("pair") = standard.pair,
           docstrings::PrefixWork_init)
      .def_readonly("token", &omnibal::prefix_work::token, "The work of a token without attention.")
      .def_readonly("pair", &omnibal::prefix_work::pair,
                    "The work of a token for each token that it attends to.")
      .def("__call__", &work_between, py::arg("begin"), py::arg("end"), docstrings::PrefixWork_call)
      .def("__eq__",
           [](omnibal::prefix_work const& left, omnibal::prefix_work const& right) {
             return left.token == right.token && left.pair == right.pair;
           })
      .def("__repr__", [](omnibal::prefix_work const& self) {
        return convert::repr_text("PrefixWork",
                                  {"token " + convert::number_text(py::float_(self.token)),
                                   "pair " + convert::number_text(py::float_(self.pair))});
      });
  convert::add_pickle_of(type, &omnibal::prefix_work::token, &omnibal::prefix_work::pair);
  module.def("prefix_work_of", &work_of, docstrings::prefix_work_of, py::arg("forest"),
             py::arg("sequences"), py::kw_only(), py::arg("cost") = py::none());
}

void define_bound(py::module_& module) {
  py::class_<omnibal::prefix_bounds> type(module, "PrefixBounds", docstrings::PrefixBounds);
  type.def_readonly("tokens", &omnibal::prefix_bounds::tokens, "No packing computes fewer tokens.")
      .def_readonly("groups", &omnibal::prefix_bounds::groups, "No packing has fewer groups.")
      .def("__eq__", [](omnibal::prefix_bounds const& left,
                        omnibal::prefix_bounds const& right) { return left == right; })
      .def("__repr__", [](omnibal::prefix_bounds const& self) {
        return convert::repr_text(
            "PrefixBounds",
            {"at least " + convert::count_text(static_cast<std::size_t>(self.tokens), "token"),
             "at least " + convert::count_text(self.groups, "group")});
      });
  convert::add_pickle_of(type, &omnibal::prefix_bounds::tokens, &omnibal::prefix_bounds::groups);
  module.def("prefix_bound", &bound, docstrings::prefix_bound, py::arg("sequences"),
             py::arg("capacity"), py::kw_only(), py::arg("effort") = "normal");
}

void define_packing(py::module_& module) {
  py::class_<prefix_packing> type(module, "PrefixPacking", docstrings::PrefixPacking);
  type.def_readonly("groups", &prefix_packing::of, "The sequences of each group.")
      .def_readonly("oversized", &prefix_packing::oversized,
                    "The sequences that exceed the capacity alone, ascending, uint32.")
      .def_readonly("tokens", &prefix_packing::tokens, "The tokens of each group, uint64.")
      .def_readonly("computed_tokens", &prefix_packing::computed_tokens,
                    "The sum of the tokens of all groups.")
      .def_readonly("forest", &prefix_packing::on, "The forest of the sequences.")
      .def_property_readonly(
          "trie_tokens", [](prefix_packing const& self) { return self.on.of->trie_tokens(); },
          "The tokens of all sequences, with each shared token once.")
      .def_property_readonly(
          "all_tokens", [](prefix_packing const& self) { return self.on.of->all_tokens(); },
          "The tokens of all sequences, with each shared token once for each sequence.")
      .def_property_readonly(
          "bound_tokens", [](prefix_packing const& self) { return self.bound.tokens; },
          "No packing computes fewer tokens.")
      .def_property_readonly(
          "bound_groups", [](prefix_packing const& self) { return self.bound.groups; },
          "No packing has fewer groups.")
      .def("layout", &layout_of_group, docstrings::PrefixPacking_layout, py::arg("group"))
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
  convert::add_pickle_of(type, &prefix_packing::of, &prefix_packing::oversized,
                         &prefix_packing::tokens, &prefix_packing::computed_tokens,
                         &prefix_packing::bound, &prefix_packing::on);
  module.def("pack_prefixes", &pack, docstrings::pack_prefixes, py::arg("sequences"),
             py::arg("capacity"), py::kw_only(), py::arg("group_price") = py::none(),
             py::arg("multiple_of") = 1, py::arg("oversized") = "list",
             py::arg("effort") = "normal", py::arg("seed") = 0);
}

}  // namespace

forest forest_of(std::string const& function, std::string const& name, py::object const& given) {
  if (py::isinstance<forest>(given)) return given.cast<forest const&>();
  token_lists const lists(function, name, given);
  return shared(released([&] { return omnibal::build_prefix_forest(lists.rows()); }));
}

omnibal::oversize_policy to_policy(std::string const& function, std::string const& name) {
  if (name == "list") return omnibal::oversize_policy::list;
  if (name == "own_group") return omnibal::oversize_policy::own_group;
  if (name == "reject") return omnibal::oversize_policy::reject;
  reject(function, "oversized is " + name + ", must be list, own_group or reject");
}

path_work::path_work(std::string const& function, py::object const& given,
                     omnibal::prefix_forest const& forest) {
  if (given.is_none()) return;
  if (py::isinstance<omnibal::prefix_work>(given)) {
    formula_ = given.cast<omnibal::prefix_work const&>();
    return;
  }
  py::array const array = convert::any_array(function, "cost", given);
  char const kind = array.dtype().kind();
  if (array.ndim() != 1 || (kind != 'f' && kind != 'i' && kind != 'u')) {
    reject(function, "cost must be a PrefixWork, or an array with the work of the first n tokens");
  }
  array_ = convert::as_numbers(function, "cost", array);
  sums_ = std::span(array_.data(), static_cast<std::size_t>(array_.size()));
  auto const depths = forest.depths();
  auto const longest = std::max_element(depths.begin(), depths.end());
  std::uint64_t const tokens = longest == depths.end() ? 0 : *longest;
  if (sums_.size() > tokens) return;
  reject(function, "cost has " + std::to_string(sums_.size()) + " elements, must have at least " +
                       std::to_string(tokens + 1) + ", because the longest sequence has " +
                       std::to_string(tokens) + " tokens");
}

void define(py::module_& module) {
  define_forest(module);
  define_work(module);
  define_bound(module);
  define_packing(module);
}

}  // namespace prefixes
