// SPDX-License-Identifier: Apache-2.0
#include "docstrings.hpp"
#include "prefixes.hpp"

#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/prefix/prefix_masks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <pybind11/stl.h>

namespace prefixes {

py::dict layout_of(omnibal::prefix_forest const& forest, std::span<std::uint32_t const> group) {
  auto layout = convert::released([&] { return omnibal::layout_prefixes(forest, group); });
  std::vector<std::uint32_t> sources;
  for (std::uint32_t const node : layout.nodes) sources.push_back(forest.first_sequences()[node]);
  py::dict result;
  result["sequences"] = convert::to_array(std::move(layout.sequences));
  result["ends"] = convert::to_array(std::move(layout.ends));
  result["nodes"] = convert::to_array(std::move(layout.nodes));
  result["sources"] = convert::to_array(std::move(sources));
  result["parents"] = convert::to_array(std::move(layout.parents));
  result["subtree_ends"] = convert::to_array(std::move(layout.subtree_ends));
  result["cu_seqlens"] = convert::to_array(std::move(layout.cu_seqlens));
  result["positions"] = convert::to_array(std::move(layout.positions));
  result["token_ends"] = convert::to_array(std::move(layout.token_ends));
  result["predictors"] = convert::to_array(std::move(layout.predictors));
  return result;
}

}  // namespace prefixes

namespace prefix_layouts {

namespace py = pybind11;
using convert::integer_list;
using convert::reject;
using convert::released;

namespace {

constexpr std::uint32_t none = omnibal::prefix_layout::none;

/// A layout from the arrays that Python has, which may be any.
class given_layout {
 public:
  given_layout(std::string const& function, py::object const& given) : function_(function) {
    read(given, "parents", of_.parents);
    read(given, "cu_seqlens", of_.cu_seqlens);
    read(given, "positions", of_.positions);
    read(given, "token_ends", of_.token_ends);
    read(given, "predictors", of_.predictors);
    read(given, "sequences", of_.sequences);
    read(given, "ends", of_.ends);
    check_segments();
    check_tokens();
    // The functions need the number of nodes and not the nodes.
    of_.nodes.resize(of_.parents.size());
  }

  [[nodiscard]] omnibal::prefix_layout const& of() const { return of_; }

 private:
  void read(py::object const& given, char const* name, std::vector<std::uint32_t>& values) const {
    if (!given.contains(name)) {
      reject(function_, "layout has no '" + std::string(name) + "', must be from layout_prefixes");
    }
    std::string const argument = "layout['" + std::string(name) + "']";
    py::object const array = given[name];
    values =
        convert::to_indices(function_, argument, integer_list(function_, argument, array).values());
  }

  void check_segments() const {
    std::size_t const count = of_.parents.size();
    check_size("cu_seqlens", of_.cu_seqlens.size(), count + 1);
    check_size("ends", of_.ends.size(), of_.sequences.size());
    for (std::size_t s = 0; s != count; ++s) {
      if (of_.parents[s] != none && of_.parents[s] >= s) {
        fail("parents", s, of_.parents[s], "must be an earlier segment, or 2**32 - 1");
      }
      if (of_.cu_seqlens[s] > of_.cu_seqlens[s + 1]) {
        fail("cu_seqlens", s + 1, of_.cu_seqlens[s + 1], "must not descend");
      }
    }
    for (std::size_t i = 0; i != of_.ends.size(); ++i) {
      if (of_.ends[i] < count) continue;
      fail("ends", i, of_.ends[i], "must be a segment, less than " + std::to_string(count));
    }
  }

  void check_tokens() const {
    std::size_t const count = of_.tokens();
    check_size("token_ends", of_.token_ends.size(), count);
    check_size("predictors", of_.predictors.size(), count);
    if (of_.cu_seqlens.front() != 0) fail("cu_seqlens", 0, of_.cu_seqlens.front(), "must be 0");
    if (of_.cu_seqlens.back() != count) {
      fail("cu_seqlens", of_.cu_seqlens.size() - 1, of_.cu_seqlens.back(),
           "must be the number of tokens, " + std::to_string(count));
    }
    for (std::size_t k = 0; k != count; ++k) {
      if (of_.token_ends[k] > k && of_.token_ends[k] <= count) continue;
      fail("token_ends", k, of_.token_ends[k],
           "must be after the token and at most " + std::to_string(count));
    }
  }

  void check_size(char const* name, std::size_t size, std::size_t wanted) const {
    if (size == wanted) return;
    reject(function_, "layout['" + std::string(name) + "'] has " + std::to_string(size) +
                          " elements, must have " + std::to_string(wanted));
  }

