// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The steps that a scheduler makes of the remaining groups of an epoch.

#include <omnibal/balance/schedule_steps_options.hpp>
#include <omnibal/check.hpp>
#include <omnibal/detail/data_digest.hpp>
#include <omnibal/detail/parts_of_samples.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/rng/permutation.hpp>
#include <omnibal/sample/detail/epoch_walker.hpp>
#include <omnibal/sample/detail/share_tree.hpp>
#include <omnibal/sample/epoch.hpp>
#include <omnibal/steps.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// The entries that an epoch must schedule: first the groups that the previous epoch left over,
/// then each group once. A group that was left over therefore has two entries.
///
/// The groups that an epoch leaves over are the last groups of a random order of that epoch.
/// Therefore a state must contain only their number.
class group_pool {
 public:
  /// Creates a pool in which no entry has run. Precondition: `carried < groups`, or both are zero.
  group_pool(std::size_t groups, std::uint64_t seed, std::uint64_t epoch, std::uint64_t carried)
      : order_(groups, epoch_seed(seed, epoch)),
        previous_(groups, epoch_seed(seed, epoch - 1)),
        carried_(static_cast<std::size_t>(carried)),
        max_left_over_(groups == 0 ? 0 : groups - 1),
        waiting_(groups + carried_) {
    std::iota(waiting_.begin(), waiting_.end(), std::uint32_t{0});
  }

  /// Returns the group of an entry.
  [[nodiscard]] std::uint32_t group_of(std::uint32_t entry) const {
    std::uint64_t const group =
        entry < carried_ ? previous_(order_.size() - carried_ + entry) : entry - carried_;
    return static_cast<std::uint32_t>(group);
  }

  /// Returns the entries that the next schedule must contain, for steps of `in_step` entries: all
  /// entries that have not run. With `carry`, the entries that would not fill a step are left over.
  /// The number left over never grows during an epoch, because this number identifies the groups.
  /// Therefore a last step may be short if the ranks changed within the epoch.
  [[nodiscard]] std::vector<std::uint32_t> offer(std::size_t in_step, remainder_policy policy) {
    if (policy != remainder_policy::carry) return waiting_;
    std::size_t const last = waiting_.size() % in_step;
    if (last <= max_left_over_) left_over_ = last;
    max_left_over_ = left_over_;
    std::vector<std::uint32_t> result;
    result.reserve(waiting_.size() - left_over_);
    std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(result),
                 [this](std::uint32_t entry) { return !is_left_over(entry); });
    return result;
  }

  /// Returns the number of groups that the last call of `offer` left over.
  [[nodiscard]] std::size_t left_over() const { return left_over_; }

  /// Removes the entries that ran in the first `step_count` steps of a schedule of `offered`.
  void take(std::span<std::uint32_t const> offered, steps const& schedule, std::size_t step_count) {
    std::vector<std::uint8_t> has_run(carried_ + order_.size(), 0);
    for (std::size_t cell = 0; cell != step_count * schedule.ranks(); ++cell) {
      for (std::uint32_t const place : schedule.cells()[cell]) has_run[offered[place]] = 1;
    }
    std::erase_if(waiting_, [&](std::uint32_t entry) { return has_run[entry] != 0; });
  }

 private:
  [[nodiscard]] bool is_left_over(std::uint32_t entry) const {
    return entry >= carried_ && order_.inverse(entry - carried_) >= order_.size() - left_over_;
  }

  rng::permutation order_;
  rng::permutation previous_;
  std::size_t carried_;
  std::size_t left_over_ = 0;
  std::size_t max_left_over_;
  std::vector<std::uint32_t> waiting_;
};

/// Throws unless the schedule has `ranks` ranks and each of the groups [0, entries) is in exactly
/// one cell that is not a repetition. Cells that are repetitions must also contain only these
/// groups.
inline void check_schedule(std::string_view function, steps const& schedule, std::size_t ranks,
                           std::size_t entries) {
  if (schedule.ranks() != ranks) {
    throw_invalid(function, "the scheduler gives steps of ", schedule.ranks(), " ranks, not of ",
                  ranks);
  }
  permutation_check named(function, "the scheduler", "groups", entries);
  for (std::size_t step = 0; step != schedule.size(); ++step) {
    for (std::size_t rank = 0; rank != ranks; ++rank) {
      auto const cell = schedule(step, rank);
      if (!schedule.is_repeat(step, rank)) {
        named.take(cell);
      } else if (std::any_of(cell.begin(), cell.end(), [=](auto g) { return g >= entries; })) {
        throw_invalid(function, "the scheduler repeats a group that there is not");
      }
    }
  }
  named.finish();
}

