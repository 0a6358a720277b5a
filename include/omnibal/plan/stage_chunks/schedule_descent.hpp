// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moves of boundaries that shorten a simulated schedule.

#include <omnibal/config.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/cut_evaluator.hpp>
#include <omnibal/plan/stage_chunks/cut_moves.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Local search by simulation: applies moves that shorten `interleaved_1f1b`, in which backward
/// passes take twice as long as forward passes. Many cuts have nearly the same estimate, and only
/// cuts with an estimate of at most `limit` are simulated. Each simulation is a step of the budget.
class schedule_descent {
 public:
  schedule_descent(chunk_problem const& problem, cut_moves& moves, int128 limit)
      : problem_(problem),
        moves_(moves),
        limit_(limit),
        schedule_{problem.stages(), std::min(problem.layout.micro_batches, 4 * problem.stages()),
                  problem.places.chunks},
        budget_(problem.effort.operations /
                (2 * schedule_.micro_batches * problem.virtual_stages())) {}

  /// Improves the cuts and returns true if they were changed. Does nothing if their estimate
  /// exceeds the limit.
  [[nodiscard]] bool run(cut_state& cuts) {
    if (cuts.quality.step > limit_ || budget_.is_spent()) return false;
    makespan_ = makespan_of(cuts.times);
    bool is_changed = false;
    while (run_once(cuts)) is_changed = true;
    return is_changed;
  }

 private:
  /// Tries all pairs of virtual stages; returns true if a move was applied.
  [[nodiscard]] bool run_once(cut_state& cuts) {
    bool is_improved = false;
    std::size_t const count = problem_.virtual_stages();
    for (std::size_t a = 0; a + 1 < count; ++a) {
      for (std::size_t b = a + 1; b != count; ++b) {
        moves_.order_pair(a, b);
        for (bool const is_rightward : {false, true}) {
          while (!budget_.is_spent() && try_move(cuts, is_rightward)) is_improved = true;
        }
      }
    }
    return is_improved;
  }

  [[nodiscard]] bool try_move(cut_state& cuts, bool is_rightward) {
    if (!moves_.shift(cuts, is_rightward) || moves_.evaluate_fastest().step > limit_) return false;
    cut_state const& next = moves_.evaluate();
    if (next.quality.missing != 0 || next.quality.step > limit_) return false;
    budget_.spend();
    double const makespan = makespan_of(next.times);
    if (!(makespan < makespan_)) return false;
    makespan_ = makespan;
    moves_.apply(cuts);
    return true;
  }

  [[nodiscard]] double makespan_of(std::span<std::int64_t const> times) {
    passes_.clear();
    for (std::int64_t const time : times) {
      auto const forward = static_cast<double>(time);
      passes_.push_back({forward, 2 * forward, 0});
    }
    return simulate_pipeline(schedule_, passes_, std::int64_t{0}, std::int64_t{0}, simulation_)
        .makespan;
  }

  chunk_problem const& problem_;
  cut_moves& moves_;
  int128 limit_;
  interleaved_1f1b schedule_;
  search_budget budget_;
  double makespan_ = 0;
  std::vector<stage_time<double>> passes_;
  simulate_pipeline_workspace<double> simulation_;
};

}  // namespace omnibal::inline v0::detail
