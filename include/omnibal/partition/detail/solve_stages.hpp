#pragma once

/// \file
/// The common course of the partitions with general stage costs.

#include <omnibal/check.hpp>
#include <omnibal/partition/detail/chain_dp.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/device_label_dp.hpp>
#include <omnibal/partition/detail/missing_memory.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/partition_layers_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The stages with the least time: of those with the smallest sum up to a limit, for limits that
/// fall from one bottleneck to the next lower one, until the sum alone is too much.
///
/// `result` has the stages with the smallest bottleneck.
template <class C, class Cost, class Fits>
void search_throughput(stage_costs<C, Cost, Fits> const& stages, step_time<C> const& time,
                       partition_result<C>& result) {
  C const least = result.bottleneck;
  chain_dp sums(stages, as_sum<C>{stages.function()});
  C const first_sum = sums.run(least);
  if (first_sum == never<C>) stages.throw_changed(0, 0, 1, stages.rules().last_cut[1]);
  wide_weight<C> best = time(least, first_sum);
  static_cast<void>(sums.cut_leftmost(result.boundaries));

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

[[nodiscard]] inline bool all_fit(stage_memory const& memory,
                                  std::span<std::uint32_t const> boundaries) {
  auto const missing = shortfalls(memory, boundaries);
  return *std::max_element(missing.begin(), missing.end()) <= 0;
}

/// Makes `result`, the best stages if every stage had the memory of its device for itself, the best
/// stages that share the memory.
///
/// A search with some of the labels finds stages, and so a limit for one with all of them.
template <class C, class Stages>
void share_devices(Stages const& stages, step_time<C> const& time, std::size_t labels,
                   C least_bottleneck, partition_result<C>& result) {
  C const alone = result.objective;
  result = {};
  auto const take = [&](auto& found, bool proven) {
    found.cut_leftmost(result.boundaries);
    result.bottleneck = found.best_bottleneck();
    result.objective = checked_time<C>(stages.function(), found.best_time());
    result.proven = proven;
    result.lower_bound = proven ? result.objective : alone;
  };
  device_label_dp some(stages, time, least_bottleneck, some_of(labels));
  bool const is_known = run_with_limits(some, least_bottleneck);
  if (!is_known && some.is_complete()) return report_infeasible(stages, labels, result);
  C const limit =
      is_known ? time.highest_bottleneck(some.best_time(), stages.bound().least_sum()) : never<C>;
  if (is_known && some.is_complete() && limit <= some.limit()) return take(some, true);

  device_label_dp all(stages, time, least_bottleneck, labels);
  bool const is_found = all.run(limit);
  if (is_found && (all.is_complete() || !is_known || all.best_time() <= some.best_time())) {
    take(all, all.is_complete());
  } else if (is_known) {
    take(some, false);
  } else if (all.is_complete()) {
    report_infeasible(stages, labels, result);
  } else {
    result.status = solve_status::not_found;
  }
}

/// Finds the leftmost stages with the smallest bottleneck of those with the least time. Returns the
/// smallest bottleneck of any stages, which may be less; `never` where there are none.
template <class C, class Stages>
[[nodiscard]] C find_stages(Stages const& chain, step_time<C> const& time,
                            partition_result<C>& result) {
  bottleneck_search bottlenecks(chain);
  C const least = bottlenecks.run();
  if (least == never<C>) return least;
  result.bottleneck = least;
  if (time.of_sum == 0) {
    bottlenecks.cut_leftmost(least, result.boundaries);
    result.objective = least;
  } else {
    search_throughput(chain, time, result);
  }
  result.lower_bound = result.objective;
  result.proven = true;
  return least;
}

/// The best stages as `find_stages` says, in the memory that is given. `Options` has `base`,
/// `speeds`, `constraints` and `labels`.
template <class C, class Cost, class Fits, class Options>
[[nodiscard]] partition_result<C> solve_stages(std::string_view function, std::size_t layers,
                                               std::size_t stages, Cost const& cost,
                                               Fits const& fits, Options const& options,
                                               step_time<C> const& time) {
  check_stages(function, layers, stages, options.constraints.empty);
  chain_rules const rules = rule_book(function, layers, stages, options.constraints).rules();
  stage_bound<C> const bound(function, layers, stages, options.base.values(),
                             options.speeds.values());
  stage_memory const memory(function, layers, stages, options.constraints);
  stage_costs const chain(function, rules, bound, memory, cost, fits);

  partition_result<C> result;
  C const least = find_stages(chain, time, result);
  if (least == never<C>) {
    report_infeasible(chain, options.labels, result);
  } else if (memory.is_shared() && !all_fit(memory, result.boundaries)) {
    share_devices(chain, time, options.labels, least, result);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
