// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The time of training steps with a plan.

#include <omnibal/check.hpp>
#include <omnibal/concepts.hpp>
#include <omnibal/cost/layer_cost.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/one_f_one_b.hpp>
#include <omnibal/pipeline/schedule.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace omnibal::inline v0 {

/// Micro-batches, and the schedule that assigns each of them to a step and a data-parallel rank.
template <class MicroBatch>
struct training_data {
  std::vector<MicroBatch> batches;
  steps schedule{1};
};

/// A functor from a micro-batch to the costs of all layers.
template <class Function, class MicroBatch>
concept micro_batch_cost = std::regular_invocable<Function const&, MicroBatch const&> &&
    layer_cost_range<std::remove_cvref_t<std::invoke_result_t<Function const&, MicroBatch const&>>>;

/// The result of `simulate_training`.
struct training_estimate {
  std::size_t steps = 0;
  /// The time of all steps together. The time of a step is the time of its slowest rank.
  std::int64_t nanoseconds = 0;
  /// The idle time of all stages and ranks, as a share of their total time. A stage is idle when it
  /// waits for another stage or for the slowest rank.
  double waiting_share = 0;
  /// The peak of the bytes that each stage uses in its memory over all steps, including the
  /// reserve.
  std::vector<std::int64_t> peak_bytes;

  [[nodiscard]] friend bool operator==(training_estimate const&,
                                       training_estimate const&) = default;
};

struct simulate_training_fn {
  /// Simulates every step and rank with the real times and bytes of each micro-batch on each stage
  /// of the plan. The schedule is 1F1B or any schedule with the chunks of the plan; the function
  /// sets its stages and micro-batches for each rank. The time of a stage is the time of its layers
  /// on `machine.device`; the backward pass includes the recomputation. If a schedule splits the
  /// backward pass, the gradients of the weights have zero time. Between two stages the bytes at
  /// the cut are transferred at `machine.link_bytes_per_second` in both directions, in parallel
  /// with the work of stages.
  ///
  /// Complexity: a call of `cost` for each micro-batch and `simulate_pipeline` for each rank and
  /// step. Memory: 48 bytes for each pair of a micro-batch and a stage. Determinism: portable,
  /// except for `waiting_share`. Errors: `std::invalid_argument` if the plan is infeasible, if the
  /// chunks of a schedule or their placement differ from the plan, and if costs do not have the
  /// number of layers of the plan. It is also thrown if choices do not exist in the costs, and if
  /// micro-batches do not exist. Further errors: the errors of `device_model` and
  /// `simulate_pipeline`.
  template <class MicroBatch, micro_batch_cost<MicroBatch> Cost,
            pipeline_schedule Schedule = one_f_one_b>
  [[nodiscard]] training_estimate operator()(pipeline_plan<std::int64_t> const& plan,
                                             training_data<MicroBatch> const& data,
                                             pipeline_machine const& machine, Cost const& cost,
                                             Schedule schedule = {}) const {
    std::size_t const stages = check_plan(plan, machine);
    if (schedule.chunk_count() != plan.chunks) {
      detail::throw_invalid(name, "the schedule has " + detail::to_text(schedule.chunk_count()) +
                                      " chunks, must have " + detail::to_text(plan.chunks));
    }
    std::vector<measured_stage> measured;
    measured.reserve(data.batches.size() * stages * plan.chunks);
    for (auto const& batch : data.batches) {
      measure(plan, std::invoke(cost, batch), machine, measured);
    }
    training_estimate result{.steps = data.schedule.size(),
                             .peak_bytes = std::vector<std::int64_t>(stages, 0)};
    simulate_pipeline_workspace<std::int64_t> workspace;
    double busy = 0;
    for (std::size_t step = 0; step != data.schedule.size(); ++step) {
      std::int64_t longest = 0;
      for (std::size_t rank = 0; rank != data.schedule.ranks(); ++rank) {
        auto const batches = data.schedule(step, rank);
        if (batches.empty()) continue;
        check_batches(batches, data.batches.size());
        schedule.stages = stages;
        schedule.micro_batches = batches.size();
        check_placement(plan, schedule);
        run(schedule, batches, measured, workspace);
        longest = std::max(longest, workspace.result().makespan);
        for (std::int64_t const time : workspace.result().busy) busy += static_cast<double>(time);
        raise_peaks(plan, batches, measured, workspace.result().peak_bytes, result.peak_bytes);
      }
      detail::checked_add(name, "the time of all steps", result.nanoseconds, longest);
    }
    add_reserve(machine, result.peak_bytes);
    double const all = static_cast<double>(result.nanoseconds) *
                       static_cast<double>(stages * data.schedule.ranks());
    result.waiting_share = all > 0 ? 1 - busy / all : 0;
    return result;
  }

 private:
  static constexpr std::string_view name = "simulate_training";

  /// The times and bytes of a micro-batch on a virtual stage.
  struct measured_stage {
    stage_time<> time;
    /// The time of the transfer to the next stage.
    std::int64_t transfer_time = 0;
    std::int64_t kept_bytes = 0;
    std::int64_t transient_bytes = 0;
    std::int64_t state_bytes = 0;
  };

  [[nodiscard]] static std::size_t check_plan(pipeline_plan<std::int64_t> const& plan,
                                              pipeline_machine const& machine) {
    if (plan.boundaries.size() == machine.stages * plan.chunks + 1) return machine.stages;
    std::string const chunks =
        plan.chunks == 1 ? "" : " with " + detail::to_text(plan.chunks) + " chunks";
    detail::throw_invalid(name, "the plan has " + detail::to_text(plan.boundaries.size()) +
                                    " boundaries, the machine " + detail::to_text(machine.stages) +
                                    " stages" + chunks);
  }