/// A part of the groups, such as a level, that has its own schedule.
struct scheduled_part {
  std::uint32_t first_group;
  std::uint32_t group_count;
  std::uint64_t seed;
  /// The number of groups that the previous epoch left over.
  std::uint64_t carried;
};

/// Returns the part of every step. The first steps are up to `short_first` steps of the first part.
/// The remaining steps of all parts follow, and the steps of each part are spread evenly over them.
[[nodiscard]] inline std::vector<std::uint32_t> turns_of(std::vector<std::uint64_t> step_counts,
                                                         std::uint64_t short_first) {
  if (step_counts.empty()) return {};
  std::uint64_t const begin =
      step_counts.size() == 1 ? step_counts[0] : std::min(step_counts[0], short_first);
  std::vector<std::uint32_t> result(static_cast<std::size_t>(begin), 0);
  step_counts[0] -= begin;
  std::uint64_t const rest =
      std::accumulate(step_counts.begin(), step_counts.end(), std::uint64_t{0});
  if (rest == 0) return result;
  share_tree const turns(std::move(step_counts));
  for (std::uint64_t position = 0; position != rest; ++position) {
    result.push_back(turns.draw(position).source);
  }
  return result;
}

/// The steps of this rank in an epoch. A scheduler assigns the groups of each part to steps. This
/// is the common base of the plans of `step_sampler` and `level_sampler`.
template <class Load, class Scheduler>
class scheduled_plan {
 public:
  static constexpr std::string_view things = "groups";
  static constexpr bool lends = true;
  static constexpr bool counts_only = false;

  [[nodiscard]] bool empty() const { return loads_.empty(); }
  [[nodiscard]] sampler_segment const& present() const { return present_; }
  [[nodiscard]] std::uint64_t step_count() const { return mine_.size(); }
  [[nodiscard]] bool is_repeat(std::uint64_t step) const {
    return mine_.is_repeat(static_cast<std::size_t>(step), 0);
  }
  [[nodiscard]] std::uint64_t left_over() const {
    return std::accumulate(left_over_.begin(), left_over_.end(), std::uint64_t{0});
  }

 protected:
  scheduled_plan(std::string_view function, std::vector<Load> loads, shard const& place,
                 schedule_steps_options const& options, Scheduler scheduler)
      : loads_(std::move(loads)),
        place_(place),
        present_(segment_of(function, place, 1)),
        options_(options),
        scheduler_(std::move(scheduler)) {
    check_positive(function, "options.groups_per_rank", options.groups_per_rank);
    if (options.speeds.size() > 1) {
      throw_invalid(function, "options.speeds has ", options.speeds.size(),
                    " values, but the ranks of a sampler may change; pass a scheduler that sets "
                    "the speeds of its ranks instead");
    }
    if (options.carried.empty()) return;
    throw_invalid(function, "options.carried has ", options.carried.size(),
                  " groups, a sampler finds them itself");
  }

  /// Plans an epoch: computes its schedules, one for each change of the ranks, and keeps the cells
  /// of this rank in the last schedule. A step of part k has `cells(k, ranks)` cells. The first
  /// `short_first(s)` steps from step s on belong to the first part.
  template <class Cells, class Short>
  void plan_parts(std::string_view function, epoch_progress const& progress,
                  std::span<scheduled_part const> parts, Cells const& cells,
                  Short const& short_first) {
    pools_.clear();
    for (scheduled_part const& part : parts) {
      check_index_count(function, "loads and the carried groups", part.group_count + part.carried);
      pools_.emplace_back(part.group_count, part.seed, progress.epoch(), part.carried);
    }
    std::uint64_t first_step = 0;
    for (sampler_segment const& segment : progress.ended()) {
      schedule(function, parts, segment, progress.epoch(), cells, short_first(first_step));
      run(segment.step_count);
      first_step += segment.step_count;
    }
    schedule(function, parts, progress.present(), progress.epoch(), cells, short_first(first_step));
    mine_.clear();
    std::vector<std::size_t> next_step(parts.size(), 0);
    for (std::uint32_t const part : turns_) {
      std::size_t const ranks_of_cell = place_.ranks / cells(part, place_.ranks);
      append_cell(parts[part].first_group, part, next_step[part]++, place_.rank / ranks_of_cell);
    }
    left_over_.clear();
    for (group_pool const& pool : pools_) left_over_.push_back(pool.left_over());
    pools_.clear();
    schedules_.clear();
  }

  /// Throws if a segment of the state has a batch above 1, as states of `epoch_sampler` may have.
  static void check_batches(std::string_view function, sampler_state const& state) {
    for (sampler_segment const& segment : state.segments) {
      if (segment.batch <= 1) continue;
      throw_invalid(function, "state.segments has a batch of ", segment.batch,
                    " groups, must be 1");
    }
  }

