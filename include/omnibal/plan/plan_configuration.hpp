// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The fastest configuration of a training step: degrees, micro-batch, schedule, recomputation and
/// sharding.

#include <omnibal/check.hpp>
#include <omnibal/config.hpp>
#include <omnibal/cost/layered_model.hpp>
#include <omnibal/cost/machine.hpp>
#include <omnibal/partition/partition_minimax.hpp>
#include <omnibal/plan/configuration_plan.hpp>
#include <omnibal/plan/plan_configuration/batch_choices.hpp>
#include <omnibal/plan/plan_configuration/configuration_families.hpp>
#include <omnibal/plan/plan_configuration/configuration_space.hpp>
#include <omnibal/plan/predict_step.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace omnibal::inline v0 {

namespace detail {

/// A best-first search (branch and bound) over the configurations of a space.
template <layered_model Model, class Pieces>
class configuration_search {
 public:
  configuration_search(std::string_view function, Model const& model, machine const& on,
                       step_data const& data, plan_configuration_options const& options,
                       Pieces const& pieces)
      : function_(function),
        on_(on),
        data_(data),
        options_(options),
        pieces_(pieces),
        space_(function, model, on, options, pieces),
        batches_(batch_chooser(function, data, options)(model, plan_.flops)),
        cuts_(listed_or(options.cuts, {stage_cuts::even, stage_cuts::balanced})),
        branches_(space_(batches_)),
        record_(branches_.empty() ? 0 : branches_.back().layout + 1, options.runners_up) {}

  [[nodiscard]] configuration_plan run() {
    bound_branches();
    if (plan_.configurations == 0) {
      throw_invalid(function_, "options allow no configuration of ", options_.devices,
                    " devices for this model and ", data_.sequences, " sequences");
    }
    bool is_complete = true;
    while (!queue_.empty()) {
      item const next = queue_.top();
      queue_.pop();
      configuration_branch const& branch = branches_[next.branch];
      auto const families = families_of(next.branch, next.chunks);
      if (!record_.matters(next.bound, families, branch.layout)) continue;
      if (next.chunks == 0) {
        expand(next.branch);
        continue;
      }
      if (plan_.predictions == options_.predictions) {
        is_complete = false;
        plan_.lower_bound = next.bound;
        break;
      }
      predict(next, families);
    }
    record_.write(plan_, [&](planned_configuration const& found) { return values_of(found); });
    if (plan_.best.prediction.peak_bytes.empty()) {
      plan_.status = is_complete ? solve_status::infeasible : solve_status::not_found;
    } else if (is_complete || plan_.lower_bound > plan_.best.prediction.total()) {
      plan_.lower_bound = plan_.best.prediction.total();
    }
    plan_.proven = is_complete;
    return plan_;
  }

 private:
  /// Sums of rounded numbers may exceed the exact bound by less than this share.
  static constexpr double safety = 1 - 1e-11;

  /// A branch with `chunks` 0, or one of its configurations.
  struct item {
    double bound = 0;
    std::size_t branch = 0;
    std::int64_t chunks = 0;
    std::size_t cuts = 0;

    /// The queue returns the least bound first, and the first branch among equal bounds.
    [[nodiscard]] friend bool operator<(item const& left, item const& right) {
      return std::tuple(left.bound, left.branch, left.chunks, left.cuts) >
             std::tuple(right.bound, right.branch, right.chunks, right.cuts);
    }
  };

  /// The numbers of the families of a branch, or of a configuration with chunks.
  struct family_list {
    std::array<std::uint16_t, 9> numbers{};
    std::size_t count = 0;

    [[nodiscard]] operator std::span<std::uint16_t const>() const {
      return std::span(numbers).first(count);
    }
  };

  [[nodiscard]] std::int64_t room() const { return options_.memory_bytes - options_.reserve_bytes; }

