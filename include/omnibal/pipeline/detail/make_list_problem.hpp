// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Reads the times, transfers, bytes and memory of a pipeline into tables. Input: the arguments of
/// `list_schedule`. Output: a checked `list_problem`.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Reads the times of all units. Throws if their sum exceeds the range of the type.
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

/// Throws if a single micro-batch exceeds the memory of a stage, or if the sum of the bytes of all
/// units of the stage exceeds the range of its type.
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

/// Reads the values of a pipeline into tables. Errors: the errors of `list_schedule`.
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
      split_bytes const unit = checked_bytes(function, v, m, value_at(bytes, v, m));
      problem.bytes.push_back(unit.all);
      problem.weight_bytes.push_back(problem.splits_backward ? unit.weight : unit.all);
    }
  }
  for (std::size_t s = 0; s != layout.stages; ++s) {
    problem.lanes.push_back(lanes_of(layout, s));
    problem.memory.push_back(memory.empty() ? std::numeric_limits<std::int64_t>::max() : memory[s]);
    check_memory(function, problem, s);
    problem.busy.push_back(busy_time(problem, s));
  }
  return problem;
}

}  // namespace omnibal::inline v0::detail
