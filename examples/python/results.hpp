// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The results of the algorithms as Python has them.

#include "convert.hpp"

#include <omnibal/grouping.hpp>
#include <omnibal/pack/packing.hpp>
#include <omnibal/steps.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace results {

namespace py = pybind11;
using index_array = py::array_t<std::uint32_t, py::array::c_style | py::array::forcecast>;

/// Groups of indices as two arrays.
struct groups {
  index_array offsets;
  index_array items;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(offsets.size()) - 1; }

  /// The indices of a group, a view.
  [[nodiscard]] py::object at(py::ssize_t group) const {
    auto const count = static_cast<py::ssize_t>(size());
    if (group < 0) group += count;
    if (group < 0 || group >= count) throw py::index_error("there is no such group");
    std::uint32_t const* const at = offsets.data();
    return items[py::slice(at[group], at[group + 1], 1)];
  }

  [[nodiscard]] py::list to_list() const {
    py::list all = items.attr("tolist")();
    std::uint32_t const* const at = offsets.data();
    py::list result;
    for (std::size_t g = 0; g != size(); ++g) {
      result.append(all[py::slice(at[g], at[g + 1], 1)]);
    }
    return result;
  }
};

/// The arrays of a grouping, which they own together.
[[nodiscard]] inline groups to_groups(omnibal::grouping&& given) {
  auto owner = std::make_unique<omnibal::grouping>(std::move(given));
  auto const offsets = owner->offsets();
  auto const items = owner->items();
  py::capsule const capsule(owner.get(),
                            [](void* g) { delete static_cast<omnibal::grouping*>(g); });
  owner.release();
  return {convert::view_of<index_array>(offsets.data(), offsets.size(), capsule),
          convert::view_of<index_array>(items.data(), items.size(), capsule)};
}

/// A checked copy of the arrays, which Python code may have changed.
[[nodiscard]] inline omnibal::grouping to_grouping(groups const& given) {
  return {{given.offsets.data(), given.offsets.data() + given.offsets.size()},
          {given.items.data(), given.items.data() + given.items.size()}};
}

struct packing {
  groups of;
  index_array oversized;
  omnibal::packing_report report;
};

[[nodiscard]] inline packing to_packing(omnibal::packing&& given) {
  return {to_groups(std::move(given.groups)), convert::to_array(std::move(given.oversized)),
          given.report};
}

/// A packing for the functions that take one, with a checked copy of its groups.
[[nodiscard]] inline omnibal::packing to_packed(packing const& given) {
  return {.groups = to_grouping(given.of),
          .oversized = {given.oversized.data(), given.oversized.data() + given.oversized.size()},
          .report = given.report};
}

/// Steps x ranks of lists of indices.
struct steps {
  std::size_t ranks;
  groups cells;
  std::vector<bool> repeats;

  [[nodiscard]] std::size_t size() const { return cells.size() / ranks; }
};

[[nodiscard]] inline groups cells_of(omnibal::step_cells const& given) {
  omnibal::grouping_view const cells = given.cells();
  return to_groups({{cells.offsets().begin(), cells.offsets().end()},
                    {cells.items().begin(), cells.items().end()}});
}

[[nodiscard]] inline steps to_steps(omnibal::steps const& given) {
  std::vector<bool> repeats;
  for (std::size_t step = 0; step != given.size(); ++step) {
    for (std::size_t rank = 0; rank != given.ranks(); ++rank) {
      repeats.push_back(given.is_repeat(step, rank));
    }
  }
  return {given.ranks(), cells_of(given), std::move(repeats)};
}

[[nodiscard]] inline steps to_steps(omnibal::micro_batch_steps const& given) {
  return {given.ranks(), cells_of(given), std::vector<bool>(given.size() * given.ranks(), false)};
}

/// The same for the functions that take a schedule.
[[nodiscard]] inline omnibal::steps to_schedule(steps const& given) {
  omnibal::grouping const cells = to_grouping(given.cells);
  omnibal::steps result(given.ranks);
  for (std::size_t cell = 0; cell != cells.size(); ++cell) {
    for (std::uint32_t const index : cells[cell]) result.push(index);
    if (given.repeats[cell]) {
      result.close_repeat();
    } else {
      result.close();
    }
  }
  return result;
}

/// Adds the classes to the module.
void define(py::module_& module);

}  // namespace results

namespace pybind11::detail {
template <>
struct type_caster<results::groups> : convert::value_caster<results::groups> {};
template <>
struct type_caster<results::packing> : convert::value_caster<results::packing> {};
template <>
struct type_caster<results::steps> : convert::value_caster<results::steps> {};
}  // namespace pybind11::detail
