// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The order of the forward and backward passes of a pipeline by a rule, within the memory of the
/// stages.

#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace omnibal::inline v0::detail {

/// The rule by which an idle stage chooses its next operation.
struct pass_rule {
  /// After its first backward pass, a stage alternates between forward and backward passes if an
  /// input for the pass that is next in turn has been sent.
  bool takes_turns = false;
  /// If a backward pass and a forward pass can begin at the same time, the backward pass runs
  /// first.
  bool prefers_backward = false;
  /// The gradients of weights fill any gap, even if the gap is shorter than their time.
  bool fills_every_gap = false;
};

/// The activations that a stage keeps. A forward pass is admitted only if all micro-batches can
/// still be finished one after the other. Therefore no stage waits forever for memory.
class memory_guard {
 public:
  /// `bytes_of(lane, index)` must return the bytes of a unit.
  template <class BytesOf>
  memory_guard(std::vector<unit_lane> const& lanes, std::size_t micro_batches, std::int64_t memory,
               BytesOf const& bytes_of)
      : free_(memory), held_(micro_batches, 0), needed_(micro_batches, 0) {
    for (unit_lane const& lane : lanes) {
      for (std::uint32_t i = 0; i != lane.count; ++i) {
        needed_[lane.micro_batch(i)] += bytes_of(lane, i);
      }
    }
    most_needed_ = std::ranges::max(needed_);
  }

  /// Returns true if the forward pass of a unit may begin.
  [[nodiscard]] bool admits(std::uint32_t micro_batch, std::int64_t bytes) const {
    std::int64_t left = free_ - bytes;
    if (left < 0) return false;
    // The check finishes the micro-batches in ascending order; each then frees its bytes. If `left`
    // is at least `most_needed_`, all later micro-batches fit.
    std::uint32_t const end = std::max(micro_batch + 1, end_);
    for (std::uint32_t m = first_; m != end && left < most_needed_; ++m) {
      std::int64_t const taken = m == micro_batch ? bytes : 0;
      if (left < needed_[m] - taken) return false;
      left += held_[m] + taken;
    }
    return true;
  }
  void admit(std::uint32_t micro_batch, std::int64_t bytes) {
    free_ -= bytes;
    held_[micro_batch] += bytes;
    needed_[micro_batch] -= bytes;
    end_ = std::max(end_, micro_batch + 1);
  }
  void release(std::uint32_t micro_batch, std::int64_t bytes) {
    free_ += bytes;
    held_[micro_batch] -= bytes;
    while (first_ != end_ && held_[first_] == 0 && needed_[first_] == 0) ++first_;
  }

 private:
  std::int64_t free_;
  /// The bytes that the stage keeps for each micro-batch.
  std::vector<std::int64_t> held_;
  /// The bytes of the forward passes that each micro-batch has not begun yet.
  std::vector<std::int64_t> needed_;
  std::int64_t most_needed_ = 0;
  /// Micro-batches before `first_` are finished; micro-batches from `end_` on have not begun.
  std::uint32_t first_ = 0;
  std::uint32_t end_ = 0;
};

/// Simulates a pipeline operation by operation. Each idle stage chooses its next operation by a
/// rule.
template <class T>
class pass_order {
 public:
  pass_order(list_problem<T> const& problem, unit_times<T> const& times, pass_rule const& rule)
      : problem_(problem), times_(times), rule_(rule) {
    arrivals_.reset(problem);
    for (std::size_t s = 0; s != problem.layout.stages; ++s) {
      auto const& lanes = problem.lanes[s];
      auto const bytes_of = [&](unit_lane const& lane, std::uint32_t index) {
        return problem.bytes[problem.index(lane.virtual_stage, lane.micro_batch(index))];
      };
      stages_.push_back({.lanes = std::vector<lane_progress>(lanes.size()),
                         .memory = memory_guard(lanes, problem.layout.micro_batches,
                                                problem.memory[s], bytes_of)});
    }
    candidates_.resize(problem.layout.stages);
  }

  /// Returns the forward and backward passes of each stage in order.
  [[nodiscard]] operation_lists run() {
    for (std::size_t s = 0; s != stages_.size(); ++s) candidates_[s] = choose(s);
    operation_lists lists(stages_.size());
    while (true) {
      auto const earliest = std::ranges::min_element(
          candidates_, {}, [](candidate const& one) { return one.is_empty ? never : one.begin; });
      if (earliest->is_empty) return lists;
      auto const stage = static_cast<std::size_t>(earliest - candidates_.begin());
      run_candidate(stage, *earliest, lists[stage]);
    }
  }

