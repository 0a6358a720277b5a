// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The stages of a training step: their prediction, and lower bounds of time and memory.

#include <omnibal/check.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/pipeline/simulate_pipeline.hpp>
#include <omnibal/plan/detail/step_links.hpp>
#include <omnibal/plan/detail/timed_runs.hpp>
#include <omnibal/plan/training_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// The virtual stages of a step, with their transfers and gathers, and the stages that run them.
class staged_step {
 public:
  /// Precondition: the boundaries are ascending, from 0 to the number of units.
  template <class Pieces>
  staged_step(std::string_view function, training_step const& step, machine const& on,
              Pieces const& pieces, std::vector<timed_run> const& runs,
              std::vector<std::int64_t> const& boundaries)
      : function_(function), micro_batches_(step.micro_batches), parts_(boundaries.size() - 1) {
    add_units(runs, boundaries);
    step_links<Pieces> const links(step, on, pieces);
    links.add_transfers(parts_);
    if (step.degrees.sharding == sharded_state::parameters) {
      for (auto& part : parts_) links.add_gathers(part);
    }
    auto const stages = static_cast<std::size_t>(step.degrees.pipeline);
    for (std::size_t s = 0; s != stages; ++s) {
      virtual_stage_cost sum;
      for (std::size_t v = s; v < parts_.size(); v += stages) sum.add(function_, parts_[v]);
      step_seconds one = sum.forward;
      one.add(sum.backward);
      step_seconds const behind = links.after_backward(sum, one.total());
      if (one.total() > slowest_.total()) slowest_ = one;
      if (behind.total() > after_.total()) after_ = behind;
      checked_add(function_, "the bytes of a stage", sum.state_bytes, sum.transient_bytes);
      fixed_bytes_.push_back(sum.state_bytes);
      work_.push_back(one.total());
    }
  }

  /// Returns the prediction of a step with 1F1B or its interleaved form.
  [[nodiscard]] step_prediction prediction() const {
    std::size_t const stages = fixed_bytes_.size();
    interleaved_1f1b const schedule{.stages = stages,
                                    .micro_batches = static_cast<std::size_t>(micro_batches_),
                                    .chunks = parts_.size() / stages};
    step_prediction result;
    for (auto const& part : parts_) {
      result.passes.push_back({part.forward.total(), part.backward.total()});
    }
    auto const time = [&](std::size_t part, std::size_t) { return result.passes[part]; };
    auto const kept = [&](std::size_t part, std::size_t) { return parts_[part].kept_bytes; };
    auto const simulated = simulate_pipeline(schedule, time, 0.0, kept);
    result.host_bytes.resize(stages);
    if (std::ranges::any_of(parts_, [](auto const& part) { return part.host_bytes > 0; })) {
      auto const offloaded = [&](std::size_t part, std::size_t) { return parts_[part].host_bytes; };
      auto const on_host = simulate_pipeline(schedule, time, 0.0, offloaded);
      result.host_bytes.assign(on_host.peak_bytes.begin(), on_host.peak_bytes.end());
    }
    for (std::size_t s = 0; s != stages; ++s) {
      std::int64_t peak = simulated.peak_bytes[s];
      checked_add(function_, "the bytes of a stage", peak, fixed_bytes_[s]);
      result.peak_bytes.push_back(peak);
    }
    result.seconds.add(slowest_, static_cast<double>(micro_batches_));
    result.seconds.bubble = std::max(0.0, simulated.makespan - result.seconds.total());
    result.seconds.add(after_);
    if (is_finite(result.seconds.total())) return result;
    throw_overflow(function_, "the seconds of the step");
  }

  /// Returns a lower bound of the seconds of the step; in real numbers the bound is exact for equal
  /// stages. A stage is idle during the first forward passes of the stages before it, runs all of
  /// its passes, and is idle again during the last backward passes of the stages before it. The
  /// bound is also at least the time of a micro-batch in all virtual stages. The reduction of
  /// gradients and the optimizer are added.
  [[nodiscard]] double min_seconds() const {
    double before = 0;
    double longest = 0;
    for (std::size_t s = 0; s != parts_.size(); ++s) {
      if (s < work_.size()) {
        longest = std::max(longest, before + static_cast<double>(micro_batches_) * work_[s]);
      }
      before += parts_[s].forward.total() + parts_[s].backward.total();
    }
    return std::max(longest, before) + after_.total();
  }

 private:
  void add_units(std::vector<timed_run> const& runs, std::vector<std::int64_t> const& boundaries) {
    std::int64_t unit = 0;
    std::size_t part = 0;
    for (timed_run const& run : runs) {
      for (std::int64_t i = 0; i != run.count; ++i, ++unit) {
        while (unit == boundaries[part + 1]) ++part;
        parts_[part].add(function_, run.unit);
      }
    }
  }

  std::string_view function_;
  std::int64_t micro_batches_;
  std::vector<virtual_stage_cost> parts_;
  step_seconds slowest_{};
  step_seconds after_{};
  /// The state and transient bytes of each stage, and the seconds that a stage works for a
  /// micro-batch.
  std::vector<std::int64_t> fixed_bytes_{};
  std::vector<double> work_{};
};

}  // namespace omnibal::inline v0::detail
