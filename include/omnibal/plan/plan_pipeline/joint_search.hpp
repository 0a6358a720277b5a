#pragma once

/// \file
/// Cuts and choices with the shortest step.

#include <omnibal/partition/partition_layers_options.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/pipeline_machine.hpp>
#include <omnibal/plan/plan_pipeline/integer_layers.hpp>
#include <omnibal/plan/plan_pipeline/stage_lower_bounds.hpp>
#include <omnibal/recompute/select_recompute.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace omnibal::inline v0::detail {

/// Dynamic programming over the cuts with a lower bound for every stage. The stages that it finds
/// are solved and their bounds raised, again and again, as long as that may lead to a shorter step.
class joint_search {
 public:
  joint_search(std::string_view function, integer_layers const& layers, stage_budgets const& rooms,
               plan_pipeline_options const& options)
      : function_(function),
        layers_(layers),
        rooms_(rooms),
        options_(options),
        table_(layers, rooms),
        solved_(rooms.memory.size()) {}

  void run() {
    start_from_least_memory();
    if (is_decided()) return;
    if (table_.fill(options_.constraints.empty, longest_stage())) {
      refine();
    } else {
      bound_ = value_;
    }
  }

  /// False where no plan fits the memory.
  [[nodiscard]] bool has_plan() const { return !boundaries_.empty(); }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return boundaries_; }
  [[nodiscard]] std::int64_t value() const { return value_; }
  [[nodiscard]] std::int64_t bound() const { return std::min(bound_, value_); }
  /// A stage of the best plan; lives until the next call.
  [[nodiscard]] recompute_result<std::int64_t> const& solved(stage_range const& range) {
    auto& known = solved_[range.stage];
    for (solved_stage const& one : known) {
      if (one.range.first == range.first && one.range.last == range.last) return one.result;
    }
    ++solved_count_;
    return known.emplace_back(solved_stage{range, solve(range)}).result;
  }

 private:
  struct solved_stage {
    stage_range range;
    recompute_result<std::int64_t> result;
  };

  /// No other plan is better by more than `max_gap`; without a plan there is none.
  [[nodiscard]] bool is_decided() const {
    auto const gap = static_cast<double>(value_ - std::min(bound_, value_));
    return gap <= (has_plan() ? options_.max_gap * static_cast<double>(value_) : 0.0);
  }

  [[nodiscard]] recompute_result<std::int64_t> solve(stage_range const& range) const {
    std::vector<std::span<whole_choice const>> stage;
    for (std::size_t l = range.first; l != range.last; ++l) stage.push_back(layers_.by_index(l));
    return select_recompute(stage, table_.room(range),
                            {.in_flight = rooms_.in_flight[range.stage],
                             .effort = options_.effort,
                             .states = options_.states,
                             .max_gap = options_.max_gap});
  }

  /// Balances the layers with the choices that keep the fewest bytes, and solves these stages.
  void start_from_least_memory() {
    std::vector<std::int64_t> before{0};
    std::vector<std::int64_t> times;
    for (std::size_t l = 0; l != layers_.size(); ++l) {
      times.push_back(layers_[l].front().time);
      before.push_back(before.back() + times.back());
    }
    auto const cost = [&](std::size_t, std::size_t first, std::size_t last) {
      return before[last] - before[first];
    };
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return table_.fits({stage, first, last});
    };
    auto const cuts = cut({cost, fits}, times);
    if (cuts.status == solve_status::solved) try_cuts(cuts.boundaries);
  }

  void refine() {
    for (auto const& stage : solved_) {
      for (solved_stage const& one : stage) raise(one.range, one.result);
    }
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != layers_.size(); ++l) least.push_back(layers_.least_time(l, l + 1));
    auto const fits = [&](std::size_t stage, std::size_t first, std::size_t last) {
      return table_(stage, first, last) != no_time;
    };
    auto const cost = [&](std::size_t stage, std::size_t first, std::size_t last) {
      std::int64_t const time = table_(stage, first, last);
      return time != no_time ? time : layers_.least_time(first, last);
    };
    for (std::size_t round = 0; round < most_rounds() || !has_plan(); ++round) {
      auto const cuts = cut({cost, fits}, least);
      bool const is_possible = cuts.status == solve_status::solved;
      bound_ = std::max(bound_, is_possible ? std::min(cuts.objective, value_) : value_);
      if (is_decided()) return;
      std::size_t const known = solved_count_;
      try_cuts(cuts.boundaries);
      // What is known of these stages does not let the bound rise.
      if (solved_count_ == known) return;
    }
  }

  [[nodiscard]] std::size_t most_rounds() const {
    constexpr std::size_t levels[]{4, 16, 64};
    return options_.rounds.value_or(levels[static_cast<std::size_t>(options_.effort)]);
  }

  /// The cuts with the shortest step for these times of stages; `least` is that of each layer.
  [[nodiscard]] partition_result<std::int64_t> cut(stage_functions const& functions,
                                                   std::vector<std::int64_t> const& least) const {
    return stages_for(function_, layers_.size(), stages(), functions, options_.micro_batches, least,
                      options_.constraints);
  }

  /// Solves the stages between these boundaries and keeps them if they are the best so far.
  void try_cuts(std::vector<std::uint32_t> const& boundaries) {
    std::vector<std::int64_t> times;
    bool fits = true;
    for (std::size_t s = 0; s != stages(); ++s) {
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

  void raise(stage_range const& range, recompute_result<std::int64_t> const& result) {
    bool const fits = result.status == solve_status::solved;
    table_.raise(range, fits ? result.lower_bound : no_time);
  }

  /// The longest stage of a plan with a shorter step than the best one.
  [[nodiscard]] std::int64_t longest_stage() const {
    if (!has_plan()) return no_time - 1;
    std::int64_t const most = value_ - 1;
    if (options_.micro_batches == 1) return most;
    auto const others = static_cast<std::int64_t>(options_.micro_batches - 1);
    return (most - layers_.least_time(0, layers_.size())) / others;
  }

  [[nodiscard]] std::size_t stages() const { return rooms_.memory.size(); }

  std::string_view function_;
  integer_layers const& layers_;
  stage_budgets const& rooms_;
  plan_pipeline_options const& options_;
  stage_lower_bounds table_;
  /// Of each stage those that were solved.
  std::vector<std::vector<solved_stage>> solved_;
  std::size_t solved_count_ = 0;
  std::vector<std::uint32_t> boundaries_;
  std::int64_t value_ = no_time;
  std::int64_t bound_ = 0;
};

}  // namespace omnibal::inline v0::detail