  [[nodiscard]] choice_values values_of(configuration_branch const& branch,
                                        std::int64_t chunks) const {
    parallel_degrees const& degrees = branch.degrees;
    return {degrees.tensor,
            degrees.pipeline,
            degrees.sequence,
            degrees.expert,
            chunks > 1 ? 2 : 1,
            batches_[branch.batch].value,
            static_cast<std::int64_t>(branch.recomputed),
            static_cast<std::int64_t>(degrees.sharding)};
  }

  [[nodiscard]] choice_values values_of(planned_configuration const& found) const {
    parallel_degrees const& degrees = found.step.degrees;
    return {degrees.tensor,
            degrees.pipeline,
            degrees.sequence,
            degrees.expert,
            found.step.chunks > 1 ? 2 : 1,
            found.token_capacity != 0 ? found.token_capacity : found.step.sequences,
            static_cast<std::int64_t>(found.step.recomputed),
            static_cast<std::int64_t>(degrees.sharding)};
  }

  /// Returns the families; a branch belongs to both schedules.
  [[nodiscard]] family_list families_of(std::size_t branch, std::int64_t chunks) const {
    family_list result = branch_families_[branch];
    if (chunks != 1) result.numbers[result.count++] = schedule_families_[1];
    if (chunks <= 1) result.numbers[result.count++] = schedule_families_[0];
    return result;
  }

  /// Bounds all branches by their mean stage: no stage is faster than the mean of the work, and the
  /// fullest stage has at least the mean of the state and of one micro-batch in each chunk.
  void bound_branches() {
    for (std::int64_t const schedule : {1, 2}) {
      schedule_families_[static_cast<std::size_t>(schedule - 1)] =
          family(configuration_choice::schedule, schedule);
    }
    branch_families_.resize(branches_.size());
    for (std::size_t b = 0; b != branches_.size(); ++b) {
      configuration_branch const& branch = branches_[b];
      add_families(b);
      auto const runs = runs_of(branch);
      double work = 0;
      double bytes = 0;
      std::int64_t units = 0;
      for (timed_run const& run : runs) {
        auto const count = static_cast<double>(run.count);
        work += count * (run.unit.forward.total() + run.unit.backward.total());
        bytes += count * (static_cast<double>(run.unit.state_bytes) +
                          static_cast<double>(run.unit.kept_bytes));
        units += run.count;
      }
      auto const chunks = space_.chunks_of(branch, units);
      if (chunks.empty()) continue;
      plan_.configurations += static_cast<std::int64_t>(chunks.size() * cuts_.size());
      auto const stages = static_cast<double>(branch.degrees.pipeline);
      auto const least = static_cast<std::int64_t>(bytes * safety / stages);
      if (least > room()) {
        record_.refuse(least, families_of(b, chunks.front()));
        record_.refuse(least, families_of(b, chunks.back()));
        continue;
      }
      double const bound = static_cast<double>(branch.micro_batches) * work / stages;
      queue_.push({.bound = bound * safety, .branch = b});
    }
  }

  [[nodiscard]] std::uint16_t family(configuration_choice choice, std::int64_t value) {
    return static_cast<std::uint16_t>(record_.family(choice, value));
  }

  void add_families(std::size_t branch) {
    auto const values = values_of(branches_[branch], 1);
    family_list& list = branch_families_[branch];
    for (std::size_t i = 0; i != values.size(); ++i) {
      auto const choice = static_cast<configuration_choice>(i);
      if (choice == configuration_choice::schedule) continue;
      list.numbers[list.count++] = family(choice, values[i]);
    }
  }

  [[nodiscard]] std::vector<timed_run> runs_of(configuration_branch const& branch) const {
    batch_choice const& batch = batches_[branch.batch];
    return space_.runs_of(space_.step_of(branch, batch, data_), batch);
  }

