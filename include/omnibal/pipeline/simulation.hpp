#pragma once

/// \file
/// What a step of a pipeline is simulated from, and what that gives.

#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/resources.hpp>

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

/// What a stage takes for one micro-batch, in any unit, such as nanoseconds. An aggregate;
/// `stage_time{1.5, 3.0}` is a `stage_time<double>`.
template <weight T = std::int64_t>
struct stage_time {
  T forward{};
  /// The backward pass without `weight`.
  T backward{};
  /// The part of the backward pass that makes the gradients of the weights, where it is known by
  /// itself. Schedules that do not split the backward pass add it to `backward`.
  T weight{};

  [[nodiscard]] friend bool operator==(stage_time const&, stage_time const&) = default;
};

template <weight... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 3)
stage_time(T...)
->stage_time<detail::working_weight<T...>>;

/// What it takes to send a micro-batch from a stage to the next one, and gradients back.
template <weight T = std::int64_t>
struct transfer_time {
  T forward{};
  T backward{};

  [[nodiscard]] friend bool operator==(transfer_time const&, transfer_time const&) = default;
};

template <weight... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 2)
transfer_time(T...)
->transfer_time<detail::working_weight<T...>>;

/// An operation and when it ran.
template <weight T>
struct timed_operation {
  operation_kind kind = operation_kind::forward;
  std::uint32_t stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  T begin{};
  T end{};

  [[nodiscard]] friend bool operator==(timed_operation const&, timed_operation const&) = default;
};

/// A step of a pipeline.
template <weight T>
struct simulation {
  /// The end of the last operation.
  T makespan{};
  /// The share of the time of all stages in which they wait.
  double bubble_share = 0;
  /// The time in which each stage works.
  std::vector<T> busy;
  /// The most activation bytes that each stage keeps at once.
  std::vector<std::int64_t> peak_bytes;
  /// All operations, those of each stage in the order in which it runs them; empty unless recorded.
  std::vector<timed_operation<T>> timeline;

  [[nodiscard]] friend bool operator==(simulation const&, simulation const&) = default;
};

}  // namespace omnibal::inline v0
