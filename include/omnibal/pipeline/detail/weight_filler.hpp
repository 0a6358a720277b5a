// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Inserts the gradients of the weights between the passes of a pipeline whose order is given.

#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/list_times.hpp>
#include <omnibal/pipeline/detail/run_lists.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Runs the forward and backward passes of lists in order, and inserts the gradients of the weights
/// at three places. Gradients run before a forward pass that lacks memory and in idle time that is
/// long enough. They also run in shorter idle time if the stage would otherwise end after a target.
/// A stage computes the gradients in the order of its backward passes.
template <class T>
class weight_filler {
 public:
  weight_filler(list_problem<T> const& problem, list_objective objective)
      : problem_(problem), objective_(objective) {}

  /// Runs lists of passes, and writes the lists with the gradients of the weights to `lists`.
  /// Returns `unfit` if a stage exceeds its memory, or if stages wait for each other forever.
  [[nodiscard]] list_times<T> run(operation_lists const& passes, T target, operation_lists& lists) {
    reset(target, lists);
    bool const has_run = run_lists(
        passes, [&](std::size_t s, std::size_t i) { return run_pass(s, passes[s][i], lists[s]); });
    if (!has_run) return list_times<T>::unfit();
    list_times<T> result;
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      while (has_weight(s)) run_weight(s, lists[s]);
      result.makespan = std::max(result.makespan, stages_[s].now);
      result.longest_stage = std::max(result.longest_stage, stages_[s].now - stages_[s].begin);
    }
    return result;
  }

 private:
  struct stage_state {
    T now{};
    T begin{};
    /// The idle time that the stage may still have without ending after the target.
    T slack{};
    std::int64_t free_bytes = 0;
    /// The index in `pending_` of the first gradients of weights that are not computed yet.
    std::size_t first_pending = 0;
    bool has_begun = false;
  };

  void reset(T target, operation_lists& lists) {
    arrivals_.reset(problem_);
    lists.resize(problem_.layout.stages);
    pending_.resize(problem_.layout.stages);
    stages_.assign(problem_.layout.stages, {});
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      lists[s].clear();
      pending_[s].clear();
      stages_[s].slack = target - problem_.busy[s];
      stages_[s].free_bytes = problem_.memory[s];
    }
  }

  /// Runs a pass. Returns `waits` if the input of the pass has not been sent, and `fails` if the
  /// stage exceeds its memory.
  [[nodiscard]] run_outcome run_pass(std::size_t stage, listed_operation const& pass,
                                     std::vector<listed_operation>& list) {
    stage_state& state = stages_[stage];
    std::size_t const place = problem_.layout.virtual_stage(stage, {pass.chunk, pass.micro_batch});
    std::size_t const unit = problem_.index(place, pass.micro_batch);
    T const arrival = arrivals_.of(pass.kind, unit);
    if (arrival == unit_arrivals<T>::missing) return run_outcome::waits;
    bool const is_forward = pass.kind == operation_kind::forward;
    if (is_forward && !take_memory(stage, problem_.bytes[unit], list)) return run_outcome::fails;
    fill(stage, arrival, list);
    begin(state, std::max(state.now, arrival));
    auto const& time = problem_.times.work[unit];
    state.now += is_forward ? time.forward : time.backward;
    list.push_back(pass);
    arrivals_.pass_on(problem_, problem_.times, pass.kind, place, pass.micro_batch, state.now);
    if (is_forward) return run_outcome::ran;
    std::int64_t const kept = problem_.splits_backward ? problem_.weight_bytes[unit] : 0;
    state.free_bytes += problem_.bytes[unit] - kept;
    if (problem_.splits_backward) {
      pending_[stage].push_back({operation_kind::weight, pass.chunk, pass.micro_batch});
    }
    return run_outcome::ran;
  }

  /// Reserves the memory of a forward pass. If the memory lacks bytes, first runs gradients of
  /// weights that free them. Returns false if the memory is still too small.
  [[nodiscard]] bool take_memory(std::size_t stage, std::int64_t bytes,
                                 std::vector<listed_operation>& list) {
    stage_state& state = stages_[stage];
    while (state.free_bytes < bytes && has_weight(stage)) run_weight(stage, list);
    state.free_bytes -= bytes;
    return state.free_bytes >= 0;
  }

  /// Lets a stage be idle until `time`, when a pass begins. With the objective `longest_stage`, the
  /// time before the first pass of a stage is not idle time.
  void begin(stage_state& state, T time) {
    if (!state.has_begun) {
      state.has_begun = true;
      state.begin = time;
      if (objective_ == list_objective::longest_stage) state.slack += time;
    }
    state.slack -= time - state.now;
    state.now = time;
  }

  /// Fills the idle time until `arrival` with gradients of weights.
  void fill(std::size_t stage, T arrival, std::vector<listed_operation>& list) {
    stage_state& state = stages_[stage];
    while (has_weight(stage) && state.now + pending_weight_time(stage) <= arrival) {
      run_weight(stage, list);
    }
    bool const can_wait = arrival <= state.now || arrival - state.now <= state.slack;
    if (has_weight(stage) && !can_wait) run_weight(stage, list);
  }

  [[nodiscard]] bool has_weight(std::size_t stage) const {
    return stages_[stage].first_pending != pending_[stage].size();
  }
  [[nodiscard]] std::size_t pending_unit(std::size_t stage) const {
    listed_operation const& weight = pending_[stage][stages_[stage].first_pending];
    return problem_.index(problem_.layout.virtual_stage(stage, {weight.chunk, weight.micro_batch}),
                          weight.micro_batch);
  }
  [[nodiscard]] T pending_weight_time(std::size_t stage) const {
    return problem_.times.work[pending_unit(stage)].weight;
  }
  void run_weight(std::size_t stage, std::vector<listed_operation>& list) {
    stage_state& state = stages_[stage];
    std::size_t const unit = pending_unit(stage);
    state.now += problem_.times.work[unit].weight;
    state.free_bytes += problem_.weight_bytes[unit];
    list.push_back(pending_[stage][state.first_pending++]);
  }

  list_problem<T> const& problem_;
  list_objective objective_;
  unit_arrivals<T> arrivals_;
  std::vector<stage_state> stages_;
  /// The gradients of the weights of each stage, in the order of the backward passes.
  operation_lists pending_;
};

}  // namespace omnibal::inline v0::detail