  /// Returns the boundaries of virtual stages over the units.
  [[nodiscard]] static std::vector<std::int64_t> boundaries_of(std::vector<timed_run> const& runs,
                                                               std::int64_t stages,
                                                               stage_cuts cuts) {
    std::vector<double> seconds;
    for (timed_run const& run : runs) {
      seconds.insert(seconds.end(), static_cast<std::size_t>(run.count),
                     run.unit.forward.total() + run.unit.backward.total());
    }
    if (cuts == stage_cuts::even) {
      return even_boundaries(static_cast<std::int64_t>(seconds.size()) - 2, stages);
    }
    auto const found = partition_minimax(seconds, static_cast<std::size_t>(stages));
    return {found.boundaries.begin(), found.boundaries.end()};
  }

  /// Bounds all configurations of a branch that are not known to exceed the memory.
  void expand(std::size_t index) {
    configuration_branch const& branch = branches_[index];
    batch_choice const& batch = batches_[branch.batch];
    training_step step = space_.step_of(branch, batch, data_);
    auto const runs = space_.runs_of(step, batch);
    std::int64_t units = 0;
    for (timed_run const& run : runs) units += run.count;
    for (std::int64_t const chunks : space_.chunks_of(branch, units)) {
      auto const families = families_of(index, chunks);
      step.chunks = chunks;
      for (std::size_t c = 0; c != cuts_.size(); ++c) {
        auto const boundaries = boundaries_of(runs, branch.degrees.pipeline * chunks, cuts_[c]);
        std::int64_t const least = least_bytes(runs, boundaries, branch, chunks);
        if (least > room()) {
          record_.refuse(least, families);
          continue;
        }
        staged_step const staged(function_, step, on_, pieces_, runs, boundaries);
        double const bound = staged.least_seconds() * safety;
        if (!record_.matters(bound, families, branch.layout)) continue;
        queue_.push({bound, index, chunks, c});
      }
    }
  }

  /// Returns a lower bound of the bytes of the fullest stage: its state, and its micro-batches in
  /// flight before its first backward pass.
  [[nodiscard]] static std::int64_t least_bytes(std::vector<timed_run> const& runs,
                                                std::vector<std::int64_t> const& boundaries,
                                                configuration_branch const& branch,
                                                std::int64_t chunks) {
    std::vector<std::int64_t> state(boundaries.size() - 1, 0);
    std::vector<std::int64_t> kept(boundaries.size() - 1, 0);
    std::int64_t first = 0;
    std::size_t part = 0;
    for (timed_run const& run : runs) {
      std::int64_t const last = first + run.count;
      while (first != last) {
        while (boundaries[part + 1] == first) ++part;
        std::int64_t const count = std::min(last, boundaries[part + 1]) - first;
        state[part] += count * run.unit.state_bytes;
        kept[part] += count * run.unit.kept_bytes;
        first += count;
      }
    }
    std::int64_t const stages = branch.degrees.pipeline;
    // The stages divide the micro-batches of several chunks, so that groups are as large as them.
    std::int64_t const all = branch.micro_batches * chunks;
    std::int64_t most = 0;
    for (std::int64_t s = 0; s != stages; ++s) {
      std::int64_t const after = stages - s;
      std::int64_t left =
          std::min(all, chunks == 1 ? after : 2 * after - 1 + (chunks - 1) * stages);
      std::int64_t bytes = 0;
      for (std::int64_t c = 0; c != chunks; ++c) {
        bytes += state[static_cast<std::size_t>(c * stages + s)];
      }
      for (std::int64_t turn = 0; left > 0; ++turn) {
        std::int64_t const units = chunks == 1 ? left : std::min(left, stages);
        bytes += units * kept[static_cast<std::size_t>(turn % chunks * stages + s)];
        left -= units;
      }
      most = std::max(most, bytes);
    }
    return most;
  }

