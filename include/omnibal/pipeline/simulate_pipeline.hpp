// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Time and memory of a step of a pipeline.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/pipeline/detail/pipeline_values.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline/pipeline_run.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Whether a simulation records its operations.
enum class timeline_policy { none, recorded };

struct simulate_pipeline_options {
  timeline_policy timeline = timeline_policy::none;
};

/// The times of stages for micro-batches, in one of four forms. One value with `forward`,
/// `backward` and optionally `weight`, such as `stage_time`, applies to all stages and
/// micro-batches. A range has a value for each virtual stage. A range of ranges has a value for
/// each virtual stage and micro-batch. A functor of a virtual stage and a micro-batch returns the
/// value.
template <class Times>
concept stage_times = detail::has_both_ways<detail::value_of<Times>>;

/// The times of transfers over cuts, in the same forms as `stage_times`. A value is a weight, or it
/// has `forward` and `backward`, such as `transfer_time`. Cut c is between the virtual stages c and
/// c + 1.
template <class Times>
concept transfer_times =
    scalar_measure<detail::value_of<Times>> || detail::has_both_ways<detail::value_of<Times>>;

/// The bytes of a micro-batch on a stage: an integer or a value with `all` and `weight`, such as
/// `split_bytes`, or ranges or a functor as in `stage_times`.
template <class Bytes>
concept activation_bytes = (std::integral<detail::value_of<Bytes>> &&
                            scalar_measure<detail::value_of<Bytes>>) ||
                           detail::has_split_bytes<detail::value_of<Bytes>>;

/// The type of the times of a simulation: `std::int64_t`, or `double` if any time is a
/// floating-point number.
template <stage_times Times, transfer_times Transfers>
using simulated_time =
    detail::working_weight<typename detail::time_type_of<detail::value_of<Times>>::type,
                           typename detail::time_type_of<detail::value_of<Transfers>>::type>;

/// The reusable memory of `simulate_pipeline`, and its last result.
template <scalar_measure T = std::int64_t>
class simulate_pipeline_workspace {
 public:
  /// Returns the result of the last call.
  [[nodiscard]] simulation<T> const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct simulate_pipeline_fn;

  simulation<T> result_;
  detail::run_memory<T> memory_;
};

