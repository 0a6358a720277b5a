// SPDX-License-Identifier: Apache-2.0
#pragma once

// The best plan of a pipeline by trying all cuts and all choices.

#include "samples.hpp"

#include <omnibal/plan/pipeline_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace test {

inline constexpr std::int64_t no_plan = std::numeric_limits<std::int64_t>::max();

using plan_layers = std::vector<omnibal::plan_layer<>>;

/// What every choice of the layers [first, last) takes: pairs of bytes and time.
inline void every_choice(plan_layers const& layers, std::size_t first, std::size_t last,
                         std::int64_t in_flight, std::int64_t kept, std::int64_t transient,
                         std::int64_t time,
                         std::vector<std::pair<std::int64_t, std::int64_t>>& result) {
  if (first == last) {
    result.emplace_back(in_flight * kept + transient, time);
    return;
  }
  for (auto const& way : layers[first].choices) {
    every_choice(layers, first + 1, last, in_flight, kept + way.bytes,
                 std::max(transient, way.transient_bytes), time + way.time, result);
  }
}

struct stage_memory {
  std::int64_t memory;
  std::int64_t reserve;
  std::int64_t in_flight;
};

/// The least time and the fewest bytes of layers as a stage.
struct min_of_stage {
  std::int64_t time = no_plan;
  std::int64_t bytes = no_plan;
};

inline min_of_stage solve_stage(plan_layers const& layers, std::size_t first, std::size_t last,
                                stage_memory const& limits) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  every_choice(layers, first, last, limits.in_flight, 0, 0, 0, all);
  std::int64_t fixed = limits.reserve;
  for (std::size_t l = first; l != last; ++l) fixed += layers[l].state_bytes;
  min_of_stage result;
  for (auto const& [bytes, time] : all) {
    result.bytes = std::min(result.bytes, bytes + fixed);
    if (bytes + fixed <= limits.memory) result.time = std::min(result.time, time);
  }
  return result;
}

struct best_pipeline {
  std::int64_t step_time = no_plan;
  /// The least that is missing on the worst stage.
  std::int64_t missing_bytes = no_plan;
};

inline void every_pipeline(plan_layers const& layers, std::vector<stage_memory> const& machine,
                           std::int64_t micro_batches, std::size_t stage, std::size_t first,
                           std::int64_t largest, std::int64_t sum, std::int64_t missing,
                           best_pipeline& best) {
  if (stage == machine.size()) {
    if (first != layers.size()) return;
    best.missing_bytes = std::min(best.missing_bytes, missing);
    if (missing == 0)
      best.step_time = std::min(best.step_time, (micro_batches - 1) * largest + sum);
    return;
  }
  for (std::size_t last = first + 1; last <= layers.size(); ++last) {
    auto const least = solve_stage(layers, first, last, machine[stage]);
    std::int64_t const lacks = std::max(missing, least.bytes - machine[stage].memory);
    std::int64_t const time = least.time == no_plan ? 0 : least.time;
    every_pipeline(layers, machine, micro_batches, stage + 1, last, std::max(largest, time),
                   sum + time, lacks, best);
  }
}

inline best_pipeline find_best_pipeline(plan_layers const& layers,
                                        std::vector<stage_memory> const& machine,
                                        std::int64_t micro_batches) {
  best_pipeline best;
  every_pipeline(layers, machine, micro_batches, 0, 0, 0, 0, 0, best);
  return best;
}

}  // namespace test
