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

/// Runs a search with limits that grow until its result is known to be the best. False where
/// nothing is found.
template <class C, class Search>
[[nodiscard]] bool run_with_limits(Search& devices, step_time<C> const& time, C least,
                                   C least_sum) {
  C limit = static_cast<C>(least + least / 8);
  for (;;) {
    if (devices.run(limit)) {
      C const needed = time.highest_bottleneck(devices.best_time(), least_sum);
      if (needed <= limit || !devices.is_complete()) return true;
      limit = needed;
    } else {
      if (limit == never<C>) return false;
      limit = limit == C{} || limit > never<C> / 4 ? never<C> : static_cast<C>(2 * limit);
    }
  }
}

/// Makes `result`, the best stages if every stage had the memory of its device for itself, the best
/// stages that share the memory.
template <class C, class Stages>
void share_devices(Stages const& stages, step_time<C> const& time, std::size_t labels,
                   C least_bottleneck, partition_result<C>& result) {
  device_search devices(stages, time, least_bottleneck, labels);
  C const alone = result.objective;
  result = {};
  if (run_with_limits(devices, time, least_bottleneck, stages.bound().least_sum())) {
    devices.cut_leftmost(result.boundaries);
    result.bottleneck = devices.best_bottleneck();
    result.objective = checked_time<C>(stages.function(), devices.best_time());
    result.proven = devices.is_complete();
    result.lower_bound = result.proven ? result.objective : alone;
    return;
  }
  if (devices.is_complete()) {
    report_infeasible(stages, labels, result);
  } else {
    result.status = partition_status::not_found;
  }
}

}  // namespace omnibal::inline v0::detail
