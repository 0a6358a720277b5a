#pragma once

/// \file
/// The largest gain for a budget of bytes where each layer takes one point of its front.

#include <omnibal/config.hpp>
#include <omnibal/detail/choice_table.hpp>
#include <omnibal/recompute/select_recompute/label_search.hpp>
#include <omnibal/recompute/select_recompute/relaxation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace omnibal::inline v0::detail {

/// Betters a solution by other points for one layer or two. Nearly equal layers differ by little,
/// so that with many of them some pair of exchanges fills nearly all of the budget.
class pair_swap {
 public:
  /// Exchanges points, each time with the largest gain, while the solution gains by it. `room` is
  /// what it leaves of the budget; the result is the gain.
  [[nodiscard]] std::int64_t run(pareto_fronts const& fronts, std::int64_t room,
                                 std::span<std::uint32_t> points) {
    std::int64_t gain = 0;
    while (find_pair(fronts, room, points)) {
      for (exchange const& one : pair_) {
        gain += one.gain;
        room -= one.bytes;
        if (one.layer != nowhere) points[one.layer] = one.point;
      }
    }
    return gain;
  }

 private:
  static constexpr std::uint32_t nowhere = std::numeric_limits<std::uint32_t>::max();

  /// What a layer takes and gains more with another point.
  struct exchange {
    std::int64_t bytes;
    std::int64_t gain;
    std::uint32_t layer;
    std::uint32_t point;
  };

  /// The exchanges with the largest gains up to a number of bytes, of two layers.
  struct best_two {
    std::uint32_t first;
    std::uint32_t second;
  };

  bool find_pair(pareto_fronts const& fronts, std::int64_t room,
                 std::span<std::uint32_t const> points) {
    list_exchanges(fronts, points);
    std::int64_t most = 0;
    std::size_t fitting = by_bytes_.size();
    for (sort_key const& key : by_bytes_) {
      while (fitting != 0 &&
             static_cast<int128>(key.number) + by_bytes_[fitting - 1].number > room) {
        --fitting;
      }
      if (fitting == 0) break;
      exchange const& one = exchanges_[key.place];
      best_two const& best = best_[fitting - 1];
      exchange const& first = exchanges_[best.first];
      exchange const& other = first.layer != one.layer ? first : exchanges_[best.second];
      if (other.layer == one.layer || one.gain + other.gain <= most) continue;
      most = one.gain + other.gain;
      pair_[0] = one;
      pair_[1] = other;
    }
    return most > 0;
  }

  /// All exchanges and their order by bytes, among them one that changes nothing.
  void list_exchanges(pareto_fronts const& fronts, std::span<std::uint32_t const> points) {
    exchanges_.clear();
    exchanges_.push_back({0, 0, nowhere, 0});
    for (std::uint32_t layer = 0; layer != fronts.size(); ++layer) {
      auto const front = fronts[layer];
      front_point const& taken = front[points[layer]];
      for (std::uint32_t p = 0; p != front.size(); ++p) {
        if (p == points[layer]) continue;
        exchanges_.push_back({front[p].bytes - taken.bytes, front[p].gain - taken.gain, layer, p});
      }
    }
    by_bytes_.clear();
    for (exchange const& one : exchanges_) by_bytes_.push_back({one.bytes, by_bytes_.size()});
    sort_keys(by_bytes_);
    best_.clear();
    auto const least = static_cast<std::uint32_t>(by_bytes_.front().place);
    best_two best{least, least};
    for (sort_key const& key : by_bytes_) {
      auto const i = static_cast<std::uint32_t>(key.place);
      exchange const& one = exchanges_[i];
      exchange const& first = exchanges_[best.first];
      bool const has_second = exchanges_[best.second].layer != first.layer;
      if (one.layer == first.layer) {
        if (one.gain > first.gain) best.first = i;
      } else if (one.gain > first.gain) {
        best = {i, best.first};
      } else if (!has_second || one.gain > exchanges_[best.second].gain) {
        best.second = i;
      }
      best_.push_back(best);
    }
  }

  std::vector<exchange> exchanges_;
  std::vector<sort_key> by_bytes_;
  std::vector<best_two> best_;
  exchange pair_[2]{};
};

/// How long to look for a better solution and a better bound.
struct gain_limits {
  std::size_t states;
  /// A gap between bound and gain of this share of the time is small enough.
  double max_gap;
};

