// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Schedules of a pipeline, their peak of micro-batches in flight, and the inputs and results of a
/// simulation.

#include <omnibal/check.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

inline void check_at_least_one(std::string_view function, std::string_view argument,
                               std::size_t value) {
  check_positive(function, argument, value);
  check_number(function, argument, value);
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// The kind of an operation of a stage on a micro-batch.
enum class operation_kind : std::uint8_t {
  forward,
  /// The whole backward pass; in schedules that split the backward pass, only the gradients of the
  /// inputs.
  backward,
  /// The gradients of the weights, in schedules that split the backward pass.
  weight
};

/// The number of operations of each kind that a stage has begun.
struct stage_progress {
  std::uint32_t forward = 0;
  std::uint32_t backward = 0;
  std::uint32_t weight = 0;

  [[nodiscard]] friend bool operator==(stage_progress const&, stage_progress const&) = default;
};

/// The unit of an operation, a micro-batch in one of the chunks of the model on a stage.
struct pipeline_unit {
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;

  [[nodiscard]] friend bool operator==(pipeline_unit const&, pipeline_unit const&) = default;
};

}  // namespace omnibal::inline v0

namespace omnibal::inline v0::detail {

[[nodiscard]] inline std::string_view name_of(operation_kind kind) {
  if (kind == operation_kind::forward) return "forward";
  return kind == operation_kind::backward ? "backward" : "weight";
}

/// A schedule whose stages run their units in different orders.
template <class Schedule>
concept has_units_of_stages = requires(Schedule const& schedule, std::size_t stage,
                                       operation_kind kind, std::uint32_t index) {
  { schedule.unit(stage, kind, index) } -> std::same_as<pipeline_unit>;
};

template <class Schedule>
concept has_units = has_units_of_stages<Schedule> ||
    requires(Schedule const& schedule, operation_kind kind, std::uint32_t index) {
  { schedule.unit(kind, index) } -> std::same_as<pipeline_unit>;
};

/// A schedule that defines the placement of its chunks.
template <class Schedule>
concept places_chunks = requires(Schedule const& schedule, std::size_t stage,
                                 pipeline_unit const& unit) {
  { schedule.virtual_stage(stage, unit) } -> std::same_as<std::size_t>;
};

/// Returns the unit of operation number `index` of a kind on a stage.
template <class Schedule>
[[nodiscard]] constexpr pipeline_unit unit_of(Schedule const& schedule,
                                              [[maybe_unused]] std::size_t stage,
                                              operation_kind kind, std::uint32_t index) {
  if constexpr (has_units_of_stages<Schedule>) {
    return schedule.unit(stage, kind, index);
  } else {
    return schedule.unit(kind, index);
  }
}

}  // namespace omnibal::inline v0::detail

