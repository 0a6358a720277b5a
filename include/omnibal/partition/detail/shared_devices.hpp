#pragma once

/// \file
/// Virtual stages: the best stages where devices hold more than one.

#include <omnibal/partition/detail/device_search.hpp>
#include <omnibal/partition/detail/missing_memory.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

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
  device_search some(stages, time, least_bottleneck, some_of(labels));
  bool const is_known = run_with_limits(some, least_bottleneck);
  if (!is_known && some.is_complete()) return report_infeasible(stages, labels, result);
  C const limit =
      is_known ? time.highest_bottleneck(some.best_time(), stages.bound().least_sum()) : never<C>;
  if (is_known && some.is_complete() && limit <= some.limit()) return take(some, true);

  device_search all(stages, time, least_bottleneck, labels);
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

}  // namespace omnibal::inline v0::detail
