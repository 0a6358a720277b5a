// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A best-first search over the configurations of a space.

#include <omnibal/cost/layered_model.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/detail/staged_step.hpp>
#include <omnibal/plan/detail/timed_runs.hpp>
#include <omnibal/plan/even_boundaries.hpp>
#include <omnibal/plan/plan_configuration/batch_choices.hpp>
#include <omnibal/plan/plan_configuration/configuration_families.hpp>
#include <omnibal/plan/plan_configuration/configuration_space.hpp>
#include <omnibal/plan/plan_configuration/stage_bytes.hpp>
#include <omnibal/plan/training_step.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

namespace omnibal::inline v0::detail {

/// A best-first search (branch and bound) over the configurations of a space.
template <layered_model Model, class Pieces>
class configuration_search {
 public:
  configuration_search(configuration_space<Model, Pieces> const& space,
                       plan_configuration_options const& options,
                       std::span<batch_choice const> batches,
                       std::span<configuration_branch const> branches)
      : space_(space),
        options_(options),
        batches_(batches),
        branches_(branches),
        cuts_(listed_or(options.cuts, {stage_cuts::even, stage_cuts::balanced})),
        record_(branches.empty() ? 0 : branches.back().layout + 1, options.runners_up) {}

  /// Searches the space; `flops` are the model FLOPs of a step. If the space is empty, the result
  /// has no configurations.
  [[nodiscard]] configuration_plan run(double flops) {
    configuration_plan plan{.flops = flops};
    add_families();
    plan.configurations = bound_branches();
    std::optional<double> const open_bound = search(plan);
    plan.proven = !open_bound;
    record_.write(plan);
    double const seconds = plan.best.prediction.total();
    if (plan.best.prediction.peak_bytes.empty()) {
      plan.status = plan.proven ? solve_status::infeasible : solve_status::not_found;
      plan.lower_bound = open_bound.value_or(0);
    } else {
      plan.lower_bound = std::min(open_bound.value_or(seconds), seconds);
    }
    return plan;
  }

 private:
  /// The rounding error of a sum is below this share of the bound; bounds are reduced by it.
  static constexpr double safety = 1 - 1e-11;

  /// An entry of the queue: a configuration if `chunks` is set, a branch otherwise.
  struct item {
    double bound = 0;
    std::size_t branch = 0;
    std::optional<std::int64_t> chunks{};
    std::size_t cuts = 0;

    /// The order that lets the queue return the smallest bound first, and among equal bounds the
    /// first branch.
    [[nodiscard]] friend bool operator<(item const& left, item const& right) {
      return std::tuple(left.bound, left.branch, left.chunks, left.cuts) >
             std::tuple(right.bound, right.branch, right.chunks, right.cuts);
    }
  };

  [[nodiscard]] std::int64_t room() const { return options_.memory_bytes - options_.reserve_bytes; }

  /// Creates the families of all branches and of both schedules.
  void add_families() {
    for (auto const schedule : {step_schedule::one_f_one_b, step_schedule::interleaved}) {
      schedule_families_.push_back(
          record_.family(configuration_choice::schedule, static_cast<std::int64_t>(schedule)));
    }
    for (configuration_branch const& branch : branches_) {
      auto const values = values_of(branch.degrees, 1, batches_[branch.batch].value,
                                    branch.recomputed, branch.offload_percent);
      family_list& families = branch_families_.emplace_back();
      for (std::size_t i = 0; i != values.size(); ++i) {
        auto const choice = static_cast<configuration_choice>(i);
        if (choice != configuration_choice::schedule) {
          families.add(record_.family(choice, values[i]));
        }
      }
    }
  }

  /// Returns the families of a configuration with these chunks, or the families of a branch if
  /// `chunks` is not set. A branch belongs to both schedules.
  [[nodiscard]] family_list families_of(std::size_t branch,
                                        std::optional<std::int64_t> chunks) const {
    family_list result = branch_families_[branch];
    for (auto const schedule : {step_schedule::one_f_one_b, step_schedule::interleaved}) {
      if (chunks && schedule_of(*chunks) != schedule) continue;
      result.add(schedule_families_[schedule == step_schedule::one_f_one_b ? 0 : 1]);
    }
    return result;
  }

  /// Bounds all branches by their mean stage. The slowest stage has at least the mean work. The
  /// fullest stage has at least the mean of the state bytes and of the bytes of one micro-batch in
  /// each chunk. Returns the number of configurations.
  [[nodiscard]] std::int64_t bound_branches() {
    std::int64_t configurations = 0;
    for (std::size_t b = 0; b != branches_.size(); ++b) {
      configuration_branch const& branch = branches_[b];
      batch_choice const& batch = batches_[branch.batch];
      auto const runs = space_.runs_of(space_.step_of(branch, batch), batch);
      auto const chunks = space_.chunks_of(branch, unit_count(runs));
      if (chunks.empty()) continue;
      configurations += static_cast<std::int64_t>(chunks.size() * cuts_.size());
      double work = 0;
      double bytes = 0;
      for (timed_run const& run : runs) {
        auto const count = static_cast<double>(run.count);
        work += count * (run.unit.forward.total() + run.unit.backward.total());
        bytes += count * (static_cast<double>(run.unit.state_bytes) +
                          static_cast<double>(run.unit.kept_bytes));
      }
      auto const stages = static_cast<double>(branch.degrees.pipeline);
      auto const mean_bytes = static_cast<std::int64_t>(bytes * safety / stages);
      if (mean_bytes > room()) {
        // The smallest and the largest number of chunks cover all schedules of the branch.
        record_.add_unfit(mean_bytes, families_of(b, chunks.front()));
        record_.add_unfit(mean_bytes, families_of(b, chunks.back()));
        continue;
      }
      double const bound = static_cast<double>(branch.micro_batches) * work / stages;
      queue_.push({.bound = bound * safety, .branch = b});
    }
    return configurations;
  }

