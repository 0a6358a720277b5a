// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Cuts and choices of stages with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/partition/partition_throughput.hpp>
#include <omnibal/pipeline/chunk_layout.hpp>
#include <omnibal/pipeline/chunks_in_flight.hpp>
#include <omnibal/pipeline/interleaved_1f1b.hpp>
#include <omnibal/plan/detail/integer_layers.hpp>
#include <omnibal/plan/detail/stage_budgets.hpp>
#include <omnibal/plan/pipeline_plan.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_dual.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/cut_evaluator.hpp>
#include <omnibal/plan/stage_chunks/cut_moves.hpp>
#include <omnibal/plan/stage_chunks/cut_tree.hpp>
#include <omnibal/plan/stage_chunks/exact_choices.hpp>
#include <omnibal/plan/stage_chunks/min_largest_load.hpp>
#include <omnibal/plan/stage_chunks/refine_choices.hpp>
#include <omnibal/plan/stage_chunks/schedule_descent.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Runs the searches for the best plan in order. Local search (`cut_descent`) improves the cuts of
/// several starts, with greedy choices. `exact_choices` improves the choices of the best cuts. If
/// there are few cuts, `cut_tree` searches all of them. `schedule_descent` selects among looped
/// cuts with nearly the same estimate. The lower bound comes from `chunk_dual` and from `cut_tree`
/// if it tries all cuts.
class chunk_search {
 public:
  chunk_search(std::string_view function, integer_layers const& layers,
               stage_budgets const& budgets, chunk_layout const& layout,
               plan_pipeline_options const& options)
      : function_(function),
        problem_(function, layers, budgets, layout, options),
        choices_(layers, budgets),
        evaluator_(problem_, choices_),
        moves_(problem_, evaluator_),
        exact_(problem_, choices_),
        dual_(problem_, choices_) {}

  /// Returns the units that each stage keeps in a schedule of looped chunks. The function uses a
  /// schedule with fewer micro-batches that keeps the same units. All groups except the first ones
  /// have one micro-batch for each stage, and a stage keeps units of fewer than three groups.
  [[nodiscard]] static std::vector<chunk_counts> units_of(chunk_layout const& layout) {
    std::size_t const larger = layout.micro_batches % layout.stages;
    std::size_t const enough = larger + layout.stages * (larger + 4);
    return chunks_in_flight(
        interleaved_1f1b{layout.stages, std::min(layout.micro_batches, enough), layout.chunks});
  }

  void run() {
    search();
    if (has_plan() && problem_.layout.placement == chunk_placement::looped) shorten_schedule();
  }

  [[nodiscard]] bool has_plan() const { return best_.has_plan(); }
  [[nodiscard]] std::vector<std::uint32_t> const& boundaries() const { return best_.boundaries; }
  /// Returns the time of a step and its lower bound in the unit of `chunk_step`.
  [[nodiscard]] int128 value() const { return best_.quality.step; }
  [[nodiscard]] int128 bound() const { return std::min(bound_, value()); }
  [[nodiscard]] chunk_problem const& problem() const { return problem_; }
  /// Returns the choices of the best plan: an entry for each stage, which lists the layers chunk by
  /// chunk.
  [[nodiscard]] std::vector<stage_solution> const& solutions() const { return best_.solutions; }
  [[nodiscard]] int128 bytes_of(std::size_t stage) const {
    return choices_.bytes_of(stage, problem_.ranges_of(best_.boundaries, stage),
                             best_.solutions[stage].choices);
  }

  /// Returns the smallest number of missing bytes that was found, and a lower bound of this number.
  /// Precondition: there is no plan.
  [[nodiscard]] int128 missing() const { return best_.quality.missing; }
  [[nodiscard]] int128 min_missing() const { return min_missing_; }
  /// Returns the first stage that lacks this number of bytes.
  [[nodiscard]] std::uint32_t missing_stage() const {
    std::uint32_t stage = 0;
    while (best_.solutions[stage].missing != missing()) ++stage;
    return stage;
  }

 private:
  void search() {
    start();
    if (has_plan()) {
      raise_bound();
      if (is_decided()) return;
      offer(dual_.boundaries());
      refine_choices(problem_, exact_, evaluator_, best_.boundaries, best_.solutions, best_);
      if (is_decided()) return;
    }
    cut_tree tree(problem_, choices_, evaluator_, best_);
    bool const is_whole = tree.run();
    if (has_plan()) {
      if (is_whole) bound_ = std::max(bound_, tree.bound());
      raise_bound();
      return;
    }
    bool const is_exact = is_whole && choices_.knows_all_limits();
    min_missing_ = is_exact ? missing() : dual_.min_missing(problem_.effort.rounds);
  }

