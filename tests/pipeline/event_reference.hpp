// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pipeline as one would write it down first: lists of operations, and a queue of events.

#include <omnibal/pipeline/gpipe.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/listed_schedule.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/zb_h1.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace test {

using omnibal::operation_kind;

struct planned_operation {
  operation_kind kind;
  std::size_t chunk;
  std::size_t micro_batch;
};

using operation_list = std::vector<planned_operation>;

inline operation_list operations_of(omnibal::gpipe const& schedule, std::size_t) {
  operation_list list;
  for (auto const kind : {operation_kind::forward, operation_kind::backward}) {
    for (std::size_t m = 0; m != schedule.micro_batches; ++m) list.push_back({kind, 0, m});
  }
  return list;
}

/// Warm-up, pairs of a forward and a backward pass, and the rest backward.
inline operation_list with_warm_up(operation_list const& forward, operation_list const& backward,
                                   std::size_t warm_up) {
  operation_list list;
  warm_up = std::min(warm_up, forward.size());
  for (std::size_t i = 0; i != warm_up; ++i) list.push_back(forward[i]);
  for (std::size_t i = warm_up; i != forward.size(); ++i) {
    list.push_back(forward[i]);
    list.push_back(backward[i - warm_up]);
  }
  for (std::size_t i = forward.size() - warm_up; i != forward.size(); ++i) {
    list.push_back(backward[i]);
  }
  return list;
}

inline operation_list operations_of(omnibal::one_f_one_b const& schedule, std::size_t stage) {
  operation_list forward;
  operation_list backward;
  for (std::size_t m = 0; m != schedule.micro_batches; ++m) {
    forward.push_back({operation_kind::forward, 0, m});
    backward.push_back({operation_kind::backward, 0, m});
  }
  return with_warm_up(forward, backward, schedule.stages - stage - 1);
}

inline operation_list operations_of(omnibal::interleaved_1f1b const& schedule, std::size_t stage) {
  operation_list forward;
  operation_list backward;
  std::size_t const size = schedule.group == 0 ? schedule.stages : schedule.group;
  std::size_t const groups = std::max<std::size_t>(1, schedule.micro_batches / size);
  std::size_t largest = 0;
  std::size_t first = 0;
  for (std::size_t g = groups; g != 0; --g) {
    std::size_t const left = schedule.micro_batches - first;
    std::size_t const last = first + (left + g - 1) / g;
    largest = std::max(largest, last - first);
    for (std::size_t chunk = 0; chunk != schedule.chunks; ++chunk) {
      for (std::size_t m = first; m != last; ++m) {
        forward.push_back({operation_kind::forward, chunk, m});
        backward.push_back({operation_kind::backward, schedule.chunks - 1 - chunk, m});
      }
    }
    first = last;
  }
  std::size_t const after = schedule.stages - stage - 1;
  return with_warm_up(forward, backward,
                      schedule.chunks == 1 ? after : 2 * after + (schedule.chunks - 1) * largest);
}

inline operation_list operations_of(omnibal::zb_h1 const& schedule, std::size_t stage) {
  omnibal::one_f_one_b const unsplit{schedule.stages, schedule.micro_batches};
  operation_list list;
  std::size_t weights = 0;
  for (auto const& operation : operations_of(unsplit, stage)) {
    list.push_back(operation);
    if (operation.kind == operation_kind::backward && operation.micro_batch >= stage) {
      list.push_back({operation_kind::weight, 0, weights++});
    }
  }
  while (weights != schedule.micro_batches) {
    list.push_back({operation_kind::weight, 0, weights++});
  }
  return list;
}

template <bool SplitsBackward>
operation_list operations_of(omnibal::listed_schedule<SplitsBackward> const& schedule,
                             std::size_t stage) {
  operation_list list;
  for (auto const& [kind, chunk, micro_batch] : schedule.operations(stage)) {
    list.push_back({kind, chunk, micro_batch});
  }
  return list;
}

/// What each operation takes, by kind, virtual stage and micro-batch, and each transfer by the
/// direction, the cut and the micro-batch; the bytes by virtual stage and micro-batch.
template <class T>
struct pipeline_costs {
  std::function<T(operation_kind, std::size_t, std::size_t)> time;
  std::function<T(operation_kind, std::size_t, std::size_t)> transfer;
  std::function<std::int64_t(std::size_t, std::size_t)> bytes;
};

