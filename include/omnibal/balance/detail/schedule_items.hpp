#pragma once

/// \file
/// What is to be scheduled, in random order.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/radix_sort.hpp>
#include <omnibal/detail/schedule_rules.hpp>
#include <omnibal/rng/fisher_yates.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

enum class item_origin : std::uint32_t { this_epoch, carried };

/// A group that is to run once.
template <std::size_t R>
struct schedule_item {
  std::uint64_t loads[R];
  std::uint32_t group;
  item_origin origin;
};

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
    throw_invalid(function, "carried[" + to_text(i) + "] is " + to_text(options.carried[i]) +
                                ", but there are " + to_text(groups) + " groups");
  }
}

/// The low bits of the loads that must go so that the loads of a step fit 62 bits.
template <std::size_t R>
[[nodiscard]] int dropped_bits(whole_costs<R> const& costs, std::size_t ranks) {
  std::int64_t largest = 0;
  for (auto const& cost : costs) largest = std::max(largest, largest_amount(cost));
  auto const bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(largest))) +
                    static_cast<int>(std::bit_width(ranks));
  return std::max(0, bits - 62);
}

/// The carried groups and those of this epoch, each in random order. With `carry` the last ones are
/// left out, so that full steps remain.
template <std::size_t R>
[[nodiscard]] std::vector<schedule_item<R>> draw_items(whole_costs<R> const& costs,
                                                       std::size_t ranks,
                                                       schedule_steps_options const& options) {
  std::vector<std::uint32_t> groups(options.carried.begin(), options.carried.end());
  std::size_t const carried = groups.size();
  groups.resize(carried + costs.size());
  std::iota(groups.begin() + static_cast<std::ptrdiff_t>(carried), groups.end(), std::uint32_t{0});
  rng::fisher_yates const shuffle{options.seed};
  shuffle(std::span(groups).first(carried), options.epoch);
  shuffle(std::span(groups).subspan(carried), options.epoch);
  if (options.remainder == remainder_policy::carry) {
    groups.resize(groups.size() - groups.size() % ranks);
  }
  int const shift = dropped_bits(costs, ranks);
  std::vector<schedule_item<R>> items(groups.size());
  for (std::size_t i = 0; i != items.size(); ++i) {
    items[i].group = groups[i];
    items[i].origin = i < carried ? item_origin::carried : item_origin::this_epoch;
    for (std::size_t r = 0; r != R; ++r) {
      items[i].loads[r] = static_cast<std::uint64_t>(costs[groups[i]][r] >> shift);
    }
  }
  return items;
}

/// The least waiting in one resource, whatever becomes of the others: that of the sorted items, the
/// smallest in the last step, which need not be full. A sum over all steps, without the ranks that
/// have no group.
template <std::size_t R>
[[nodiscard]] std::int64_t least_waiting(std::span<schedule_item<R> const> items, std::size_t r,
                                         std::size_t ranks) {
  auto const order =
      order_descending(items.size(), [&](std::size_t i) { return items[i].loads[r]; });
  std::int64_t result = 0;
  for (std::size_t first = 0; first < order.size(); first += ranks) {
    std::size_t const last = std::min(first + ranks, order.size());
    step_loads<R> step;
    for (std::size_t i = first; i != last; ++i) step.add(items[order[i]].loads);
    result += step.waiting(r, ranks);
  }
  return result;
}

/// The waiting to reach in each resource, a sum over all steps without the ranks that have no
/// group: what `max_dist_ratio` allows. Where that cannot be reached, or nearly so, a quarter of it
/// more than the least.
template <std::size_t R>
[[nodiscard]] std::array<std::int64_t, R> waiting_goals(std::span<schedule_item<R> const> items,
                                                        std::size_t ranks,
                                                        schedule_steps_options const& options) {
  double const share = std::min(options.max_dist_ratio, 1.0) * static_cast<double>(whole_step);
  auto const step_count = static_cast<std::int64_t>((items.size() + ranks - 1) / ranks);
  std::int64_t const allowed = static_cast<std::int64_t>(share) * step_count;
  std::size_t const extra = items.size() % ranks;
  bool const has_idle_ranks = options.remainder == remainder_policy::short_step && extra != 0;
  auto const idle_ranks = static_cast<std::int64_t>(has_idle_ranks ? ranks - extra : 0);
  std::int64_t const idle = whole_step * idle_ranks / static_cast<std::int64_t>(ranks);
  std::array<std::int64_t, R> goals{};
  for (std::size_t r = 0; r != R; ++r) {
    goals[r] = std::max(allowed - idle, least_waiting(items, r, ranks) + allowed / 4);
  }
  return goals;
}

}  // namespace omnibal::inline v0::detail
