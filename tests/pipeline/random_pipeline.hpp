// SPDX-License-Identifier: Apache-2.0
#pragma once

// Random pipelines, and the least time of all lists of small ones.

#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/rng/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace test {

using omnibal::chunk_layout;
using omnibal::chunk_placement;
using omnibal::list_objective;
using omnibal::operation_kind;
using omnibal::stage_time;
using omnibal::transfer_time;

template <class Value>
using table = std::vector<std::vector<Value>>;

/// A step without times of weights, for schedules that do not split the backward pass.
struct unsplit_time {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

inline std::int64_t below(omnibal::rng::engine& random, std::uint64_t count) {
  return static_cast<std::int64_t>(omnibal::rng::below(random, count));
}
inline std::size_t one_to(omnibal::rng::engine& random, std::uint64_t most) {
  return 1 + omnibal::rng::below(random, most);
}

/// A pipeline with random times, transfers, bytes and memory.
struct random_pipeline {
  chunk_layout layout;
  table<stage_time<>> times;
  table<transfer_time<>> transfers;
  table<std::int64_t> bytes;
  std::vector<std::int64_t> memory;

  random_pipeline(omnibal::rng::engine& random, chunk_layout const& given)
      : layout(given),
        times(given.stages * given.chunks),
        transfers(times.size() - 1),
        bytes(times.size()),
        memory(given.stages, 0) {
    std::uint64_t const range = below(random, 2) == 0 ? 4 : 1000;
    for (std::size_t m = 0; m != layout.micro_batches; ++m) {
      for (auto& stage : times) {
        stage.push_back({below(random, range), below(random, range), below(random, range)});
      }
      for (auto& cut : transfers) cut.push_back({below(random, 3), below(random, 3)});
      for (auto& stage : bytes) stage.push_back(below(random, 5));
    }
    // Between the largest micro-batch alone and all of them.
    for (std::size_t s = 0; s != layout.stages; ++s) {
      std::int64_t least = 0;
      std::int64_t all = 0;
      for (std::uint32_t m = 0; m != layout.micro_batches; ++m) {
        std::int64_t const needed = bytes_of(s, m);
        least = std::max(least, needed);
        all += needed;
      }
      memory[s] = least + below(random, static_cast<std::uint64_t>(all - least + 1));
    }
  }

  [[nodiscard]] std::int64_t bytes_of(std::size_t stage, std::uint32_t m) const {
    std::int64_t sum = 0;
    for (std::uint32_t chunk = 0; chunk != layout.chunks; ++chunk) {
      sum += bytes[layout.virtual_stage(stage, {chunk, m})][m];
    }
    return sum;
  }
  [[nodiscard]] table<unsplit_time> unsplit_times() const {
    table<unsplit_time> result(times.size());
    for (std::size_t v = 0; v != times.size(); ++v) {
      for (auto const& [forward, backward, weight] : times[v]) {
        result[v].push_back({forward, backward + weight});
      }
    }
    return result;
  }
  template <class Schedule>
  [[nodiscard]] auto simulated(Schedule const& schedule) const {
    return omnibal::simulate_pipeline(schedule, times, transfers, bytes,
                                      {.timeline = omnibal::timeline_policy::recorded});
  }
  [[nodiscard]] bool fits(std::vector<std::int64_t> const& peaks) const {
    for (std::size_t s = 0; s != peaks.size(); ++s) {
      if (peaks[s] > memory[s]) return false;
    }
    return true;
  }
};

inline chunk_layout random_layout(omnibal::rng::engine& random) {
  chunk_layout layout{.stages = one_to(random, 5), .micro_batches = one_to(random, 9)};
  layout.placement = static_cast<chunk_placement>(below(random, 3));
  if (layout.placement != chunk_placement::bidirectional) layout.chunks = one_to(random, 3);
  return layout;
}

/// A search of all lists of a small pipeline, operation by operation in the order of their begins.
class list_oracle {
 public:
  list_oracle(random_pipeline const& pipeline, list_objective objective, bool splits)
      : pipeline_(pipeline),
        layout_(pipeline.layout),
        objective_(objective),
        kinds_(splits ? 3 : 2),
        units_(pipeline.times.size() * layout_.micro_batches),
        stages_(layout_.stages) {
    for (std::size_t v = 0; v != pipeline.times.size(); ++v) {
      for (std::size_t m = 0; m != layout_.micro_batches; ++m) {
        units_[unit(v, m)].arrival = v == 0 ? 0 : missing;
        auto const& [forward, backward, weight] = pipeline.times[v][m];
        stages_[stage_of(v, m)].work += forward + backward + weight;
      }
    }
    for (std::size_t s = 0; s != stages_.size(); ++s) stages_[s].free_bytes = pipeline.memory[s];
  }

