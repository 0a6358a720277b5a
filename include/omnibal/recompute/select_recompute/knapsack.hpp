// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// The multiple-choice knapsack problem for one limit on transient bytes.

#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/select_recompute/label_search.hpp>
#include <omnibal/recompute/select_recompute/pair_swap.hpp>
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
  /// The share of the time that a gap between bound and gain may have.
  double max_gap;
};

/// The multiple-choice knapsack problem: linear relaxation, swaps, then label search of the points
/// that reduced costs leave. Each step starts from the solution and bound of the previous one,
/// until solution and bound are equal.
class knapsack {
 public:
  /// Searches for a solution that gains more than `known`. If there is none, `gain` is no more than
  /// `known` and there are no points. `time` is the time of a solution without gain. If `for_bound`
  /// is true, the search ends when the bound is close enough. Precondition: `budget >= 0`.
  void run(pareto_fronts const& fronts, std::int64_t time, std::int64_t budget,
           gain_limits const& limits, std::int64_t known, bool for_bound = false) {
    start_from_relaxation(fronts, budget, known);
    if (!for_bound || !is_enough(time, limits, gain_)) search_labels(fronts, time, budget, limits);
  }

  /// Solves only the linear relaxation.
  [[nodiscard]] lp_relaxation const& relax(pareto_fronts const& fronts, std::int64_t budget) {
    relaxed_.solve(fronts, budget);
    return relaxed_;
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// No solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// The number of the point of each layer in the best solution.
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  /// The factor on the states that limits the points of a front for equal layers.
  static constexpr std::size_t points_for_state = 64;
  static constexpr std::size_t max_share = 4;

  void start_from_relaxation(pareto_fronts const& fronts, std::int64_t budget, std::int64_t known) {
    gain_ = known;
    points_.clear();
    relaxed_.solve(fronts, budget);
    bound_ = std::max(known, relaxed_.bound());
    if (relaxed_.gain() <= known) return;
    relaxed_.write_points(fronts.size(), points_);
    gain_ = relaxed_.gain();
    if (gain_ < bound_) gain_ += swap_.run(fronts, relaxed_.room(), points_);
  }

  [[nodiscard]] bool is_enough(std::int64_t time, gain_limits const& limits,
                               std::int64_t gain) const {
    return static_cast<double>(bound_ - gain) <= limits.max_gap * static_cast<double>(time - gain);
  }

  void search_labels(pareto_fronts const& fronts, std::int64_t time, std::int64_t budget,
                     gain_limits const& limits) {
    if (gain_ >= bound_) return;
    // A search only for a proof has fewer states.
    std::size_t const states =
        is_enough(time, limits, gain_) ? (limits.states + 2) / 3 : limits.states;
    if (!reduced_.reduce(fronts, budget, relaxed_, gain_, points_for_state * states)) {
      bound_ = gain_;
      return;
    }
    std::int64_t const base = reduced_.base_gain();
    lp_relaxation& rest = relaxed_;
    rest.solve(reduced_.fronts(), reduced_.budget());
    if (base + rest.gain() > gain_) {
      rest.write_points(reduced_.fronts().size(), rest_points_);
      keep(fronts, budget, reduced_.expand(rest_points_));
    }
    bound_ = std::max(gain_, std::min(bound_, base + rest.bound()));
    if (gain_ >= bound_) return;
    // Points that are removed leave their states to the other points.
    std::size_t const shared =
        std::clamp(states * fronts.point_count() / reduced_.fronts().point_count(), states,
                   max_share * states);
    labels_.run(reduced_.fronts(), reduced_.budget(), rest, shared, gain_ - base,
                [&](std::int64_t gain) { return is_enough(time, limits, base + gain); });
    if (labels_.has_bound()) bound_ = std::min(bound_, base + labels_.bound());
    if (!labels_.points().empty()) keep(fronts, budget, reduced_.expand(labels_.points()));
    bound_ = std::max(gain_, bound_);
  }

  /// Swaps layers of a solution, and keeps it if it is the best so far.
  void keep(pareto_fronts const& fronts, std::int64_t budget, std::span<std::uint32_t> points) {
    std::int64_t room = budget;
    std::int64_t gain = 0;
    for (std::size_t l = 0; l != points.size(); ++l) {
      room -= fronts[l][points[l]].bytes;
      gain += fronts[l][points[l]].gain;
    }
    if (gain < bound_) gain += swap_.run(fronts, room, points);
    if (gain <= gain_) return;
    gain_ = gain;
    points_.assign(points.begin(), points.end());
  }

  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<std::uint32_t> points_;
  std::vector<std::uint32_t> rest_points_;
  lp_relaxation relaxed_;
  pair_swap swap_;
  reduced_problem reduced_;
  label_search labels_;
};

}  // namespace omnibal::inline v0::detail
