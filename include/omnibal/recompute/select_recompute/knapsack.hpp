// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The search for a solution and a bound of one multiple-choice knapsack problem.

#include <omnibal/detail/pareto_fronts.hpp>
#include <omnibal/recompute/select_recompute/knapsack_problem.hpp>
#include <omnibal/recompute/select_recompute/label_search.hpp>
#include <omnibal/recompute/select_recompute/pair_swap.hpp>
#include <omnibal/recompute/select_recompute/reduced_problem.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// The limits of a search for a better solution and a better bound.
struct gain_limits {
  std::size_t states;
  /// The gap between bound and gain at which the search ends, as a share of the time.
  double max_gap;
};

/// The purpose of a search. A search for a bound ends as soon as the bound is close enough.
enum class search_goal { solution, bound };

/// The search for the solution of a multiple-choice knapsack problem: linear relaxation, then
/// swaps, then label search of the points that variable fixing by reduced costs leaves. Each step
/// continues from the solution and bound of the previous one, until solution and bound are equal.
class knapsack {
 public:
  /// Searches for a solution that gains more than `known`. If there is none, `gain()` is at most
  /// `known` and `points()` is empty. Precondition: `problem.budget >= 0`.
  void run(knapsack_problem const& problem, gain_limits const& limits, std::int64_t known,
           search_goal goal) {
    gain_ = known;
    points_.clear();
    relaxed_.solve(problem.fronts, problem.budget);
    bound_ = std::max(known, relaxed_.bound());
    if (relaxed_.gain() > known) {
      points_.resize(problem.fronts.size());
      relaxed_.write_points(points_);
      gain_ = relaxed_.gain();
      if (gain_ < bound_) gain_ += swap_.run(problem.fronts, relaxed_.room(), points_);
    }
    if (gain_ >= bound_) return;
    if (goal == search_goal::bound && is_enough(problem, limits, gain_)) return;
    search_reduced(problem, limits);
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// Returns an upper bound of the gain of all solutions.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// Returns the index of the point of each layer in the best solution.
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  /// The largest number of points of the front of equal layers, for each state.
  static constexpr std::size_t points_for_state = 64;
  static constexpr std::size_t max_share = 4;

  [[nodiscard]] bool is_enough(knapsack_problem const& problem, gain_limits const& limits,
                               std::int64_t gain) const {
    return static_cast<double>(bound_ - gain) <=
           limits.max_gap * static_cast<double>(problem.time - gain);
  }

  /// Solves the reduced problem, whose linear relaxation is closer. Its gains and bounds do not
  /// include `base`, the gain of the fixed points.
  void search_reduced(knapsack_problem const& problem, gain_limits const& limits) {
    // If only a proof is missing, the search uses fewer states.
    std::size_t const states =
        is_enough(problem, limits, gain_) ? (limits.states + 2) / 3 : limits.states;
    if (!reduced_.reduce(problem, relaxed_, gain_, points_for_state * states)) {
      bound_ = gain_;
      return;
    }
    pareto_fronts const& fronts = reduced_.fronts();
    std::int64_t const base = reduced_.base_gain();
    reduced_relaxed_.solve(fronts, reduced_.budget());
    if (base + reduced_relaxed_.gain() > gain_) {
      reduced_points_.resize(fronts.size());
      reduced_relaxed_.write_points(reduced_points_);
      keep_better(problem, reduced_.expand(reduced_points_));
    }
    bound_ = std::max(gain_, std::min(bound_, base + reduced_relaxed_.bound()));
    if (gain_ >= bound_) return;
    // If variable fixing removed points, the search can afford more states for the other points.
    std::size_t const shared = std::clamp(
        states * problem.fronts.point_count() / fronts.point_count(), states, max_share * states);
    labels_.run(fronts, reduced_.budget(), reduced_relaxed_, shared, gain_ - base,
                [&](std::int64_t gain) { return is_enough(problem, limits, base + gain); });
    if (labels_.has_bound()) bound_ = std::min(bound_, base + labels_.bound());
    if (!labels_.points().empty()) keep_better(problem, reduced_.expand(labels_.points()));
    bound_ = std::max(gain_, bound_);
  }

  /// Improves a solution by swaps, and keeps it if it is the best so far.
  void keep_better(knapsack_problem const& problem, std::span<std::uint32_t> points) {
    std::int64_t room = problem.budget;
    std::int64_t gain = 0;
    for (std::size_t l = 0; l != points.size(); ++l) {
      front_point const& point = problem.fronts[l][points[l]];
      room -= point.bytes;
      gain += point.gain;
    }
    if (gain < bound_) gain += swap_.run(problem.fronts, room, points);
    if (gain <= gain_) return;
    gain_ = gain;
    points_.assign(points.begin(), points.end());
  }

  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<std::uint32_t> points_;
  lp_relaxation relaxed_;
  pair_swap swap_;
  /// The problem that variable fixing leaves, its linear relaxation, and the points of this
  /// relaxation.
  reduced_problem reduced_;
  lp_relaxation reduced_relaxed_;
  std::vector<std::uint32_t> reduced_points_;
  label_search labels_;
};

}  // namespace omnibal::inline v0::detail
