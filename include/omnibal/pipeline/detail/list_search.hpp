// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Candidates for the lists of a pipeline, and the best of them.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/detail/list_bound.hpp>
#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/pass_order.hpp>
#include <omnibal/pipeline/detail/periodic_order.hpp>
#include <omnibal/pipeline/detail/weight_filler.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Returns times that are the same for all units, without transfers.
template <class T>
[[nodiscard]] unit_times<T> uniform_times(list_problem<T> const& problem,
                                          stage_time<T> const& time) {
  return {.work = std::vector<stage_time<T>>(problem.bytes.size(), time),
          .transfer = std::vector<transfer_time<T>>(problem.bytes.size())};
}

/// Returns for each virtual stage the average times of its micro-batches, without transfers.
template <class T>
[[nodiscard]] unit_times<T> average_times(list_problem<T> const& problem) {
  unit_times<T> result = uniform_times(problem, stage_time<T>{});
  auto const batches = static_cast<T>(problem.layout.micro_batches);
  for (std::size_t v = 0; v != problem.virtual_stages(); ++v) {
    stage_time<T> sum;
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) {
      auto const& time = problem.times.work[problem.index(v, m)];
      sum.forward += time.forward;
      sum.backward += time.backward;
      sum.weight += time.weight;
    }
    stage_time<T> const average{sum.forward / batches, sum.backward / batches,
                                sum.weight / batches};
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) {
      result.work[problem.index(v, m)] = average;
    }
  }
  return result;
}

/// Returns the lists of a schedule. If `Splits` and the schedule does not split the backward pass,
/// the gradients of the weights follow each backward pass.
template <bool Splits, pipeline_schedule Schedule>
[[nodiscard]] operation_lists lists_of(Schedule const& schedule) {
  operation_lists lists(schedule.stages);
  std::size_t const units = schedule.micro_batches * schedule.chunk_count();
  std::size_t const count = units * (Schedule::splits_backward ? 3 : 2);
  for (std::size_t s = 0; s != schedule.stages; ++s) {
    stage_progress done;
    for (std::size_t i = 0; i != count; ++i) {
      operation_kind const kind = schedule.next(s, done);
      std::uint32_t& index = kind == operation_kind::forward    ? done.forward
                             : kind == operation_kind::backward ? done.backward
                                                                : done.weight;
      pipeline_unit const unit = unit_of(schedule, s, kind, index++);
      lists[s].push_back({kind, unit.chunk, unit.micro_batch});
      if (Splits && !Schedule::splits_backward && kind == operation_kind::backward) {
        lists[s].push_back({operation_kind::weight, unit.chunk, unit.micro_batch});
      }
    }
  }
  return lists;
}

/// Returns the times of a schedule by `simulate_pipeline`.
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

/// Whether the stages never keep more activation bytes than their memory.
template <class T, bool Splits>
[[nodiscard]] bool fits(list_problem<T> const& problem, listed_schedule<Splits> const& schedule) {
  auto const freeing = Splits ? operation_kind::weight : operation_kind::backward;
  for (std::size_t s = 0; s != problem.layout.stages; ++s) {
    std::int64_t free_bytes = problem.memory[s];
    for (listed_operation const& one : schedule.operations(s)) {
      std::size_t const place = problem.layout.virtual_stage(s, {one.chunk, one.micro_batch});
      std::int64_t const bytes = problem.bytes[problem.index(place, one.micro_batch)];
      if (one.kind == operation_kind::forward && (free_bytes -= bytes) < 0) return false;
      if (one.kind == freeing) free_bytes += bytes;
    }
  }
  return true;
}

/// The best lists that have been found for a problem.
template <class T>
class list_search {
 public:
  list_search(list_problem<T> const& problem, list_objective objective)
      : problem_(problem),
        objective_(objective),
        filler_(problem, objective),
        bound_(list_bound<T>(problem, filler_.busy()).value(objective)) {}

  [[nodiscard]] T bound() const { return bound_; }
  [[nodiscard]] operation_lists const& lists() const { return lists_; }

  /// Keeps lists if they are the best ones.
  void propose(list_times<T> const& times, operation_lists const& lists) {
    if (best_ <= times.of(objective_)) return;
    best_ = times.of(objective_);
    lists_ = lists;
  }

  /// Tries the orders of patterns, and of all rules at several times. Equal times give orders
  /// without gaps, which often are the best ones even if the real times differ.
  void try_orders() {
    constexpr std::array<stage_time<int>, 3> equal{{{10, 10, 10}, {10, 14, 8}, {10, 11, 10}}};
    for (auto const& [forward, backward, weight] : equal) {
      stage_time<T> const time{static_cast<T>(forward), static_cast<T>(backward),
                               problem_.splits_backward ? static_cast<T>(weight) : T{}};
      try_rules(uniform_times(problem_, time));
    }
    try_patterns();
    try_rules(average_times(problem_));
    try_rules(problem_.times);
    try_targets(best_passes_, 32);
  }

 private:
  static constexpr std::array<pass_rule, 4> rules{
      {{.takes_turns = true, .prefers_backward = false, .fills_every_gap = false},
       {.takes_turns = true, .prefers_backward = true, .fills_every_gap = false},
       {.takes_turns = true, .prefers_backward = true, .fills_every_gap = true},
       {.takes_turns = false, .prefers_backward = true, .fills_every_gap = true}}};

  void try_rules(unit_times<T> const& times) {
    for (pass_rule const& rule : rules) {
      if (best_ <= bound_) return;
      try_order(pass_order<T>(problem_, times, rule).run());
    }
  }

