// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Batches within the capacities of their ranks, with even costs over the speeds of their ranks.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/balance/detail/pair_repartition.hpp>
#include <omnibal/balance/detail/part_limits.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/config.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Balances the times of batches, which are costs over speeds. Batch b runs on rank b % ranks.
template <class Layout>
class timed_batches {
 public:
  using limits_type = part_limits<typename Layout::amounts_type>;

  /// Creates the balancer. `order` is the order of `largest_first`; `limits` contains the limit of
  /// each rank. The arguments must outlive this object.
  timed_batches(measured<Layout> const& input, integer_costs<1> const& costs,
                std::span<std::uint32_t const> order, capped_effort const& effort,
                part_speeds const& speeds, limits_type const& limits)
      : input_(input),
        costs_(costs),
        order_(order),
        effort_(effort),
        speeds_(speeds),
        limits_(limits) {}

  /// Returns the smallest number of batches of a rank with which each rank has room for its share
  /// of the demand, in proportion to the speeds. Ranks without room for a kind do not count for it.
  [[nodiscard]] std::size_t fewest_of_rank() const {
    std::size_t result = 1;
    for (std::size_t r = 0; r != Layout::amounts_type::size(); ++r) {
      auto const total = least_total(input_, r);
      using total_type = std::remove_const_t<decltype(total)>;
      auto const all = static_cast<total_type>(speeds_.sum());
      for (std::size_t rank = 0; rank != limits_.size(); ++rank) {
        total_type const room = all * as_total(limits_[rank][r], input_.capacity[r]);
        if (room <= 0) continue;
        auto const speed = static_cast<total_type>(speeds_[rank]);
        result = std::max(result, ceiled_ratio(total * speed, room));
      }
    }
    return result;
  }

  /// Returns the part of each sample within the limits of batches, or nothing if the search finds
  /// no room for all samples.
  template <class GoOn>
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> balance(std::size_t batches,
                                                                  GoOn& go_on) const {
    capped_balancer balancer(input_, costs_, effort_, speeds_of(batches), limits_of(batches));
    auto result = balancer.balance(batches, go_on);
    if (!result && balancer.search(batches) == solve_status::solved) {
      result = balancer.balance(batches, go_on);
    }
    return result;
  }

  /// Balances all batches. The search starts from samples that are placed longest first without
  /// regard to the capacity. If this placement exceeds the capacity, or if its search ends above
  /// the target, a search also starts from the given batches.
  void even_batches(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    part_speeds const speeds = speeds_of(batches);
    limits_type const limits = limits_of(batches);
    part_time const target = with_overload(min_time(costs_, order_, speeds), effort_.max_overload);
    // With fewer exchanges than batches, splits leave most batches unchanged.
    std::size_t const splits = effort_.exchanges < batches ? 0 : effort_.splits;
    auto placed = place_longest_first(costs_, count_limits(batches), speeds);
    bool const fits = are_within(collect_parts(placed, batches), limits);
    part_time largest{};
    if (fits) {
      largest = even(order_, placed, target, splits, speeds, limits);
      if (largest <= target) {
        batch_of = std::move(placed);
        return;
      }
    }
    part_time const other = even(order_, batch_of, target, splits, speeds, limits);
    if (fits && largest <= other) batch_of = std::move(placed);
  }

  /// Exchanges samples between the ranks of a step. `order` contains the samples of the step,
  /// `sum` and `largest` are the sum of their costs and the largest cost.
  void even_step(std::span<std::uint32_t const> order, std::vector<std::uint32_t>& rank_of,
                 std::int64_t sum, std::int64_t largest) const {
    part_time const bound =
        std::max(mean_time(sum, speeds_), part_time{largest, speeds_.largest()});
    static_cast<void>(
        even(order, rank_of, with_overload(bound, effort_.max_overload), 0, speeds_, limits_));
  }

 private:
  [[nodiscard]] static std::size_t ceiled_ratio(int128 amount, int128 room) {
    return static_cast<std::size_t>(saturate_cast<std::int64_t>(ceiled_quotient(amount, room)));
  }
  [[nodiscard]] static std::size_t ceiled_ratio(double amount, double room) {
    constexpr double most = 0x1p62;
    return static_cast<std::size_t>(std::min(std::ceil(amount / room), most));
  }
  [[nodiscard]] part_speeds speeds_of(std::size_t batches) const {
    return selected_speeds(speeds_, batches, [&](std::size_t b) { return b % speeds_.size(); });
  }
  [[nodiscard]] limits_type limits_of(std::size_t batches) const {
    return limits_.selected(batches, [&](std::size_t b) { return b % limits_.size(); });
  }
  [[nodiscard]] bool are_within(grouping const& batches, limits_type const& limits) const {
    part_rooms<Layout> rooms(input_.layout, limits);
    for (std::size_t b = 0; b != batches.size(); ++b) {
      for (std::uint32_t const sample : batches[b]) {
        if (!rooms.fits(b, input_.demands[sample])) return false;
        rooms.take(b, input_.demands[sample]);
      }
    }
    return true;
  }

  part_time even(std::span<std::uint32_t const> order, std::vector<std::uint32_t>& part_of,
                 part_time target, std::size_t splits, part_speeds const& speeds,
                 limits_type const& limits) const {
    return even_parts(costs_, order, part_of, speeds.size(), target,
                      {search_budget(effort_.exchanges), splits, effort_.seed}, part_counts::free,
                      capped_exchanges<Layout, limits_type>(input_, order, limits), speeds);
  }

  measured<Layout> const& input_;
  integer_costs<1> const& costs_;
  std::span<std::uint32_t const> order_;
  capped_effort effort_;
  part_speeds const& speeds_;
  limits_type const& limits_;
};

}  // namespace omnibal::inline v0::detail
