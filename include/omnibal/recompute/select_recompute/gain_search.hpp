#pragma once

/// \file
/// The largest gain for a budget of bytes where each layer takes one point of its front.

#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/select_recompute/count_search.hpp>
#include <omnibal/recompute/select_recompute/label_search.hpp>
#include <omnibal/recompute/select_recompute/pair_swap.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// How long to look for a better solution and a better bound.
struct gain_limits {
  std::size_t states;
  /// A gap between bound and gain of this share of the time is small enough.
  double max_gap;
};

/// The multiple-choice knapsack problem: the linear relaxation, then the numbers of layers that take
/// each point, then lists of partial solutions. Each begins with the best solution and bound of the
/// one before, and is left out where these have met.
class gain_search {
 public:
  /// Looks for a solution that gains more than `known`; without one `gain` is no more than that and
  /// there are no points. `time` is that of a solution without gain. Precondition: `budget >= 0`.
  void run(layer_fronts const& fronts, std::int64_t time, std::int64_t budget,
           gain_limits const& limits, std::int64_t known) {
    auto const is_enough = [&](std::int64_t gain) {
      return static_cast<double>(bound_ - gain) <=
             limits.max_gap * static_cast<double>(time - gain);
    };
    // Less is done for a proof alone.
    auto const effort = [&] { return is_enough(gain_) ? (limits.states + 2) / 3 : limits.states; };
    relax(fronts, budget, known);
    if (gain_ < bound_) search_core(limits.states);
    if (gain_ < bound_) search_counts(effort());
    if (gain_ < bound_) search_lists(effort(), is_enough);
  }

  /// The same in less time, without lists of partial solutions.
  void bound(layer_fronts const& fronts, std::int64_t budget, std::size_t states,
             std::int64_t known) {
    relax(fronts, budget, known);
    if (gain_ < bound_ && !points_.empty())
      gain_ += exchange_.run(fronts, room_of(points_), points_);
    if (gain_ < bound_) search_counts(states);
  }

  /// The linear relaxation alone.
  [[nodiscard]] hull_relaxation const& relax(layer_fronts const& fronts, std::int64_t budget) {
    relaxed_.solve(fronts, budget);
    return relaxed_;
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// No solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// The number of the point that each layer takes in the best solution.
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  void relax(layer_fronts const& fronts, std::int64_t budget, std::int64_t known) {
    fronts_ = &fronts;
    budget_ = budget;
    gain_ = known;
    points_.clear();
    relaxed_.solve(fronts, budget);
    bound_ = std::max(known, relaxed_.bound());
    if (relaxed_.gain() <= known) return;
    relaxed_.write_points(fronts.size(), points_);
    gain_ = relaxed_.gain();
  }

  void search_core(std::size_t states) {
    core_.run(*fronts_, budget_, relaxed_, states);
    auto const points = core_.points();
    if (!points.empty()) {
      std::int64_t const more = exchange_.run(*fronts_, room_of(points), points);
      keep(core_.gain() + more, points);
    } else if (!points_.empty()) {
      gain_ += exchange_.run(*fronts_, room_of(points_), points_);
    }
  }

  void search_counts(std::size_t states) {
    auto const offer = [&](std::vector<std::uint32_t>& points) {
      std::int64_t gain = 0;
      for (std::size_t l = 0; l != points.size(); ++l) gain += (*fronts_)[l][points[l]].gain;
      gain += exchange_.run(*fronts_, room_of(points), points);
      keep(gain, points);
      return gain_;
    };
    bound_ = std::min(bound_,
                      counts_.run(*fronts_, budget_, relaxed_.broken(), gain_, 8 * states, offer));
  }

  template <class IsEnough>
  void search_lists(std::size_t states, IsEnough const& is_enough) {
    lists_.run(*fronts_, budget_, relaxed_, states, gain_, is_enough);
    bound_ = std::min(bound_, lists_.bound());
    if (lists_.points().empty()) return;
    auto const points = lists_.points();
    points_.assign(points.begin(), points.end());
    gain_ = lists_.gain();
    if (gain_ < bound_) gain_ += exchange_.run(*fronts_, room_of(points_), points_);
  }

  void keep(std::int64_t gain, std::span<std::uint32_t const> points) {
    if (gain <= gain_) return;
    gain_ = gain;
    points_.assign(points.begin(), points.end());
  }

  /// What points leave of the budget.
  [[nodiscard]] std::int64_t room_of(std::span<std::uint32_t const> points) const {
    std::int64_t room = budget_;
    for (std::size_t l = 0; l != points.size(); ++l) room -= (*fronts_)[l][points[l]].bytes;
    return room;
  }

  layer_fronts const* fronts_ = nullptr;
  std::int64_t budget_ = 0;
  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<std::uint32_t> points_;
  hull_relaxation relaxed_;
  point_exchange exchange_;
  core_search core_;
  count_search counts_;
  list_search lists_;
};

}  // namespace omnibal::inline v0::detail