  [[noreturn]] void fail(char const* name, std::size_t place, std::uint32_t value,
                         std::string const& text) const {
    reject(function_, "layout['" + std::string(name) + "'][" + std::to_string(place) + "] is " +
                          std::to_string(value) + ", " + text);
  }

  std::string function_;
  omnibal::prefix_layout of_;
};

/// Indices as the integers of 32 bits that kernels read.
py::array to_kernel(std::string const& function, std::span<std::uint32_t const> values) {
  std::vector<std::int32_t> result;
  result.reserve(values.size());
  for (std::uint32_t const value : values) {
    if (value > INT32_MAX) {
      reject(function, "a place is " + std::to_string(value) + ", must be at most 2**31 - 1");
    }
    result.push_back(static_cast<std::int32_t>(value));
  }
  return convert::to_array(std::move(result));
}

py::dict layout_prefixes(py::object const& given, py::object const& group) {
  std::string const name = "layout_prefixes";
  prefixes::forest const on = prefixes::forest_of(name, "forest", given);
  auto const members =
      convert::to_indices(name, "group", integer_list(name, "group", group).values());
  return prefixes::layout_of(*on.of, members);
}

py::array prefix_loss_weights(py::object const& layout, py::object const& weights,
                              py::object const& begins) {
  std::string const name = "prefix_loss_weights";
  given_layout const given(name, layout);
  convert::cost_array const factors(name, "weights", weights);
  std::vector<double> numbers;
  std::visit([&](auto const& list) { numbers.assign(list.begin(), list.end()); }, factors.list());
  auto const firsts =
      convert::to_indices(name, "begins", integer_list(name, "begins", begins).values());
  return convert::to_array(
      released([&] { return omnibal::prefix_loss_weights(given.of(), numbers, firsts); }));
}

/// The ranges of a mask as an array of two columns.
py::array to_ranges(std::string const& function,
                    std::vector<std::array<std::uint32_t, 2>> const& ranges) {
  std::vector<std::uint32_t> flat;
  for (auto const& range : ranges) flat.insert(flat.end(), range.begin(), range.end());
  return to_kernel(function, flat).attr("reshape")(-1, 2);
}

py::dict slice_prefixes(py::object const& layout) {
  std::string const name = "slice_prefixes";
  given_layout const given(name, layout);
  auto const slices = released([&] { return omnibal::slice_prefixes(given.of()); });
  py::dict result;
  result["q_ranges"] = to_ranges(name, slices.q_ranges);
  result["k_ranges"] = to_ranges(name, slices.k_ranges);
  result["attn_type_map"] = to_kernel(name, slices.attn_type_map);
  return result;
}

std::uint32_t block_of(std::string const& function, std::string const& name, std::int64_t given) {
  std::size_t const value = convert::count_of(function, name, given);
  if (value <= UINT32_MAX) return static_cast<std::uint32_t>(value);
  reject(function,
         name + " is " + std::to_string(value) + ", must be at most " + std::to_string(UINT32_MAX));
}

py::dict block_prefixes(py::object const& layout, std::int64_t queries, std::int64_t keys) {
  std::string const name = "block_prefixes";
  given_layout const given(name, layout);
  omnibal::prefix_block_options const options{.queries = block_of(name, "queries", queries),
                                              .keys = block_of(name, "keys", keys)};
  auto const mask = released([&] { return omnibal::block_prefixes(given.of(), options); });
  auto const rows_of = [&](std::vector<std::uint32_t> const& indices) {
    return to_kernel(name, indices).attr("reshape")(mask.rows, mask.columns);
  };
  py::dict result;
  result["kv_num_blocks"] = to_kernel(name, mask.kv_num_blocks);
  result["kv_indices"] = rows_of(mask.kv_indices);
  result["full_kv_num_blocks"] = to_kernel(name, mask.full_kv_num_blocks);
  result["full_kv_indices"] = rows_of(mask.full_kv_indices);
  return result;
}

}  // namespace

void define(py::module_& module) {
  module.def("layout_prefixes", &layout_prefixes, docstrings::layout_prefixes, py::arg("forest"),
             py::arg("group"));
  module.def("prefix_loss_weights", &prefix_loss_weights, docstrings::prefix_loss_weights,
             py::arg("layout"), py::arg("weights"), py::arg("begins"));
  module.def("slice_prefixes", &slice_prefixes, docstrings::slice_prefixes, py::arg("layout"));
  module.def("block_prefixes", &block_prefixes, docstrings::block_prefixes, py::arg("layout"),
             py::kw_only(), py::arg("queries") = 128, py::arg("keys") = 128);
}

}  // namespace prefix_layouts
