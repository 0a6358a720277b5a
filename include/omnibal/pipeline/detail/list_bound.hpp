// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A lower bound of the time of all lists of operations of a pipeline.

#include <omnibal/pipeline/detail/list_problem.hpp>
#include <omnibal/pipeline/list_objective.hpp>
#include <omnibal/pipeline/schedule.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace omnibal::inline v0::detail {

/// The lower bound of a stage is its working time plus its unavoidable idle time. A stage is idle
/// until its first input arrives. Before its first backward pass it can only run the forward passes
/// that fit into its memory; then it is idle until the first gradients can arrive. After its last
/// backward pass it can only compute the gradients of weights that fit into its memory, while the
/// gradients of the inputs still have to reach the first virtual stage. Proof:
/// docs/evidence/mathematics.md.
template <class T>
class list_bound {
 public:
  explicit list_bound(list_problem<T> const& problem)
      : problem_(problem), chains_(problem.bytes.size()) {
    for (std::uint32_t m = 0; m != problem.layout.micro_batches; ++m) add_chain(m);
  }

  [[nodiscard]] T value(list_objective objective) const {
    T bound = objective == list_objective::makespan ? longest_chain() : T{};
    for (std::size_t s = 0; s != problem_.layout.stages; ++s) {
      bound = std::max(bound, problem_.busy[s] + waiting_time(s, objective));
    }
    return bound;
  }

 private:
  /// The earliest times of the passes of a micro-batch at a virtual stage, if it never waits for a
  /// stage.
  struct chain {
    /// The earliest begin of the forward pass and of the backward pass.
    T forward{};
    T backward{};
    /// The time from the end of the backward pass to the end of the last operation of virtual stage
    /// 0.
    T back{};
  };

  void add_chain(std::uint32_t m) {
    std::size_t const stages = problem_.virtual_stages();
    T time{};
    for (std::size_t v = 0; v != stages; ++v) {
      chains_[problem_.index(v, m)].forward = time;
      time += work(v, m).forward;
      if (v + 1 != stages) time += problem_.transfer_over(problem_.times, v, m).forward;
    }
    for (std::size_t v = stages; v-- != 0;) {
      chains_[problem_.index(v, m)].backward = time;
      time += work(v, m).backward;
      chains_[problem_.index(v, m)].back = time;
      if (v != 0) time += problem_.transfer_over(problem_.times, v - 1, m).backward;
    }
    time += work(0, m).weight;
    for (std::size_t v = 0; v != stages; ++v) {
      T& back = chains_[problem_.index(v, m)].back;
      back = time - back;
    }
  }

  [[nodiscard]] stage_time<T> const& work(std::size_t virtual_stage, std::uint32_t m) const {
    return problem_.times.work[problem_.index(virtual_stage, m)];
  }

  [[nodiscard]] T longest_chain() const {
    T longest{};
    for (std::uint32_t m = 0; m != problem_.layout.micro_batches; ++m) {
      chain const& first = chains_[problem_.index(0, m)];
      longest = std::max(longest, first.backward + work(0, m).backward + first.back);
    }
    return longest;
  }

  [[nodiscard]] T waiting_time(std::size_t stage, list_objective objective) const {
    constexpr T most = std::numeric_limits<T>::max();
    T head = most;
    T gradients = most;
    T turn = most;
    T tail = most;
    for (unit_lane const& lane : problem_.lanes[stage]) {
      for (std::uint32_t i = 0; i != lane.count; ++i) {
        chain const& one = chains_[problem_.index(lane.virtual_stage, lane.micro_batch(i))];
        head = std::min(head, one.forward);
        gradients = std::min(gradients, one.backward);
        turn = std::min(turn, one.backward - one.forward);
        tail = std::min(tail, one.back);
      }
    }
    std::vector<pass> forwards;
    std::vector<pass> weights;
    for (unit_lane const& lane : problem_.lanes[stage]) {
      for (std::uint32_t i = 0; i != lane.count; ++i) {
        std::size_t const unit = problem_.index(lane.virtual_stage, lane.micro_batch(i));
        forwards.push_back({problem_.times.work[unit].forward, problem_.bytes[unit]});
        weights.push_back({problem_.times.work[unit].weight, problem_.weight_bytes[unit]});
      }
    }
    T const before = most_time(forwards, problem_.memory[stage]);
    if (objective == list_objective::longest_stage) return std::max(T{}, turn - before);
    T const after = most_time(weights, problem_.memory[stage]);
    return std::max(head, gradients - before) + std::max(T{}, tail - after);
  }

  struct pass {
    T time;
    std::int64_t bytes;
  };

  /// Returns an upper bound of the time of all passes whose activations fit into the memory
  /// together. It is the fractional knapsack: passes with the longest time for a byte come first,
  /// and the last pass counts in part.
  [[nodiscard]] static T most_time(std::vector<pass>& passes, std::int64_t memory) {
    auto const density = [](pass const& one) {
      constexpr double infinite = std::numeric_limits<double>::infinity();
      return one.bytes == 0 ? infinite
                            : static_cast<double>(one.time) / static_cast<double>(one.bytes);
    };
    std::ranges::sort(passes, [&](pass const& left, pass const& right) {
      return density(left) > density(right);
    });
    T time{};
    std::int64_t left = memory;
    for (pass const& one : passes) {
      if (one.bytes <= left) {
        time += one.time;
        left -= one.bytes;
        continue;
      }
      return time + rounded_up(static_cast<double>(one.time) * static_cast<double>(left) /
                               static_cast<double>(one.bytes));
    }
    return time;
  }
  [[nodiscard]] static T rounded_up(double time) {
    // The product is rounded, so the result is increased by more than the rounding error.
    if constexpr (std::integral<T>) {
      return static_cast<T>(std::ceil(time * (1 + 1e-12)));
    } else {
      return static_cast<T>(time * (1 + 1e-12));
    }
  }

  list_problem<T> const& problem_;
  /// The earliest times, by virtual stage and micro-batch.
  std::vector<chain> chains_;
};

}  // namespace omnibal::inline v0::detail