  void predict(item const& next, std::span<std::uint16_t const> families) {
    configuration_branch const& branch = branches_[next.branch];
    batch_choice const& batch = batches_[branch.batch];
    planned_configuration found{.step = space_.step_of(branch, batch, data_),
                                .largest = batch.largest,
                                .token_capacity = batch.token_capacity,
                                .tile_capacity = batch.tile_capacity};
    auto const runs = space_.runs_of(found.step, batch);
    found.step.chunks = next.chunks;
    found.step.boundaries =
        boundaries_of(runs, branch.degrees.pipeline * next.chunks, cuts_[next.cuts]);
    staged_step const staged(function_, found.step, on_, pieces_, runs, found.step.boundaries);
    found.prediction = staged.prediction();
    ++plan_.predictions;
    std::int64_t const peak = std::ranges::max(found.prediction.peak_bytes);
    if (peak > room()) return record_.refuse(peak, families);
    double const all = batch.flops * static_cast<double>(branch.degrees.data) *
                       static_cast<double>(branch.micro_batches);
    found.padding = batch.is_exact ? 0.0 : std::max(0.0, 1 - plan_.flops / all);
    record_.accept(found, families, branch.layout);
  }

  std::string_view function_;
  machine const& on_;
  step_data const& data_;
  plan_configuration_options const& options_;
  Pieces const& pieces_;
  configuration_plan plan_{};
  configuration_space<Model, Pieces> space_;
  std::vector<batch_choice> batches_;
  std::vector<stage_cuts> cuts_;
  std::vector<configuration_branch> branches_;
  configuration_record record_;
  std::vector<family_list> branch_families_{};
  std::array<std::uint16_t, 2> schedule_families_{};
  std::priority_queue<item> queue_{};
};

}  // namespace detail

struct plan_configuration_fn {
  /// Returns the configuration of a training step with the fewest seconds that `predict_step`
  /// predicts, among all configurations that fit into the memory: degrees of tensor, pipeline,
  /// context, expert and data parallelism, micro-batch, 1F1B or interleaved chunks, cuts,
  /// recomputation and sharding of the state. The next best configurations of other degrees follow,
  /// and for each other value of a choice the best configuration and the reason why it loses.
  ///
  /// If the data have `lengths`, the data set is packed for each capacity (`best_fit_decreasing`).
  /// A micro-batch is padded to its capacity in tokens, and each has the most tiles of all. The
  /// memory is the memory of the largest micro-batch, the time the time of a mean one. Ranks have
  /// equal numbers of micro-batches.
  ///
  /// The search is exact within this space. It is a branch and bound: a branch has all choices
  /// except chunks and cuts. Its bound is the work of the mean stage, and it is left out if the
  /// mean stage exceeds the memory. The bound of a configuration is its slowest stage, with the
  /// passes before the first and behind the last micro-batch of this stage. Only configurations
  /// whose bound is below the best step of their families are simulated.
  ///
  /// Preconditions: `pieces` return no negative time, and equal ones for equal arguments.
  /// Complexity: the units of a branch are timed once, and a configuration within the memory costs
  /// a few steps for each layer and each virtual stage; a simulation costs as `predict_step`. A
  /// model of 100 layers on 1,024 devices has 200 to 500 thousand configurations, of which 100 to
  /// 300 are simulated. Memory: 200 bytes for each branch, and the queue. Determinism: portable if
  /// the compiler does not contract operations. Errors: `std::invalid_argument` that names an
  /// option or a number of the data, for options that allow no configuration, and for layers that
  /// have no time; the errors of the layers. Source: Land, Doig, "An automatic method of solving
  /// discrete programming problems", 1960; Narayanan et al., 2021 (arXiv 2104.04473), for the
  /// space.
  template <layered_model Model, class Pieces = step_pieces<>>
  [[nodiscard]] configuration_plan operator()(Model const& model, machine const& on,
                                              step_data const& data,
                                              plan_configuration_options const& options,
                                              Pieces const& pieces = {}) const {
    return detail::configuration_search<Model, Pieces>(name, model, on, data, options, pieces)
        .run();
  }

 private:
  static constexpr std::string_view name = "plan_configuration";
};

/// Returns the fastest configuration of a training step; see `plan_configuration_fn`.
inline constexpr plan_configuration_fn plan_configuration{};

}  // namespace omnibal::inline v0