  /// Tries the orders of patterns, which need little memory.
  void try_patterns() {
    if (best_ <= bound_) return;
    auto const period =
        static_cast<std::int64_t>(problem_.layout.chunks * (problem_.splits_backward ? 3 : 2));
    for (pass_pattern const& pattern : patterns_without_collisions(problem_.layout, period)) {
      try_order(periodic_order(problem_, pattern_slots(problem_.layout, pattern), period));
      if (best_ <= bound_) return;
    }
  }

  void try_order(operation_lists const& passes) {
    T const before = best_;
    try_targets(passes, 3);
    if (best_ < before) best_passes_ = passes;
  }

  /// Fills the gaps of an order for targets between the bound and the best time.
  void try_targets(operation_lists const& passes, int count) {
    if (best_ <= bound_) return;
    try_target(passes, bound_);
    if (!problem_.splits_backward) return;
    T const step = (best_ - bound_) / static_cast<T>(count);
    for (int k = 1; k <= count; ++k) try_target(passes, bound_ + step * static_cast<T>(k));
  }
  void try_target(operation_lists const& passes, T target) {
    list_times<T> const times = filler_.run(passes, target);
    propose(times, filler_.lists());
  }

  list_problem<T> const& problem_;
  list_objective objective_;
  weight_filler<T> filler_;
  T bound_;
  T best_ = std::numeric_limits<T>::max();
  operation_lists lists_;
  /// The order of passes from which the lists were made.
  operation_lists best_passes_;
};

/// Returns tables of the values of a pipeline. Errors: as `list_schedule`.
template <class T, class Times, class Transfers, class Bytes>
[[nodiscard]] list_problem<T> make_list_problem(std::string_view function,
                                                chunk_layout const& layout, Times const& times,
                                                Transfers const& transfers, Bytes const& bytes,
                                                std::span<std::int64_t const> memory) {
  layout.check(function);
  list_problem<T> problem{.layout = layout};
  std::size_t const stages = problem.virtual_stages();
  std::size_t const batches = layout.micro_batches;
  check_value_count(function, "times", times, stages, "virtual stages", batches);
  check_value_count(function, "transfers", transfers, stages - 1, "cuts", batches);
  check_value_count(function, "bytes", bytes, stages, "virtual stages", batches);
  if (!memory.empty()) check_size(function, "memory", memory.size(), layout.stages, "stages");
  problem.splits_backward = has_weight_time<value_of<Times>>;
  read_times(function, times, transfers, problem);
  for (std::size_t v = 0; v != stages; ++v) {
    for (std::size_t m = 0; m != batches; ++m) {
      problem.bytes.push_back(
          checked_value<std::int64_t>(function, "activation bytes", v, m, value_at(bytes, v, m)));
    }
  }
  for (std::size_t s = 0; s != layout.stages; ++s) {
    problem.lanes.push_back(lanes_of(layout, s));
    problem.memory.push_back(memory.empty() ? std::numeric_limits<std::int64_t>::max() : memory[s]);
    check_memory(function, problem, s);
  }
  return problem;
}

/// Reads the times of all units. Throws if their sum leaves the type.
template <class T, class Times, class Transfers>
void read_times(std::string_view function, Times const& times, Transfers const& transfers,
                list_problem<T>& problem) {
  T sum{};
  auto const read = [&](std::string_view what, std::size_t v, std::size_t m, auto value) {
    T const time = checked_value<T>(function, what, v, m, value);
    checked_add(function, "the sum of all times", sum, time);
    return time;
  };
  for (std::size_t v = 0; v != problem.virtual_stages(); ++v) {
    for (std::size_t m = 0; m != problem.layout.micro_batches; ++m) {
      auto const& time = value_at(times, v, m);
      stage_time<T> work{.forward = read("forward time", v, m, time.forward),
                         .backward = read("backward time", v, m, time.backward)};
      if constexpr (has_weight_time<value_of<Times>>) {
        work.weight = read("weight time", v, m, time.weight);
      }
      problem.times.work.push_back(work);
      transfer_time<T> transfer{};
      if (v + 1 != problem.virtual_stages()) {
        auto const& given = value_at(transfers, v, m);
        if constexpr (has_both_ways<value_of<Transfers>>) {
          transfer.forward = read("forward transfer", v, m, given.forward);
          transfer.backward = read("backward transfer", v, m, given.backward);
        } else {
          transfer.forward = read("transfer", v, m, given);
          transfer.backward = read("transfer", v, m, given);
        }
      }
      problem.times.transfer.push_back(transfer);
    }
  }
}

/// Throws if a micro-batch alone exceeds the memory of a stage.
template <class T>
void check_memory(std::string_view function, list_problem<T> const& problem, std::size_t stage) {
  std::int64_t const memory = problem.memory[stage];
  std::vector<std::int64_t> needed(problem.layout.micro_batches, 0);
  std::int64_t sum = 0;
  for (unit_lane const& lane : problem.lanes[stage]) {
    for (std::uint32_t i = 0; i != lane.count; ++i) {
      std::uint32_t const m = lane.micro_batch(i);
      std::int64_t const bytes = problem.bytes[problem.index(lane.virtual_stage, m)];
      checked_add(function, "the sum of activation bytes", sum, bytes);
      needed[m] += bytes;
    }
  }
  for (std::size_t m = 0; m != needed.size(); ++m) {
    if (needed[m] <= memory) continue;
    throw_invalid(function, "memory[", stage, "] is ", memory, ", must be at least ", needed[m],
                  ", which micro-batch ", m, " keeps");
  }
}

}  // namespace omnibal::inline v0::detail
