#pragma once

/// \file
/// What a pipeline schedule is: the order in which each stage runs its operations.

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace omnibal::inline v0 {

/// What a stage does with a micro-batch.
enum class operation_kind : std::uint8_t {
  forward,
  /// The whole backward pass, or, in schedules that split it, the gradients of the inputs.
  backward,
  /// The gradients of the weights, in schedules that split the backward pass.
  weight
};

/// How many operations of each kind a stage has begun.
struct stage_progress {
  std::uint32_t forward = 0;
  std::uint32_t backward = 0;
  std::uint32_t weight = 0;

  [[nodiscard]] friend bool operator==(stage_progress const&, stage_progress const&) = default;
};

/// What an operation works on: a micro-batch in one of the chunks of the model that a stage has.
struct pipeline_unit {
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;

  [[nodiscard]] friend bool operator==(pipeline_unit const&, pipeline_unit const&) = default;
};

/// A schedule for `stages` stages, each with `chunks` chunks of the model, and `micro_batches`
/// micro-batches. Chunk c of stage s is the virtual stage `c * stages + s` of the model; with one
/// chunk, the virtual stages are the stages.
///
/// `next(stage, done)` is the kind of the operation that follows on a stage that has begun those of
/// `done`; every unit goes forward once, then backward once, then, where `splits_backward`, through
/// the gradients of the weights once. `unit(kind, index)` is what the operation number `index` of a
/// kind works on, the same on all stages. `check()` throws `std::invalid_argument` where there is
/// no such schedule.
template <class Schedule>
concept pipeline_schedule = std::copyable<Schedule> &&
    requires(Schedule const& schedule, std::size_t stage, stage_progress const& done,
             operation_kind kind, std::uint32_t index) {
  { schedule.stages } -> std::convertible_to<std::size_t>;
  { schedule.micro_batches } -> std::convertible_to<std::size_t>;
  { schedule.chunk_count() } -> std::same_as<std::size_t>;
  { Schedule::splits_backward } -> std::convertible_to<bool>;
  { schedule.next(stage, done) } -> std::same_as<operation_kind>;
  { schedule.unit(kind, index) } -> std::same_as<pipeline_unit>;
  schedule.check();
};

}  // namespace omnibal::inline v0
