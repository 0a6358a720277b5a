// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Forests of prefixes, the work of their tokens and layouts of groups as Python has them.

#include "results.hpp"

#include <omnibal/pack/place_oversized.hpp>
#include <omnibal/prefix/build_prefix_forest.hpp>
#include <omnibal/prefix/prefix_layout.hpp>
#include <omnibal/prefix/prefix_work.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace prefixes {

namespace py = pybind11;
using size_array = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

/// A forest, which several results share.
struct forest {
  std::shared_ptr<omnibal::prefix_forest const> of;
};

[[nodiscard]] inline std::span<std::uint32_t const> indices_of(results::index_array const& given) {
  return {given.data(), static_cast<std::size_t>(given.size())};
}

/// Returns the forest that an argument is, or builds the forest of the sequences that it lists.
[[nodiscard]] forest forest_of(std::string const& function, std::string const& name,
                               py::object const& given);

/// Returns the oversize policy that a word means.
[[nodiscard]] omnibal::oversize_policy to_policy(std::string const& function,
                                                 std::string const& name);

/// The work of the tokens of a path between two positions: the formula of `prefix_work`, or the
/// differences of an array.
class path_work {
 public:
  /// `given` is None, a `PrefixWork`, or an array with the work of the first n tokens for each n.
  path_work(std::string const& function, py::object const& given,
            omnibal::prefix_forest const& forest);

  [[nodiscard]] double operator()(std::uint64_t begin, std::uint64_t end) const {
    return sums_.empty() ? formula_(begin, end) : sums_[end] - sums_[begin];
  }

 private:
  omnibal::prefix_work formula_;
  convert::number_array array_{0};
  std::span<double const> sums_;
};

/// Returns the arrays of the layout of a group by name.
[[nodiscard]] py::dict layout_of(omnibal::prefix_forest const& forest,
                                 std::span<std::uint32_t const> group);

}  // namespace prefixes

namespace pybind11::detail {
template <>
struct type_caster<prefixes::forest> : convert::value_caster<prefixes::forest> {};
template <>
struct type_caster<omnibal::prefix_work> : convert::value_caster<omnibal::prefix_work> {};
}  // namespace pybind11::detail
