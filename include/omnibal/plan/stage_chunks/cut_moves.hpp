// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Moves of the boundaries between virtual stages.

#include <omnibal/config.hpp>
#include <omnibal/detail/search_budget.hpp>
#include <omnibal/plan/stage_chunks/chunk_problem.hpp>
#include <omnibal/plan/stage_chunks/cut_evaluator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace omnibal::inline v0::detail {

/// Creates candidates from cuts, evaluates and applies them. A candidate shifts some boundaries to
/// the next position at which the chain may be cut. A call of `order_...` selects the boundaries.
/// The caller then calls, for each direction: `shift`, `evaluate_fastest` if the search may reject
/// the candidate early, `evaluate`, and `apply` to accept the candidate.
class cut_moves {
 public:
  cut_moves(chunk_problem const& problem, cut_evaluator& evaluator)
      : problem_(problem), evaluator_(evaluator) {
    for (std::uint32_t i = 0; i != problem.rules.may_cut.size(); ++i) {
      cut_at_.push_back(static_cast<std::ptrdiff_t>(cuts_.size()));
      if (problem.rules.may_cut[i] != 0) cuts_.push_back(i);
    }
  }

  /// Selects the boundaries from the end of virtual stage `a` to the beginning of `b`: a layer
  /// moves from one of the two virtual stages to the other.
  void order_pair(std::size_t a, std::size_t b) {
    shifts_.assign(problem_.virtual_stages() + 1, 0);
    std::fill(shifts_.begin() + static_cast<std::ptrdiff_t>(a + 1),
              shifts_.begin() + static_cast<std::ptrdiff_t>(b + 1), 1);
  }

  /// Selects boundaries so that each virtual stage of one of the rounds `a` and `b` loses one
  /// layer, and each virtual stage of the other round receives one layer. A round is all chunks
  /// with the same number.
  void order_rounds(std::size_t a, std::size_t b) {
    shifts_.assign(problem_.virtual_stages() + 1, 0);
    std::ptrdiff_t shift = 0;
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) {
      if (v / problem_.stages() == a) ++shift;
      if (v / problem_.stages() == b) --shift;
      shifts_[v + 1] = shift;
    }
  }

  /// Shifts the selected boundaries of these cuts. Returns false if a rule forbids the result.
  [[nodiscard]] bool shift(cut_state const& cuts, bool is_rightward) {
    next_.boundaries = cuts.boundaries;
    changed_.assign(problem_.stages(), 0);
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) {
      if (shifts_[v] != 0 && !shift_boundary(v, is_rightward ? shifts_[v] : -shifts_[v]))
        return false;
      if (shifts_[v] != 0 || shifts_[v + 1] != 0) changed_[problem_.places.stage[v]] = 1;
    }
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) {
      if (!problem_.allows(next_.boundaries, v)) return false;
    }
    next_.times = cuts.times;
    next_.missing = cuts.missing;
    return true;
  }

  /// Returns the quality if the changed stages had enough memory. If no stage lacked bytes before
  /// the shift, the real quality is no better.
  [[nodiscard]] cut_quality evaluate_fastest() {
    for (std::size_t v = 0; v != problem_.virtual_stages(); ++v) {
      if (changed_[problem_.places.stage[v]] == 0) continue;
      next_.times[v] = problem_.layers.min_time(next_.boundaries[v], next_.boundaries[v + 1]);
    }
    return evaluator_.quality_of(next_.times, next_.missing);
  }

  /// Evaluates the shifted cuts and returns them with the times and missing bytes of their stages.
  [[nodiscard]] cut_state const& evaluate() {
    for (std::size_t s = 0; s != problem_.stages(); ++s) {
      if (changed_[s] != 0) evaluator_.solve_stage(next_, s);
    }
    next_.quality = evaluator_.quality_of(next_.times, next_.missing);
    return next_;
  }

  /// Replaces `cuts` by the shifted cuts. Precondition: `evaluate` was called for them.
  void apply(cut_state& cuts) { std::swap(cuts, next_); }

 private:
  [[nodiscard]] bool shift_boundary(std::size_t v, std::ptrdiff_t shift) {
    std::ptrdiff_t const cut = cut_at_[next_.boundaries[v]] + shift;
    if (cut < 0 || cut >= static_cast<std::ptrdiff_t>(cuts_.size())) return false;
    std::uint32_t const boundary = cuts_[static_cast<std::size_t>(cut)];
    next_.boundaries[v] = boundary;
    return problem_.rules.first_cut[v] <= boundary && boundary <= problem_.rules.last_cut[v];
  }

  chunk_problem const& problem_;
  cut_evaluator& evaluator_;
  /// The positions at which the chain may be cut, and for each position of the chain the number of
  /// such positions before it.
  std::vector<std::uint32_t> cuts_;
  std::vector<std::ptrdiff_t> cut_at_;
  /// The number of positions by which a candidate shifts each boundary.
  std::vector<std::ptrdiff_t> shifts_;
  cut_state next_;
  /// A flag for each stage: 1 if the shift changes its layers.
  std::vector<std::uint8_t> changed_;
};

/// Local search: applies moves that improve the cuts until no move improves them or the budget is
/// spent. Each tried move is a step of the budget.
class cut_descent {
 public:
  cut_descent(chunk_problem const& problem, cut_moves& moves, search_budget budget)
      : problem_(problem), moves_(moves), budget_(budget) {}

  void run(cut_state& cuts) {
    while (run_once(cuts) && !budget_.is_spent()) {
    }
  }

 private:
  /// Tries all moves once; returns true if a move was applied.
  [[nodiscard]] bool run_once(cut_state& cuts) {
    auto const pair = [&](std::size_t a, std::size_t b) { moves_.order_pair(a, b); };
    auto const rounds = [&](std::size_t a, std::size_t b) { moves_.order_rounds(a, b); };
    bool const has_moved_layers = try_all(problem_.virtual_stages(), pair, cuts);
    bool const has_moved_rounds = try_all(problem_.places.chunks, rounds, cuts);
    return has_moved_layers || has_moved_rounds;
  }

  template <class Order>
  [[nodiscard]] bool try_all(std::size_t count, Order const& order, cut_state& cuts) {
    bool is_improved = false;
    for (std::size_t a = 0; a + 1 < count; ++a) {
      for (std::size_t b = a + 1; b != count; ++b) {
        order(a, b);
        for (bool const is_rightward : {false, true}) {
          while (!budget_.is_spent() && try_move(cuts, is_rightward)) is_improved = true;
        }
        if (budget_.is_spent()) return is_improved;
      }
    }
    return is_improved;
  }

  [[nodiscard]] bool try_move(cut_state& cuts, bool is_rightward) {
    budget_.spend();
    if (!moves_.shift(cuts, is_rightward)) return false;
    bool const has_memory = cuts.quality.missing == 0;
    if (has_memory && !(moves_.evaluate_fastest() < cuts.quality)) return false;
    if (!(moves_.evaluate().quality < cuts.quality)) return false;
    moves_.apply(cuts);
    return true;
  }

  chunk_problem const& problem_;
  cut_moves& moves_;
  search_budget budget_;
};

}  // namespace omnibal::inline v0::detail
