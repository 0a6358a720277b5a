#pragma once

/// \file
/// Loads as integers of which there is room for sums over a step.

#include <omnibal/balance/detail/costs.hpp>
#include <omnibal/balance/detail/schedule_rules.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The loads of groups as levels.
template <std::size_t R>
struct load_levels {
  std::vector<std::array<load_level, R>> of_group;
  std::array<load_level, R> largest{};
};

/// Makes levels of numbers up to `largest`, which must not be negative.
template <class Working>
class level_scale {
 public:
  level_scale(Working largest, std::size_t ranks) {
    if constexpr (std::floating_point<Working>) {
      int exponent = 0;
      static_cast<void>(std::frexp(largest, &exponent));
      // In two steps, as one factor would leave the range of the type for very small loads.
      int const bits = level_bits(ranks) - exponent;
      int const half = bits / 2;
      first_factor_ = std::ldexp(1.0, half);
      second_factor_ = std::ldexp(1.0, bits - half);
    } else {
      shift_ = level_shift(static_cast<std::uint64_t>(largest), ranks);
    }
  }

  [[nodiscard]] load_level operator()(Working value) const {
    if constexpr (std::floating_point<Working>) {
      return static_cast<load_level>(value * first_factor_ * second_factor_);
    } else {
      return static_cast<load_level>(value >> shift_);
    }
  }

 private:
  double first_factor_ = 1.0;
  double second_factor_ = 1.0;
  int shift_ = 0;
};

/// Errors: `std::invalid_argument` for a load that is negative, not finite or above 2^63 - 1.
template <sample_range Loads>
[[nodiscard]] auto measure_levels(std::string_view function, Loads const& loads,
                                  std::size_t ranks) {
  using amount_type = demand_result<std::identity, sample_reference<Loads>>;
  using working = working_weight<typename weight_of<amount_type>::type>;
  constexpr std::size_t kinds = kinds_of<amount_type>;
  std::size_t const count = std::ranges::size(loads);
  auto const first = std::ranges::begin(loads);
  auto const amount = [&](std::size_t group, std::size_t r) {
    auto const& load = first[static_cast<std::ranges::range_difference_t<Loads const>>(group)];
    if constexpr (weight<amount_type>) {
      static_cast<void>(r);
      return checked_cost<working>(function, "loads", group, load);
    } else {
      return checked_cost<working>(function, "loads", group, load[r]);
    }
  };
  std::array<working, kinds> largest{};
  for (std::size_t group = 0; group != count; ++group) {
    for (std::size_t r = 0; r != kinds; ++r) largest[r] = std::max(largest[r], amount(group, r));
  }
  load_levels<kinds> result;
  result.of_group.resize(count);
  for (std::size_t r = 0; r != kinds; ++r) {
    level_scale<working> const scale(largest[r], ranks);
    result.largest[r] = scale(largest[r]);
    for (std::size_t group = 0; group != count; ++group) {
      result.of_group[group][r] = scale(amount(group, r));
    }
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
