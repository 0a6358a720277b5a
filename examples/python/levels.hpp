// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Packs of several lengths as Python has them.

#include "convert.hpp"
#include "results.hpp"

#include <omnibal/hierarchy/level_packing.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace levels {

namespace py = pybind11;

/// The packs of levels; row l of `settings` is the length, the degree and the checkpointed layers.
struct level_packing {
  convert::integer_array settings;
  results::groups of;
  results::index_array first_groups;
  results::index_array filled_in;
  results::index_array oversized;
};

/// The levels of an array of lengths, or of rows as in `level_packing`.
[[nodiscard]] inline std::vector<omnibal::packing_level> to_settings(std::string const& function,
                                                                     py::handle given) {
  py::array const array = convert::any_array(function, "levels", given);
  if (array.ndim() != 1 && (array.ndim() != 2 || array.shape(1) != 3)) {
    convert::reject(function,
                    "levels must be a list of lengths, or have a row (length, sequence, "
                    "checkpointed_layers) for each level");
  }
  auto const numbers = convert::as_integers(function, "levels", array);
  std::vector<omnibal::packing_level> result;
  for (py::ssize_t level = 0; level != array.shape(0); ++level) {
    if (array.ndim() == 1) {
      result.push_back({.length = numbers.at(level)});
    } else {
      result.push_back({numbers.at(level, 0), numbers.at(level, 1), numbers.at(level, 2)});
    }
  }
  return result;
}

[[nodiscard]] inline level_packing to_python(omnibal::level_packing&& given) {
  std::vector<std::int64_t> settings;
  std::vector<std::uint32_t> first_groups{0};
  std::vector<std::uint32_t> filled_in;
  for (omnibal::packed_level const& level : given.levels) {
    settings.insert(settings.end(), {level.setting.length, level.setting.sequence,
                                     level.setting.checkpointed_layers});
    first_groups.push_back(level.first_group + level.group_count);
    filled_in.push_back(level.filled_in);
  }
  return {convert::integer_array(convert::to_array(std::move(settings)).attr("reshape")(-1, 3)),
          results::to_groups(std::move(given.groups)), convert::to_array(std::move(first_groups)),
          convert::to_array(std::move(filled_in)), convert::to_array(std::move(given.oversized))};
}

/// The packs for the functions that take them, from arrays that Python code may have changed.
[[nodiscard]] inline omnibal::level_packing to_packed(std::string const& function,
                                                      level_packing const& given) {
  auto const settings = to_settings(function, given.settings);
  if (static_cast<std::size_t>(given.first_groups.size()) != settings.size() + 1 ||
      static_cast<std::size_t>(given.filled_in.size()) != settings.size()) {
    convert::reject(function, "packed has arrays of different numbers of levels");
  }
  omnibal::level_packing result;
  result.groups = results::to_grouping(given.of);
  std::uint32_t const* const first = given.first_groups.data();
  for (std::size_t level = 0; level != settings.size(); ++level) {
    if (first[level + 1] < first[level]) {
      convert::reject(function,
                      "packed.first_groups decreases after level " + std::to_string(level));
    }
    result.levels.push_back({settings[level], first[level], first[level + 1] - first[level],
                             given.filled_in.data()[level]});
  }
  result.oversized.assign(given.oversized.data(), given.oversized.data() + given.oversized.size());
  return result;
}

}  // namespace levels

namespace pybind11::detail {
template <>
struct type_caster<levels::level_packing> : convert::value_caster<levels::level_packing> {};
}  // namespace pybind11::detail
