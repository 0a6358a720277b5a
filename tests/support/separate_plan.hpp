// SPDX-License-Identifier: Apache-2.0
#pragma once

// What trainers do without a joint plan: balance the model with everything recomputed, so that it
// fits, then keep as many activations on each stage as its memory holds.

#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace test {

/// Which time of each layer is balanced.
enum class balanced_time { all_kept, all_recomputed };

/// Of one machine with `memory` bytes on each of `stages` stages.
struct separate_problem {
  std::vector<omnibal::plan_layer<>> const& layers;
  std::size_t stages;
  std::int64_t memory;
  std::size_t micro_batches;
};

/// The time of the step, or the largest number where the memory is too small.
inline std::int64_t separate_step_time(separate_problem const& given, balanced_time balanced) {
  auto const time_of = [&](std::size_t l) {
    auto const& choices = given.layers[l].choices;
    return balanced == balanced_time::all_kept ? choices.front().time : choices.back().time;
  };
  auto const in_flight = [&](std::size_t stage) {
    return static_cast<std::int64_t>(std::min(given.micro_batches, given.stages - stage));
  };
  auto const room = [&](std::size_t first, std::size_t last) {
    std::int64_t result = given.memory;
    for (std::size_t l = first; l != last; ++l) result -= given.layers[l].state_bytes;
    return result;
  };
  auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
    std::int64_t result = 0;
    for (std::size_t l = first; l != last; ++l) result += time_of(l);
    return result;
  };
  auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
    std::int64_t kept = 0;
    std::int64_t transient = 0;
    for (std::size_t l = first; l != last; ++l) {
      auto const& smallest = given.layers[l].choices.back();
      kept += smallest.bytes;
      transient = std::max(transient, smallest.transient_bytes);
    }
    return in_flight(stage) * kept + transient <= room(first, last);
  };
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  auto const cuts = omnibal::partition_throughput(given.layers.size(), given.stages, cost, fits,
                                                  {.micro_batches = given.micro_batches});
  if (cuts.status != omnibal::solve_status::solved) return none;
  std::vector<std::int64_t> times;
  for (std::size_t s = 0; s != given.stages; ++s) {
    std::size_t const first = cuts.boundaries[s];
    std::size_t const last = cuts.boundaries[s + 1];
    auto const kept = omnibal::select_recompute(
        std::span(given.layers).subspan(first, last - first), &omnibal::plan_layer<>::choices,
        room(first, last), {.in_flight = in_flight(s)});
    if (kept.status != omnibal::solve_status::solved) return none;
    times.push_back(kept.time);
  }
  return omnibal::estimate_makespan(times, given.micro_batches);
}

}  // namespace test