  /// Throws unless the schedule places the virtual stages of the plan on the same stages as the
  /// plan.
  template <class Schedule>
  static void check_placement(pipeline_plan<std::int64_t> const& plan, Schedule const& schedule) {
    if (plan.chunks == 1) return;
    chunk_layout const layout = plan.layout_of(schedule.micro_batches);
    for (std::size_t stage = 0; stage != layout.stages; ++stage) {
      for (std::uint32_t chunk = 0; chunk != plan.chunks; ++chunk) {
        pipeline_unit const unit{.chunk = chunk};
        std::size_t const expected = layout.virtual_stage(stage, unit);
        std::size_t const found = virtual_stage_of(schedule, stage, unit);
        if (found == expected) continue;
        detail::throw_invalid(name, "chunk ", chunk, " of stage ", stage, " is virtual stage ",
                              found, " of the schedule and ", expected, " of the plan");
      }
    }
  }

  static void check_batches(std::span<std::uint32_t const> batches, std::size_t count) {
    for (std::uint32_t const batch : batches) {
      if (batch < count) continue;
      detail::throw_invalid(name, "micro-batch " + detail::to_text(batch) + " does not exist, of " +
                                      detail::to_text(count));
    }
  }

  template <class Costs>
  static void measure(pipeline_plan<std::int64_t> const& plan, Costs const& costs,
                      pipeline_machine const& machine, std::vector<measured_stage>& measured) {
    if (std::ranges::size(costs) != plan.choices.size()) {
      detail::throw_invalid(name, "a micro-batch has " + detail::to_text(std::ranges::size(costs)) +
                                      " layers, the plan has " +
                                      detail::to_text(plan.choices.size()));
    }
    device_model const link{.flops_per_second = 1,
                            .bytes_per_second = machine.link_bytes_per_second};
    auto layer = std::ranges::begin(costs);
    std::size_t index = 0;
    std::int64_t cut_bytes = 0;
    for (std::size_t s = 0; s + 1 < plan.boundaries.size(); ++s) {
      auto& stage = measured.emplace_back();
      for (; index != plan.boundaries[s + 1]; ++index, ++layer) {
        add_layer(*layer, plan.choices[index], machine.device, stage);
        cut_bytes = (*layer).cut_bytes;
      }
      stage.transfer_time = link({.moved_bytes = cut_bytes});
    }
  }

  static void add_layer(layer_cost const& layer, std::uint32_t choice, device_model const& device,
                        measured_stage& stage) {
    if (choice >= layer.choices.size()) {
      detail::throw_invalid(name, "the plan has choice " + detail::to_text(choice) +
                                      ", layers have " + detail::to_text(layer.choices.size()));
    }
    auto const& way = layer.choices[choice];
    auto const add = [](std::int64_t& sum, std::int64_t value) {
      detail::checked_add(name, "the sum over a stage", sum, value);
    };
    add(stage.time.forward, device(layer.forward));
    add(stage.time.backward, device(layer.backward));
    add(stage.time.backward, device(way.extra));
    add(stage.kept_bytes, way.kept_bytes);
    add(stage.state_bytes, layer.state_bytes());
    stage.transient_bytes = std::max(stage.transient_bytes, way.transient_bytes);
  }

  template <class Schedule>
  static void run(Schedule const& schedule, std::span<std::uint32_t const> batches,
                  std::vector<measured_stage> const& measured,
                  simulate_pipeline_workspace<std::int64_t>& workspace) {
    std::size_t const stages = schedule.stages * schedule.chunk_count();
    auto const time = [&](std::size_t stage, std::size_t batch) {
      return measured[batches[batch] * stages + stage].time;
    };
    auto const transfer = [&](std::size_t cut, std::size_t batch) {
      return measured[batches[batch] * stages + cut].transfer_time;
    };
    auto const bytes = [&](std::size_t stage, std::size_t batch) {
      return measured[batches[batch] * stages + stage].kept_bytes;
    };
    simulate_pipeline(schedule, time, transfer, bytes, workspace);
  }

  static void raise_peaks(pipeline_plan<std::int64_t> const& plan,
                          std::span<std::uint32_t const> batches,
                          std::vector<measured_stage> const& measured,
                          std::vector<std::int64_t> const& kept, std::vector<std::int64_t>& peaks) {
    chunk_layout const layout = plan.layout_of(batches.size());
    std::size_t const stages = layout.stages * layout.chunks;
    std::vector<std::int64_t> transient(peaks.size(), 0);
    auto now = kept;
    for (std::size_t s = 0; s != stages; ++s) {
      std::size_t const device = layout.stage_of(s, 0);
      for (std::uint32_t const batch : batches) {
        transient[device] =
            std::max(transient[device], measured[batch * stages + s].transient_bytes);
      }
      detail::checked_add(name, "the bytes of a stage", now[device],
                          measured[batches[0] * stages + s].state_bytes);
    }
    for (std::size_t d = 0; d != peaks.size(); ++d) {
      detail::checked_add(name, "the bytes of a stage", now[d], transient[d]);
      peaks[d] = std::max(peaks[d], now[d]);
    }
  }

  static void add_reserve(pipeline_machine const& machine, std::vector<std::int64_t>& peaks) {
    auto const reserve = machine.reserve_bytes.values();
    for (std::size_t s = 0; s != peaks.size() && !reserve.empty(); ++s) {
      detail::checked_add(name, "the bytes of a stage", peaks[s],
                          reserve[reserve.size() == 1 ? 0 : s]);
    }
  }
};

/// Simulates the time of training steps; see `simulate_training_fn`.
inline constexpr simulate_training_fn simulate_training{};

}  // namespace omnibal::inline v0
