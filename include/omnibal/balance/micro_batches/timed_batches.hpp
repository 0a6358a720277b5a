// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Batches within a capacity, with even costs over the speeds of their ranks.

#include <omnibal/balance/count_policy.hpp>
#include <omnibal/balance/detail/capped_balancer.hpp>
#include <omnibal/balance/detail/pair_repartition.hpp>
#include <omnibal/balance/detail/part_loads.hpp>
#include <omnibal/balance/detail/part_times.hpp>
#include <omnibal/balance/detail/rank_lanes.hpp>
#include <omnibal/balance/detail/timed_loads.hpp>
#include <omnibal/detail/integer_costs.hpp>
#include <omnibal/detail/measure.hpp>
#include <omnibal/detail/part_speeds.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/grouping.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Balances the times of batches, which are costs over speeds. Batch b runs on rank b % ranks.
template <class Layout>
class timed_batches {
 public:
  /// Creates the balancer. `order` is the order of `largest_first`. The arguments must outlive this
  /// object.
  timed_batches(measured<Layout> const& input, integer_costs<1> const& costs,
                std::span<std::uint32_t const> order, capped_effort const& effort,
                part_speeds const& speeds)
      : input_(input), costs_(costs), order_(order), effort_(effort), speeds_(speeds) {}

  /// Balances all batches. The search starts from samples that are placed longest first without
  /// regard to the capacity. If this placement exceeds the capacity, or if its search ends above
  /// the target, a search also starts from the given batches.
  void even_batches(std::vector<std::uint32_t>& batch_of, std::size_t batches) const {
    part_speeds const speeds =
        selected_speeds(speeds_, batches, [&](std::size_t b) { return b % speeds_.size(); });
    part_time const target = with_overload(min_time(costs_, order_, speeds), effort_.max_overload);
    // With fewer exchanges than batches, splits leave most batches unchanged.
    std::size_t const splits = effort_.exchanges < batches ? 0 : effort_.splits;
    auto placed = place_longest_first(costs_, count_limits(batches), speeds);
    bool const fits = are_within_capacity(collect_parts(placed, batches));
    part_time largest{};
    if (fits) {
      largest = even(order_, placed, target, splits, speeds);
      if (largest <= target) {
        batch_of = std::move(placed);
        return;
      }
    }
    part_time const other = even(order_, batch_of, target, splits, speeds);
    if (fits && largest <= other) batch_of = std::move(placed);
  }

  /// Exchanges samples between the ranks of a step. `order` contains the samples of the step,
  /// `sum` and `largest` are the sum of their costs and the largest cost.
  void even_step(std::span<std::uint32_t const> order, std::vector<std::uint32_t>& rank_of,
                 std::int64_t sum, std::int64_t largest) const {
    part_time const bound =
        std::max(mean_time(sum, speeds_), part_time{largest, speeds_.largest()});
    static_cast<void>(even(order, rank_of, with_overload(bound, effort_.max_overload), 0, speeds_));
  }

 private:
  [[nodiscard]] bool are_within_capacity(grouping const& batches) const {
    for (std::size_t b = 0; b != batches.size(); ++b) {
      if (!input_.load(batches[b]).fits(input_.capacity)) return false;
    }
    return true;
  }

  part_time even(std::span<std::uint32_t const> order, std::vector<std::uint32_t>& part_of,
                 part_time target, std::size_t splits, part_speeds const& speeds) const {
    return even_parts(costs_, order, part_of, speeds.size(), target,
                      {search_budget(effort_.exchanges), splits, effort_.seed}, part_counts::free,
                      capped_exchanges<Layout>(input_, order), speeds);
  }

  measured<Layout> const& input_;
  integer_costs<1> const& costs_;
  std::span<std::uint32_t const> order_;
  capped_effort effort_;
  part_speeds const& speeds_;
};

}  // namespace omnibal::inline v0::detail