/// The multiple-choice knapsack problem: linear relaxation, core problem, then label search of what
/// reduced costs leave, each from the solution and bound of the one before, until these meet.
class knapsack {
 public:
  /// Looks for a solution that gains more than `known`; without one `gain` is no more than that and
  /// there are no points. `time` is that of a solution without gain. Precondition: `budget >= 0`.
  void run(pareto_fronts const& fronts, std::int64_t time, std::int64_t budget,
           gain_limits const& limits, std::int64_t known) {
    relax(fronts, budget, known);
    if (gain_ < bound_) search_core(limits.states);
    search_labels(time, limits);
  }

  /// The same in less time, where the bound matters most: without the core problem, and no further
  /// than the bound is close enough.
  void bound(pareto_fronts const& fronts, std::int64_t time, std::int64_t budget,
             gain_limits const& limits, std::int64_t known) {
    relax(fronts, budget, known);
    if (gain_ < bound_ && !points_.empty()) {
      gain_ += swap_.run(fronts, room_of(points_), points_);
    }
    if (!is_enough(time, limits, gain_)) search_labels(time, limits);
  }

  /// The linear relaxation alone.
  [[nodiscard]] lp_relaxation const& relax(pareto_fronts const& fronts, std::int64_t budget) {
    relaxed_.solve(fronts, budget);
    return relaxed_;
  }

  [[nodiscard]] std::int64_t gain() const { return gain_; }
  /// No solution gains more.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// The number of the point that each layer takes in the best solution.
  [[nodiscard]] std::span<std::uint32_t const> points() const { return points_; }

 private:
  /// Equal layers have at most this many points for each state together.
  static constexpr std::size_t points_for_state = 64;
  static constexpr std::size_t most_share = 4;

  void relax(pareto_fronts const& fronts, std::int64_t budget, std::int64_t known) {
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

  [[nodiscard]] bool is_enough(std::int64_t time, gain_limits const& limits,
                               std::int64_t gain) const {
    return static_cast<double>(bound_ - gain) <= limits.max_gap * static_cast<double>(time - gain);
  }

  void search_core(std::size_t states) {
    core_.run(*fronts_, budget_, relaxed_, states);
    auto const points = core_.points();
    if (!points.empty()) {
      keep(points);
    } else if (!points_.empty()) {
      gain_ += swap_.run(*fronts_, room_of(points_), points_);
    }
  }

  void search_labels(std::int64_t time, gain_limits const& limits) {
    if (gain_ >= bound_) return;
    // Less is done for a proof alone.
    std::size_t const states =
        is_enough(time, limits, gain_) ? (limits.states + 2) / 3 : limits.states;
    if (!reduced_.reduce(*fronts_, budget_, relaxed_, gain_, points_for_state * states)) {
      bound_ = gain_;
      return;
    }
    std::int64_t const base = reduced_.base_gain();
    lp_relaxation& rest = relaxed_;
    rest.solve(reduced_.fronts(), reduced_.budget());
    if (base + rest.gain() > gain_) {
      rest.write_points(reduced_.fronts().size(), rest_points_);
      keep(reduced_.expand(rest_points_));
    }
    bound_ = std::max(gain_, std::min(bound_, base + rest.bound()));
    if (gain_ >= bound_) return;
    // Points that are out leave their states to the others.
    std::size_t const shared =
        std::clamp(states * fronts_->point_count() / reduced_.fronts().point_count(), states,
                   most_share * states);
    labels_.run(reduced_.fronts(), reduced_.budget(), rest, shared, gain_ - base,
                [&](std::int64_t gain) { return is_enough(time, limits, base + gain); });
    if (labels_.has_bound()) bound_ = std::min(bound_, base + labels_.bound());
    if (!labels_.points().empty()) keep(reduced_.expand(labels_.points()));
    bound_ = std::max(gain_, bound_);
  }

  /// Takes a solution, bettered by swaps, if it is the best so far.
  void keep(std::span<std::uint32_t> points) {
    std::int64_t gain = 0;
    for (std::size_t l = 0; l != points.size(); ++l) gain += (*fronts_)[l][points[l]].gain;
    if (gain < bound_) gain += swap_.run(*fronts_, room_of(points), points);
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

  pareto_fronts const* fronts_ = nullptr;
  std::int64_t budget_ = 0;
  std::int64_t gain_ = 0;
  std::int64_t bound_ = 0;
  std::vector<std::uint32_t> points_;
  std::vector<std::uint32_t> rest_points_;
  lp_relaxation relaxed_;
  pair_swap swap_;
  core_problem core_;
  reduced_problem reduced_;
  label_search labels_;
};

}  // namespace omnibal::inline v0::detail