 private:
  static constexpr T never = std::numeric_limits<T>::max();

  /// The numbers of operations of each kind that a stage has run for a lane.
  struct lane_progress {
    std::uint32_t forward = 0;
    std::uint32_t backward = 0;
    std::uint32_t weight = 0;

    [[nodiscard]] std::uint32_t& of(operation_kind kind) {
      if (kind == operation_kind::forward) return forward;
      return kind == operation_kind::backward ? backward : weight;
    }
  };
  struct stage_state {
    std::vector<lane_progress> lanes;
    memory_guard memory;
    T now{};
    std::optional<operation_kind> last_pass{};
    bool has_turned = false;
  };
  /// An operation that a stage can run next: its earliest begin, its kind and its lane.
  struct candidate {
    T begin{};
    operation_kind kind = operation_kind::forward;
    std::uint32_t lane = 0;
    bool is_empty = true;
  };

  /// The passes that a stage can run next, at most two for each lane: the best one, and the kinds
  /// that exist.
  struct candidates {
    candidate best{};
    bool has_forward = false;
    bool has_backward = false;
    bool lacks_memory = false;
  };

  [[nodiscard]] std::size_t unit(unit_lane const& lane, std::uint32_t index) const {
    return problem_.index(lane.virtual_stage, lane.micro_batch(index));
  }

  /// Chooses the next operation of a stage among the operations whose inputs have been sent.
  [[nodiscard]] candidate choose(std::size_t stage) const {
    candidates const all = candidates_of(stage, std::nullopt);
    candidate pass = all.best;
    candidate const weight = next_weight(stage);
    std::optional<operation_kind> const turn = turn_of(stage);
    bool const is_turn_of_forward = turn == operation_kind::forward;
    if (turn && (is_turn_of_forward ? all.has_forward : all.has_backward)) {
      pass = candidates_of(stage, turn).best;
    } else if (is_turn_of_forward && all.lacks_memory && !weight.is_empty) {
      return weight;
    }
    return goes_first(stage, weight, pass, all.lacks_memory) ? weight : pass;
  }

  /// Returns the kind of pass that is next in turn, or no value if the stage does not alternate.
  [[nodiscard]] std::optional<operation_kind> turn_of(std::size_t stage) const {
    stage_state const& state = stages_[stage];
    if (!rule_.takes_turns || !state.has_turned) return std::nullopt;
    return state.last_pass == operation_kind::backward ? operation_kind::forward
                                                       : operation_kind::backward;
  }

  /// Returns true if gradients of weights run before a pass, in the idle time until the pass can
  /// begin.
  [[nodiscard]] bool goes_first(std::size_t stage, candidate const& weight, candidate const& pass,
                                bool lacks_memory) const {
    if (weight.is_empty || pass.is_empty) return pass.is_empty;
    T const gap = pass.begin - stages_[stage].now;
    bool const fits = gap >= weight_time(stage, weight);
    return gap > T{} && (fits || lacks_memory || rule_.fills_every_gap);
  }

  /// Returns the passes that a stage can run, only of the kind `only` if it is given.
  [[nodiscard]] candidates candidates_of(std::size_t stage,
                                         std::optional<operation_kind> only) const {
    stage_state const& state = stages_[stage];
    auto const& lanes = problem_.lanes[stage];
    candidates result;
    for (std::uint32_t l = 0; l != lanes.size(); ++l) {
      unit_lane const& lane = lanes[l];
      lane_progress const& done = state.lanes[l];
      if (only != operation_kind::backward && done.forward != lane.count) {
        std::size_t const next = unit(lane, done.forward);
        T const arrival = arrivals_.forward[next];
        if (arrival != unit_arrivals<T>::missing) {
          bool const fits =
              state.memory.admits(lane.micro_batch(done.forward), problem_.bytes[next]);
          result.has_forward |= fits;
          result.lacks_memory |= !fits;
          if (fits) propose(stage, operation_kind::forward, l, arrival, result.best);
        }
      }
      if (only != operation_kind::forward && done.backward != lane.count) {
        T const arrival = arrivals_.backward[unit(lane, done.backward)];
        if (arrival != unit_arrivals<T>::missing) {
          result.has_backward = true;
          propose(stage, operation_kind::backward, l, arrival, result.best);
        }
      }
    }
    return result;
  }

  /// Replaces `best` by a pass if the pass can begin earlier, or if it can begin at the same time
  /// and `goes_before` prefers it.
  void propose(std::size_t stage, operation_kind kind, std::uint32_t lane, T arrival,
               candidate& best) const {
    candidate const offered{std::max(stages_[stage].now, arrival), kind, lane, false};
    if (best.is_empty || offered.begin < best.begin ||
        (offered.begin == best.begin && goes_before(stage, offered, best))) {
      best = offered;
    }
  }

