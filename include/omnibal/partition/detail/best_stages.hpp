#pragma once

/// \file
/// The common course of the partitions with general stage costs.

#include <omnibal/partition/detail/bottleneck_search.hpp>
#include <omnibal/partition/detail/chain_rules.hpp>
#include <omnibal/partition/detail/missing_memory.hpp>
#include <omnibal/partition/detail/shared_devices.hpp>
#include <omnibal/partition/detail/shorten_step.hpp>
#include <omnibal/partition/detail/stage_costs.hpp>
#include <omnibal/partition/detail/stage_limits.hpp>
#include <omnibal/partition/detail/step_time.hpp>
#include <omnibal/partition/empty_stages.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_result.hpp>

#include <cstddef>
#include <string_view>

namespace omnibal::inline v0::detail {

/// The stages with the least time, of several those with the smallest bottleneck, of several of
/// these the leftmost. `Options` has `base`, `speeds`, `constraints` and `labels`.
template <class C, class Cost, class Fits, class Options>
[[nodiscard]] partition_result<C> best_stages(std::string_view function, std::size_t layers,
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
  bottleneck_search bottlenecks(chain);
  C const least = bottlenecks.run();
  if (least == never<C>) {
    report_infeasible(chain, options.labels, result);
    return result;
  }
  result.bottleneck = least;
  if (time.of_sum == 0) {
    bottlenecks.cut_leftmost(least, result.boundaries);
    result.objective = least;
  } else {
    shorten_step(chain, time, result);
  }
  result.lower_bound = result.objective;
  result.proven = true;
  if (memory.is_shared() && !all_fit(memory, result.boundaries)) {
    share_devices(chain, time, options.labels, least, result);
  }
  return result;
}

}  // namespace omnibal::inline v0::detail