  /// Returns the least objective of all lists within the memory, or `limit` if none is below it.
  [[nodiscard]] std::int64_t least(std::int64_t limit) {
    best_ = limit;
    left_ = units_.size() * static_cast<std::size_t>(kinds_);
    extend(0);
    return best_;
  }

 private:
  static constexpr std::int64_t missing = -1;

  struct unit_state {
    int done = 0;
    /// When the input of the next pass arrives.
    std::int64_t arrival = missing;
  };
  struct stage_state {
    std::int64_t now = 0;
    std::int64_t begin = missing;
    /// The time of the operations that are left.
    std::int64_t work = 0;
    std::int64_t free_bytes = 0;
  };

  [[nodiscard]] std::size_t unit(std::size_t v, std::size_t m) const {
    return v * layout_.micro_batches + m;
  }
  [[nodiscard]] std::size_t stage_of(std::size_t v, std::size_t m) const {
    return layout_.stage_of(v, static_cast<std::uint32_t>(m));
  }

  void extend(std::int64_t last_begin) {
    bool const is_step = objective_ == list_objective::makespan;
    std::int64_t time = 0;
    for (stage_state const& stage : stages_) {
      std::int64_t const begin = is_step || stage.begin == missing ? 0 : stage.begin;
      std::int64_t const now = is_step || stage.begin != missing ? stage.now : 0;
      time = std::max(time, now - begin + stage.work);
    }
    if (time >= best_) return;
    if (left_ == 0) best_ = time;
    for (std::size_t v = 0; v != pipeline_.times.size(); ++v) {
      for (std::size_t m = 0; m != layout_.micro_batches; ++m) {
        if (units_[unit(v, m)].done != kinds_) run(v, m, last_begin);
      }
    }
  }

  /// Runs the next operation of a unit, and everything after it in all orders.
  void run(std::size_t v, std::size_t m, std::int64_t last_begin) {
    unit_state& one = units_[unit(v, m)];
    stage_state& stage = stages_[stage_of(v, m)];
    if (one.arrival == missing) return;
    std::int64_t const begin = std::max(stage.now, one.arrival);
    if (begin < last_begin) return;
    auto const& [forward, backward, weight] = pipeline_.times[v][m];
    std::int64_t time = one.done == 0 ? forward : one.done == 1 ? backward : weight;
    if (one.done == 1 && kinds_ == 2) time += weight;
    bool const frees = one.done + 1 == kinds_;
    std::int64_t const bytes = pipeline_.bytes[v][m];
    std::int64_t const change = one.done == 0 ? -bytes : frees ? bytes : 0;
    if (stage.free_bytes + change < 0) return;

    unit_state const one_before = one;
    stage_state const stage_before = stage;
    stage.free_bytes += change;
    stage.now = begin + time;
    stage.work -= time;
    if (stage.begin == missing) stage.begin = begin;
    unit_state* receiver = nullptr;
    if (one.done == 0) {
      receiver = v + 1 == pipeline_.times.size() ? &one : &units_[unit(v + 1, m)];
    } else if (one.done == 1 && v != 0) {
      receiver = &units_[unit(v - 1, m)];
    }
    ++one.done;
    // Gradients of the weights need no input from another stage.
    one.arrival = one.done == 2 ? 0 : missing;
    std::int64_t const receiver_arrival = receiver == nullptr ? 0 : receiver->arrival;
    if (receiver != nullptr) receiver->arrival = stage.now + transfer(v, m, one.done == 1);
    --left_;
    extend(begin);
    ++left_;
    if (receiver != nullptr) receiver->arrival = receiver_arrival;
    one = one_before;
    stage = stage_before;
  }

  [[nodiscard]] std::int64_t transfer(std::size_t v, std::size_t m, bool is_forward) const {
    if (is_forward && v + 1 == pipeline_.times.size()) return 0;
    std::size_t const cut = is_forward ? v : v - 1;
    if (stage_of(cut, m) == stage_of(cut + 1, m)) return 0;
    auto const& [forward, backward] = pipeline_.transfers[cut][m];
    return is_forward ? forward : backward;
  }

  random_pipeline const& pipeline_;
  chunk_layout layout_;
  list_objective objective_;
  int kinds_;
  std::vector<unit_state> units_;
  std::vector<stage_state> stages_;
  std::size_t left_ = 0;
  std::int64_t best_ = 0;
};

}  // namespace test
