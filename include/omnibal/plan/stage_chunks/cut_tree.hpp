// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// A search over all cuts of stages with several chunks.

#include <omnibal/config.hpp>
#include <omnibal/detail/quotients.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/pipeline/estimate_makespan.hpp>
#include <omnibal/plan/stage_chunks/chunk_choices.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/cut_evaluator.hpp>
#include <omnibal/plan/stage_chunks/refine_choices.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace omnibal::inline v0::detail {

/// Branch and bound over all cuts: tries all ends of the virtual stages one after another, and
/// skips cuts whose lower bound is no better than the best plan. Each tried end is a step of the
/// budget.
class cut_tree {
 public:
  cut_tree(chunk_problem const& problem, chunk_choices& choices, cut_evaluator& evaluator,
           best_cuts& best)
      : problem_(problem),
        choices_(choices),
        evaluator_(evaluator),
        exact_(problem, choices),
        best_(best),
        budget_(problem.effort.nodes) {}

  /// Improves the best cuts. Returns true if all cuts were tried. Then no cuts have a shorter step
  /// than `bound`; without a plan, no cuts lack fewer bytes than the best cuts.
  [[nodiscard]] bool run() {
    if (!are_cuts_few()) return false;
    boundaries_.assign(problem_.virtual_stages() + 1, 0);
    if (best_.has_plan()) bound_ = best_.quality.step;
    loads_.assign(problem_.stages(), 0);
    longest_.assign(problem_.virtual_stages() + 1, 0);
    rounds_.assign(problem_.virtual_stages() + 1, 0);
    return descend(0);
  }

  /// Returns a lower bound of the time of a step after a complete search.
  [[nodiscard]] int128 bound() const { return bound_; }

 private:
  [[nodiscard]] bool are_cuts_few() const {
    double const most = 1024 * static_cast<double>(problem_.effort.nodes);
    double ways = 1;
    for (std::size_t v = 1; v < problem_.virtual_stages() && ways <= most; ++v) {
      ways *= static_cast<double>(problem_.layers.size() + v) / static_cast<double>(v);
    }
    return ways <= most;
  }

  /// Tries all ends of a virtual stage; returns false if the budget is spent.
  [[nodiscard]] bool descend(std::size_t v) {
    if (v == problem_.virtual_stages()) {
      try_leaf();
      return true;
    }
    std::int64_t& load = loads_[problem_.places.stage[v]];
    std::int64_t const load_before = load;
    bool const is_new_round = v % problem_.stages() == 0;
    std::int64_t const longest_before = is_new_round ? 0 : longest_[v];
    std::size_t const first =
        std::max<std::size_t>(boundaries_[v], problem_.rules.first_cut[v + 1]);
    for (std::size_t last = first; last <= problem_.rules.last_cut[v + 1]; ++last) {
      boundaries_[v + 1] = static_cast<std::uint32_t>(last);
      if (problem_.rules.may_cut[last] == 0 || !problem_.allows(boundaries_, v)) continue;
      if (budget_.is_spent()) return false;
      budget_.spend();
      std::int64_t const time = problem_.layers.min_time(boundaries_[v], last);
      load = load_before + time;
      longest_[v + 1] = std::max(longest_before, time);
      rounds_[v + 1] = rounds_[v] + longest_[v + 1] - longest_before;
      if (is_slower(v + 1) || lacks_memory(v)) continue;
      if (!descend(v + 1)) return false;
    }
    load = load_before;
    return true;
  }

  /// Returns true if no cuts that begin with the first `count` virtual stages have a shorter step
  /// than the best plan.
  [[nodiscard]] bool is_slower(std::size_t count) const {
    return best_.has_plan() && problem_.step(min_times(count)) >= best_.quality.step;
  }