  /// Predicts configurations in ascending order of their bounds. If the limit on predictions ends
  /// the search, returns the smallest bound of the remaining configurations.
  [[nodiscard]] std::optional<double> search(configuration_plan& plan) {
    while (!queue_.empty()) {
      item const next = queue_.top();
      queue_.pop();
      auto const families = families_of(next.branch, next.chunks);
      if (!record_.may_improve(next.bound, families, branches_[next.branch].layout)) continue;
      if (!next.chunks) {
        expand(next.branch);
        continue;
      }
      if (plan.predictions == options_.predictions) return next.bound;
      ++plan.predictions;
      predict(next.branch, *next.chunks, cuts_[next.cuts], plan.flops);
    }
    return std::nullopt;
  }

  /// Returns the boundaries of virtual stages over the units.
  [[nodiscard]] static std::vector<std::int64_t> boundaries_of(std::vector<timed_run> const& runs,
                                                               std::int64_t stages,
                                                               stage_cuts cuts) {
    if (cuts == stage_cuts::even)
      return even_boundaries({.layers = unit_count(runs) - 2, .stages = stages});
    std::vector<double> seconds;
    for (timed_run const& run : runs) {
      seconds.insert(seconds.end(), static_cast<std::size_t>(run.count),
                     run.unit.forward.total() + run.unit.backward.total());
    }
    auto const found = partition_minimax(seconds, static_cast<std::size_t>(stages));
    return {found.boundaries.begin(), found.boundaries.end()};
  }

  /// Computes the bounds of all configurations of a branch and queues the configurations that may
  /// fit the memory and improve the record.
  void expand(std::size_t index) {
    configuration_branch const& branch = branches_[index];
    batch_choice const& batch = batches_[branch.batch];
    std::int64_t const stages = branch.degrees.pipeline;
    training_step step = space_.step_of(branch, batch);
    auto const runs = space_.runs_of(step, batch);
    for (std::int64_t const chunks : space_.chunks_of(branch, unit_count(runs))) {
      auto const families = families_of(index, chunks);
      step.chunks = chunks;
      for (std::size_t c = 0; c != cuts_.size(); ++c) {
        auto const boundaries = boundaries_of(runs, stages * chunks, cuts_[c]);
        std::int64_t const bytes =
            min_stage_bytes(runs, boundaries, {stages, branch.micro_batches, chunks});
        if (bytes > room()) {
          record_.add_unfit(bytes, families);
          continue;
        }
        double const bound = space_.stages_of(step, runs, boundaries).min_seconds() * safety;
        if (!record_.may_improve(bound, families, branch.layout)) continue;
        queue_.push({bound, index, chunks, c});
      }
    }
  }

  /// Predicts a configuration and records it; `flops` are the model FLOPs of a step.
  void predict(std::size_t index, std::int64_t chunks, stage_cuts cuts, double flops) {
    configuration_branch const& branch = branches_[index];
    batch_choice const& batch = batches_[branch.batch];
    planned_configuration found{.step = space_.step_of(branch, batch),
                                .largest = batch.largest,
                                .token_capacity = batch.token_capacity,
                                .tile_capacity = batch.tile_capacity,
                                .offload_percent = branch.offload_percent};
    auto const runs = space_.runs_of(found.step, batch);
    found.step.chunks = chunks;
    found.step.boundaries = boundaries_of(runs, branch.degrees.pipeline * chunks, cuts);
    found.prediction = space_.stages_of(found.step, runs, found.step.boundaries).prediction();
    auto const families = families_of(index, chunks);
    std::int64_t const peak = std::ranges::max(found.prediction.peak_bytes);
    std::int64_t const on_host = std::ranges::max(found.prediction.host_bytes);
    if (peak > room() || on_host > options_.host_memory_bytes) {
      return record_.add_unfit(peak, families);
    }
    double const all = batch.flops * static_cast<double>(branch.degrees.data) *
                       static_cast<double>(branch.micro_batches);
    found.padding = batch.is_exact ? 0.0 : std::max(0.0, 1 - flops / all);
    record_.add_fitting(found, families, branch.layout);
  }

  configuration_space<Model, Pieces> const& space_;
  plan_configuration_options const& options_;
  std::span<batch_choice const> batches_;
  std::span<configuration_branch const> branches_;
  std::vector<stage_cuts> cuts_;
  configuration_record record_;
  std::vector<family_list> branch_families_{};
  /// The indices of the families of 1F1B and of interleaved schedules.
  std::vector<std::size_t> schedule_families_{};
  std::priority_queue<item> queue_{};
};

}  // namespace omnibal::inline v0::detail