  [[nodiscard]] bool is_decided() const {
    auto const gap = static_cast<double>(value() - bound());
    return gap <= problem_.options.max_gap * static_cast<double>(value());
  }

  /// Starts from cuts with even times and from cuts with even numbers of layers. If rules forbid
  /// both, starts from the cuts whose longest virtual stage is shortest.
  void start() {
    auto const& layers = problem_.layers;
    std::size_t const stages = problem_.virtual_stages();
    std::vector<std::uint32_t> by_count;
    for (std::size_t v = 0; v <= stages; ++v) {
      by_count.push_back(static_cast<std::uint32_t>(v * layers.size() / stages));
    }
    offer(even_times());
    offer(std::move(by_count));
    if (!best_.boundaries.empty()) return;
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != layers.size(); ++l) least.push_back(layers.min_time(l, l + 1));
    auto const cost = [&](std::size_t, std::size_t first, std::size_t end) {
      return layers.min_time(first, end);
    };
    offer(stages_for(function_, layers.size(), stages, {cost, fits_always{}}, 0, least,
                     problem_.options.constraints)
              .boundaries);
  }

  /// Returns the boundaries that are nearest to equal shares of the time.
  [[nodiscard]] std::vector<std::uint32_t> even_times() const {
    auto const& layers = problem_.layers;
    std::size_t const count = layers.size();
    std::size_t const stages = problem_.virtual_stages();
    int128 const all = layers.min_time(0, count);
    std::size_t const fewest = problem_.rules.may_be_empty ? 0 : 1;
    std::vector<std::uint32_t> result{0};
    std::size_t last = 0;
    for (std::size_t v = 1; v != stages; ++v) {
      int128 const part = all * static_cast<int128>(v) / static_cast<int128>(stages);
      auto const distance = [&](std::size_t end) {
        int128 const difference = layers.min_time(0, end) - part;
        return difference < 0 ? -difference : difference;
      };
      while (last != count && distance(last + 1) <= distance(last)) ++last;
      std::size_t const most = count - fewest * (stages - v);
      result.push_back(static_cast<std::uint32_t>(std::clamp(last, fewest * v, most)));
    }
    result.push_back(static_cast<std::uint32_t>(count));
    return result;
  }

  /// Improves these cuts by local search and keeps them if they are the best so far. Does nothing
  /// if a rule forbids the cuts.
  void offer(std::vector<std::uint32_t> boundaries) {
    if (!problem_.allows(boundaries)) return;
    cut_state cuts = evaluator_.evaluate(std::move(boundaries));
    cut_descent(problem_, moves_, search_budget(problem_.effort.moves)).run(cuts);
    if (best_.is_worse_than(cuts.quality)) keep(cuts);
  }

  void keep(cut_state const& cuts) {
    best_ = {cuts.boundaries, evaluator_.solutions_of(cuts.boundaries), cuts.quality};
  }

  /// Raises the bound to the bound for layers that run as fast as possible. If the memory does not
  /// allow the fastest choices, also uses the bound of the dual.
  void raise_bound() {
    if (bound_ >= value()) return;
    auto const& layers = problem_.layers;
    auto const& step = problem_.step;
    std::vector<std::int64_t> least;
    for (std::size_t l = 0; l != layers.size(); ++l) least.push_back(layers.min_time(l, l + 1));
    std::int64_t const sum = layers.min_time(0, layers.size());
    int128 const load = min_largest_load(std::move(least), problem_.stages());
    bound_ = std::max(bound_, step({.load = load, .rounds = load, .sum = sum}));
    int128 time = 0;
    for (auto const& solution : best_.solutions) time += solution.load();
    if (time == sum) return;
    int128 const known = ceiled_quotient(value(), step.factor_of_sum());
    bound_ = std::max(bound_, step.factor_of_sum() * dual_.min_step(step.weight_of_load(), known,
                                                                    problem_.effort.rounds));
  }

  void shorten_schedule() {
    auto const step = static_cast<double>(value());
    int128 const limit = value() + static_cast<int128>(problem_.options.max_gap * step);
    // The greedy choices of the best cuts may be worse than the best choices.
    cut_state cuts = evaluator_.evaluate(best_.boundaries);
    if (schedule_descent(problem_, moves_, limit).run(cuts)) keep(cuts);
  }

  std::string_view function_;
  chunk_problem problem_;
  chunk_choices choices_;
  cut_evaluator evaluator_;
  cut_moves moves_;
  exact_choices exact_;
  chunk_dual dual_;
  best_cuts best_;
  int128 bound_ = 0;
  int128 min_missing_ = 0;
};

}  // namespace omnibal::inline v0::detail
