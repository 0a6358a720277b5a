// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The lists of known schedules, and their times and memory for a problem.

#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/list_times.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns the lists of a schedule. If `Splits` is true and the schedule does not split the
/// backward pass, the gradients of the weights follow each backward pass.
template <bool Splits, pipeline_schedule Schedule>
[[nodiscard]] operation_lists lists_of(Schedule const& schedule) {
  operation_lists lists(schedule.stages);
  for (std::size_t s = 0; s != schedule.stages; ++s) {
    for_each_operation(schedule, s, [&](operation_kind kind, pipeline_unit const& unit) {
      lists[s].push_back({kind, unit.chunk, unit.micro_batch});
      if (Splits && !Schedule::splits_backward && kind == operation_kind::backward) {
        lists[s].push_back({operation_kind::weight, unit.chunk, unit.micro_batch});
      }
    });
  }
  return lists;
}

/// Returns the times of a schedule for a problem, by `simulate_pipeline`.
template <class T, pipeline_schedule Schedule>
[[nodiscard]] list_times<T> replay(list_problem<T> const& problem, Schedule const& schedule) {
  auto const time = [&](std::size_t v, std::size_t m) {
    return problem.times.work[problem.index(v, m)];
  };
  auto const transfer = [&](std::size_t cut, std::size_t m) {
    return problem.times.transfer[problem.index(cut, m)];
  };
  auto const simulated = simulate_pipeline(schedule, time, transfer, std::int64_t{0},
                                           {.timeline = timeline_policy::recorded});
  list_times<T> result{.makespan = simulated.makespan};
  std::size_t const count = simulated.timeline.size() / problem.layout.stages;
  for (std::size_t s = 0; s != problem.layout.stages; ++s) {
    auto const& first = simulated.timeline[s * count];
    auto const& last = simulated.timeline[(s + 1) * count - 1];
    result.longest_stage = std::max(result.longest_stage, last.end - first.begin);
  }
  return result;
}

/// Returns true if no stage ever keeps more activation bytes than its memory.
template <class T, bool Splits>
[[nodiscard]] bool fits(list_problem<T> const& problem, listed_schedule<Splits> const& schedule) {
  for (std::size_t s = 0; s != problem.layout.stages; ++s) {
    std::int64_t free_bytes = problem.memory[s];
    for (listed_operation const& one : schedule.operations(s)) {
      std::size_t const place = problem.layout.virtual_stage(s, {one.chunk, one.micro_batch});
      std::size_t const unit = problem.index(place, one.micro_batch);
      std::int64_t const bytes = problem.bytes[unit];
      std::int64_t const kept = Splits ? problem.weight_bytes[unit] : 0;
      if (one.kind == operation_kind::forward && (free_bytes -= bytes) < 0) return false;
      if (one.kind == operation_kind::backward) free_bytes += bytes - kept;
      if (one.kind == operation_kind::weight) free_bytes += kept;
    }
  }
  return true;
}

}  // namespace omnibal::inline v0::detail
