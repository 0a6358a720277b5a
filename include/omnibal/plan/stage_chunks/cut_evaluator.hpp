// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The times, the missing memory and the quality of cuts.

#include <omnibal/config.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The quality of cuts. Smaller values are better; members are compared in this order.
struct cut_quality {
  /// The largest number of bytes by which a stage exceeds its memory, and the sum over the stages.
  int128 missing = 0;
  int128 missing_sum = 0;
  /// The time of a step in the unit of `chunk_step`.
  int128 step = 0;
  /// The sums of squares: of the loads of stages, and of the times of virtual stages.
  int128 squared_loads = 0;
  int128 squared_times = 0;

  [[nodiscard]] friend auto operator<=>(cut_quality const&, cut_quality const&) = default;
};

/// Cuts, the times of their virtual stages, and the bytes by which their stages exceed the memory.
/// If a stage exceeds its memory, its times are the times with enough memory.
struct cut_state {
  std::vector<std::uint32_t> boundaries;
  std::vector<std::int64_t> times;
  std::vector<int128> missing;
  cut_quality quality;
};

/// The best cuts and choices so far.
struct best_cuts {
  std::vector<std::uint32_t> boundaries;
  std::vector<stage_solution> solutions;
  cut_quality quality;

  [[nodiscard]] bool has_plan() const { return !boundaries.empty() && quality.missing == 0; }
  [[nodiscard]] bool is_worse_than(cut_quality const& other) const {
    return boundaries.empty() || other < quality;
  }
};

/// Solves the stages of cuts by `chunk_choices`, and stores each solution to solve a stage only
/// once.
class cut_evaluator {
 public:
  cut_evaluator(chunk_problem const& problem, chunk_choices& choices)
      : problem_(problem), choices_(choices) {}

  /// Returns the times, missing bytes and quality of cuts.
  [[nodiscard]] cut_state evaluate(std::vector<std::uint32_t> boundaries) {
    cut_state result;
    result.times.resize(problem_.virtual_stages());
    result.missing.resize(problem_.stages());
    result.boundaries = std::move(boundaries);
    for (std::size_t s = 0; s != problem_.stages(); ++s) solve_stage(result, s);
    result.quality = quality_of(result.times, result.missing);
    return result;
  }

  /// Sets the times and the missing bytes of a stage of `state` from its boundaries.
  void solve_stage(cut_state& state, std::size_t stage) {
    stage_solution const& solution = solve(state.boundaries, stage);
    state.missing[stage] = solution.missing;
    for (std::size_t c = 0; c != problem_.places.chunks; ++c) {
      std::size_t const v = problem_.virtual_stage(stage, c);
      state.times[v] = solution.missing == 0
                           ? solution.times[c]
                           : problem_.layers.min_time(state.boundaries[v], state.boundaries[v + 1]);
    }
  }

  /// Returns the solutions of all stages.
  [[nodiscard]] std::vector<stage_solution> solutions_of(
      std::span<std::uint32_t const> boundaries) {
    std::vector<stage_solution> result;
    for (std::size_t s = 0; s != problem_.stages(); ++s) result.push_back(solve(boundaries, s));
    return result;
  }

  /// Returns the quality of stages with these solutions. Precondition: no stage lacks memory.
  [[nodiscard]] cut_quality quality_of(std::span<stage_solution const> solutions) {
    std::vector<std::int64_t> times(problem_.virtual_stages());
    for (std::size_t v = 0; v != times.size(); ++v) {
      times[v] = solutions[problem_.places.stage[v]].times[problem_.places.chunk[v]];
    }
    return quality_of(times, std::vector<int128>(problem_.stages(), 0));
  }

  [[nodiscard]] cut_quality quality_of(std::span<std::int64_t const> times,
                                       std::span<int128 const> missing) {
    cut_quality result;
    for (int128 const bytes : missing) {
      result.missing = std::max(result.missing, bytes);
      result.missing_sum += bytes;
    }
    loads_.assign(problem_.stages(), 0);
    chunk_times<int128> all;
    std::int64_t longest = 0;
    int128 round = 0;
    for (std::size_t v = 0; v != times.size(); ++v) {
      loads_[problem_.places.stage[v]] += times[v];
      round += times[v];
      longest = std::max(longest, times[v]);
      result.squared_times += static_cast<int128>(times[v]) * times[v];
      if ((v + 1) % problem_.stages() != 0) continue;
      all.sum += round;
      all.rounds += longest;
      all.largest_round = std::max(all.largest_round, round);
      longest = 0;
      round = 0;
    }
    for (std::int64_t const one : loads_) {
      all.load = std::max<int128>(all.load, one);
      result.squared_loads += static_cast<int128>(one) * one;
    }
    result.step = problem_.step(all);
    return result;
  }

 private:
  struct ranges_hash {
    [[nodiscard]] std::size_t operator()(std::vector<std::uint32_t> const& key) const {
      std::uint64_t hash = 14695981039346656037u;
      for (std::uint32_t const word : key) hash = (hash ^ word) * 1099511628211u;
      return static_cast<std::size_t>(hash);
    }
  };

  /// Returns the solution of a stage; valid until the next call.
  [[nodiscard]] stage_solution const& solve(std::span<std::uint32_t const> boundaries,
                                            std::size_t stage) {
    problem_.find_ranges(boundaries, stage, key_);
    key_.push_back(static_cast<std::uint32_t>(stage));
    auto const known = solved_.find(key_);
    if (known != solved_.end()) return known->second;
    stage_solution& result = solved_[key_];
    choices_.solve(stage, problem_.ranges_of(boundaries, stage), result);
    return result;
  }

  chunk_problem const& problem_;
  chunk_choices& choices_;
  std::unordered_map<std::vector<std::uint32_t>, stage_solution, ranges_hash> solved_;
  std::vector<std::uint32_t> key_;
  std::vector<std::int64_t> loads_;
};

}  // namespace omnibal::inline v0::detail
