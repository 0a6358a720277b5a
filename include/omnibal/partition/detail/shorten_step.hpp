#pragma once

/// \file
/// From the stages with the smallest bottleneck to those with the shortest step.

#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/detail/sum_search.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// The largest number below `value`.
template <class C>
[[nodiscard]] C just_below(C value) {
  if constexpr (std::floating_point<C>) {
    return std::nextafter(value, C{});
  } else {
    return static_cast<C>(value - 1);
  }
}

/// The stages with the least time: of those with the smallest sum up to a limit, for limits that
/// fall from one bottleneck to the next lower one, until the sum alone is too much.
///
/// `result` has the stages with the smallest bottleneck.
template <class C, class Cost, class Fits>
void shorten_step(stage_costs<C, Cost, Fits> const& stages, step_time<C> const& time,
                  partition_result<C>& result) {
  C const least = result.bottleneck;
  sum_search sums(stages);
  C const first_sum = sums.run(least);
  if (first_sum == never<C>) stages.throw_changed(0, 0, 1, stages.rules().last_cut[1]);
  wide_weight<C> best = time(least, first_sum);
  sums.cut_leftmost(result.boundaries);

  C limit = time.highest_bottleneck(best, stages.bound().least_sum());
  std::vector<std::uint32_t> boundaries;
  while (limit > least) {
    C const sum = sums.run(limit);
    if (time(least, sum) > best) break;
    C const bottleneck = sums.cut_leftmost(boundaries);
    wide_weight<C> const found = time(bottleneck, sum);
    if (found < best || (found == best && bottleneck < result.bottleneck)) {
      best = found;
      result.bottleneck = bottleneck;
      result.boundaries.swap(boundaries);
    }
    if (bottleneck == least) break;
    limit = std::min(just_below(bottleneck), time.highest_bottleneck(best, sum));
  }
  result.objective = checked_time<C>(stages.function(), best);
}

}  // namespace omnibal::inline v0::detail