  /// Returns the part of a step with the present ranks. `groups_at` returns the groups of this rank
  /// in the step.
  [[nodiscard]] std::size_t part_at(std::uint64_t step) const {
    return turns_[static_cast<std::size_t>(step)];
  }
  [[nodiscard]] std::span<std::uint32_t const> groups_at(std::uint64_t step) const {
    return mine_(static_cast<std::size_t>(step), 0);
  }

  [[nodiscard]] std::vector<Load> const& loads() const { return loads_; }
  [[nodiscard]] schedule_steps_options const& options() const { return options_; }
  /// Returns the number of groups that each part leaves over.
  [[nodiscard]] std::vector<std::uint64_t> const& left_over_parts() const { return left_over_; }

  /// Adds the loads, and the options that affect the schedules, to a digest.
  void add_to(data_digest& result) const {
    result.add(options_.max_dist_ratio);
    result.add(static_cast<std::uint64_t>(options_.remainder));
    result.add(std::uint64_t{options_.rounds});
    // For one group per rank the digest must equal the digest of earlier versions.
    if (options_.groups_per_rank != 1) result.add(~std::uint64_t{options_.groups_per_rank});
    if (options_.even_positions) result.add(std::uint64_t{1});
    result.add(std::uint64_t{loads_.size()});
    result.add(std::uint64_t{kinds_of<Load>});
    for (Load const& load : loads_) result.add_amounts(load);
  }

 private:
  /// The schedule of a part: the entries of its pool that were offered, and the steps of their
  /// positions in this list.
  struct part_schedule {
    std::vector<std::uint32_t> offered;
    steps cells;
  };

  /// Schedules the entries of each part that have not run, for the ranks of a segment.
  template <class Cells>
  void schedule(std::string_view function, std::span<scheduled_part const> parts,
                sampler_segment const& segment, std::uint64_t epoch, Cells const& cells,
                std::uint64_t short_first) {
    schedule_steps_options options = options_;
    options.epoch = epoch;
    if (options_.remainder == remainder_policy::carry) {
      options.remainder = remainder_policy::short_step;
    }
    schedules_.clear();
    std::vector<std::uint64_t> step_counts;
    std::vector<Load> loads;
    for (std::size_t p = 0; p != parts.size(); ++p) {
      std::size_t const count = cells(p, segment.ranks);
      auto offered = pools_[p].offer(count * options_.groups_per_rank, options_.remainder);
      loads.clear();
      for (std::uint32_t const entry : offered) {
        loads.push_back(loads_[parts[p].first_group + pools_[p].group_of(entry)]);
      }
      options.seed = parts[p].seed;
      steps made =
          std::invoke(scheduler_, std::span<Load const>(loads), count, std::as_const(options));
      check_schedule(function, made, count, loads.size());
      step_counts.push_back(made.size());
      schedules_.push_back({std::move(offered), std::move(made)});
    }
    turns_ = turns_of(std::move(step_counts), short_first);
    check_steps(function, segment, turns_.size(), to_text(segment.ranks) + " ranks");
  }

  /// Appends a cell of a step to the cells of this rank.
  void append_cell(std::uint32_t first_group, std::size_t part, std::size_t step,
                   std::size_t cell) {
    auto const& [offered, cells] = schedules_[part];
    for (std::uint32_t const place : cells(step, cell)) {
      mine_.push(first_group + pools_[part].group_of(offered[place]));
    }
    if (cells.is_repeat(step, cell)) {
      mine_.close_repeat();
    } else {
      mine_.close();
    }
  }

  /// Removes from the pools the entries that run in the first `step_count` steps of the schedules.
  void run(std::uint64_t step_count) {
    std::vector<std::size_t> counts(pools_.size(), 0);
    for (std::size_t step = 0; step != step_count; ++step) ++counts[turns_[step]];
    for (std::size_t part = 0; part != pools_.size(); ++part) {
      pools_[part].take(schedules_[part].offered, schedules_[part].cells, counts[part]);
    }
  }

  std::vector<Load> loads_;
  shard place_;
  sampler_segment present_;
  schedule_steps_options options_;
  Scheduler scheduler_;
  /// For each part, the entries that have not run and the last schedule, while an epoch is planned.
  std::vector<group_pool> pools_;
  std::vector<part_schedule> schedules_;
  /// The groups of this rank in each step with the present ranks, and the part of each step.
  steps mine_{1};
  std::vector<std::uint32_t> turns_;
  std::vector<std::uint64_t> left_over_;
};

}  // namespace omnibal::inline v0::detail