  /// Returns lower bounds of the times of cuts that begin with the first `count` virtual stages.
  [[nodiscard]] chunk_times<int128> min_times(std::size_t count) const {
    auto const& layers = problem_.layers;
    std::size_t const end = layers.size();
    auto const width = static_cast<int128>(problem_.stages());
    chunk_times<int128> times{.rounds = rounds_[count], .sum = layers.min_time(0, end)};
    times.load = ceiled_quotient(times.sum, width);
    for (std::int64_t const one : loads_) times.load = std::max<int128>(times.load, one);
    for (std::size_t v = 0; v < count; v += problem_.stages()) {
      std::size_t const next = std::min(v + problem_.stages(), count);
      times.largest_round =
          std::max<int128>(times.largest_round, layers.min_time(boundaries_[v], boundaries_[next]));
    }
    // The other stages of this round may be as long as its longest one; later rounds have the rest.
    std::size_t const open = (problem_.stages() - count % problem_.stages()) % problem_.stages();
    int128 const later =
        layers.min_time(boundaries_[count], end) - static_cast<int128>(open) * longest_[count];
    if (later > 0) times.rounds += ceiled_quotient(later, width);
    times.rounds = std::max(times.rounds, times.load);
    return times;
  }

  /// Returns true if the stage of virtual stage `v` lacks memory with the layers up to `v`. Without
  /// a plan, returns true if the stage lacks at least the missing bytes of the best cuts.
  [[nodiscard]] bool lacks_memory(std::size_t v) {
    std::size_t const stage = problem_.places.stage[v];
    chunk_ranges ranges;
    for (std::size_t c = 0; c != problem_.places.chunks; ++c) {
      std::size_t const other = problem_.virtual_stage(stage, c);
      ranges.push_back(other <= v ? boundaries_[other] : 0);
      ranges.push_back(other <= v ? boundaries_[other + 1] : 0);
    }
    int128 const missing = choices_.missing_bytes(stage, ranges);
    if (missing <= 0 || !choices_.knows_all_limits()) return false;
    return best_.has_plan() || missing >= best_.quality.missing;
  }

  void try_leaf() {
    cut_state const leaf = evaluator_.evaluate(boundaries_);
    auto solutions = evaluator_.solutions_of(boundaries_);
    if (leaf.quality.missing == 0) {
      bound_ = std::min(bound_, min_step(solutions));
      refine_choices(problem_, exact_, evaluator_, boundaries_, std::move(solutions), best_);
      return;
    }
    if (!choices_.knows_all_limits()) {
      bound_ = std::min(bound_, problem_.step(min_times(problem_.virtual_stages())));
    }
    if (best_.has_plan() || leaf.quality.missing >= best_.quality.missing) return;
    best_ = {boundaries_, std::move(solutions), leaf.quality};
  }

  /// Returns a lower bound of the time of a step with these cuts and any choices. `solutions` are
  /// known choices of the stages.
  [[nodiscard]] int128 min_step(std::vector<stage_solution> const& solutions) const {
    chunk_times<int128> times = min_times(problem_.virtual_stages());
    times.sum = 0;
    for (std::size_t s = 0; s != problem_.stages(); ++s) {
      chunk_ranges const ranges = problem_.ranges_of(boundaries_, s);
      std::int64_t least = problem_.min_load(ranges);
      if (solutions[s].load() != least) least = exact_.min_load(s, ranges);
      times.load = std::max<int128>(times.load, least);
      times.sum += least;
    }
    times.rounds = std::max(times.rounds, times.load);
    return problem_.step(times);
  }

  static constexpr int128 no_step = static_cast<int128>(1) << 126;

  chunk_problem const& problem_;
  chunk_choices& choices_;
  cut_evaluator& evaluator_;
  exact_choices exact_;
  best_cuts& best_;
  search_budget budget_;
  std::vector<std::uint32_t> boundaries_;
  /// The least load of each stage with the virtual stages so far.
  std::vector<std::int64_t> loads_;
  /// The sum of the longest virtual stages of the rounds, and the longest virtual stage of the last
  /// round, by the number of virtual stages.
  std::vector<std::int64_t> rounds_;
  std::vector<std::int64_t> longest_;
  int128 bound_ = no_step;
};

}  // namespace omnibal::inline v0::detail