namespace omnibal::inline v0 {

/// A schedule for `stages` stages, each with `chunk_count()` chunks of the model, and
/// `micro_batches` micro-batches. The model is cut into `stages * chunk_count()` virtual stages. If
/// a schedule has the member `virtual_stage(stage, unit)`, it returns the virtual stage of a unit
/// on a stage; each micro-batch must run through each virtual stage once. Without this member,
/// chunk c of stage s is the virtual stage `c * stages + s`. With one chunk, the virtual stages are
/// then the stages.
///
/// `next(stage, done)` is the kind of the next operation on a stage that has begun the operations
/// in `done`. Every unit has one forward pass and then one backward pass. If `splits_backward` is
/// true, every unit then has one operation for the gradients of the weights. `unit(kind, index)` is
/// the unit of operation number `index` of a kind, the same on all stages. A schedule whose stages
/// differ has `unit(stage, kind, index)` instead. `check()` throws `std::invalid_argument` if the
/// sizes of the schedule are invalid.
template <class Schedule>
concept pipeline_schedule = std::copyable<Schedule> && detail::has_units<Schedule> &&
    requires(Schedule const& schedule, std::size_t stage, stage_progress const& done) {
  { schedule.stages } -> std::convertible_to<std::size_t>;
  { schedule.micro_batches } -> std::convertible_to<std::size_t>;
  { schedule.chunk_count() } -> std::same_as<std::size_t>;
  { Schedule::splits_backward } -> std::convertible_to<bool>;
  { schedule.next(stage, done) } -> std::same_as<operation_kind>;
  schedule.check();
};

struct virtual_stage_of_fn {
  /// Returns the virtual stage in which a unit runs on a stage of a schedule.
  ///
  /// Complexity, memory: constant. Determinism: portable. Errors: the errors of the schedule.
  template <pipeline_schedule Schedule>
  [[nodiscard]] constexpr std::size_t operator()(Schedule const& schedule, std::size_t stage,
                                                 pipeline_unit const& unit) const {
    if constexpr (detail::places_chunks<Schedule>) {
      return schedule.virtual_stage(stage, unit);
    } else {
      return unit.chunk * schedule.stages + stage;
    }
  }
};

/// Returns the virtual stage of a unit; see `virtual_stage_of_fn`.
inline constexpr virtual_stage_of_fn virtual_stage_of{};

namespace detail {

/// Calls `visit(kind, unit)` for the operations of a stage, in the order of the schedule.
template <pipeline_schedule Schedule, class Visit>
void for_each_operation(Schedule const& schedule, std::size_t stage, Visit const& visit) {
  std::size_t const units = schedule.micro_batches * schedule.chunk_count();
  stage_progress done;
  for (std::size_t left = units * (Schedule::splits_backward ? 3 : 2); left != 0; --left) {
    operation_kind const kind = schedule.next(stage, done);
    std::uint32_t& index = kind == operation_kind::forward    ? done.forward
                           : kind == operation_kind::backward ? done.backward
                                                              : done.weight;
    visit(kind, unit_of(schedule, stage, kind, index++));
  }
}

}  // namespace detail

struct peak_in_flight_fn {
  /// Returns, for each stage, the maximum number of units whose activations the stage keeps at the
  /// same time. A unit is a micro-batch in one chunk of the model. The stage keeps activations from
  /// the forward pass to the end of the backward pass. If the schedule splits the backward pass,
  /// the stage keeps activations to the end of the gradients of the weights. With one chunk the
  /// result can be passed as `plan_pipeline_options::in_flight`.
  ///
  /// Complexity: a call of `next` for each operation. Memory: the result. Determinism: portable.
  /// Errors: the errors of the schedule.
  template <pipeline_schedule Schedule>
  [[nodiscard]] std::vector<std::int64_t> operator()(Schedule const& schedule) const {
    schedule.check();
    std::size_t const operations =
        schedule.micro_batches * schedule.chunk_count() * (Schedule::splits_backward ? 3 : 2);
    std::vector<std::int64_t> result;
    for (std::size_t stage = 0; stage != schedule.stages; ++stage) {
      stage_progress done;
      std::int64_t kept = 0;
      std::int64_t most = 0;
      for (std::size_t i = 0; i != operations; ++i) {
        switch (schedule.next(stage, done)) {
          case operation_kind::forward:
            ++done.forward;
            most = std::max(most, ++kept);
            break;
          case operation_kind::backward:
            ++done.backward;
            if (!Schedule::splits_backward) --kept;
            break;
          case operation_kind::weight:
            ++done.weight;
            --kept;
            break;
        }
      }
      result.push_back(most);
    }
    return result;
  }
};

/// Returns the maximum number of units in flight of each stage of a schedule; see
/// `peak_in_flight_fn`.
inline constexpr peak_in_flight_fn peak_in_flight{};

/// The times of a stage for one micro-batch, in any unit, such as nanoseconds. This is an
/// aggregate; `stage_time{1.5, 3.0}` is a `stage_time<double>`.
template <scalar_measure T = std::int64_t>
struct stage_time {
  T forward{};
  /// The time of the backward pass without `weight`.
  T backward{};
  /// The time of the part of the backward pass that computes the gradients of the weights, if it is
  /// known separately. Schedules that do not split the backward pass add this time to `backward`.
  T weight{};

  [[nodiscard]] friend bool operator==(stage_time const&, stage_time const&) = default;
};

template <scalar_measure... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 3)
stage_time(T...)
->stage_time<detail::working_weight<T...>>;

/// The times to send the activations of a micro-batch from a stage to the next stage, and the
/// gradients back.
template <scalar_measure T = std::int64_t>
struct transfer_time {
  T forward{};
  T backward{};

  [[nodiscard]] friend bool operator==(transfer_time const&, transfer_time const&) = default;
};

template <scalar_measure... T>
  requires(sizeof...(T) >= 1 && sizeof...(T) <= 2)
transfer_time(T...)
->transfer_time<detail::working_weight<T...>>;

/// The activation bytes of a unit if the gradients of the inputs free a part of them. A stage keeps
/// `all` from the begin of the forward pass to the end of the gradients of the inputs. Then it
/// keeps `weight` to the end of the gradients of the weights.
struct split_bytes {
  std::int64_t all = 0;
  /// The bytes that remain until the gradients of the weights end; at most `all`.
  std::int64_t weight = 0;

  [[nodiscard]] friend bool operator==(split_bytes const&, split_bytes const&) = default;
};

/// An operation, and the times of its begin and end.
template <scalar_measure T>
struct timed_operation {
  operation_kind kind = operation_kind::forward;
  std::uint32_t stage = 0;
  std::uint32_t chunk = 0;
  std::uint32_t micro_batch = 0;
  T begin{};
  T end{};

  [[nodiscard]] friend bool operator==(timed_operation const&, timed_operation const&) = default;
};

/// The result of a simulation of a step of a pipeline.
template <scalar_measure T>
struct simulation {
  /// The end of the last operation.
  T makespan{};
  /// The idle time of all stages as a share of their total time.
  double bubble_share = 0;
  /// The time that each stage works.
  std::vector<T> busy;
  /// The largest number of activation bytes that each stage keeps at the same time.
  std::vector<std::int64_t> peak_bytes;
  /// All operations, ordered by stage and within a stage in the order in which they run; empty
  /// unless recorded.
  std::vector<timed_operation<T>> timeline;

  [[nodiscard]] friend bool operator==(simulation const&, simulation const&) = default;
};

}  // namespace omnibal::inline v0
