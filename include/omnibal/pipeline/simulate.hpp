#pragma once

/// \file
/// How long a step of a pipeline takes and how much memory.

#include <omnibal/check.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate/pipeline_run.hpp>
#include <omnibal/resources.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0 {

/// Whether a simulation lists its operations.
enum class timeline_policy { none, recorded };

struct simulate_options {
  timeline_policy timeline = timeline_policy::none;
};

/// What stages take for micro-batches: something with `forward`, `backward` and maybe `weight`,
/// such as `stage_time`, for all stages; a range of them, one for each virtual stage; a range of
/// such ranges, with one for each micro-batch; or a functor of a virtual stage and a micro-batch.
template <class Times>
concept stage_times = detail::has_both_ways<detail::value_of<Times>>;

/// What transfers take: a weight, or something with `forward` and `backward`, such as
/// `transfer_time`, for all cuts, or ranges or a functor as in `stage_times`. Cut c is between the
/// virtual stages c and c + 1.
template <class Times>
concept transfer_times =
    weight<detail::value_of<Times>> || detail::has_both_ways<detail::value_of<Times>>;

/// The bytes that a micro-batch keeps on a stage: an integer, or ranges or a functor as in
/// `stage_times`.
template <class Bytes>
concept activation_bytes =
    std::integral<detail::value_of<Bytes>> && weight<detail::value_of<Bytes>>;

/// The type of the times of a simulation: `std::int64_t`, or `double` where any of them floats.
template <stage_times Times, transfer_times Transfers>
using simulated_time =
    detail::working_weight<typename detail::time_type_of<detail::value_of<Times>>::type,
                           typename detail::time_type_of<detail::value_of<Transfers>>::type>;

/// Memory of `simulate`, and its last result. To be kept from step to step.
template <weight T = std::int64_t>
class simulate_workspace {
 public:
  /// The result of the last call.
  [[nodiscard]] simulation<T> const& result() const& { return result_; }
  void result() const&& = delete;

 private:
  friend struct simulate_fn;

  simulation<T> result_;
  detail::run_memory<T> memory_;
};

struct simulate_fn {
  /// The step of a pipeline: each stage runs its operations in the order of the schedule, each as
  /// soon as the stage is free and what it needs has arrived. Transfers delay their receiver and
  /// occupy nobody. A stage keeps the activation bytes of a micro-batch from the beginning of its
  /// forward pass to the end of its backward pass, or of its gradients of the weights where the
  /// schedule splits the backward pass.
  ///
  /// Complexity: a few nanoseconds for each operation, and the calls of the functors. Memory: 16
  /// bytes for each virtual stage and micro-batch; 32 for each operation of a timeline. With a
  /// workspace that has been used for as large a step nothing is allocated. Determinism: portable
  /// for integers. Errors: `std::invalid_argument` for what the schedule refuses, for a schedule
  /// that runs a unit twice or one that there is not, in an order that cannot be, or that waits for
  /// ever, which says which stage for what, for ranges of another size than there are virtual
  /// stages, cuts or micro-batches, and for times and bytes that are negative or not finite;
  /// `std::overflow_error` where a time or the bytes of a stage leave their type;
  /// `std::length_error` above 2^32 - 1 micro-batches times chunks.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers,
            activation_bytes Bytes>
  simulation<simulated_time<Times, Transfers>> const& operator()(
      Schedule const& schedule, Times const& times, Transfers const& transfers, Bytes const& bytes,
      simulate_options const& options,
      simulate_workspace<simulated_time<Times, Transfers>>& workspace) const {
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
    summarise(workspace.memory_.stages, result);
    return result;
  }

  /// The same with a workspace of its own. Transfers take no time and activations no bytes unless
  /// they are given.
  template <pipeline_schedule Schedule, stage_times Times, transfer_times Transfers = std::int64_t,
            activation_bytes Bytes = std::int64_t>
  [[nodiscard]] auto operator()(Schedule const& schedule, Times const& times,
                                Transfers const& transfers = {}, Bytes const& bytes = {},
                                simulate_options const& options = {}) const {
    simulate_workspace<simulated_time<Times, Transfers>> workspace;
    (*this)(schedule, times, transfers, bytes, options, workspace);
    return std::move(workspace.result_);
  }

 private:
  static constexpr std::string_view name = "simulate";

  template <class Schedule>
  [[nodiscard]] static detail::pipeline_shape checked_shape(Schedule const& schedule) {
    schedule.check();
    detail::pipeline_shape const shape{schedule.stages, schedule.chunk_count(),
                                       schedule.micro_batches};
    detail::check_at_least_one(name, "schedule.stages", shape.stages);
    detail::check_at_least_one(name, "schedule.micro_batches", shape.micro_batches);
    detail::check_at_least_one(name, "schedule.chunk_count()", shape.chunks);
    detail::check_index_count(name, "the schedule", shape.micro_batches * shape.chunks);
    detail::check_index_count(name, "the schedule", shape.stages * shape.chunks);
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
  static void summarise(std::vector<detail::stage_state<T>> const& stages, simulation<T>& result) {
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

/// A step of a pipeline; see `simulate_fn`.
inline constexpr simulate_fn simulate{};

}  // namespace omnibal::inline v0
