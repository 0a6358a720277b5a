#pragma once

/// \file
/// What rounds of cuts schedule: the groups of full steps, and those of the last one.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/detail/fixed_point.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws unless groups and ranks can be numbered and the carried groups exist. One that several
/// epochs left out may be carried as often.
inline void check_schedule(std::string_view function, std::size_t groups, std::size_t ranks,
                           schedule_steps_options const& options) {
  if (ranks == 0) throw_invalid(function, "ranks is 0, must be positive");
  check_index_count(function, "a step", ranks);
  if (!is_valid_weight(options.max_dist_ratio)) {
    throw_invalid(function, "options.max_dist_ratio is " + to_text(options.max_dist_ratio) +
                                ", must be finite and not negative");
  }
  std::size_t const carried = options.carried.size();
  check_index_count(function, "the schedule", carried + std::max(groups, ranks));
  for (std::size_t i = 0; i != carried; ++i) {
    if (options.carried[i] < groups) continue;
    throw_invalid(function, "options.carried[" + to_text(i) + "] is " +
                                to_text(options.carried[i]) + ", but there are " + to_text(groups) +
                                " groups");
  }
}

/// The loads of groups as levels.
template <std::size_t R>
struct load_levels {
  std::vector<std::array<load_level, R>> of_group;
  std::array<load_level, R> largest{};
};

/// Makes levels of numbers up to `largest`, which must not be negative.
template <class Working>
[[nodiscard]] auto level_scale(Working largest, std::size_t ranks) {
  if constexpr (std::floating_point<Working>) {
    return fixed_point::by_power_of_two(largest, level_bits(ranks));
  } else {
    int const shift = level_shift(static_cast<std::uint64_t>(largest), ranks);
    return [shift](Working value) { return value >> shift; };
  }
}

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
    auto const scale = level_scale(largest[r], ranks);
    result.largest[r] = static_cast<load_level>(scale(largest[r]));
    for (std::size_t group = 0; group != count; ++group) {
      result.of_group[group][r] = static_cast<load_level>(scale(amount(group, r)));
    }
  }
  return result;
}

/// Groups in random order, the carried ones first.
template <std::size_t R>
struct schedule_pool {
  schedule_shape shape;
  /// The groups of full steps, and their levels; those from earlier epochs come first.
  std::vector<std::uint32_t> groups;
  std::vector<std::array<load_level, R>> levels;
  std::size_t carried = 0;
  /// The groups of the step that is not full, and those that repeat.
  std::vector<std::uint32_t> last;
  std::array<std::int64_t, R> last_waiting{};
};

/// Precondition: `check_schedule` holds.
[[nodiscard]] inline schedule_shape shape_of_schedule(std::size_t groups, std::size_t carried,
                                                      std::size_t ranks,
                                                      remainder_policy remainder) {
  schedule_shape shape;
  shape.ranks = static_cast<std::uint32_t>(ranks);
  shape.runs = static_cast<std::uint32_t>(groups + carried);
  shape.carried = static_cast<std::uint32_t>(carried);
  shape.steps = shape.runs / shape.ranks;
  std::uint32_t const extra = shape.runs % shape.ranks;
  if (remainder == remainder_policy::carry) {
    shape.runs -= extra;
    shape.carried = std::min(shape.carried, shape.runs);
    return shape;
  }
  shape.extra = extra;
  if (remainder == remainder_policy::repeat && extra != 0) shape.repeated = shape.ranks - extra;
  return shape;
}

/// Draws the order of the groups and takes out the last step.
template <std::size_t R>
[[nodiscard]] schedule_pool<R> draw_pool(load_levels<R> const& levels, schedule_shape const& shape,
                                         schedule_draws const& draws,
                                         std::span<std::uint32_t const> carried) {
  schedule_pool<R> result;
  result.shape = shape;
  std::vector<std::uint32_t> runs(shape.runs);
  auto const of_carried = draws.groups(carried.size());
  auto const of_groups = draws.groups(levels.of_group.size());
  for (std::uint32_t i = 0; i != shape.runs; ++i) {
    runs[i] = i < shape.carried ? carried[static_cast<std::size_t>(of_carried(i))]
                                : static_cast<std::uint32_t>(of_groups(i - shape.carried));
  }
  std::vector<std::uint8_t> is_last(shape.runs, 0);
  if (shape.steps == 0) {
    for (std::uint32_t k = 0; k != shape.extra + shape.repeated; ++k) {
      result.last.push_back(runs[k % shape.extra]);
    }
    std::fill(is_last.begin(), is_last.end(), std::uint8_t{1});
  } else if (shape.extra != 0) {
    auto const order = order_descending(shape.runs, [&](std::size_t i) {
      std::uint32_t size = i < shape.carried ? size_of_carried : 0;
      for (std::size_t r = 0; r != R; ++r) {
        size = std::max(size, share_of_level(levels.of_group[runs[i]][r], levels.largest[r]));
      }
      return ~size;
    });
    auto const last =
        std::span(order).subspan(draws.last_step(shape), shape.extra + shape.repeated);
    for (std::uint32_t const i : last) result.last.push_back(runs[i]);
    for (std::uint32_t const i : last.first(shape.extra)) is_last[i] = 1;
  }
  for (std::size_t r = 0; r != R; ++r) {
    load_level largest = 0;
    std::uint64_t sum = 0;
    for (std::uint32_t const group : result.last) {
      largest = std::max(largest, levels.of_group[group][r]);
      sum += levels.of_group[group][r];
    }
    result.last_waiting[r] = waiting_of_step(largest, sum, shape.ranks);
  }
  result.groups.reserve(shape.pool());
  result.levels.reserve(shape.pool());
  for (std::uint32_t i = 0; i != shape.runs; ++i) {
    if (is_last[i] != 0) continue;
    if (i < shape.carried) ++result.carried;
    result.groups.push_back(runs[i]);
    result.levels.push_back(levels.of_group[runs[i]]);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