/// The makespan and the timeline of an event-driven simulation.
template <class T, class Schedule>
omnibal::simulation<T> run_events(Schedule const& schedule, pipeline_costs<T> const& costs) {
  std::size_t const stages = schedule.stages;
  std::size_t const last = stages * schedule.chunk_count() - 1;
  std::vector<operation_list> lists;
  for (std::size_t s = 0; s != stages; ++s) lists.push_back(operations_of(schedule, s));

  omnibal::simulation<T> result;
  result.busy.resize(stages);
  result.peak_bytes.resize(stages);
  std::vector<std::size_t> position(stages, 0);
  std::vector<std::int64_t> bytes(stages, 0);
  std::vector<std::vector<omnibal::timed_operation<T>>> ran(stages);
  std::vector<bool> busy(stages, false);
  std::map<std::tuple<operation_kind, std::size_t, std::size_t>, bool> arrived;

  enum class event_kind { arrival, end };
  struct event {
    T time;
    event_kind kind;
    std::size_t stage;
    planned_operation operation;
  };
  auto const later = [](event const& left, event const& right) { return left.time > right.time; };
  std::priority_queue<event, std::vector<event>, decltype(later)> events(later);
  auto const place_of = [&](std::size_t stage, std::size_t chunk, std::size_t m) {
    return omnibal::virtual_stage_of(
        schedule, stage, {static_cast<std::uint32_t>(chunk), static_cast<std::uint32_t>(m)});
  };
  auto const arrive = [&](T time, operation_kind kind, std::size_t virtual_stage, std::size_t m) {
    for (std::size_t stage = 0; stage != stages; ++stage) {
      for (std::size_t chunk = 0; chunk != schedule.chunk_count(); ++chunk) {
        if (place_of(stage, chunk, m) != virtual_stage) continue;
        events.push({time, event_kind::arrival, stage, {kind, chunk, m}});
      }
    }
  };
  /// The data of a micro-batch leaves a virtual stage for the one before or behind the cut.
  auto const send = [&](T time, operation_kind kind, std::size_t cut, std::size_t from,
                        std::size_t m) {
    std::size_t const target = kind == operation_kind::forward ? cut + 1 : cut;
    T arrival = time + costs.transfer(kind, cut, m);
    for (std::size_t chunk = 0; chunk != schedule.chunk_count(); ++chunk) {
      if (place_of(from, chunk, m) == target) arrival = time;
    }
    arrive(arrival, kind, target, m);
  };
  for (std::size_t m = 0; m != schedule.micro_batches; ++m) {
    arrive(T{}, operation_kind::forward, 0, m);
  }
  auto const start_if_possible = [&](std::size_t stage, T now) {
    if (busy[stage] || position[stage] == lists[stage].size()) return;
    auto const& operation = lists[stage][position[stage]];
    std::size_t const virtual_stage = place_of(stage, operation.chunk, operation.micro_batch);
    if (!arrived[{operation.kind, virtual_stage, operation.micro_batch}]) return;
    T const time = costs.time(operation.kind, virtual_stage, operation.micro_batch);
    busy[stage] = true;
    ++position[stage];
    result.busy[stage] += time;
    ran[stage].push_back({operation.kind, static_cast<std::uint32_t>(stage),
                          static_cast<std::uint32_t>(operation.chunk),
                          static_cast<std::uint32_t>(operation.micro_batch), now, now + time});
    if (operation.kind == operation_kind::forward) {
      bytes[stage] += costs.bytes(virtual_stage, operation.micro_batch);
      result.peak_bytes[stage] = std::max(result.peak_bytes[stage], bytes[stage]);
    }
    events.push({now + time, event_kind::end, stage, operation});
  };

  while (!events.empty()) {
    event const now = events.top();
    events.pop();
    std::size_t const m = now.operation.micro_batch;
    std::size_t const virtual_stage = place_of(now.stage, now.operation.chunk, m);
    if (now.kind == event_kind::arrival) {
      arrived[{now.operation.kind, virtual_stage, m}] = true;
    } else {
      busy[now.stage] = false;
      result.makespan = std::max(result.makespan, now.time);
      if (now.operation.kind == operation_kind::forward) {
        if (virtual_stage == last) {
          arrive(now.time, operation_kind::backward, last, m);
        } else {
          send(now.time, operation_kind::forward, virtual_stage, now.stage, m);
        }
      } else if (now.operation.kind == operation_kind::backward) {
        if (Schedule::splits_backward) arrive(now.time, operation_kind::weight, virtual_stage, m);
        if (virtual_stage != 0) {
          send(now.time, operation_kind::backward, virtual_stage - 1, now.stage, m);
        }
      }
      auto const freeing =
          Schedule::splits_backward ? operation_kind::weight : operation_kind::backward;
      if (now.operation.kind == freeing) bytes[now.stage] -= costs.bytes(virtual_stage, m);
    }
    start_if_possible(now.stage, now.time);
  }
  for (auto const& stage : ran) {
    result.timeline.insert(result.timeline.end(), stage.begin(), stage.end());
  }
  double waiting = 0;
  for (T const time : result.busy) waiting += static_cast<double>(result.makespan - time);
  double const all = static_cast<double>(result.makespan) * static_cast<double>(stages);
  result.bubble_share = all > 0 ? waiting / all : 0;
  return result;
}

}  // namespace test
