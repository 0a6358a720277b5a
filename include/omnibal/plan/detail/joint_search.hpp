// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Search for the cuts of a pipeline; the caller supplies the class that bounds and solves stages.

#include <omnibal/check.hpp>
#include <omnibal/detail/by_effort.hpp>
#include <omnibal/detail/conversions.hpp>
#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/detail/stage_range.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/resources.hpp>
#include <omnibal/solve_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Throws unless the numbers of the machine and of the options can belong to a plan.
inline void check_plan_options(std::string_view name, pipeline_machine const& machine,
                               plan_pipeline_options const& options) {
  check_number(name, "machine.stages", machine.stages);
  auto const check = [&](std::string_view argument, std::size_t value) {
    if (value != 0 && value <= max_index_count) return;
    throw_invalid(name, argument, " is ", value, ", must be positive and below 2^32");
  };
  check("options.micro_batches", options.micro_batches);
  check("options.states", options.states.value_or(1));
  if (!(options.max_gap >= 0 && options.max_gap < 1)) {
    throw_invalid(name, "options.max_gap is ", options.max_gap, ", must be from 0 to below 1");
  }
  auto const& given = options.constraints;
  if (given.bytes.empty() && given.capacity.empty() && given.devices == 0) return;
  throw_invalid(name,
                "options.constraints must have no bytes, capacity or devices: the memory is that "
                "of the machine");
}

/// Lower bounds of the times of stages, each computed when it is first required. The value is
/// `no_time` if a stage exceeds its memory or the limit on times. The search can raise a bound.
template <class Stages>
class stage_times {
 public:
  explicit stage_times(Stages const& stages)
      : stages_(stages), times_(stages.size() * (stages.layers_size() + 1)) {}

  /// Sets the time above which stages are not considered.
  void set_limit(std::int64_t limit) { limit_ = limit; }

  [[nodiscard]] std::int64_t operator()(stage_range const& range) {
    std::int64_t const least = min_time(range);
    return least <= limit_ ? least : no_time;
  }

  /// Raises a time to at least this value.
  void raise(stage_range const& range, std::int64_t time) {
    auto& known = min_time(range);
    known = std::max(known, time);
  }

 private:
  [[nodiscard]] std::int64_t& min_time(stage_range const& range) {
    constexpr std::int64_t unknown = -1;
    auto& known = times_[range.stage * (stages_.layers_size() + 1) + range.first];
    std::size_t const length = range.last - range.first;
    if (known.size() <= length) known.resize(length + 1, unknown);
    if (known[length] == unknown) known[length] = stages_.lower_bound(range);
    return known[length];
  }

  Stages const& stages_;
  std::int64_t limit_ = no_time;
  /// The lower bounds of the times, by stage and first layer, then by the number of layers.
  std::vector<std::vector<std::int64_t>> times_;
};

/// Dynamic programming over the cuts with a lower bound for every stage. The stages of the best
/// cuts are solved and their bounds raised, repeatedly, as long as a shorter step is possible.
/// `Stages` bounds and solves stages; see `recompute_stages`.
template <class Stages>
class joint_search {
 public:
  using solution = typename Stages::solution;

  joint_search(std::string_view function, Stages const& stages,
               plan_pipeline_options const& options)
      : function_(function),
        stages_(stages),
        options_(options),
        table_(stages),
        solved_(stages.size()) {}

  void run() {
    start_from_least_memory();
    if (is_decided()) return;
    table_.set_limit(longest_stage());
    refine();
  }

