// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Loads as integers.
///
/// The input is the loads that the user passes, one for each group. The output is `group_levels`,
/// in which each kind of load of a group is a `load_level`.

#include <omnibal/balance/schedule_steps/schedule_rules.hpp>
#include <omnibal/concepts.hpp>
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
