#pragma once

/// \file
/// What rounds of cuts schedule: the groups of full steps, and those of the last one.

#include <omnibal/balance/detail/load_levels.hpp>
#include <omnibal/balance/detail/schedule_rules.hpp>
#include <omnibal/balance/schedule_options.hpp>
#include <omnibal/detail/radix_sort.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

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