  /// False if no plan fits the memory.
  [[nodiscard]] bool has_plan() const { return !boundaries_.empty(); }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return boundaries_; }
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] std::int64_t bound() const { return std::min(bound_, value_); }
  /// Returns the solution of a stage; solves the stage at the first call. The reference is valid
  /// until the next call.
  [[nodiscard]] solution const& solved(stage_range const& range) {
    auto& known = solved_[range.stage];
    for (solved_stage const& one : known) {
      if (one.range.first == range.first && one.range.last == range.last) return one.result;
    }
    ++solved_count_;
    return known.emplace_back(solved_stage{range, stages_.solve(range)}).result;
  }

 private:
  struct solved_stage {
    stage_range range;
    solution result;
  };

  /// True if the lower bound proves that no other plan is better by more than `max_gap`. If the
  /// search has no plan, true if the bound proves that no plan exists.
  [[nodiscard]] bool is_decided() const {
    auto const gap = static_cast<double>(value_ - std::min(bound_, value_));
    return gap <= (has_plan() ? options_.max_gap * static_cast<double>(value_) : 0.0);
  }

  /// Finds a first plan: balances the layers with the choices that keep the fewest bytes, and
  /// solves the stages between these cuts.
  void start_from_least_memory() {
    std::vector<std::int64_t> before{0};
    std::vector<std::int64_t> times;
    for (std::size_t l = 0; l != stages_.layers_size(); ++l) {
      times.push_back(stages_.small_time(l));
      before.push_back(before.back() + times.back());
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return before[last] - before[first];
    };
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return stages_.fits({stage, first, last});
    };
    auto const cuts = cut({cost, fits}, times);
    if (cuts.status == solve_status::solved) try_cuts(cuts.boundaries);
  }

  void refine() {
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != stages_.layers_size(); ++l) {
      least.push_back(stages_.min_time(l, l + 1));
    }
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return table_({stage, first, last}) != no_time;
    };
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      std::int64_t const time = table_({stage, first, last});
      return time != no_time ? time : stages_.min_time(first, last);
    };
    for (std::size_t round = 0; round < max_rounds() || !has_plan(); ++round) {
      auto const cuts = cut({cost, fits}, least);
      bool const is_possible = cuts.status == solve_status::solved;
      bound_ = std::max(bound_, is_possible ? std::min(cuts.objective, value_) : value_);
      if (is_decided()) return;
      std::size_t const known = solved_count_;
      try_cuts(cuts.boundaries);
      // All stages of these cuts were solved before, so the bound cannot rise.
      if (solved_count_ == known) return;
    }
  }

  [[nodiscard]] std::size_t max_rounds() const {
    constexpr by_effort<std::size_t> levels{.fast = 4, .normal = 16, .thorough = 64};
    return options_.rounds.value_or(levels[options_.effort]);
  }

  /// Returns the cuts with the shortest step for these times of stages; `least` holds the least
  /// time of each layer.
  [[nodiscard]] partition_result<std::int64_t> cut(stage_functions const& functions,
                                                   std::vector<std::int64_t> const& least) const {
    return stages_for(function_, stages_.layers_size(), stages_.size(), functions,
                      options_.micro_batches, least, options_.constraints);
  }

  /// Solves the stages between these boundaries and keeps them if they are the best so far.
  void try_cuts(std::vector<std::uint32_t> const& boundaries) {
    std::vector<std::int64_t> times;
    bool fits = true;
    for (std::size_t s = 0; s != stages_.size(); ++s) {
      stage_range const range{s, boundaries[s], boundaries[s + 1]};
      if (range.first == range.last) {
        times.push_back(0);
        continue;
      }
      auto const& result = solved(range);
      raise(range, result);
      fits = fits && result.status == solve_status::solved;
      times.push_back(result.time);
    }
    if (!fits) return;
    std::int64_t const value = estimate_makespan(times, options_.micro_batches);
    if (has_plan() && value >= value_) return;
    value_ = value;
    boundaries_ = boundaries;
  }

  void raise(stage_range const& range, solution const& result) {
    bool const fits = result.status == solve_status::solved;
    table_.raise(range, fits ? result.lower_bound : no_time);
  }

  /// The longest time that a stage can have in a plan with a shorter step than the best plan so
  /// far.
  [[nodiscard]] std::int64_t longest_stage() const {
    if (!has_plan()) return no_time - 1;
    std::int64_t const most = value_ - 1;
    if (options_.micro_batches == 1) return most;
    auto const others = static_cast<std::int64_t>(options_.micro_batches - 1);
    return (most - stages_.min_time(0, stages_.layers_size())) / others;
  }

  std::string_view function_;
  Stages const& stages_;
  plan_pipeline_options const& options_;
  stage_times<Stages> table_;
  /// The solved stages, by the number of the stage.
  std::vector<std::vector<solved_stage>> solved_;
  std::size_t solved_count_ = 0;
  std::vector<std::uint32_t> boundaries_;
  std::int64_t value_ = no_time;
  std::int64_t bound_ = 0;
};

}  // namespace omnibal::inline v0::detail