struct simulate_pipeline_fn {
  /// Simulates a step of a pipeline. Each stage runs its operations in the order of the schedule.
  /// An operation begins as soon as the stage is free and the inputs have arrived. Transfers delay
  /// their receiver, but no stage is busy during a transfer. There is no transfer between two
  /// virtual stages on the same stage. A stage keeps the activation bytes of a micro-batch from the
  /// begin of its forward pass to the end of its backward pass. If the schedule splits the backward
  /// pass, the stage keeps the bytes to the end of the gradients of the weights. With `split_bytes`
  /// the stage frees a part of the bytes at the end of the gradients of the inputs.
  ///
  /// Complexity: a few steps for each operation, in addition to the calls of the functors. Memory:
  /// 16 bytes for each pair of a virtual stage and a micro-batch; 32 bytes for each operation of a
  /// timeline. A workspace that has been used for a step of at least the same size avoids
  /// allocations. Determinism: portable for integers. Errors: `std::invalid_argument` if the sizes
  /// of the schedule are invalid, if ranges do not have the number of virtual stages, cuts or
  /// micro-batches, and if times or bytes are negative or not finite. It is also thrown if the
  /// schedule runs a unit twice or a unit that does not exist, and if its order is impossible. It
  /// is thrown as well if the schedule waits forever; the message names the stage and its missing
  /// input. Further errors: `std::overflow_error` if a time or the bytes of a stage exceed their
  /// type; `std::length_error` if micro-batches times chunks exceed 2^32 - 1.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes>
  simulation<simulated_time<Times, Transfers>> const& operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers, Bytes const& bytes,
      simulate_pipeline_options const& options,
      simulate_pipeline_workspace<simulated_time<Times, Transfers>>& workspace) const {
    using time_type = simulated_time<Times, Transfers>;
    detail::pipeline_shape const shape = checked_shape(schedule);
    check(shape, times, transfers, bytes);
    detail::pipeline_run<time_type, Schedule, Times, Transfers, Bytes> run(
        name, schedule, shape, times, transfers, bytes, workspace.memory_);
    simulation<time_type>& result = workspace.result_;
    if (options.timeline == timeline_policy::recorded) {
      result.timeline.resize(shape.stages * run.operations_of_stage());
      run.run(result.timeline.data());
    } else {
      result.timeline.clear();
      run.run(nullptr);
    }
    summarize(workspace.memory_.stages, result);
    return result;
  }

  /// Simulates a step in a new workspace. If transfers or activation bytes are not given, they are
  /// zero.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers = std::int64_t,
            activation_bytes Bytes = std::int64_t>
  [[nodiscard]] auto operator()(Schedule const& schedule, Times const& times,
                                Transfers const& transfers = {}, Bytes const& bytes = {},
                                simulate_pipeline_options const& options = {}) const {
    simulate_pipeline_workspace<simulated_time<Times, Transfers>> workspace;
    (*this)(schedule, times, transfers, bytes, options, workspace);
    return std::move(workspace.result_);
  }

  /// Simulates a step in a given workspace with default options.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes, scalar_measure T>
    requires std::same_as<T, simulated_time<Times, Transfers>>
  auto operator()(Schedule const& schedule, Times const& times, Transfers const& transfers,
                  Bytes const& bytes, simulate_pipeline_workspace<T>& workspace) const
      -> simulation<T> const& {
    return (*this)(schedule, times, transfers, bytes, {}, workspace);
  }

  /// Simulates a step with activations of zero bytes.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            scalar_measure T>
    requires std::same_as<T, simulated_time<Times, Transfers>>
  auto operator()(Schedule const& schedule, Times const& times, Transfers const& transfers,
                  simulate_pipeline_workspace<T>& workspace) const -> simulation<T> const& {
    return (*this)(schedule, times, transfers, std::int64_t{0}, {}, workspace);
  }

  /// Simulates a step with transfers that take no time.
  template <pipeline_schedule Schedule, stage_times Times, scalar_measure T>
    requires std::same_as<T, simulated_time<Times, std::int64_t>>
  auto operator()(Schedule const& schedule, Times const& times,
                  simulate_pipeline_workspace<T>& workspace) const -> simulation<T> const& {
    return (*this)(schedule, times, std::int64_t{0}, std::int64_t{0}, {}, workspace);
  }

 private:
  static constexpr std::string_view name = "simulate_pipeline";

  template <class Schedule>
  [[nodiscard]] static detail::pipeline_shape checked_shape(Schedule const& schedule) {
    schedule.check();
    detail::pipeline_shape const shape{schedule.stages, schedule.chunk_count(),
                                       schedule.micro_batches};
    detail::check_at_least_one(name, "schedule.stages", shape.stages);
    detail::check_at_least_one(name, "schedule.micro_batches", shape.micro_batches);
    detail::check_at_least_one(name, "schedule.chunk_count()", shape.chunks);
    detail::check_number(name, "schedule.micro_batches * schedule.chunk_count()",
                         shape.micro_batches * shape.chunks);
    detail::check_number(name, "schedule.stages * schedule.chunk_count()",
                         shape.stages * shape.chunks);
    return shape;
  }

  template <class Times, class Transfers, class Bytes>
  static void check(detail::pipeline_shape const& shape, Times const& times,
                    Transfers const& transfers, Bytes const& bytes) {
    std::size_t const batches = shape.micro_batches;
    std::size_t const stages = shape.stages * shape.chunks;
    detail::check_value_count(name, "times", times, stages, "virtual stages", batches);
    detail::check_value_count(name, "transfers", transfers, stages - 1, "cuts", batches);
    detail::check_value_count(name, "bytes", bytes, stages, "virtual stages", batches);
  }

  template <class T>
  static void summarize(std::vector<detail::stage_state<T>> const& stages, simulation<T>& result) {
    result.makespan = T{};
    result.busy.clear();
    result.peak_bytes.clear();
    double idle_stages = 0;
    for (auto const& stage : stages) {
      result.makespan = std::max(result.makespan, stage.now);
      result.busy.push_back(stage.busy);
      result.peak_bytes.push_back(stage.peak_bytes);
    }
    for (auto const& stage : stages) {
      idle_stages += static_cast<double>(result.makespan - stage.busy);
    }
    double const all = static_cast<double>(result.makespan) * static_cast<double>(stages.size());
    result.bubble_share = all > 0 ? idle_stages / all : 0.0;
  }
};

/// Simulates a step of a pipeline; see `simulate_pipeline_fn`.
inline constexpr simulate_pipeline_fn simulate_pipeline{};

}  // namespace omnibal::inline v0
