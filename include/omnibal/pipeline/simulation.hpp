#pragma once

/// \file
/// What a simulated step of a pipeline gives.

#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/resources.hpp>

#include <cstdint>
#include <vector>

namespace omnibal::inline v0 {

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