  /// Returns true if `left` runs before `right`. Among forward passes, later chunks come first,
  /// because they are nearer to their backward pass. Among backward passes, earlier micro-batches
  /// come first, then later chunks.
  [[nodiscard]] bool goes_before(std::size_t stage, candidate const& left,
                                 candidate const& right) const {
    if (left.kind != right.kind) {
      return (left.kind == operation_kind::backward) == rule_.prefers_backward;
    }
    auto const& lanes = problem_.lanes[stage];
    if (left.kind == operation_kind::backward) {
      auto const& done = stages_[stage].lanes;
      std::uint32_t const l = lanes[left.lane].micro_batch(done[left.lane].backward);
      std::uint32_t const r = lanes[right.lane].micro_batch(done[right.lane].backward);
      if (l != r) return l < r;
    }
    return lanes[left.lane].chunk > lanes[right.lane].chunk;
  }

  /// Returns the gradients of weights that a stage can compute now, from the lane that has computed
  /// the fewest.
  [[nodiscard]] candidate next_weight(std::size_t stage) const {
    stage_state const& state = stages_[stage];
    candidate result;
    for (std::uint32_t l = 0; l != state.lanes.size(); ++l) {
      lane_progress const& done = state.lanes[l];
      if (done.weight == done.backward) continue;
      if (result.is_empty || done.weight < state.lanes[result.lane].weight) {
        result = {state.now, operation_kind::weight, l, false};
      }
    }
    return result;
  }
  [[nodiscard]] T weight_time(std::size_t stage, candidate const& weight) const {
    unit_lane const& lane = problem_.lanes[stage][weight.lane];
    return times_.work[unit(lane, stages_[stage].lanes[weight.lane].weight)].weight;
  }

  void run_candidate(std::size_t stage, candidate const chosen,
                     std::vector<listed_operation>& list) {
    stage_state& state = stages_[stage];
    unit_lane const& lane = problem_.lanes[stage][chosen.lane];
    std::uint32_t const index = state.lanes[chosen.lane].of(chosen.kind)++;
    std::uint32_t const micro_batch = lane.micro_batch(index);
    std::size_t const which = unit(lane, index);
    state.now = chosen.begin + time_of(chosen.kind, which);
    count_memory(state.memory, chosen.kind, micro_batch, which);
    if (chosen.kind == operation_kind::weight) {
      candidates_[stage] = choose(stage);
      return;
    }
    bool const is_forward = chosen.kind == operation_kind::forward;
    state.last_pass = chosen.kind;
    state.has_turned |= !is_forward;
    if (!is_forward && !problem_.splits_backward) ++state.lanes[chosen.lane].weight;
    list.push_back({chosen.kind, lane.chunk, micro_batch});
    std::size_t const next = arrivals_.pass_on(problem_, times_, chosen.kind, lane.virtual_stage,
                                               micro_batch, state.now);
    candidates_[stage] = choose(stage);
    if (next == problem_.virtual_stages()) return;
    std::size_t const receiver = problem_.layout.stage_of(next, micro_batch);
    if (receiver != stage) candidates_[receiver] = choose(receiver);
  }

  [[nodiscard]] T time_of(operation_kind kind, std::size_t which) const {
    stage_time<T> const& time = times_.work[which];
    if (kind == operation_kind::forward) return time.forward;
    return kind == operation_kind::backward ? time.backward : time.weight;
  }

  /// Counts the memory of an operation. A forward pass adds the bytes of its unit. A backward pass
  /// frees the bytes that the gradients of the weights do not need, and these gradients free the
  /// rest.
  void count_memory(memory_guard& memory, operation_kind kind, std::uint32_t micro_batch,
                    std::size_t which) const {
    std::int64_t const bytes = problem_.bytes[which];
    std::int64_t const kept = problem_.splits_backward ? problem_.weight_bytes[which] : 0;
    switch (kind) {
      case operation_kind::forward: memory.admit(micro_batch, bytes); break;
      case operation_kind::backward: memory.release(micro_batch, bytes - kept); break;
      default: memory.release(micro_batch, kept);
    }
  }

  list_problem<T> const& problem_;
  unit_times<T> const& times_;
  pass_rule rule_;
  unit_arrivals<T> arrivals_;
  std::vector<stage_state> stages_;
  std::vector<candidate> candidates_;
};

}  // namespace omnibal::inline v0::detail
