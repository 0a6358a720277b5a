// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Better choices for given cuts.

#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/cut_evaluator.hpp>
#include <omnibal/plan/stage_chunks/exact_choices.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Replaces the choices of stages by the choices of `exact_choices` if these are better. Stores the
/// cuts with their new choices in `best` if they are better than `best`. Precondition: no stage
/// lacks memory.
inline void refine_choices(chunk_problem const& problem, exact_choices const& exact,
                           cut_evaluator& evaluator, std::vector<std::uint32_t> const& boundaries,
                           std::vector<stage_solution> solutions, best_cuts& best) {
  cut_quality quality = evaluator.quality_of(solutions);
  for (std::size_t s = 0; s != problem.stages(); ++s) {
    chunk_ranges const ranges = problem.ranges_of(boundaries, s);
    if (solutions[s].load() == problem.min_load(ranges)) continue;
    for (stage_solution& found : exact.solve(s, ranges)) {
      std::swap(solutions[s], found);
      cut_quality const other = evaluator.quality_of(solutions);
      if (other < quality) {
        quality = other;
      } else {
        std::swap(solutions[s], found);
      }
    }
  }
  if (best.is_worse_than(quality)) best = {boundaries, std::move(solutions), quality};
}

}  // namespace omnibal::inline v0::detail
