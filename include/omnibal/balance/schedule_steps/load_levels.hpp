// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Loads as integers.
///
/// The input is the loads that the user passes, one for each group. The output is `group_levels`,
/// in which each kind of load of a group is a `load_level`. A kind is one resource of a load; the
/// number of kinds is R.

#include <omnibal/concepts.hpp>
#include <omnibal/detail/bits.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// A load as an integer: `largest * ranks` is below 2^62, so that sums over a step fit.
using load_level = std::uint64_t;

/// Returns the number of bits that levels may have.
[[nodiscard]] constexpr int level_bits(std::uint64_t ranks) { return 62 - bit_width(ranks); }

/// Returns the number of low bits that must be removed from the loads of a kind with this largest
/// load.
[[nodiscard]] constexpr int level_shift(std::uint64_t largest, std::uint64_t ranks) {
  int const shift = bit_width(largest) - level_bits(ranks);
  return shift < 0 ? 0 : shift;
}

/// Returns a level as a share of the largest level of its kind, in units of 2^-31.
[[nodiscard]] constexpr std::uint32_t share_of_level(load_level level, load_level largest) {
  if (largest == 0) return 0;
  int const bits = bit_width(largest);
  int const shift = bits < 32 ? 0 : bits - 32;
  return static_cast<std::uint32_t>(((level >> shift) << 31) / (largest >> shift));
}

/// The load of a group, or the sum over the groups of a bundle or a step, in each kind.
template <std::size_t R>
using load_levels = std::array<load_level, R>;

template <std::size_t R>
void add_levels(load_levels<R>& sum, load_levels<R> const& levels) {
  for (std::size_t r = 0; r != R; ++r) sum[r] += levels[r];
}

/// The loads of all groups, by the number of the group.
template <std::size_t R>
struct group_levels {
  std::vector<load_levels<R>> of_group;
  /// The largest load of a group, in each kind.
  load_levels<R> max{};

  /// Returns the size of a group: the largest share of its load in `max`.
  [[nodiscard]] std::uint32_t size_of(std::uint32_t group) const {
    std::uint32_t result = 0;
    for (std::size_t r = 0; r != R; ++r) {
      result = std::max(result, share_of_level(of_group[group][r], max[r]));
    }
    return result;
  }
};

/// Returns a function that computes levels of numbers from 0 to `max`.
template <class Working>
[[nodiscard]] auto level_scale(Working max, std::size_t groups_per_step) {
  if constexpr (std::floating_point<Working>) {
    return fixed_point::by_power_of_two(max, level_bits(groups_per_step));
  } else {
    int const shift = level_shift(static_cast<std::uint64_t>(max), groups_per_step);
    return [shift](Working value) { return value >> shift; };
  }
}

/// Computes the levels of loads such that the sum over a step fits. Errors:
/// `std::invalid_argument` if a load is negative, not finite or above 2^63 - 1.
template <sample_range Loads>
[[nodiscard]] auto measure_levels(std::string_view function, Loads const& loads,
                                  std::size_t groups_per_step) {
  using amount_type = demand_result<std::identity, sample_reference<Loads>>;
  using working = working_weight<typename weight_of<amount_type>::type>;
  constexpr std::size_t kinds = kinds_of<amount_type>;
  std::size_t const count = std::ranges::size(loads);
  auto const first = std::ranges::begin(loads);
  auto const amounts = [&](std::size_t group) {
    return checked_costs<working>(
        function, "loads", group,
        first[static_cast<std::ranges::range_difference_t<Loads const>>(group)]);
  };
  std::array<working, kinds> max{};
  for (std::size_t group = 0; group != count; ++group) {
    auto const load = amounts(group);
    for (std::size_t r = 0; r != kinds; ++r) max[r] = std::max(max[r], load[r]);
  }
  group_levels<kinds> result;
  result.of_group.resize(count);
  for (std::size_t r = 0; r != kinds; ++r) {
    auto const scale = level_scale(max[r], groups_per_step);
    result.max[r] = static_cast<load_level>(scale(max[r]));
    for (std::size_t group = 0; group != count; ++group) {
      result.of_group[group][r] = static_cast<load_level>(scale(amounts(group)[r]));
    }
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
